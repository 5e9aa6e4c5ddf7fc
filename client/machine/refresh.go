package machine

import "time"

// Refresh decides when metadata is asked for. Wishes are coalesced: however many come, one attempt is under way
// at most, and attempts keep a growing distance while they do not bring what is wished for.
//
//	idle     --Want, WantNew, age-->  due  --Started-->  asking  --Succeeded, Failed-->  idle
type Refresh struct {
	MaxAge  time.Duration
	Backoff Backoff
	// Rebootstrap and Trigger: start over from the seeds when asking has failed for so long (KIP-1102).
	Rebootstrap bool
	Trigger     time.Duration

	Rand Rand

	wanted  bool
	fresh   bool // wanted for topics that were not asked for yet: no reason to wait
	asking  bool
	again   bool // wanted while asking: the answer under way may be too old
	ever    bool // an answer has come
	last    time.Time
	next    time.Time // not before, for wishes
	success time.Time
	failing time.Time // since when attempts fail; zero when the last one did not
	over    bool      // a broker told us to start over
	rounds  int       // attempts since one that left no wish open
}

// Want asks for a refresh soon.
func (r *Refresh) Want() {
	r.wanted = true
	r.again = r.again || r.asking
}

// WantNew asks for a refresh at once, for topics that no attempt has asked for.
func (r *Refresh) WantNew() {
	r.Want()
	r.fresh = true
}

// WantFirst asks for any answer at once, where there has been none; an attempt under way will bring it.
func (r *Refresh) WantFirst() {
	if !r.asking {
		r.WantNew()
	}
}

// Wanted tells whether a wish is open.
func (r *Refresh) Wanted() bool { return r.wanted }

// Due is when the next attempt has to start; zero for not at all (asking already, or nobody ever asked).
func (r *Refresh) Due() time.Time {
	switch {
	case r.asking:
		return time.Time{}
	case r.wanted && r.fresh:
		return r.last // in the past: at once
	case r.wanted:
		return r.next
	case r.ever:
		return r.success.Add(r.MaxAge)
	}
	return time.Time{}
}

// IsDue tells whether an attempt has to start now.
func (r *Refresh) IsDue(now time.Time) bool {
	if r.asking || !r.wanted && !r.ever {
		return false
	}
	return !now.Before(r.Due())
}

// Started notes an attempt.
func (r *Refresh) Started(now time.Time) {
	r.asking, r.last, r.fresh, r.again = true, now, false, false
}

// Succeeded notes an answer; complete tells that it had everything that is wished for, full that it was about all
// topics and not only about new ones, whose answer makes the others no younger.
func (r *Refresh) Succeeded(now time.Time, complete, full bool) {
	if full || !r.ever {
		r.success = now
	}
	r.asking, r.ever, r.failing, r.over = false, true, time.Time{}, false
	if complete {
		r.rounds = 0
	} else {
		r.rounds++
	}
	r.wanted = !complete || r.again || r.fresh
	r.again = false
	r.next = now.Add(r.Backoff.After(max(r.rounds, 1), &r.Rand))
}

// Failed notes an attempt that no broker answered. The wish stays.
func (r *Refresh) Failed(now time.Time) {
	r.asking, r.wanted, r.fresh, r.again = false, true, false, false
	if r.failing.IsZero() {
		r.failing = now
	}
	r.rounds++
	r.next = now.Add(r.Backoff.After(r.rounds, &r.Rand))
}

// Restart makes the next attempts ask the seeds alone, until one succeeds: a broker said REBOOTSTRAP_REQUIRED.
func (r *Refresh) Restart() {
	r.wanted, r.over = true, true
}

// StartOver tells whether metadata has been failing for so long that only the seeds can help.
func (r *Refresh) StartOver(now time.Time) bool {
	return r.over || r.Rebootstrap && !r.failing.IsZero() && now.Sub(r.failing) >= r.Trigger
}

// Age is how old the newest answer is, zero before the first.
func (r *Refresh) Age(now time.Time) time.Duration {
	if !r.ever {
		return 0
	}
	return now.Sub(r.success)
}

// SeedID is the id under which the i-th seed goes until its broker id is known.
func SeedID(i int) int32 { return int32(-1 - i) }

// Candidates lists whom to ask for metadata, in order: brokers a connection is open to, then the other known
// ones and last the seeds, each group shuffled so that many clients do not all ask the same broker. Seeds come in
// only when no broker is known yet or rebootstrap allows it: a round that reaches them has found no known broker
// alive, which is when KIP-899 starts over. seedsOnly leaves the known ones out.
func Candidates(known, connected, seeds []int32, rebootstrap, seedsOnly bool, r *Rand) []int32 {
	var out []int32
	listed := make(map[int32]bool)
	add := func(ids []int32) {
		ids = append([]int32(nil), ids...)
		for i := len(ids) - 1; i > 0; i-- {
			j := r.Intn(i + 1)
			ids[i], ids[j] = ids[j], ids[i]
		}
		for _, id := range ids {
			if !listed[id] {
				listed[id] = true
				out = append(out, id)
			}
		}
	}
	if !seedsOnly {
		add(connected)
		add(known)
	}
	if len(known) == 0 || rebootstrap || seedsOnly {
		add(seeds)
	}
	return out
}
