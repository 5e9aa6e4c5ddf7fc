package transaction

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// Markers is an order: end this transaction in all its partitions. There may be none.
type Markers struct {
	ID               string
	Producer         Producer
	CoordinatorEpoch int32
	Incarnation      int64
	Commit           bool
	// Version is the transaction.version that the transaction was ended by: from 2 on partitions insist on a higher epoch.
	Version    int16
	Partitions []TopicPartition
}

// MarkersWritten reports that an order is carried out. The answer is nil; a code that can pass means that the report has
// to come again.
type MarkersWritten struct {
	ID          string
	Producer    Producer
	Incarnation int64 // of the machine that gave the order
	Commit      bool
}

// Written is the report that an order is carried out.
func (m Markers) Written() MarkersWritten {
	return MarkersWritten{ID: m.ID, Producer: m.Producer, Incarnation: m.Incarnation, Commit: m.Commit}
}

// sendMarkers orders the markers of a decided transaction, once the decision is safe.
func (m *Machine) sendMarkers(t txn, out *coordinator.Result) {
	order := Markers{ID: t.id, Producer: Producer{t.producerID, t.epoch}, CoordinatorEpoch: m.o.CoordinatorEpoch, Incarnation: m.o.Incarnation,
		Commit: t.state == PrepareCommit, Version: t.version, Partitions: t.partitions}
	out.Committed = append(out.Committed, func() { m.o.SendMarkers(order) })
}

// markersWritten completes a transaction. A report about another transaction than the one that is being ended, or to the
// machine before this one, is late and means nothing.
func (m *Machine) markersWritten(now time.Time, ticket coordinator.Ticket, r MarkersWritten, out *coordinator.Result) {
	t := m.txns[r.ID]
	if t == nil || !t.state.preparing() || r.Incarnation != m.o.Incarnation ||
		(Producer{t.producerID, t.epoch}) != r.Producer || (t.state == PrepareCommit) != r.Commit {
		out.Refuse(ticket, errcode.NotCoordinator)
		return
	}
	next := *t
	next.updated, next.partitions = now.UnixMilli(), nil
	after := t.afterwards()
	next.producerID, next.epoch, next.nextID = after.ID, after.Epoch, noProducerID
	if t.state == PrepareCommit {
		next.state = CompleteCommit
		next.counts.committed++
	} else {
		next.state = CompleteAbort
		next.counts.aborted++
	}
	m.write(t, next, out)
	out.Reply(ticket, nil)
}
