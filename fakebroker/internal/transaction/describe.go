package transaction

import (
	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Describe asks for one transactional id. The answer is a message.DescribeTransactionsResponseTransactionState.
type Describe struct{ ID string }

func (m *Machine) describe(ticket coordinator.Ticket, r Describe, out *coordinator.Result) {
	t := m.txns[r.ID]
	if t == nil {
		out.Refuse(ticket, errcode.TransactionalIdNotFound)
		return
	}
	d := message.DescribeTransactionsResponseTransactionState{}
	d.SetDefaults()
	d.TransactionalId, d.TransactionState = t.id, t.state.String()
	d.TransactionTimeoutMs, d.TransactionStartTimeMs = t.timeoutMs, t.start
	d.ProducerId, d.ProducerEpoch = t.producerID, t.epoch
	for _, s := range schema(t.partitions) {
		d.Topics = append(d.Topics, message.DescribeTransactionsResponseTopicData{Topic: s.Topic, Partitions: s.PartitionIds})
	}
	out.Reply(ticket, d)
}
