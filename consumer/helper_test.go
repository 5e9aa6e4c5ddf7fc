package consumer_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/consumer/internal/logpeer"
)

// bubble runs a test in virtual time with a cluster of n brokers. The bubble itself fails the test if a goroutine
// is left over.
func bubble(t *testing.T, brokers int, f func(t *testing.T, k *logpeer.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, logpeer.New(t, brokers)) })
}

// consume makes a consumer on a client of its own; both end with the test.
func consume(t testing.TB, k *logpeer.Cluster, opts ...consumer.Option) *consumer.Consumer {
	t.Helper()
	return consumeWith(t, k, nil, opts...)
}

func consumeWith(t testing.TB, k *logpeer.Cluster, clientOpts []client.Option, opts ...consumer.Option) *consumer.Consumer {
	t.Helper()
	cl, err := client.New(append([]client.Option{client.Cluster(k)}, clientOpts...)...)
	require.NoError(t, err)
	c, err := consumer.New(cl, opts...)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, c.Close(context.Background()))
		require.NoError(t, cl.Close(context.Background()))
	})
	return c
}

// within is a ctx that ends after d of the test's time.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// take reads n records by iteration and fails on any error.
func take(t testing.TB, c *consumer.Consumer, n int) []consumer.Record {
	t.Helper()
	var out []consumer.Record
	for r, err := range c.Records(within(t, time.Minute)) {
		require.NoError(t, err, "after %d records of %d", len(out), n)
		out = append(out, r)
		if len(out) == n {
			break
		}
	}
	require.Len(t, out, n)
	return out
}

// requireRuns checks that the records of each partition are offsets from..., in order, without a gap, and with the
// values that logpeer wrote there.
func requireRuns(t testing.TB, rs []consumer.Record, from map[int32]int64) {
	t.Helper()
	next := map[int32]int64{}
	for p, o := range from {
		next[p] = o
	}
	for _, r := range rs {
		value := string(logpeer.Value(r.Topic, r.Partition, r.Offset))
		if at := next[r.Partition]; r.Offset != at || string(r.Value) != value || r.TimestampMs != r.Offset {
			require.Fail(t, "not the records that were written", "partition %d: offset %d where %d is next; %q, written %q; timestamp %d",
				r.Partition, r.Offset, at, r.Value, value, r.TimestampMs)
		}
		next[r.Partition]++
	}
}

func tp(topic string, partition int32) consumer.TopicPartition {
	return consumer.TopicPartition{Topic: topic, Partition: partition}
}

// nothing checks that no record comes for d.
func nothing(t testing.TB, c *consumer.Consumer, d time.Duration) {
	t.Helper()
	rs, err := c.Poll(within(t, d), 10)
	require.ErrorIs(t, err, context.DeadlineExceeded, fmt.Sprint(rs))
}
