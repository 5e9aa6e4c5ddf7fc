package transaction

import (
	"math"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// noTimeout is the timeout of a two-phase transaction (KIP-939): it never times out.
const noTimeout = math.MaxInt32

// TimeOut aborts an open transaction as if it had timed out. The answer is nil; INVALID_TXN_STATE when none is open.
type TimeOut struct {
	ID string
	// Producer, when it is set, restricts it to that producer's transaction; NoProducer for whichever is open.
	Producer      Producer
	NewProducerID int64 // for a round with NeedsProducerID; -1
}

func (m *Machine) timeOut(now time.Time, ticket coordinator.Ticket, r TimeOut, out *coordinator.Result) {
	t := m.txns[r.ID]
	if t == nil {
		out.Refuse(ticket, errcode.TransactionalIdNotFound)
		return
	}
	if t.state != Ongoing || r.Producer != NoProducer && r.Producer != (Producer{t.producerID, t.epoch}) {
		out.Refuse(ticket, errcode.InvalidTxnState)
		return
	}
	if !m.fence(now, t, r.NewProducerID, func(c *counts) { c.timedOut++ }, out) {
		out.Reply(ticket, needForTimeOut(r))
		return
	}
	out.Reply(ticket, nil)
}

func needForTimeOut(r TimeOut) NeedsProducerID {
	return NeedsProducerID{With: func(id int64) any { r.NewProducerID = id; return r }}
}

// findTimedOut notes the transactions that have been open for longer than their timeout.
func (m *Machine) findTimedOut(now time.Time) {
	for _, id := range m.sorted() {
		if t := m.txns[id]; t.state == Ongoing && t.timeoutMs != noTimeout && t.deadline() < now.UnixMilli() {
			m.due = append(m.due, id)
		}
	}
}

// abortNext aborts one of them. If the log refuses, the next check finds it again.
func (m *Machine) abortNext(now time.Time, out *coordinator.Result) {
	id := m.due[0]
	m.due = m.due[1:]
	t := m.txns[id]
	if t == nil || t.state != Ongoing || t.deadline() >= now.UnixMilli() {
		return
	}
	if !m.fence(now, t, noProducerID, func(c *counts) { c.timedOut++ }, out) {
		need := needForTimeOut(TimeOut{ID: id, Producer: Producer{t.producerID, t.epoch}})
		out.Committed = append(out.Committed, func() { m.o.AskProducerID(id, need) })
	}
}

// expire forgets the ids that have been idle for transactional.id.expiration.ms.
func (m *Machine) expire(now time.Time, out *coordinator.Result) {
	before := now.Add(-m.set.expiration).UnixMilli()
	for _, id := range m.sorted() {
		if t := m.txns[id]; t.state.idle() && t.updated <= before {
			out.Tombstone(&logrecord.TransactionLogKey{TransactionalId: id})
			out.Written = append(out.Written, func(time.Time, *coordinator.Result) { m.o.Changed(id) })
		}
	}
	out.Divisible = true
}
