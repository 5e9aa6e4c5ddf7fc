package server

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// oneReplica is how a broker that is alone has the transaction coordinators' topic.
func oneReplica(partitions string) map[string]string {
	return map[string]string{"transaction.state.log.num.partitions": partitions, "transaction.state.log.replication.factor": "1",
		"transaction.state.log.min.isr": "1"}
}

// begin has a producer with a transaction in partition 0 of a new topic.
func (a *admin) begin(id, topic string) transaction.Producer {
	a.create(topic, 1)
	ask[*message.FindCoordinatorResponse](a, 3, &message.FindCoordinatorRequest{CoordinatorKey: id, KeyType: transactionKey})
	p := a.init(id)
	require.Zero(a.t, p.ErrorCode)
	added := ask[*message.AddPartitionsToTxnResponse](a, 3, &message.AddPartitionsToTxnRequest{V3AndBelowTransactionalId: id, V3AndBelowProducerId: p.ProducerId,
		V3AndBelowProducerEpoch: p.ProducerEpoch, V3AndBelowTopics: []message.AddPartitionsToTxnTopic{{Name: topic, Partitions: []int32{0}}}})
	require.Zero(a.t, added.ResultsByTopicV3AndBelow[0].ResultsByPartition[0].PartitionErrorCode)
	return transaction.Producer{ID: p.ProducerId, Epoch: p.ProducerEpoch}
}

func (a *admin) init(id string) *message.InitProducerIdResponse {
	return ask[*message.InitProducerIdResponse](a, 4, &message.InitProducerIdRequest{TransactionalId: &id, TransactionTimeoutMs: 60_000, ProducerId: -1, ProducerEpoch: -1})
}

func (a *admin) commit(id string, p transaction.Producer) {
	end := ask[*message.EndTxnResponse](a, 4, &message.EndTxnRequest{TransactionalId: id, ProducerId: p.ID, ProducerEpoch: p.Epoch, Committed: true})
	require.Zero(a.t, end.ErrorCode)
}

// A marker from outside (kafka-transactions abort) may carry a coordinator epoch that this coordinator has not come to. It
// then is fenced in that partition, and the transaction stays as it was decided until an election brings a higher epoch:
// Apache Kafka 4.4 gives up like that, too (TransactionMarkerRequestCompletionHandler, "failed permanently").
func TestACoordinatorThatAStrayMarkerFencesLeavesItsTransactionDecided(t *testing.T) {
	a := startAdmin(t, oneReplica("1"))
	p := a.begin("shop", "orders")
	stray := ask[*message.WriteTxnMarkersResponse](a, 1, &message.WriteTxnMarkersRequest{Markers: []message.WritableTxnMarker{{ProducerId: p.ID, ProducerEpoch: p.Epoch,
		CoordinatorEpoch: 5, Topics: []message.WritableTxnMarkerTopic{{Name: "orders", PartitionIndexes: []int32{0}}}}}})
	require.Zero(t, stray.Markers[0].Topics[0].Partitions[0].ErrorCode)
	a.commit("shop", p)
	for range 2 {
		v, err := a.broker.Transaction(t.Context(), "shop")
		require.NoError(t, err)
		require.Equal(t, transaction.PrepareCommit, v.State)
		require.Equal(t, errcode.ConcurrentTransactions, errcode.Code(a.init("shop").ErrorCode))
		require.NoError(t, a.broker.ReloadTransactions(t.Context(), "shop"), "the same epoch")
	}
}

// The coordinators load their logs when a broker starts, before it has an image to go by: how many partitions the topic
// has they must know from their own, not from the config, which is for topics that are not there yet.
func TestADecidedTransactionCompletesAfterARestartWithAnotherPartitionCount(t *testing.T) {
	fs := vfs.NewFault(vfs.NewMem())
	process := vfs.NewProcess(fs)
	b, conn := openBroker(t, process, oneReplica("7"))
	a := &admin{t: t, broker: b, conn: conn}
	id := "shop"
	p := a.begin(id, "orders")
	fs.Set(func(op vfs.Op) error { // the marker does not get into the log
		if op.Kind == vfs.OpAppend && strings.Contains(op.Name, "orders-0") {
			return errcode.KafkaStorageError
		}
		return nil
	})
	a.commit(id, p)
	require.NoError(t, conn.Close())
	process.Kill(func() {}) // a clean stop would leave partitions without leaders, to be elected under an image
	_ = b.Close()
	fs.Set(nil)

	b, conn = openBroker(t, fs, oneReplica("3"))
	v, err := b.AwaitTransaction(t.Context(), id, func(v *transaction.View) bool { return v.State == transaction.CompleteCommit })
	require.NoError(t, err)
	require.Equal(t, p.ID, v.ProducerID)
	require.NoError(t, conn.Close())
	require.NoError(t, b.Close())
}
