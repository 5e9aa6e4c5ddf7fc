package client_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

func TestMetricsCountWhatHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := new(events)
		_, c := start(t, 1, answerCluster, client.WithObserver(seen))
		for range 3 {
			_, err := c.Request(t.Context(), client.AnyBroker(), clusterRequest())
			require.NoError(t, err)
		}
		c.Meter().SentRecords.Add(5)
		c.Meter().SendLatency.Add(20 * time.Millisecond)
		c.Meter().SetLag("b", 1, 7)
		c.Meter().SetLag("a", 2, 3)
		c.Meter().SetLag("a", 1, 1)
		c.Meter().ForgetLag("a", 1)
		synctest.Wait()
		m := c.Metrics()
		require.EqualValues(t, 4, m.Requests, "3 and the metadata")
		require.EqualValues(t, 1, m.Dials)
		require.EqualValues(t, 1, m.Connections)
		require.Positive(t, m.BytesIn)
		require.Positive(t, m.BytesOut)
		require.EqualValues(t, 5, m.SentRecords)
		require.Equal(t, []client.PartitionLag{{Topic: "a", Partition: 2, Lag: 3}, {Topic: "b", Partition: 1, Lag: 7}}, m.Lag)
		require.EqualValues(t, 1, m.SendLatency.Count)
		require.Len(t, seen.requested, 4)
		require.Len(t, seen.connected, 1)
		require.NoError(t, seen.connected[0].Err)
		require.Positive(t, seen.requested[0].RequestBytes)
		require.Positive(t, seen.requested[0].ResponseBytes)
	})
}

// Observers hear of a leader that a hint told of, as of answers.
func TestLeaderHintsAreObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := new(events)
		peer, c := start(t, 2, nil, client.WithObserver(seen))
		peer.SetTopic("orders", 1, 1)
		_, err := c.AwaitTopics(t.Context(), "orders")
		require.NoError(t, err)
		synctest.Wait() // until the observer has heard of the answer too
		c.LearnLeader(wiretest.TopicID("orders"), 0, 2, 2, nil)
		c.LearnLeader(wiretest.TopicID("orders"), 0, 1, 1, nil) // older: no news
		seen.mu.Lock()
		defer seen.mu.Unlock()
		require.Len(t, seen.topologies, 2)
		last := seen.topologies[1]
		leader, epoch, ok := last.Topology.Leader("orders", 0)
		require.True(t, ok)
		require.Equal(t, []int32{2, 2}, []int32{leader, epoch})
		require.Zero(t, last.Took)
	})
}

func TestLatencyQuantilesAreNear(t *testing.T) {
	var l client.Latency
	for i := 1; i <= 1000; i++ {
		l.Add(time.Duration(i) * time.Millisecond)
	}
	s := l.Stats()
	require.EqualValues(t, 1000, s.Count)
	require.Equal(t, time.Second, s.Max)
	require.InEpsilon(t, 500*time.Millisecond, s.P50, 0.1)
	require.InEpsilon(t, 990*time.Millisecond, s.P99, 0.1)
	require.InEpsilon(t, 500500*time.Microsecond, s.Mean, 0.001)
	var edge client.Latency
	for _, d := range []time.Duration{-1, 0, 1, time.Microsecond, 24 * time.Hour, 1<<63 - 1} {
		edge.Add(d)
	}
	require.EqualValues(t, 6, edge.Stats().Count)
	require.Zero(t, (&client.Latency{}).Stats())
}

func TestBudgetServesInOrderAndGivesUpWithCtx(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := client.NewBudget(100)
		require.NoError(t, b.Acquire(t.Context(), 90))
		var mu sync.Mutex
		var order []int
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		failed := make(chan error, 1)
		go func() { failed <- b.Acquire(ctx, 95) }() // large, first in line, gives up
		synctest.Wait()
		for i, n := range []int64{50, 10, 40} {
			go func() {
				require.NoError(t, b.Acquire(t.Context(), n))
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
			}()
			synctest.Wait()
		}
		require.False(t, b.TryAcquire(1), "others wait")
		require.Empty(t, order, "small ones do not overtake the large one")
		require.ErrorContains(t, <-failed, "90 of 100 bytes are held, 95 more were wanted")
		b.Release(90)
		synctest.Wait()
		require.ElementsMatch(t, []int{0, 1, 2}, order)
		used, limit := b.Used()
		require.EqualValues(t, 100, used)
		require.EqualValues(t, 100, limit)
		b.Charge(50)
		b.Release(150)
		require.NoError(t, b.Acquire(t.Context(), 1000), "more than the limit, when nothing else is held")
		require.Panics(t, func() { b.Release(2000) })
	})
}

func TestBudgetWithoutLimitCounts(t *testing.T) {
	b := client.NewBudget(0)
	require.NoError(t, b.Acquire(t.Context(), 1<<40))
	used, _ := b.Used()
	require.EqualValues(t, 1<<40, used)
	require.Zero(t, b.Limit())
}

func TestRebalancesAreCountedWithTheirRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl, err := client.New(client.Seeds("127.0.0.1:1"))
		require.NoError(t, err)
		defer cl.Close(t.Context())
		for range 90 {
			cl.Meter().Rebalanced(2 * time.Second)
			time.Sleep(time.Minute)
		}
		m := cl.Metrics()
		require.EqualValues(t, 90, m.Rebalances)
		require.InDelta(t, 60, m.RebalancesLastHour, 1)
		require.Equal(t, 2*time.Second, m.RebalanceTime.Mean)
		time.Sleep(2 * time.Hour)
		require.Zero(t, cl.Metrics().RebalancesLastHour)
	})
}
