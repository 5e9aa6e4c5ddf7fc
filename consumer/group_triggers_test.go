package consumer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/wire/message"
)

// TestEachTriggerOfARebalanceIsInTheHistory: what consumers do, as the group sees it.
func TestEachTriggerOfARebalanceIsInTheHistory(t *testing.T) {
	grow := func(t *testing.T, cl *client.Client) {
		req := message.NewCreatePartitionsRequest()
		req.TimeoutMs = 10000
		req.Topics = []message.CreatePartitionsTopic{{Name: "orders", Count: 6}}
		_, err := cl.Request(within(t, time.Minute), client.Controller(), req)
		require.NoError(t, err)
	}
	for name, trigger := range map[string]struct {
		cause fakebroker.GroupCause
		do    func(t *testing.T, fl *fleet, a, b *consumer.Consumer)
	}{
		"member joins": {fakebroker.MemberJoined, func(t *testing.T, fl *fleet, a, b *consumer.Consumer) { idle(t, fl.member()) }},
		"member leaves": {fakebroker.MemberLeft, func(t *testing.T, fl *fleet, a, b *consumer.Consumer) {
			require.NoError(t, b.Close(context.Background()))
		}},
		"member dies": {fakebroker.SessionTimeout, func(t *testing.T, fl *fleet, a, b *consumer.Consumer) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			require.ErrorIs(t, b.Close(ctx), context.Canceled) // says nothing to anybody
		}},
		"partitions are added": {fakebroker.PartitionsChanged, func(t *testing.T, fl *fleet, a, b *consumer.Consumer) { grow(t, fl.cl) }},
		"subscription changes": {fakebroker.SubscriptionChanged, func(t *testing.T, fl *fleet, a, b *consumer.Consumer) {
			require.NoError(t, b.Subscribe("orders", "bills"))
		}},
		"poll interval is exceeded": {fakebroker.PollIntervalExceeded, func(t *testing.T, fl *fleet, a, b *consumer.Consumer) {
			slow := fl.member(consumer.MaxPollInterval(10*time.Second, consumer.Leave))
			write(t, fl.cl, "orders", 0, 300)
			go slow.Run(within(t, time.Minute), func(ctx context.Context, r consumer.Record) error { <-ctx.Done(); return ctx.Err() })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			withFleet(t, 4, func(t *testing.T, fl *fleet) {
				a, b := fl.member(consumer.MaxPollInterval(10*time.Minute, consumer.Leave)), fl.member(consumer.MaxPollInterval(10*time.Minute, consumer.Leave))
				idle(t, a)
				idle(t, b)
				awaitClaims(t, a, 2)
				awaitClaims(t, b, 2)
				g, err := fl.k.AwaitGroup(within(t, time.Minute), "g", fakebroker.GroupIs("Stable"))
				require.NoError(t, err)
				before := len(g.History)
				rebalances := a.Client().Metrics().Rebalances
				trigger.do(t, fl, a, b)
				g, err = fl.k.AwaitGroup(within(t, 10*time.Minute), "g", func(g *fakebroker.Group) bool {
					for _, e := range g.History[before:] {
						if e.Cause == trigger.cause {
							return true
						}
					}
					return false
				})
				require.NoError(t, err, "%+v", g)
				require.Eventually(t, func() bool { return a.Client().Metrics().Rebalances > rebalances }, time.Minute, 100*time.Millisecond)
			}, fakebroker.Topic("bills", 2))
		})
	}
}

// TestPauseOfConsumptionInARebalance reports side by side how long records of partitions that stay with their member
// stand still while another one joins and the first takes half a second to give something up.
func TestPauseOfConsumptionInARebalance(t *testing.T) {
	pauses := map[string]time.Duration{}
	for name, opt := range map[string]consumer.Option{"eager (range)": consumer.Assignors("range"), "cooperative": consumer.Assignors("cooperative-sticky"),
		"KIP-848": consumer.GroupProtocol("consumer")} {
		withFleet(t, 4, func(t *testing.T, fl *fleet) {
			ctx, cancel := context.WithCancel(context.Background())
			var work sync.WaitGroup
			work.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					write(t, fl.cl, "orders", n*100, 20)
					time.Sleep(10 * time.Millisecond)
				}
			})
			var mu sync.Mutex
			last, gap := map[int32]time.Time{}, map[int32]time.Duration{}
			measure := false
			see := func(r consumer.Record) {
				mu.Lock()
				defer mu.Unlock()
				now := time.Now()
				if measure && !last[r.Partition].IsZero() {
					gap[r.Partition] = max(gap[r.Partition], now.Sub(last[r.Partition]))
				}
				last[r.Partition] = now
			}
			a := fl.member(opt, consumer.OnRevoked(func(context.Context, []consumer.TopicPartition) { time.Sleep(500 * time.Millisecond) }))
			stop := running(t, a, func(_ context.Context, r consumer.Record) error { see(r); return nil })
			awaitClaims(t, a, 4)
			time.Sleep(time.Second)
			mu.Lock()
			measure = true
			mu.Unlock()
			b := fl.member(opt)
			stopB := running(t, b, func(context.Context, consumer.Record) error { return nil })
			awaitClaims(t, b, 2)
			awaitClaims(t, a, 2)
			time.Sleep(time.Second)
			mu.Lock()
			for _, cl := range a.Membership().Claims {
				pauses[name] = max(pauses[name], gap[cl.Partition])
			}
			mu.Unlock()
			stop()
			stopB()
			cancel()
			work.Wait()
		}, fakebroker.Config("group.consumer.heartbeat.interval.ms", "300"), fakebroker.Config("group.consumer.min.heartbeat.interval.ms", "300"))
	}
	for _, name := range []string{"eager (range)", "cooperative", "KIP-848"} {
		fmt.Fprintf(t.Output(), "%-14s %s\n", name, pauses[name].Round(time.Millisecond))
	}
	require.GreaterOrEqual(t, pauses["eager (range)"], 500*time.Millisecond)
	require.Less(t, pauses["cooperative"], 100*time.Millisecond)
	require.Less(t, pauses["KIP-848"], 100*time.Millisecond)
}

func TestUsers19AutoCommitDoesNotReachTheTopicThatTookTheName(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 50)
		a := fl.member(consumer.AutoCommit(time.Hour))
		_, err := a.Poll(within(t, time.Minute), 40)
		require.NoError(t, err)
		name := "orders"
		req := message.NewDeleteTopicsRequest()
		req.Topics, req.TimeoutMs = []message.DeleteTopicState{{Name: &name}}, 10000
		_, err = fl.cl.Request(within(t, time.Minute), client.Controller(), req)
		require.NoError(t, err)
		require.NoError(t, fl.k.CreateTopic(context.Background(), fakebroker.TopicSpec{Name: "orders", Partitions: 1}))
		a.Client().RefreshMetadata()
		time.Sleep(5 * time.Second)
		require.Error(t, a.Commit(within(t, time.Minute)))
		g, err := fl.k.Group(context.Background(), "g")
		require.NoError(t, err)
		require.Empty(t, g.Offsets)
		a.Close(context.Background())
	})
}

func TestUsers19OffsetsOfADeletedTopicAreNotThoseOfTheNewOne(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 50)
		a := fl.member()
		rs, err := a.Poll(within(t, time.Minute), 40)
		require.NoError(t, err)
		require.NoError(t, a.CommitRecords(within(t, time.Minute), rs...))
		require.NoError(t, a.Close(context.Background()))
		name := "orders"
		req := message.NewDeleteTopicsRequest()
		req.Topics, req.TimeoutMs = []message.DeleteTopicState{{Name: &name}}, 10000
		_, err = fl.cl.Request(within(t, time.Minute), client.Controller(), req)
		require.NoError(t, err)
		require.NoError(t, fl.k.CreateTopic(context.Background(), fakebroker.TopicSpec{Name: "orders", Partitions: 1}))
		cl, err := client.New(client.Cluster(fl.k)) // the old one's metadata knows the old topic
		require.NoError(t, err)
		write(t, cl, "orders", 0, 45)
		require.NoError(t, cl.Close(context.Background()))
		b := fl.member()
		rs, err = b.Poll(within(t, time.Minute), 100)
		require.NoError(t, err)
		require.Zero(t, rs[0].Offset)
	})
}
