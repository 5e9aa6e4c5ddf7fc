package admin_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// producing answers DescribeProducers for partitions of "orders"; round counts the requests from 1.
func producing(script wiretest.Script, state func(round, partition int32) []message.ProducerState) wiretest.Script {
	var rounds atomic.Int32
	return func(r *wiretest.Request) message.Response {
		req, ok := r.Body.(*message.DescribeProducersRequest)
		if !ok {
			return script(r)
		}
		round, topic := rounds.Add(1), message.TopicResponse{Name: "orders"}
		for _, p := range req.Topics[0].PartitionIndexes {
			topic.Partitions = append(topic.Partitions, message.PartitionResponse{PartitionIndex: p, ActiveProducers: state(round, p)})
		}
		return &message.DescribeProducersResponse{Topics: []message.TopicResponse{topic}}
	}
}

func openSince(id, start int64, last time.Time) message.ProducerState {
	return message.ProducerState{ProducerId: id, ProducerEpoch: 2, LastSequence: 5, LastTimestamp: last.UnixMilli(), CoordinatorEpoch: -1, CurrentTxnStartOffset: start}
}

// Hanging is what nobody will end: not what is young, what its coordinator knows with that partition, or what ended during
// the search.
func TestOnlyTransactionsWithoutACoordinatorHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := time.Now().Add(-time.Hour)
		p := peer(t, 1, producing(coordinated(func(r *wiretest.Request) message.Response {
			switch req := r.Body.(type) {
			case *message.ListTransactionsRequest:
				require.ElementsMatch(t, []int64{1, 2, 3, 5}, req.ProducerIdFilters, "each once, the young one not at all")
				return &message.ListTransactionsResponse{TransactionStates: []message.ListTransactionsResponseTransactionState{
					{TransactionalId: "known", ProducerId: 1, TransactionState: "Ongoing"}, {TransactionalId: "expired", ProducerId: 2, TransactionState: "Dead"}}}
			case *message.DescribeTransactionsRequest:
				return &message.DescribeTransactionsResponse{TransactionStates: []message.DescribeTransactionsResponseTransactionState{
					{TransactionalId: "known", TransactionState: "Ongoing", Topics: []message.DescribeTransactionsResponseTopicData{{Topic: "orders", Partitions: []int32{0}}}},
					{TransactionalId: "expired", ErrorCode: int16(errcode.TransactionalIdNotFound)}}}
			}
			return nil
		}, func(string) int32 { return 1 }), func(round, partition int32) []message.ProducerState {
			switch partition {
			case 0:
				return []message.ProducerState{openSince(1, 10, old), openSince(4, 20, time.Now())}
			case 1:
				return []message.ProducerState{openSince(1, 30, old), openSince(2, 40, old), openSince(6, -1, old)}
			}
			if round == 1 {
				return []message.ProducerState{openSince(3, 7, old), openSince(5, 50, old)}
			}
			return []message.ProducerState{openSince(3, 7, old), openSince(5, -1, time.Now())}
		}))
		p.SetTopic("orders", 0, 1, 1, 1)
		p.SetVersions(wire.KeyDescribeTopicPartitions, 0, -1)
		rows, err := adminOf(t, p).HangingTransactions(t.Context(), admin.HangingSearch{Topics: []string{"orders"}})
		require.NoError(t, err)
		type hanging struct {
			admin.TopicPartition
			start int64
			id    string
		}
		var got []hanging
		for _, h := range rows {
			require.Equal(t, time.Hour, h.Idle)
			got = append(got, hanging{h.TopicPartition, h.Producer.TxnStart, h.TransactionalID})
		}
		require.Equal(t, []hanging{{tp("orders", 1), 30, "known"}, {tp("orders", 1), 40, "expired"}, {tp("orders", 2), 7, ""}}, got)
		require.Equal(t, admin.AbortSpec{TopicPartition: tp("orders", 2), ProducerID: 3, ProducerEpoch: 2, CoordinatorEpoch: -1}, rows[2].AbortSpec())
		require.Contains(t, rows[2].String(), "orders-2@7 of producer 3 epoch 2, idle for 1h0m0s")
	})
}

// When a coordinator cannot be asked, nothing is known to hang, and nothing may be aborted.
func TestNothingHangsWhileACoordinatorIsSilent(t *testing.T) {
	p := peer(t, 1, producing(func(r *wiretest.Request) message.Response {
		if _, ok := r.Body.(*message.ListTransactionsRequest); ok {
			return &message.ListTransactionsResponse{ErrorCode: int16(errcode.UnknownServerError)}
		}
		return nil
	}, func(_, _ int32) []message.ProducerState {
		return []message.ProducerState{openSince(1, 10, time.Unix(1000, 0))}
	}))
	p.SetTopic("orders", 0, 1)
	rows, err := adminOf(t, p).HangingTransactions(t.Context(), admin.HangingSearch{Partitions: []admin.TopicPartition{tp("orders", 0)}, MaxTimeout: time.Minute})
	require.ErrorIs(t, err, errcode.UnknownServerError)
	require.Empty(t, rows)
}

func TestOneReplicaIsAskedForItsProducers(t *testing.T) {
	p := peer(t, 2, func(r *wiretest.Request) message.Response {
		if req, ok := r.Body.(*message.DescribeProducersRequest); ok {
			require.EqualValues(t, 2, r.Broker)
			row := message.PartitionResponse{PartitionIndex: req.Topics[0].PartitionIndexes[0]}
			if row.PartitionIndex == 1 {
				row.ErrorCode, row.ErrorMessage = int16(errcode.NotLeaderOrFollower), new("no replica here")
			}
			row.ActiveProducers = []message.ProducerState{{ProducerId: 9, LastSequence: -1, LastTimestamp: -1, CoordinatorEpoch: 3, CurrentTxnStartOffset: -1}}
			return &message.DescribeProducersResponse{Topics: []message.TopicResponse{{Name: "orders", Partitions: []message.PartitionResponse{row}}}}
		}
		return nil
	})
	p.SetTopic("orders", 0, 1, 1)
	a := adminOf(t, p)
	rows, err := a.DescribeProducersOn(t.Context(), 2, tp("orders", 0))
	require.NoError(t, err)
	require.Equal(t, []admin.ProducerState{{ID: 9, LastSequence: -1, CoordinatorEpoch: 3, TxnStart: -1}}, rows[0].Producers)
	require.False(t, rows[0].Producers[0].Open())
	rows, err = a.DescribeProducersOn(t.Context(), 2, tp("orders", 1))
	require.ErrorIs(t, err, errcode.NotLeaderOrFollower, "which asking again would not change")
	require.ErrorContains(t, err, "no replica here")
	require.Equal(t, tp("orders", 1), rows[0].TopicPartition)
	_, err = a.DescribeProducersOn(t.Context(), 7, tp("orders", 0))
	require.ErrorIs(t, err, client.ErrUnknownBroker)
	require.Len(t, p.Requests(wire.KeyDescribeProducers), 2)
}

// The marker goes to the leader, wherever that is, with a coordinator epoch that brokers take.
func TestMarkersAreWrittenByTheLeader(t *testing.T) {
	var p *wiretest.Peer
	p = peer(t, 2, producing(func(r *wiretest.Request) message.Response {
		req, ok := r.Body.(*message.WriteTxnMarkersRequest)
		if !ok {
			return nil
		}
		m := req.Markers[0]
		require.False(t, m.TransactionResult)
		require.Zero(t, m.CoordinatorEpoch)
		row := message.WritableTxnMarkerPartitionResult{PartitionIndex: 0}
		switch {
		case r.Broker == 1:
			p.SetTopic("orders", 1, 2)
			row.ErrorCode = int16(errcode.NotLeaderOrFollower)
		case m.ProducerEpoch == 1:
			row.ErrorCode = int16(errcode.InvalidProducerEpoch)
		}
		return &message.WriteTxnMarkersResponse{Markers: []message.WritableTxnMarkerResult{{ProducerId: m.ProducerId,
			Topics: []message.WritableTxnMarkerTopicResult{{Name: "orders", Partitions: []message.WritableTxnMarkerPartitionResult{row}}}}}}
	}, func(_, _ int32) []message.ProducerState { return []message.ProducerState{openSince(1, 10, time.Now())} }))
	p.SetTopic("orders", 0, 1)
	a := adminOf(t, p)
	_, err := a.FindOpenTransaction(t.Context(), tp("orders", 0), 11)
	require.ErrorIs(t, err, admin.ErrNoTransaction)
	require.EqualError(t, err, "no transaction is open since offset 11 of orders-0")
	spec, err := a.FindOpenTransaction(t.Context(), tp("orders", 0), 10)
	require.NoError(t, err)
	require.NoError(t, a.AbortTransaction(t.Context(), spec))
	spec.ProducerEpoch = 1
	err = a.AbortTransaction(t.Context(), spec)
	require.ErrorIs(t, err, errcode.InvalidProducerEpoch)
	require.ErrorContains(t, err, "orders-0 of producer 1 epoch 1")
	require.Len(t, p.Requests(wire.KeyWriteTxnMarkers), 3)
}
