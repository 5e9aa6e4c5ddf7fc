package transaction

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// InitProducerID asks for the producer id and epoch of a transactional id. The answer is a Producer.
type InitProducerID struct {
	ID        string
	TimeoutMs int32
	// Expected is what the producer takes itself for, when it goes on after an error; ProducerID -1 for a new one.
	Expected Producer
	// TwoPhase and KeepPrepared are KIP-939's.
	TwoPhase, KeepPrepared bool
	NewProducerID          int64 // for a round with NeedsProducerID; -1
}

// A Producer is a producer id with its epoch.
type Producer struct {
	ID    int64
	Epoch int16
}

// NoProducer is nobody.
var NoProducer = Producer{ID: noProducerID, Epoch: noProducerEpoch}

// initProducerID gives a transactional id to a producer, and so takes it from the one before:
//
//	nothing known             a new producer id, epoch 0
//	no transaction open       epoch + 1; if that is exhausted, a new producer id
//	the epoch before the bump the same answer again: it was lost
//	a transaction is open     it is aborted under a higher epoch; CONCURRENT_TRANSACTIONS until that is done
//	one is being ended        CONCURRENT_TRANSACTIONS
func (m *Machine) initProducerID(now time.Time, ticket coordinator.Ticket, r InitProducerID, out *coordinator.Result) {
	if r.TwoPhase {
		r.TimeoutMs = noTimeout
	}
	t := m.txns[r.ID]
	if t == nil {
		if r.NewProducerID < 0 {
			out.Reply(ticket, needForInit(r))
			return
		}
		t = &txn{id: r.ID, producerID: r.NewProducerID, previousID: noProducerID, nextID: noProducerID,
			epoch: noProducerEpoch, lastEpoch: noProducerEpoch, state: Empty, start: noTime}
	}
	if t.state.preparing() {
		m.busy(now, r.ID, ticket, r, out)
		return
	}
	if !t.accepts(r.Expected) {
		out.Refuse(ticket, errcode.ProducerFenced)
		return
	}
	if t.state == Ongoing && m.o.Bugs.Has(bug.InitLeavesOpen) {
		t = t.leftOpen()
	}
	if t.state == Ongoing {
		if !m.fence(now, t, r.NewProducerID, func(c *counts) { c.fenced++ }, out) {
			out.Reply(ticket, needForInit(r))
			return
		}
		out.Refuse(ticket, errcode.ConcurrentTransactions)
		return
	}
	m.bump(now, ticket, t, r, out)
}

func needForInit(r InitProducerID) NeedsProducerID {
	return NeedsProducerID{With: func(id int64) any { r.NewProducerID = id; return r }}
}

// Check refuses what no coordinator would take.
func (r *InitProducerID) Check(c *config.Layers) errcode.Code {
	twoPhase := c.Bool("transaction.two.phase.commit.enable")
	switch {
	case r.ID == "":
		return errcode.InvalidRequest
	case r.TwoPhase && !twoPhase:
		return errcode.TransactionalIdAuthorizationFailed
	case r.KeepPrepared: // not in Apache Kafka 4.4 either
		return errcode.UnsupportedVersion
	case r.TwoPhase: // its timeout is not looked at
	case r.TimeoutMs <= 0 || int64(r.TimeoutMs) > c.Int("transaction.max.timeout.ms"):
		return errcode.InvalidTransactionTimeout
	}
	return errcode.None
}

// accepts reports whether a producer that says who it is may go on: it is this one, or the one whose exhausted epoch led
// here and that has not heard of it.
func (t *txn) accepts(p Producer) bool {
	return p == NoProducer || t.epoch == noProducerEpoch || p.ID == t.producerID ||
		p.ID == t.previousID && p.Epoch >= exhausted
}

// bump gives t to the producer that asks. There is no transaction open.
func (m *Machine) bump(now time.Time, ticket coordinator.Ticket, t *txn, r InitProducerID, out *coordinator.Result) {
	next := *t
	next.state, next.partitions, next.start, next.updated, next.timeoutMs = Empty, nil, noTime, now.UnixMilli(), r.TimeoutMs
	known := r.Expected != NoProducer
	switch {
	case t.exhausted() && (!known || r.Expected.Epoch == t.epoch):
		if r.NewProducerID < 0 {
			out.Reply(ticket, needForInit(r))
			return
		}
		next.producerID, next.epoch, next.lastEpoch = r.NewProducerID, 0, noProducerEpoch
		if known {
			next.lastEpoch = t.epoch
		}
	case t.exhausted(): // somebody is behind a producer that cannot be bumped any more
		out.Refuse(ticket, errcode.UnknownServerError)
		return
	case !known:
		next.epoch, next.lastEpoch = t.epoch+1, noProducerEpoch
	case t.epoch == noProducerEpoch || r.Expected.Epoch == t.epoch:
		next.epoch, next.lastEpoch = t.epoch+1, t.epoch
	case r.Expected.Epoch != t.lastEpoch:
		out.Refuse(ticket, errcode.ProducerFenced)
		return
	}
	if m.o.Bugs.Has(bug.InitWithoutBump) && t.epoch != noProducerEpoch && next.producerID == t.producerID {
		next.epoch, next.lastEpoch = t.epoch, t.lastEpoch
	}
	m.write(t, next, out)
	out.Reply(ticket, Producer{next.producerID, next.epoch})
}
