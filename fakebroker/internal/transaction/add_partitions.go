package transaction

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// AddPartitions makes partitions part of a producer's transaction, and begins it if need be. The answer is nil.
type AddPartitions struct {
	ID         string
	Producer   Producer
	Partitions []TopicPartition
	// Version is the client's transaction.version as its request shows it: 0 or 2.
	Version int16
}

// VerifyPartitions asks whether partitions are part of a producer's open transaction. The answer is a []errcode.Code, in
// the order of the partitions.
type VerifyPartitions struct {
	ID         string
	Producer   Producer
	Partitions []TopicPartition
}

func (m *Machine) addPartitions(now time.Time, ticket coordinator.Ticket, r AddPartitions, out *coordinator.Result) {
	if t := m.txns[r.ID]; t != nil && t.state.preparing() {
		m.busy(now, r.ID, ticket, r, out) // whoever asks: an exhausted epoch may be on its way out
		return
	}
	t, code := m.find(r.ID, r.Producer.ID, r.Producer.Epoch)
	if code != errcode.None {
		out.Refuse(ticket, code)
		return
	}
	if t.state == Ongoing && t.hasAll(r.Partitions) {
		out.Reply(ticket, nil)
		return
	}
	if !m.writable(r.Version) {
		out.Refuse(ticket, errcode.UnsupportedVersion)
		return
	}
	next := *t
	next.state, next.partitions = Ongoing, union(t.partitions, r.Partitions)
	next.updated, next.version = now.UnixMilli(), r.Version
	if t.state != Ongoing {
		next.start = next.updated
	}
	if t.state == Ongoing && m.o.Bugs.Has(bug.PartitionsNotPersisted) {
		m.put(&next)
	} else {
		m.write(t, next, out)
	}
	out.Reply(ticket, nil)
}

func (m *Machine) verifyPartitions(now time.Time, ticket coordinator.Ticket, r VerifyPartitions, out *coordinator.Result) {
	t, code := m.find(r.ID, r.Producer.ID, r.Producer.Epoch)
	if code != errcode.None {
		out.Refuse(ticket, code)
		return
	}
	if t.state.preparing() {
		m.busy(now, r.ID, ticket, r, out)
		return
	}
	codes := make([]errcode.Code, len(r.Partitions))
	for i, p := range r.Partitions {
		if !t.has(p) {
			codes[i] = errcode.TransactionAbortable
		}
	}
	out.Reply(ticket, codes)
}
