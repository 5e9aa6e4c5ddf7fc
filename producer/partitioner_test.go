package producer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/producer/partition"
)

func TestStickyFillsABatchAtATime(t *testing.T) {
	l := newLogs(t, "orders")
	p := l.producer(producer.BatchSize(1000), producer.Linger(time.Hour), producer.DeliveryTimeout(2*time.Hour))
	for range 900 {
		require.NoError(t, p.Submit(context.Background(), text("orders", strings.Repeat("z", 90)), nil))
	}
	require.NoError(t, p.Flush(context.Background()))
	batches := 0
	for i := range int32(3) {
		l.mu.Lock()
		part := l.part("orders", i)
		batches += part.batches
		require.Greater(t, len(part.records), 100, "every partition gets its share")
		l.mu.Unlock()
	}
	require.LessOrEqual(t, batches, 900/9+3, "batches are full: 9 records of about 100 bytes")
}

func TestCustomPartitioner(t *testing.T) {
	l := newLogs(t, "orders")
	p := l.producer(producer.Partitioner(partition.Func(func(topic *partition.Topic, key, value []byte) int32 {
		require.Equal(t, "orders", topic.Name)
		require.Equal(t, []int32{0, 1, 2}, topic.Available)
		return int32(len(value)) % topic.Partitions
	})))
	ack, err := p.Send(context.Background(), text("orders", "four"))
	require.NoError(t, err)
	require.Equal(t, int32(1), ack.Partition)
	bad := l.producer(producer.Partitioner(partition.Func(func(*partition.Topic, []byte, []byte) int32 { return 7 })))
	_, err = bad.Send(context.Background(), text("orders", "v"))
	require.ErrorContains(t, err, "the partitioner chose partition 7")
}

func TestPartitionerSettings(t *testing.T) {
	l := newLogs(t, "orders")
	p, err := producer.New(l.client(client.Rack("here")), producer.BatchSize(300), func(c *producer.Config) {
		c.RackAware, c.AvailabilityTimeout, c.IgnoreKeys = true, time.Millisecond, true
	})
	require.NoError(t, err)
	for range 300 {
		require.NoError(t, p.Submit(context.Background(), producer.Record{Topic: "orders", Key: []byte("k"), Value: make([]byte, 50)}, nil))
	}
	require.NoError(t, p.Close(context.Background()))
	for i := range int32(3) {
		require.NotEmpty(t, l.records("orders", i), "keys are ignored, and no leader is in our rack: all partitions get records")
	}
}
