package machine

import (
	"cmp"
	"slices"
	"time"
)

var zeroTime time.Time

const (
	// heldWait bounds how long a broker may wait for data while a partition of it is kept out of the request
	// (its buffer is full, its position is being looked up): the partition joins the next request, and must not
	// have to wait fetch.max.wait.ms for it. It also bounds how often such requests are made.
	heldWait = 50 * time.Millisecond
	// maxChunks bounds the deliveries of one partition that are not drained yet, however small they are.
	maxChunks = 64
	// placeWait is how long a partition that has no leader yet keeps waits short for all brokers, since it may turn
	// out to be led by any of them. It covers the metadata answers at the start.
	placeWait = 5 * time.Second
)

// round is what one plan gathers about one broker.
type round struct {
	broker   *broker
	want     []*partition // to be fetched from it
	held     int          // would be, but their buffers are full
	pending  int          // will be, when their positions are known
	starving bool         // one of want has nothing buffered
	offsets  *Lookup
	epochs   *Lookup
}

// plan looks at every partition and makes the requests that can be sent now.
func (f *Fetcher) plan(now time.Time, eff *Effects) {
	if f.view == nil {
		return
	}
	// A wait that is over is forgotten, so that Deadline never names a time that has passed.
	for _, b := range f.brokers {
		b.retryAt = pending(b.retryAt, now)
	}
	rounds := map[int32]*round{}
	var order []*round
	at := func(id int32) *round {
		r := rounds[id]
		if r == nil {
			r = &round{broker: f.broker(id)}
			rounds[id] = r
			order = append(order, r)
		}
		return r
	}
	placing := false
	for _, p := range f.parts {
		if !f.planPartition(p, now, at, eff) && now.Sub(p.failing) < placeWait {
			placing = true
		}
	}
	slices.SortFunc(order, func(a, b *round) int { return cmp.Compare(a.broker.id, b.broker.id) })
	for _, r := range order {
		if !r.broker.retryAt.IsZero() {
			continue
		}
		for _, l := range []*Lookup{r.offsets, r.epochs} {
			if l != nil {
				eff.Lookups = append(eff.Lookups, l)
				for _, part := range l.Parts {
					f.byName[part.TopicPartition].busy = true
				}
			}
		}
		if placing {
			r.pending++
		}
		if fetch := f.planFetch(r); fetch != nil {
			eff.Fetches = append(eff.Fetches, fetch)
		}
	}
}

// pending is a time if it is still to come.
func pending(t, now time.Time) time.Time {
	if now.Before(t) {
		return t
	}
	return zeroTime
}

// planPartition puts one partition where it belongs: into a look-up, a fetch, or a wait. It is false if nobody is
// known who could be asked about it.
func (f *Fetcher) planPartition(p *partition, now time.Time, at func(int32) *round, eff *Effects) (placed bool) {
	if due := f.reportAt(p); !due.IsZero() && !now.Before(due) {
		f.report(p, now, p.lastFetch, eff)
	}
	if due := f.standstillAt(p); !due.IsZero() && !now.Before(due) {
		p.standstill(now, eff)
	}
	p.retryAt = pending(p.retryAt, now)
	if p.state == halted || p.busy {
		if p.busy && p.leader >= 0 {
			at(p.leader).pending++
		}
		return true
	}
	from := f.source(p, now, eff)
	if from < 0 {
		if p.retryAt.IsZero() {
			f.retry(p, now, -1, f.whyNoLeader(p), f.denied(p), eff)
			eff.Refresh = true
		}
		return p.paused
	}
	r := at(from)
	switch {
	case !p.retryAt.IsZero():
		r.pending++
	case p.state == resolving:
		r.pending++
		r.offsets = r.offsets.with(f, p, now)
		r.offsets.Broker = from
	case p.state == validating:
		r.pending++
		r.epochs = r.epochs.with(f, p, now)
		r.epochs.Broker = from
		r.epochs.Epochs = true
	case p.paused:
	case p.bufferedBytes > int(f.cfg.MaxPartitionBytes) || p.bufferedChunks >= maxChunks:
		r.held++
	default:
		r.want = append(r.want, p)
		r.starving = r.starving || p.bufferedChunks == 0
	}
	return true
}

// source is the broker to ask about p: its leader, or for data the replica that the leader prefers, for as long
// as that lasts (KIP-392).
func (f *Fetcher) source(p *partition, now time.Time, eff *Effects) int32 {
	if p.state == fetching && p.preferred >= 0 {
		if now.Before(p.preferredTill) {
			return p.preferred
		}
		p.dropPreferred(eff)
	}
	if p.leader >= 0 && !f.view.Broker(p.leader) {
		return -1
	}
	return p.leader
}

// planFetch makes the next request to one broker. What the application still has to read counts: a request that
// fetches a few partitions of many would cut the answers into small pieces, so it waits until at least half of
// them have room, unless one has nothing left.
func (f *Fetcher) planFetch(r *round) *Fetch {
	b := r.broker
	if b.inFlight || len(r.want) == 0 || !(r.starving || len(r.want) >= r.held) {
		return nil
	}
	// Whoever returned data longest ago goes first, so that a limit on the answer starves nobody. Within a
	// session the broker does the same.
	slices.SortStableFunc(r.want, func(a, b *partition) int { return cmp.Compare(a.servedAt, b.servedAt) })
	parts := make([]FetchPart, len(r.want))
	for i, p := range r.want {
		parts[i] = FetchPart{TopicPartition: p.TopicPartition, TopicID: p.topicID, Offset: p.next.Offset, LeaderEpoch: p.leaderEpoch,
			FetchedEpoch: p.next.Epoch, MaxBytes: f.cfg.MaxPartitionBytes, generation: p.generation}
		p.lastFetch = b.id
	}
	fetch := &Fetch{Broker: b.id, MaxWait: f.cfg.MaxWait, ByID: usesIDs(parts)}
	fetch.MaxBytes = int32(min(int64(f.cfg.MaxBytes), int64(len(parts))*int64(f.cfg.MaxPartitionBytes)))
	if r.held+r.pending > 0 {
		fetch.MaxWait = min(fetch.MaxWait, heldWait)
	}
	fetch.SessionID, fetch.Epoch, fetch.Parts, fetch.Forget = b.session.next(parts)
	b.inFlight = true
	return fetch
}

// Deadline is when Woke is to be stepped at the latest even if nothing happens; zero if there is no such time.
func (f *Fetcher) Deadline() time.Time {
	var first time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if f.closed || f.view == nil {
		return first
	}
	for _, p := range f.parts {
		if p.state != halted && !p.busy {
			sooner(p.retryAt)
		}
		sooner(f.reportAt(p))
		sooner(f.standstillAt(p))
	}
	for _, b := range f.brokers {
		if !b.inFlight {
			sooner(b.retryAt)
		}
	}
	return first
}
