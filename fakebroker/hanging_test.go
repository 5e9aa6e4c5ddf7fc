package fakebroker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// A transaction that nobody ends holds back whoever reads committed records only.
func ExampleCluster_HangTransaction() {
	ctx, k, end := started(fakebroker.Topic("orders", 1))
	defer end()
	send(k, "orders", 0, "one")
	h, err := k.HangTransaction(ctx, "orders", 0, time.Now().Add(-time.Hour))
	send(k, "orders", 0, "two")
	o, _ := k.Offsets("orders", 0)
	fmt.Println(h.StartOffset, err, o.LastStable, o.HighWatermark)
	// Output: 1 <nil> 1 3
}

func TestAHangingTransactionIsFoundAndAborted(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
	ctx := context.Background()
	since := time.Now().Add(-time.Hour)
	h, err := k.HangTransaction(ctx, "orders", 0, since)
	require.NoError(t, err)
	c := connect(t, k)
	describe := func() message.ProducerState {
		d := call[*message.DescribeProducersResponse](c, 0, &message.DescribeProducersRequest{
			Topics: []message.DescribeProducersRequestTopicRequest{{Name: "orders", PartitionIndexes: []int32{0}}}})
		return d.Topics[0].Partitions[0].ActiveProducers[0]
	}
	p := describe()
	require.Equal(t, []int64{h.ProducerID, h.StartOffset, since.UnixMilli()}, []int64{p.ProducerId, p.CurrentTxnStartOffset, p.LastTimestamp})
	w := call[*message.WriteTxnMarkersResponse](c, 1, &message.WriteTxnMarkersRequest{Markers: []message.WritableTxnMarker{{
		ProducerId: p.ProducerId, ProducerEpoch: int16(p.ProducerEpoch), CoordinatorEpoch: max(p.CoordinatorEpoch, 0),
		Topics: []message.WritableTxnMarkerTopic{{Name: "orders", PartitionIndexes: []int32{0}}}}}})
	require.Zero(t, w.Markers[0].Topics[0].Partitions[0].ErrorCode)
	require.EqualValues(t, -1, describe().CurrentTxnStartOffset)
	o, err := k.Offsets("orders", 0)
	require.NoError(t, err)
	require.EqualValues(t, 2, o.LastStable)
}

func TestTransactionsDoNotHangWhereThereIsNothing(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
	for topic, code := range map[string]errcode.Code{"nowhere": errcode.UnknownTopicOrPartition, "__consumer_offsets": errcode.InvalidTopicException} {
		_, err := k.HangTransaction(context.Background(), topic, 0, time.Now())
		require.ErrorIs(t, err, code)
	}
}
