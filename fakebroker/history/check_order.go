package history

import "slices"

// checkPolls goes through what each process polled of each partition: upwards, and nothing left out that it could see.
// Being assigned a partition anew, losing it, or moving its position begins a new run, before which nothing is compared.
func (f *facts) checkPolls() {
	rank := map[TopicPartition]*ranks{}
	for _, tp := range f.partitions() {
		rank[tp] = &ranks{visible: ranked(f.logs[tp].visible), all: ranked(f.logs[tp].all)}
	}
	for _, name := range f.names() {
		at := map[TopicPartition]position{}
		for _, o := range f.process[name] {
			switch o.Kind {
			case Poll:
				for _, r := range o.Reads {
					before, known := at[r.TopicPartition]
					at[r.TopicPartition] = position{r.Offset, o}
					if known {
						f.checkStep(before, r, o, rank[r.TopicPartition])
					}
				}
			case Assigned, Revoked, Lost, Moved:
				for _, p := range o.Offsets {
					delete(at, p.TopicPartition)
				}
			case Crashed:
				clear(at)
			}
		}
	}
}

// position is what a process polled last of a partition.
type position struct {
	offset int64
	poll   *Op
}

// ranks are the places of offsets among those that are known: two are neighbours if nothing is known between them.
type ranks struct {
	visible, all map[int64]int
}

func ranked(offsets []int64) map[int64]int {
	m := make(map[int64]int, len(offsets))
	for i, o := range offsets {
		m[o] = i
	}
	return m
}

// checkStep compares a record with the one before it.
func (f *facts) checkStep(before position, r Read, o *Op, rank *ranks) {
	inside := before.poll == o
	if r.Offset <= before.offset {
		kind := NonmonotonicPoll
		if inside {
			kind = IntNonmonotonicPoll
		}
		f.report.find(kind, []*Op{before.poll, o}, "%s polled offset %d of %s after %d", o.Process, r.Offset, r.TopicPartition, before.offset)
		return
	}
	places, offsets := rank.visible, f.logs[r.TopicPartition].visible
	if o.Level == ReadUncommitted {
		places, offsets = rank.all, f.logs[r.TopicPartition].all
	}
	from, known := places[before.offset]
	to := places[r.Offset]
	if !known || to == from+1 {
		return
	}
	kind := PollSkip
	if inside {
		kind = IntPollSkip
	}
	left := offsets[from+1]
	s := f.logs[r.TopicPartition].at[left]
	f.report.find(kind, []*Op{before.poll, s.by, s.read, o}, "%s polled offset %d of %s after %d and left out %d", o.Process, r.Offset, r.TopicPartition, before.offset, left)
}

func (f *facts) names() []string {
	var list []string
	for name := range f.process {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// checkSends compares the order in which records were sent with that in which they lie: within a process by the calls of
// Send, between processes where one was acknowledged before the other was sent.
func (f *facts) checkSends() {
	for _, name := range f.names() {
		last := map[TopicPartition]*Op{} // the highest offset so far
		for _, o := range f.process[name] {
			if o.Kind != Send || o.Outcome != OK || o.Offset < 0 {
				continue
			}
			before := last[o.tp()]
			if before == nil || o.Offset > before.Offset {
				last[o.tp()] = o
				continue
			}
			kind := NonmonotonicSend
			if o.Txn > 0 && o.Txn == before.Txn {
				kind = IntNonmonotonicSend
			}
			f.report.find(kind, []*Op{before, o}, "%s sent %q before %q, and they lie in %s at %d and %d", name, before.Value, o.Value, o.tp(), before.Offset, o.Offset)
		}
	}
	f.checkRealTime()
}

// checkRealTime goes through the acknowledged sends by time: each must lie behind everything that was acknowledged before
// it was sent. Sends of one process are left to the check before.
func (f *facts) checkRealTime() {
	var sent []*Op
	for i := range f.ops {
		if o := &f.ops[i]; o.Kind == Send && o.Outcome == OK && o.Offset >= 0 {
			sent = append(sent, o) // by invocation
		}
	}
	acked := slices.Clone(sent)
	slices.SortFunc(acked, func(a, b *Op) int { return a.completed - b.completed })
	highest, i := map[TopicPartition]*Op{}, 0
	for _, o := range sent {
		for ; i < len(acked) && acked[i].completed < o.invoked; i++ {
			if a := acked[i]; highest[a.tp()] == nil || a.Offset > highest[a.tp()].Offset {
				highest[a.tp()] = a
			}
		}
		if a := highest[o.tp()]; a != nil && a.Offset >= o.Offset && a.Process != o.Process {
			f.report.find(RealTimeOrder, []*Op{a, o}, "%q was acknowledged at %s before %q was sent, which lies at %d", a.Value, place(a.Topic, a.Partition, a.Offset), o.Value, o.Offset)
		}
	}
}
