package consumer_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
)

// benchGroup is a consumer of a group and a topic that holds 100,000 records of 100 bytes.
func benchGroup(b *testing.B) *consumer.Consumer {
	b.Helper()
	ctx := context.Background()
	k := fakebroker.Start(b, fakebroker.Topic("orders", 4), fakebroker.Config("group.initial.rebalance.delay.ms", "0"))
	cl, err := client.New(client.Cluster(k))
	require.NoError(b, err)
	p, err := producer.New(cl)
	require.NoError(b, err)
	key := make([]byte, 2)
	for i := range benchRecords {
		key[0], key[1] = byte(i), byte(i>>8)
		require.NoError(b, p.Submit(ctx, producer.Record{Topic: "orders", Key: key, Value: make([]byte, 98)}, nil))
	}
	require.NoError(b, p.Close(ctx))
	c, err := consumer.New(cl, consumer.Group("g"), consumer.Subscribe("orders"), consumer.OnReset(consumer.Earliest), consumer.GroupProtocol("classic"))
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, c.Close(ctx))
		require.NoError(b, cl.Close(ctx))
	})
	_, err = c.Poll(ctx, 1)
	require.NoError(b, err)
	return c
}

const benchRecords = 100_000

// again goes back to the start whenever everything was read.
func again(b *testing.B, c *consumer.Consumer, n int64) {
	if n%benchRecords == 0 {
		require.NoError(b, c.SeekToBeginning())
	}
}

func BenchmarkGroupRecords100(b *testing.B) {
	c := benchGroup(b)
	b.SetBytes(100)
	b.ReportAllocs()
	b.ResetTimer()
	n := int64(0)
	again(b, c, n)
	for _, err := range c.Records(context.Background()) {
		if n++; err != nil || n >= int64(b.N) {
			break
		}
		again(b, c, n)
	}
}

func BenchmarkRun100(b *testing.B) {
	c := benchGroup(b)
	require.NoError(b, c.SeekToBeginning())
	b.SetBytes(100)
	b.ReportAllocs()
	b.ResetTimer()
	ctx, cancel := context.WithCancel(context.Background())
	var n atomic.Int64
	c.Run(ctx, func(context.Context, consumer.Record) error {
		at := n.Add(1)
		if at >= int64(b.N) {
			cancel()
		}
		again(b, c, at)
		return nil
	})
}
