package transaction

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
)

// What does not fit into a line of the mistakes that tests have the coordinator make; see package bug.

// mistakenEnd changes EndTxn, or answers it itself and returns true.
func (m *Machine) mistakenEnd(now time.Time, ticket coordinator.Ticket, r *EndTxn, out *coordinator.Result) (answered bool) {
	t := m.txns[r.ID]
	if m.o.Bugs == 0 || t == nil {
		return false
	}
	if m.o.Bugs.Has(bug.EndWithoutBump) {
		r.Version = 0
	}
	if m.o.Bugs.Has(bug.EndEpochUnchecked) {
		r.Producer = Producer{t.producerID, t.epoch}
	}
	if m.o.Bugs.Has(bug.CommitAfterAbort) && t.state == CompleteAbort && r.Commit {
		out.Reply(ticket, Producer{t.producerID, t.epoch})
		return true
	}
	if m.o.Bugs.Has(bug.PrepareNotPersisted) && t.state == Ongoing && t.producerID == r.Producer.ID && t.epoch == r.Producer.Epoch {
		next := t.decided(now, r.Commit, r.Version)
		next.start = t.start
		m.put(&next)
		m.sendMarkers(next, out)
		out.Reply(ticket, next.afterwards())
		return true
	}
	return false
}

// leftOpen is t as if its transaction were over.
func (t *txn) leftOpen() *txn {
	over := *t
	over.state, over.partitions = CompleteAbort, nil
	return &over
}
