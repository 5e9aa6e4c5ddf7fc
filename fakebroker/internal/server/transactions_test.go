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

// The coordinators load their logs when a broker starts, before it has an image to go by: how many partitions the topic
// has they must know from their own, not from the config, which is for topics that are not there yet.
func TestADecidedTransactionCompletesAfterARestartWithAnotherPartitionCount(t *testing.T) {
	fs := vfs.NewFault(vfs.NewMem())
	process := vfs.NewProcess(fs)
	b, conn := openBroker(t, process, oneReplica("7"))
	a := &admin{t: t, broker: b, conn: conn}
	a.create("orders", 1)
	ask[*message.FindCoordinatorResponse](a, 3, &message.FindCoordinatorRequest{CoordinatorKey: "shop", KeyType: transactionKey})
	id := "shop"
	p := ask[*message.InitProducerIdResponse](a, 4, &message.InitProducerIdRequest{TransactionalId: &id, TransactionTimeoutMs: 60_000, ProducerId: -1, ProducerEpoch: -1})
	require.Zero(t, p.ErrorCode)
	added := ask[*message.AddPartitionsToTxnResponse](a, 3, &message.AddPartitionsToTxnRequest{V3AndBelowTransactionalId: id, V3AndBelowProducerId: p.ProducerId,
		V3AndBelowProducerEpoch: p.ProducerEpoch, V3AndBelowTopics: []message.AddPartitionsToTxnTopic{{Name: "orders", Partitions: []int32{0}}}})
	require.Zero(t, added.ResultsByTopicV3AndBelow[0].ResultsByPartition[0].PartitionErrorCode)
	fs.Set(func(op vfs.Op) error { // the marker does not get into the log
		if op.Kind == vfs.OpAppend && strings.Contains(op.Name, "orders-0") {
			return errcode.KafkaStorageError
		}
		return nil
	})
	end := ask[*message.EndTxnResponse](a, 4, &message.EndTxnRequest{TransactionalId: id, ProducerId: p.ProducerId, ProducerEpoch: p.ProducerEpoch, Committed: true})
	require.Zero(t, end.ErrorCode)
	require.NoError(t, conn.Close())
	process.Kill(func() {}) // a clean stop would leave partitions without leaders, to be elected under an image
	_ = b.Close()
	fs.Set(nil)

	b, conn = openBroker(t, fs, oneReplica("3"))
	v, err := b.AwaitTransaction(t.Context(), id, func(v *transaction.View) bool { return v.State == transaction.CompleteCommit })
	require.NoError(t, err)
	require.Equal(t, p.ProducerId, v.ProducerID)
	require.NoError(t, conn.Close())
	require.NoError(t, b.Close())
}
