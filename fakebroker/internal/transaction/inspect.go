package transaction

import (
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
)

// Inspect asks for all that is known of an id. The answer is a *View, of state Dead when there is nothing.
type Inspect struct{ ID string }

// InspectAll asks for all ids of the partition. The answer is a []*View, by id.
type InspectAll struct{}

// A View is a transactional id as its coordinator sees it at one moment.
type View struct {
	ID    string
	State State
	// ProducerID and ProducerEpoch are the producer's that has the id now.
	ProducerID    int64
	ProducerEpoch int16
	// Timeout is transaction.timeout.ms of that producer.
	Timeout time.Duration
	// Start is when the open, or else the last, transaction began; zero when there was none since the producer started.
	Start time.Time
	// Updated is when the id last changed; transactional.id.expiration.ms counts from here.
	Updated time.Time
	// Partitions are in the open transaction, or still to be ended; those of __consumer_offsets too.
	Partitions []TopicPartition
	// Version is the protocol that the producer's last transaction was ended or begun by: 2 for KIP-890, else 0.
	Version int16
	// Commits and Aborts count the transactions that were completed since the coordinator was loaded; TimeOuts and Fences
	// the aborts that the coordinator itself decided, because of the timeout or for a new producer.
	Commits, Aborts, TimeOuts, Fences int
}

func (m *Machine) inspect(ticket coordinator.Ticket, r Inspect, out *coordinator.Result) {
	t := m.txns[r.ID]
	if t == nil {
		out.Reply(ticket, &View{ID: r.ID, State: Dead, ProducerID: noProducerID, ProducerEpoch: noProducerEpoch})
		return
	}
	out.Reply(ticket, t.view())
}

func (m *Machine) inspectAll(ticket coordinator.Ticket, out *coordinator.Result) {
	all := []*View{}
	for _, id := range m.sorted() {
		all = append(all, m.txns[id].view())
	}
	out.Reply(ticket, all)
}

func (t *txn) view() *View {
	v := &View{ID: t.id, State: t.state, ProducerID: t.producerID, ProducerEpoch: t.epoch,
		Timeout: time.Duration(t.timeoutMs) * time.Millisecond, Updated: time.UnixMilli(t.updated),
		Partitions: slices.Clone(t.partitions), Version: t.version,
		Commits: t.counts.committed, Aborts: t.counts.aborted, TimeOuts: t.counts.timedOut, Fences: t.counts.fenced}
	if t.start >= 0 {
		v.Start = time.UnixMilli(t.start)
	}
	return v
}
