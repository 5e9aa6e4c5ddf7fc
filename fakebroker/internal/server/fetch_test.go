package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// A batch is readable a moment before it is counted. A fetch that reads it in between counts it twice: it may wake too
// early for that, but not answer with less than min.bytes before its time is up.
func TestAFetchThatWokeTooEarlyWaitsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, conn := openBroker(t, vfs.NewMem(), nil)
		t.Cleanup(func() { require.NoError(t, b.Close()) })
		a := &admin{t: t, broker: b, conn: conn}
		a.create("orders", 1)
		r := record.NewBuilder(nil)
		r.Append(1, nil, make([]byte, 600), nil)
		batch := r.Seal(record.NoProducer())
		produce := message.NewProduceRequest()
		produce.Acks = -1
		produce.TopicData = []message.TopicProduceData{{Name: "orders", PartitionData: []message.PartitionProduceData{{Records: batch}}}}
		require.Zero(t, ask[*message.ProduceResponse](a, 12, produce).Responses[0].PartitionResponses[0].ErrorCode)

		began := time.Now()
		time.AfterFunc(time.Second, func() {
			p := b.table.named("orders").partition(0)
			p.appended.Add(int64(len(batch)))
			b.waiting.Check(p)
		})
		got := ask[*message.FetchResponse](a, 12, waitingFetch(1000, "orders")).Responses[0].Partitions[0]
		require.Len(t, got.Records, len(batch))
		require.Equal(t, 5*time.Second, time.Since(began))
		require.NoError(t, conn.Close())
	})
}

// waitingFetch waits 5 s for bytes in partition 0 of topics.
func waitingFetch(minBytes int32, topics ...string) *message.FetchRequest {
	req := message.NewFetchRequest()
	req.MaxWaitMs, req.MinBytes, req.MaxBytes, req.SessionEpoch = 5000, minBytes, 1<<20, -1
	for _, topic := range topics {
		req.Topics = append(req.Topics, message.FetchRequestFetchTopic{Topic: topic, Partitions: []message.FetchRequestFetchPartition{
			{CurrentLeaderEpoch: -1, LastFetchedEpoch: -1, PartitionMaxBytes: 1 << 20}}})
	}
	return req
}

func TestAPartitionThatIsDeletedEndsTheWaitOfAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, conn := openBroker(t, vfs.NewMem(), nil)
		t.Cleanup(func() { require.NoError(t, b.Close()) })
		a := &admin{t: t, broker: b, conn: conn}
		a.create("stays", 1)
		a.create("goes", 1)
		began := time.Now()
		deleted := make(chan error, 1)
		time.AfterFunc(time.Second, func() {
			name := "goes"
			_, err := b.Propose(context.Background(), &message.DeleteTopicsRequest{Topics: []message.DeleteTopicState{{Name: &name}}})
			deleted <- err
		})
		got := ask[*message.FetchResponse](a, 12, waitingFetch(1, "stays", "goes"))
		require.Equal(t, time.Second, time.Since(began))
		require.NoError(t, <-deleted)
		require.Zero(t, got.Responses[0].Partitions[0].ErrorCode)
		require.Equal(t, errcode.UnknownTopicOrPartition, errcode.Code(got.Responses[1].Partitions[0].ErrorCode))
		require.NoError(t, conn.Close())
	})
}
