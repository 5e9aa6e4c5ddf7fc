package machine

import (
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/wire/errcode"
)

// Lookup is one ListOffsets request, or with Epochs one OffsetForLeaderEpoch request, to one broker.
type Lookup struct {
	Broker int32
	Epochs bool
	Parts  []LookupPart
}

// LookupPart is one partition of a Lookup.
type LookupPart struct {
	TopicPartition
	LeaderEpoch int32 // current leader epoch as we know it, -1 unknown
	Timestamp   int64 // ListOffsets: a time, -1 latest, -2 earliest
	Epoch       int32 // OffsetForLeaderEpoch: the epoch whose end is asked for

	generation uint32
}

// FoundOffset is the answer about one partition of a ListOffsets request; Offset is -1 if no record is so late.
type FoundOffset struct {
	Code   errcode.Code
	Offset int64
	Epoch  int32
}

// EpochEnd is the answer about one partition of an OffsetForLeaderEpoch request: the largest epoch up to the one
// asked for that the log has, and where it ends. Both are -1 if the log knows nothing of it. Consumed is filled
// in by the driver: what the application has been given by now.
type EpochEnd struct {
	Code     errcode.Code
	Epoch    int32
	End      int64
	Consumed Position
}

// with adds a partition to a lookup, which is made if there is none.
func (l *Lookup) with(f *Fetcher, p *partition, now time.Time) *Lookup {
	if l == nil {
		l = &Lookup{}
	}
	l.Parts = append(l.Parts, LookupPart{TopicPartition: p.TopicPartition, LeaderEpoch: p.leaderEpoch,
		Timestamp: p.where.timestamp(now), Epoch: p.next.Epoch, generation: p.generation})
	return l
}

// asked finds the partition that an answer is about, nil if the answer is void by now.
func (f *Fetcher) asked(part LookupPart, s state) *partition {
	p := f.byName[part.TopicPartition]
	if p == nil || p.generation != part.generation || p.state != s || !p.busy {
		return nil
	}
	p.busy = false
	return p
}

// offsets takes the answer of a ListOffsets request.
func (f *Fetcher) offsets(now time.Time, ev OffsetsReceived, eff *Effects) {
	eff.Wake = true
	f.reached(now, ev.Lookup.Broker, ev.Err)
	for i, part := range ev.Lookup.Parts {
		p := f.asked(part, resolving)
		switch {
		case p == nil:
		case ev.Err != nil:
			f.retry(p, now, ev.Lookup.Broker, ev.Err, false, eff)
			eff.Refresh = true
		case ev.Found[i].Code != errcode.None:
			f.lookupError(p, now, ev.Lookup.Broker, ev.Found[i].Code, eff)
		default:
			f.resolved(p, ev.Found[i], eff)
		}
	}
}

// resolved ends a search, or continues it at the other end of the log.
func (f *Fetcher) resolved(p *partition, found FoundOffset, eff *Effects) {
	p.fine()
	switch {
	case p.nearest && p.where != Latest && p.nearFrom >= found.Offset:
		p.where = Latest // above the start of the log, so perhaps above its end
		return
	case p.nearest && p.where == Latest && p.nearFrom >= 0 && p.nearFrom < found.Offset:
		found = FoundOffset{Offset: p.nearFrom, Epoch: -1} // the log has grown up to it meanwhile
	case found.Offset < 0:
		p.where = Latest // no record is so late: what comes next is
		return
	}
	old, first, why, where := p.next, !p.started, p.why, p.where
	p.moveTo(Position{found.Offset, found.Epoch}, eff)
	kind := NoticeReset
	if first {
		kind = NoticeStarted
	}
	eff.Notices = append(eff.Notices, Notice{Kind: kind, TopicPartition: p.TopicPartition, Broker: p.leader, Old: old, New: p.next,
		Where: where, Reason: why})
}

// epochEnds takes the answer of an OffsetForLeaderEpoch request.
func (f *Fetcher) epochEnds(now time.Time, ev EpochEndsReceived, eff *Effects) {
	eff.Wake = true
	f.reached(now, ev.Lookup.Broker, ev.Err)
	for i, part := range ev.Lookup.Parts {
		p := f.asked(part, validating)
		switch {
		case p == nil:
		case ev.Err != nil:
			f.retry(p, now, ev.Lookup.Broker, ev.Err, false, eff)
			eff.Refresh = true
		case ev.Ends[i].Code != errcode.None:
			f.lookupError(p, now, ev.Lookup.Broker, ev.Ends[i].Code, eff)
		default:
			p.fine()
			p.state = fetching
			f.validate(p, ev.Ends[i], eff)
		}
	}
}

// validate compares a position with the log of its leader (KIP-320), and deals with a log that was cut.
func (f *Fetcher) validate(p *partition, end EpochEnd, eff *Effects) {
	if end.End >= p.next.Offset && end.Epoch >= p.next.Epoch {
		return
	}
	to := Position{min(end.End, p.next.Offset), end.Epoch}
	if end.End < 0 || end.Epoch < 0 {
		to = Position{-1, -1}
	}
	seen := end.Consumed
	if to.Offset >= 0 && seen.Offset >= 0 && seen.Offset <= to.Offset && seen.Epoch <= to.Epoch {
		// Nothing that is gone has been handed out: forget what is buffered and read it again.
		p.void(eff)
		p.next = seen
		return
	}
	err := &TruncatedError{TopicPartition: p.TopicPartition, From: seen, To: to}
	if seen.Offset < 0 {
		err.From = p.next
	}
	p.void(eff)
	eff.Notices = append(eff.Notices, Notice{Kind: NoticeTruncated, TopicPartition: p.TopicPartition, Broker: p.leader, Old: err.From,
		New: to, Reason: "the log was cut below the position", Err: err})
	switch {
	case f.cfg.Reset == Fail:
		f.halt(p, err, eff)
	case to.Offset < 0:
		p.resolve(f.cfg.Reset, "the new leader does not know the position")
	default:
		p.moveTo(to, eff)
	}
}

// lookupError deals with an error code about one partition of a look-up.
func (f *Fetcher) lookupError(p *partition, now time.Time, broker int32, code errcode.Code, eff *Effects) {
	switch code {
	case errcode.TopicAuthorizationFailed:
		f.retry(p, now, broker, code, true, eff)
	case errcode.OffsetNotAvailable, errcode.UnknownLeaderEpoch, errcode.UnknownServerError:
		f.retry(p, now, broker, code, false, eff)
	default:
		if !code.Retriable() {
			f.halt(p, fmt.Errorf("looking up a position: %w", code), eff)
			return
		}
		f.retry(p, now, broker, code, false, eff)
		eff.Refresh = true
	}
}

// reached notes whether a broker could be talked to.
func (f *Fetcher) reached(now time.Time, id int32, err error) {
	b := f.broker(id)
	if err == nil {
		b.failures = 0
		b.retryAt = zeroTime
		return
	}
	b.retryAt = now.Add(f.backoff.After(b.failures+1, &f.rand))
	b.failures++
}
