package consumer_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// The tests of this file run against the broker of this project, as users do.

// write produces n records, n:0 to n:n-1 by key, and returns how many each partition got.
func write(t testing.TB, cl *client.Client, topic string, from, n int) {
	t.Helper()
	p, err := producer.New(cl)
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, p.Submit(context.Background(), producer.Record{Topic: topic, Key: fmt.Append(nil, "key-", i%97),
			Value: fmt.Append(nil, from+i)}, nil))
	}
	require.NoError(t, p.Flush(context.Background()))
	require.NoError(t, p.Close(context.Background()))
}

func onBroker(t *testing.T, f func(t *testing.T, k *fakebroker.Cluster, cl *client.Client), opts ...fakebroker.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, opts...)
		cl, err := client.New(client.Cluster(k))
		require.NoError(t, err)
		f(t, k, cl)
		require.NoError(t, cl.Close(context.Background()))
	})
}

// collect reads n records and checks that each value comes once and offsets run in each partition.
func collect(t testing.TB, c *consumer.Consumer, n int) {
	t.Helper()
	seen := map[string]bool{}
	next := map[int32]int64{}
	for r, err := range c.Records(within(t, 10*time.Minute)) {
		require.NoError(t, err)
		require.Equal(t, next[r.Partition], r.Offset)
		next[r.Partition]++
		require.False(t, seen[string(r.Value)])
		seen[string(r.Value)] = true
		if len(seen) == n {
			return
		}
	}
}

func TestAgainstOurBrokerReadsWhatWasProduced(t *testing.T) {
	onBroker(t, func(t *testing.T, k *fakebroker.Cluster, cl *client.Client) {
		write(t, cl, "orders", 0, 5000)
		c, err := consumer.New(cl, consumer.Assign("orders", 0, 1, 2, 3, 4, 5), consumer.StartAt(consumer.Earliest))
		require.NoError(t, err)
		collect(t, c, 5000)
		require.Equal(t, 3, k.Connections(), "metadata, produce, fetch")
		require.NoError(t, c.Close(context.Background()))
	}, fakebroker.Topic("orders", 6))
}

func TestAgainstOurBrokerFaultsAreRiddenOut(t *testing.T) {
	onBroker(t, func(t *testing.T, k *fakebroker.Cluster, cl *client.Client) {
		write(t, cl, "orders", 0, 2000)
		k.Inject(fault.Fetch().LoseResponse().Times(2))
		k.Inject(fault.Fetch().Error(errcode.NotLeaderOrFollower).Nth(3))
		k.Inject(fault.ListOffsets().Error(errcode.LeaderNotAvailable).Times(1))
		c, err := consumer.New(cl, consumer.Assign("orders", 0, 1, 2, 3, 4, 5), consumer.StartAt(consumer.Earliest), consumer.MaxBytes(8000, 2000))
		require.NoError(t, err)
		collect(t, c, 2000)
		require.NoError(t, k.Restart(context.Background()))
		write(t, cl, "orders", 2000, 500)
		n := 0
		for _, err := range c.Records(within(t, 10*time.Minute)) {
			require.NoError(t, err)
			if n++; n == 500 {
				break
			}
		}
		require.NoError(t, c.Close(context.Background()))
	}, fakebroker.Topic("orders", 6))
}
