package fakebroker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

func TestAcksZeroHasNoAnswerAndAnErrorCloses(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
	c := connect(t, k)
	c.send(12, produceRequest("orders", 0, 0, batch(t, "a")))
	require.Zero(t, produce(c, "orders", 0, batch(t, "b")).ErrorCode, "the next answer is the next request's")
	o, err := k.Offsets("orders", 0)
	require.NoError(t, err)
	require.EqualValues(t, 2, o.HighWatermark)
	c.send(12, produceRequest("nowhere", 0, 0, batch(t, "a")))
	c.closed()
}

func TestDeletedTopicEndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		reader, admin := connect(t, k), connect(t, k)
		req := fetchRequest("orders", 0, 0)
		req.MaxWaitMs = 3_600_000
		reader.send(12, req)
		waited := make(chan error, 1)
		go func() { waited <- k.AwaitRecords(context.Background(), "orders", 0, 5) }()
		time.Sleep(time.Second)
		name := "orders"
		deleted := call[*message.DeleteTopicsResponse](admin, 6, &message.DeleteTopicsRequest{TimeoutMs: 1000, Topics: []message.DeleteTopicState{{Name: &name}}})
		require.Zero(t, deleted.Responses[0].ErrorCode)
		var resp message.FetchResponse
		reader.receive(12, &resp)
		require.EqualValues(t, errcode.UnknownTopicOrPartition, resp.Responses[0].Partitions[0].ErrorCode)
		require.ErrorContains(t, <-waited, "deleted")
	})
}

func TestRecreatedTopicDoesNotTakeOldIDs(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
	c := connect(t, k)
	name := "orders"
	describe := func() wire.UUID {
		resp := call[*message.MetadataResponse](c, 12, &message.MetadataRequest{Topics: []message.MetadataRequestTopic{{Name: &name}}})
		return resp.Topics[0].TopicId
	}
	old := describe()
	require.Zero(t, produce(c, "orders", 0, batch(t, "old")).ErrorCode)
	call[*message.DeleteTopicsResponse](c, 6, &message.DeleteTopicsRequest{TimeoutMs: 1000, Topics: []message.DeleteTopicState{{TopicId: old}}})
	require.NoError(t, k.CreateTopic(t.Context(), fakebroker.TopicSpec{Name: "orders", Partitions: 1}))
	require.NotEqual(t, old, describe())
	req := produceRequest("", 0, -1, batch(t, "x"))
	req.TopicData[0].TopicId = old
	resp := call[*message.ProduceResponse](c, 13, req)
	require.EqualValues(t, errcode.UnknownTopicId, resp.Responses[0].PartitionResponses[0].ErrorCode)
	require.EqualValues(t, 0, produce(c, "orders", 0, batch(t, "new")).BaseOffset)
}

func TestDeletedRecordsAreOutOfRange(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
	c := connect(t, k)
	for range 3 {
		produce(c, "orders", 0, batch(t, "a", "b"))
	}
	req := &message.DeleteRecordsRequest{TimeoutMs: 1000, Topics: []message.DeleteRecordsTopic{{Name: "orders",
		Partitions: []message.DeleteRecordsPartition{{PartitionIndex: 0, Offset: 3}}}}}
	low := call[*message.DeleteRecordsResponse](c, 2, req).Topics[0].Partitions[0]
	require.Zero(t, low.ErrorCode)
	require.EqualValues(t, 3, low.LowWatermark)
	p := call[*message.FetchResponse](c, 12, fetchRequest("orders", 0, 2)).Responses[0].Partitions[0]
	require.EqualValues(t, errcode.OffsetOutOfRange, p.ErrorCode)
	p = call[*message.FetchResponse](c, 12, fetchRequest("orders", 0, 3)).Responses[0].Partitions[0]
	require.EqualValues(t, 3, p.LogStartOffset)
	require.Len(t, values(t, p.Records), 4, "a batch is whole, the client skips what is before its offset")
	req.Topics[0].Partitions[0].Offset = 7
	require.EqualValues(t, errcode.OffsetOutOfRange, call[*message.DeleteRecordsResponse](c, 2, req).Topics[0].Partitions[0].ErrorCode)
	req.Topics[0].Partitions[0].Offset = -1
	require.EqualValues(t, 6, call[*message.DeleteRecordsResponse](c, 2, req).Topics[0].Partitions[0].LowWatermark)
}

func TestConcurrentProducersAndConsumersSeeOneOrder(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 2))
	const producers, each = 4, 100
	var wg sync.WaitGroup
	for p := range producers {
		c := connect(t, k)
		wg.Go(func() {
			for i := range each {
				if code := produce(c, "orders", int32(i%2), batch(t, fmt.Sprintf("%d-%d", p, i))).ErrorCode; code != 0 {
					t.Errorf("produce: %v", errcode.Code(code))
					return
				}
			}
		})
	}
	read := make([][]string, 4)
	for r := range read {
		c := connect(t, k)
		wg.Go(func() {
			for next := int64(0); next < producers*each/2; {
				raw := call[*message.FetchResponse](c, 12, fetchRequest("orders", int32(r%2), next)).Responses[0].Partitions[0].Records
				got := values(t, raw)
				read[r] = append(read[r], got...)
				next += int64(len(got))
			}
		})
	}
	wg.Wait()
	require.Equal(t, read[0], read[2])
	require.Equal(t, read[1], read[3])
	last := make(map[byte]int)
	for _, v := range read[0] {
		var p, i int
		_, err := fmt.Sscanf(v, "%d-%d", &p, &i)
		require.NoError(t, err)
		require.GreaterOrEqual(t, i, last[byte(p)], "records of one producer keep their order")
		last[byte(p)] = i
	}
}

func TestIdempotentProducerOverRestart(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
	c := connect(t, k)
	init := func() *message.InitProducerIdResponse {
		req := message.NewInitProducerIdRequest()
		req.TransactionalId = nil // the default is the empty id, which nobody may use
		return call[*message.InitProducerIdResponse](c, 4, req)
	}
	first := init()
	require.Zero(t, first.ErrorCode)
	require.Zero(t, first.ProducerEpoch)
	for i := range int32(3) {
		require.EqualValues(t, i, produce(c, "orders", 0, sequenced(t, first.ProducerId, 0, i, "x")).BaseOffset)
	}
	require.NoError(t, k.Restart(t.Context()))
	c = connect(t, k)
	again := produce(c, "orders", 0, sequenced(t, first.ProducerId, 0, 2, "x"))
	require.Zero(t, again.ErrorCode)
	require.EqualValues(t, 2, again.BaseOffset, "a duplicate has the offset of the first time, after a restart too")
	require.EqualValues(t, errcode.OutOfOrderSequenceNumber, produce(c, "orders", 0, sequenced(t, first.ProducerId, 0, 9, "x")).ErrorCode)
	require.Greater(t, init().ProducerId, first.ProducerId, "ids are never given twice")
}

func TestBatchOfThousandRecordsIsFetchedAsItWasStored(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
	c := connect(t, k)
	all := make([]string, 1000)
	for i := range all {
		all[i] = fmt.Sprint("value ", i)
	}
	sent := batch(t, all...)
	produce(c, "orders", 0, sent)
	got := call[*message.FetchResponse](c, 12, fetchRequest("orders", 0, 500)).Responses[0].Partitions[0].Records
	require.Len(t, got, len(sent))
	require.Equal(t, sent[record.HeaderSize:], got[record.HeaderSize:])
	require.Equal(t, all, values(t, got))
}
