package machine

import (
	"time"

	"github.com/ottla-kafka/ottla/wire"
)

// state of one partition. The transitions:
//
//	         add, seek to a place        ListOffsets answered
//	(none) ────────────────────▶ resolving ────────────▶ fetching
//	         add, seek to an offset                        │  ▲
//	(none) ────────────────────────────────────────────────┼─▶│
//	         seek to an offset with its epoch              │  │
//	(none) ────────────────────▶ validating ───────────────┼──┘  OffsetForLeaderEpoch agrees, or the cut was
//	                              ▲     │                  │     below nothing that was handed out
//	         newer leader epoch   └─────┼──────────────────┤
//	         out of range, cut log      └────▶ resolving ◀─┤     by the reset policy
//	         cut log, out of range, replaced topic, data    │
//	         corrupt twice, an error that stays ──▶ halted ◀┘     the policy is Fail or Stop
//	halted ──── seek ───▶ as from (none)
//
// A partition is "busy" while a lookup about it is in flight, and waits until retryAt after a failure. paused
// and the buffered bytes only keep it out of fetches; they are no states.
type state uint8

const (
	resolving state = iota
	validating
	fetching
	halted
)

// String names the state.
func (s state) String() string {
	return [...]string{"resolving", "validating", "fetching", "halted"}[s]
}

// partition is what is known of one partition that is read.
type partition struct {
	TopicPartition
	topicID wire.UUID // zero until metadata named it; then it never changes silently
	state   state
	paused  bool
	busy    bool

	// generation grows when what is buffered or in flight becomes void: seek, cut log, corrupt data.
	generation uint32
	// next is what is fetched next. What the application has been given ends at or before it.
	next Position
	// where and why are what a resolving partition looks for. tried is the other end for Nearest.
	where    Where
	why      string
	nearest  bool
	nearFrom int64
	started  bool // it had a position before: a new one is a reset and not a start

	leader        int32 // -1 unknown
	leaderEpoch   int32
	preferred     int32 // a replica to fetch from, -1 the leader
	preferredTill time.Time

	// buffered is what was delivered and is not drained yet.
	bufferedBytes  int
	bufferedChunks int
	servedAt       uint64 // when it last returned data, counted in answers

	highWatermark, lastStable, logStart int64     // -1 unknown
	standing                            time.Time // since when an open transaction has kept lastStable where it is; zero: it does not
	standingTold                        bool

	retryAt   time.Time
	attempts  int       // failures in a row
	failing   time.Time // since when; zero when fine
	reported  time.Time // when the application was last told of it
	lastErr   error
	brokenAt  int64 // an offset whose batch came damaged once, -1 none
	lastFetch int32 // broker of the last fetch that named it, -1 none
}

func newPartition(tp TopicPartition) *partition {
	return &partition{TopicPartition: tp, leader: -1, leaderEpoch: -1, preferred: -1, next: Position{-1, -1},
		highWatermark: -1, lastStable: -1, logStart: -1, brokenAt: -1, lastFetch: -1}
}

// void makes everything older worthless: what is buffered, in flight, or being looked up.
func (p *partition) void(eff *Effects) {
	p.generation++
	p.busy = false
	p.bufferedBytes, p.bufferedChunks = 0, 0
	eff.Voided = append(eff.Voided, Voided{p.TopicPartition, p.generation})
}

// fine ends a row of failures.
func (p *partition) fine() {
	p.attempts, p.lastErr = 0, nil
	p.retryAt, p.failing, p.reported = time.Time{}, time.Time{}, time.Time{}
}

// resolve starts looking up a position.
func (p *partition) resolve(w Where, why string) {
	p.state, p.where, p.why = resolving, w, why
	p.nearest, p.nearFrom = w == Nearest, p.next.Offset
	p.busy = false
}

// moveTo makes a position current and tells the application, in order with the data.
func (p *partition) moveTo(pos Position, eff *Effects) {
	p.next = pos
	p.state = fetching
	p.started = true
	p.preferred = -1
	eff.Deliver = append(eff.Deliver, Delivery{TopicPartition: p.TopicPartition, Generation: p.generation, Moved: &pos})
}

// reset applies the reset policy to a position that cannot be used. err is what is reported when the policy is
// to fail. What was delivered before stays good: it is handed out first.
func (f *Fetcher) reset(p *partition, why string, err error, eff *Effects) {
	if f.cfg.Reset == Fail {
		f.halt(p, err, eff)
		return
	}
	p.resolve(f.cfg.Reset, why)
	eff.Wake = true
}

// halt stops a partition until the application seeks, and tells why.
func (f *Fetcher) halt(p *partition, err error, eff *Effects) {
	p.state = halted
	p.busy = false
	p.lastErr = err
	eff.Deliver = append(eff.Deliver, Delivery{TopicPartition: p.TopicPartition, Generation: p.generation,
		Failure: &Failure{Broker: p.lastFetch, Attempts: p.attempts + 1, Halted: true, Err: err}})
	eff.Notices = append(eff.Notices, Notice{Kind: NoticeHalted, TopicPartition: p.TopicPartition, Broker: p.lastFetch,
		Old: p.next, New: Position{-1, -1}, Reason: "waits for a seek", Err: err})
	p.attempts = 0
	p.failing = time.Time{}
}

// retry notes a failure that another attempt may cure. tell makes the application hear of it at once; it hears
// of any that lasts for default.api.timeout.ms.
func (f *Fetcher) retry(p *partition, now time.Time, broker int32, err error, tell bool, eff *Effects) {
	p.busy = false
	if p.failing.IsZero() {
		p.failing = now
	}
	p.retryAt = now.Add(f.backoff.After(p.attempts+1, &f.rand))
	p.attempts++
	p.lastErr = err
	eff.Notices = append(eff.Notices, Notice{Kind: NoticeRetrying, TopicPartition: p.TopicPartition, Broker: broker,
		Old: p.next, New: Position{-1, -1}, Reason: "will be tried again", Err: err})
	if tell && p.reported.IsZero() {
		f.report(p, now, broker, eff)
	}
}

// report tells the application of a failure that goes on; the partition is tried further.
func (f *Fetcher) report(p *partition, now time.Time, broker int32, eff *Effects) {
	p.reported = now
	eff.Deliver = append(eff.Deliver, Delivery{TopicPartition: p.TopicPartition, Generation: p.generation,
		Failure: &Failure{Broker: broker, Attempts: p.attempts, Elapsed: now.Sub(p.failing), Err: p.lastErr}})
}

// reportAt is when the application is to hear that p makes no progress; zero if it makes some.
func (f *Fetcher) reportAt(p *partition) time.Time {
	switch {
	case p.failing.IsZero() || p.state == halted || p.paused:
		return time.Time{}
	case p.reported.IsZero():
		return p.failing.Add(f.cfg.APITimeout)
	}
	return p.reported.Add(f.cfg.APITimeout)
}
