package harness_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire"
)

// pause is how long the partitions of a group stood still while a member joined.
type pause struct {
	partitions, moved          int
	worst, mean, kept, average time.Duration // of all, of those that kept their owner
}

// TestPauseOfConsumptionInARebalance has a third member join two that read 12 partitions, by each protocol, with heartbeats
// each second, round trips of 5 ms, and records that take 20 ms, but 500 ms those of partition 0. It reports how long the
// other eleven stood still, which without a rebalance is those 20 ms.
func TestPauseOfConsumptionInARebalance(t *testing.T) {
	figures := map[string]pause{}
	for _, way := range protocols {
		t.Run(way.name, func(t *testing.T) {
			run(t, way, 12, func(f *fleet) { figures[way.name] = measure(f) })
		})
	}
	t.Logf("pause of consumption while a third member joins, 11 partitions beside a slow one:")
	for _, way := range protocols {
		p := figures[way.name]
		t.Logf("%-12s all: worst %6s mean %6s   kept (%d of %d): worst %6s mean %6s", way.name, p.worst, p.mean, p.partitions-p.moved, p.partitions, p.kept, p.average)
	}
	require.Less(t, figures["cooperative"].kept, 100*time.Millisecond, "partitions that are kept are read on")
	require.Less(t, figures["KIP-848"].kept, 100*time.Millisecond, "partitions that are kept are read on")
	require.Greater(t, figures["eager"].kept, figures["cooperative"].kept)
}

func measure(f *fleet) pause {
	const n = 12
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { // a record for each partition every 5 ms
		for ctx.Err() == nil {
			for p := range int32(n) {
				if err := f.p.Submit(ctx, producer.Record{Topic: topic, Value: []byte("x")}.To(p), nil); err != nil {
					return
				}
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	type seen struct {
		by   int
		last time.Time
		gap  time.Duration
		move bool
	}
	var mu sync.Mutex
	parts := map[int32]*seen{}
	measuring := false
	handler := func(me int) func(context.Context, consumer.Record) error {
		return func(_ context.Context, r consumer.Record) error {
			mu.Lock()
			s := parts[r.Partition]
			if s == nil {
				s = &seen{by: me}
				parts[r.Partition] = s
			}
			now := time.Now()
			if measuring {
				s.gap, s.move = max(s.gap, now.Sub(s.last)), s.move || s.by != me
			}
			s.last, s.by = now, me
			mu.Unlock()
			if r.Partition == 0 { // a slow one: whoever waits for its owner waits so long
				time.Sleep(500 * time.Millisecond)
			} else {
				time.Sleep(20 * time.Millisecond)
			}
			return nil
		}
	}
	for _, key := range []wire.Key{wire.KeyJoinGroup, wire.KeySyncGroup, wire.KeyHeartbeat, wire.KeyConsumerGroupHeartbeat, wire.KeyOffsetCommit, wire.KeyOffsetFetch} {
		f.k.Inject(fault.On(key).Delay(5 * time.Millisecond)) // a round trip
	}
	f.start(handler(1), consumer.Fetching(1, 10*time.Millisecond))
	time.Sleep(1370 * time.Millisecond) // members hear of a rebalance with their next heartbeat, at different times
	f.start(handler(2), consumer.Fetching(1, 10*time.Millisecond))
	f.settled(n, time.Minute)
	time.Sleep(5 * time.Second)
	mu.Lock()
	measuring = true
	mu.Unlock()
	f.start(handler(3), consumer.Fetching(1, 10*time.Millisecond))
	f.settled(n, time.Minute)
	time.Sleep(5 * time.Second)
	f.settled(n, time.Minute)
	mu.Lock()
	var all, kept []time.Duration
	delete(parts, 0)
	for _, s := range parts {
		all = append(all, s.gap)
		if !s.move {
			kept = append(kept, s.gap)
		}
	}
	mu.Unlock()
	cancel()
	work.Wait()
	require.Len(f, all, n-1)
	require.NotEmpty(f, kept)
	require.Less(f, len(kept), n-1)
	return pause{n - 1, n - 1 - len(kept), slices.Max(all), average(all), slices.Max(kept), average(kept)}
}

func average(list []time.Duration) time.Duration {
	sum := time.Duration(0)
	for _, d := range list {
		sum += d
	}
	return (sum / time.Duration(len(list))).Round(100 * time.Microsecond)
}
