package machine

import (
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// FetchedPart is one partition of a fetch answer. Topic or TopicID names the topic, as the version has it.
type FetchedPart struct {
	TopicPartition
	TopicID       wire.UUID
	Code          errcode.Code
	HighWatermark int64
	LastStable    int64 // -1: the broker is too old to say, or read_uncommitted was asked
	LogStart      int64
	Preferred     int32  // replica to fetch from (KIP-392), -1 none
	Leader        Leader // who leads now (KIP-951); Broker is -1 if not said
	Diverging     *EpochEnd
	Aborted       []Aborted

	// Records are whole batches; the driver has cut off what is incomplete. Next is the position behind them, and
	// Broken is set if what follows cannot be cut into batches.
	Records []byte
	Next    Position
	Broken  error
	// Owner is the driver's: what the bytes are charged to.
	Owner any
}

// Chunk is the data of one partition out of one answer, in whole batches. The first may begin below From.
type Chunk struct {
	From, Next    Position
	Records       []byte
	Aborted       []Aborted
	HighWatermark int64
	LastStable    int64
	LogStart      int64
	TopicID       wire.UUID
	Owner         any
}

// fetched takes the answer to the one fetch in flight at a broker.
func (f *Fetcher) fetched(now time.Time, ev FetchReceived, eff *Effects) {
	eff.Wake = true
	b := f.broker(ev.Broker)
	b.inFlight = false
	if ev.Code != errcode.None {
		f.fetchRefused(now, b, ev.Code, eff)
		return
	}
	f.reached(now, b.id, nil)
	f.served++
	for i := range ev.Parts {
		part := &ev.Parts[i]
		asked, ok := b.session.part(part.Topic, part.TopicID, part.Partition)
		if !ok {
			continue // never asked for, or with an id that is no part of the session
		}
		p := f.byName[asked.TopicPartition]
		if p == nil || p.generation != asked.generation || p.state != fetching || p.next.Offset != asked.Offset ||
			p.topicID != asked.TopicID {
			continue // sought, removed, reset or replaced meanwhile: not what is wanted now
		}
		f.fetchedPart(p, now, b, part, eff)
	}
	b.session.received(ev.SessionID)
}

// fetchRefused deals with an error of the whole answer.
func (f *Fetcher) fetchRefused(now time.Time, b *broker, code errcode.Code, eff *Effects) {
	about := b.session.refused(code)
	b.failures++
	if !about || b.failures > 1 {
		b.retryAt = now.Add(f.backoff.After(b.failures, &f.rand))
	}
	kind := NoticeRetrying
	if about {
		kind = NoticeSession
	} else {
		eff.Refresh = true
	}
	eff.Notices = append(eff.Notices, Notice{Kind: kind, Broker: b.id, Old: Position{-1, -1}, New: Position{-1, -1},
		Reason: "the fetch session starts anew", Err: code})
	f.failing(now, b, code)
}

// fetchFailed deals with a fetch that has no answer.
func (f *Fetcher) fetchFailed(now time.Time, ev FetchFailed, eff *Effects) {
	eff.Wake, eff.Refresh = true, true
	b := f.broker(ev.Broker)
	b.inFlight = false
	b.session.lost()
	f.reached(now, b.id, ev.Err)
	eff.Notices = append(eff.Notices, Notice{Kind: NoticeRetrying, Broker: b.id, Old: Position{-1, -1}, New: Position{-1, -1},
		Reason: "no answer to a fetch", Err: ev.Err})
	f.failing(now, b, ev.Err)
	for _, p := range f.parts {
		if p.preferred == b.id {
			p.dropPreferred(eff)
		}
	}
}

// failing makes the partitions that a broker should have served count the time without progress.
func (f *Fetcher) failing(now time.Time, b *broker, err error) {
	for _, p := range f.parts {
		if p.lastFetch == b.id && p.state == fetching {
			if p.failing.IsZero() {
				p.failing = now
			}
			p.attempts++
			p.lastErr = err
		}
	}
}

// fetchedPart takes one partition of an answer.
func (f *Fetcher) fetchedPart(p *partition, now time.Time, b *broker, part *FetchedPart, eff *Effects) {
	if part.Leader.Broker >= 0 && part.Leader.Epoch > p.leaderEpoch {
		eff.Leaders = append(eff.Leaders, LeaderHint{p.TopicPartition, p.topicID, part.Leader})
	}
	if part.Code != errcode.None {
		f.fetchError(p, now, b, part.Code, eff)
		return
	}
	p.fine()
	p.stands(now, part.HighWatermark, part.LastStable)
	p.highWatermark, p.lastStable = part.HighWatermark, part.LastStable
	if part.LogStart >= 0 {
		p.logStart = part.LogStart
	}
	switch {
	case part.Diverging != nil:
		f.validate(p, *part.Diverging, eff)
		return
	case part.Preferred >= 0 && part.Preferred != b.id && f.view.Broker(part.Preferred):
		p.preferred, p.preferredTill = part.Preferred, now.Add(f.cfg.ReplicaExpiry)
		eff.Notices = append(eff.Notices, Notice{Kind: NoticeReplica, TopicPartition: p.TopicPartition, Broker: part.Preferred,
			Old: p.next, New: p.next, Reason: "the leader prefers this replica"})
	}
	if len(part.Records) > 0 && part.Next.Offset > p.next.Offset {
		f.deliver(p, part, eff)
	}
	if part.Broken != nil {
		f.damaged(p, now, part.Broken, eff)
	}
}

// stands takes note of how long the last stable offset has been where it is although there are records behind it.
func (p *partition) stands(now time.Time, highWatermark, lastStable int64) {
	switch {
	case lastStable < 0 || lastStable >= highWatermark:
		p.standing, p.standingTold = time.Time{}, false
	case lastStable != p.lastStable || p.standing.IsZero():
		p.standing, p.standingTold = now, false
	}
}

// standstillAt is when it is to be told that nothing more can be read because of an open transaction; zero if never.
func (f *Fetcher) standstillAt(p *partition) time.Time {
	if f.cfg.Standstill <= 0 || p.standing.IsZero() || p.standingTold || p.state != fetching || p.paused || p.next.Offset < p.lastStable {
		return time.Time{}
	}
	return p.standing.Add(f.cfg.Standstill)
}

// standstill tells so, once until the last stable offset moves.
func (p *partition) standstill(now time.Time, eff *Effects) {
	p.standingTold = true
	eff.Notices = append(eff.Notices, Notice{Kind: NoticeStandstill, TopicPartition: p.TopicPartition, Broker: p.leader,
		Old: Position{p.lastStable, -1}, New: Position{p.highWatermark, -1},
		Reason: fmt.Sprintf("an open transaction has kept the last stable offset at %d for %s; %d offsets behind it cannot be read", p.lastStable,
			now.Sub(p.standing).Round(time.Millisecond), p.highWatermark-p.lastStable)})
}

// deliver hands a chunk to the application and moves on behind it.
func (f *Fetcher) deliver(p *partition, part *FetchedPart, eff *Effects) {
	p.servedAt = f.served
	p.bufferedBytes += len(part.Records)
	p.bufferedChunks++
	eff.Deliver = append(eff.Deliver, Delivery{TopicPartition: p.TopicPartition, Generation: p.generation, Chunk: &Chunk{
		From: p.next, Next: part.Next, Records: part.Records, Aborted: part.Aborted, HighWatermark: part.HighWatermark,
		LastStable: part.LastStable, LogStart: part.LogStart, TopicID: p.topicID, Owner: part.Owner}})
	p.next = part.Next
}

// damaged deals with bytes that cannot be cut into batches, as broken does for those that cannot be read.
func (f *Fetcher) damaged(p *partition, now time.Time, err error, eff *Effects) {
	err = fmt.Errorf("%w at offset %d: %w", ErrCorrupt, p.next.Offset, err)
	if p.brokenAt == p.next.Offset {
		f.halt(p, err, eff)
		return
	}
	p.brokenAt = p.next.Offset
	f.retry(p, now, p.lastFetch, err, false, eff)
}

// fetchError deals with an error code about one partition.
func (f *Fetcher) fetchError(p *partition, now time.Time, b *broker, code errcode.Code, eff *Effects) {
	fromReplica := p.preferred == b.id
	if code != errcode.OffsetNotAvailable {
		p.dropPreferred(eff)
	}
	switch code {
	case errcode.OffsetOutOfRange:
		if fromReplica {
			return // the replica lags behind, or is ahead with its log start; the leader decides
		}
		f.reset(p, "the offset is out of range", &RangeError{p.TopicPartition, p.next.Offset, p.logStart, p.highWatermark}, eff)
	case errcode.OffsetNotAvailable, errcode.UnknownLeaderEpoch, errcode.UnknownServerError:
		f.retry(p, now, b.id, code, false, eff)
	case errcode.TopicAuthorizationFailed:
		f.retry(p, now, b.id, code, true, eff)
		eff.Refresh = true
	case errcode.CorruptMessage:
		f.damaged(p, now, code, eff)
	default:
		if !code.Retriable() {
			f.halt(p, code, eff)
			return
		}
		f.retry(p, now, b.id, code, false, eff)
		eff.Refresh = true
	}
}

// denied tells whether metadata says that the application may not read the topic.
func (f *Fetcher) denied(p *partition) bool {
	_, code, _ := f.view.Topic(p.Topic)
	return code == errcode.TopicAuthorizationFailed || code == errcode.InvalidTopicException
}

// whyNoLeader says what metadata has instead of a leader.
func (f *Fetcher) whyNoLeader(p *partition) error {
	if _, code, known := f.view.Topic(p.Topic); known && code != errcode.None {
		return code
	}
	l := f.view.Leader(p.TopicPartition)
	if l.Code != errcode.None {
		return fmt.Errorf("%w: %w", ErrNoLeader, l.Code)
	}
	if p.leader >= 0 {
		return fmt.Errorf("%w: broker %d is not in the metadata", ErrNoLeader, p.leader)
	}
	return ErrNoLeader
}
