package harness_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
)

// TestHistoryNamesTheCauseOfARebalance goes through what makes a group rebalance, by each protocol.
func TestHistoryNamesTheCauseOfARebalance(t *testing.T) {
	for _, c := range []struct {
		cause fakebroker.GroupCause
		do    func(f *fleet)
	}{
		{fakebroker.MemberJoined, func(f *fleet) { f.start(nil) }},
		{fakebroker.MemberLeft, func(f *fleet) { f.members[1].stop() }},
		{fakebroker.SessionTimeout, func(f *fleet) { f.members[1].crash() }},
		{fakebroker.PartitionsChanged, func(f *fleet) { f.grow(5) }},
		{fakebroker.SubscriptionChanged, func(f *fleet) { require.NoError(f, f.members[1].c.Subscribe(topic, "bills")) }},
		{fakebroker.PollIntervalExceeded, func(f *fleet) { f.write(1000) }}, // the second member never comes back from its first record
	} {
		for _, way := range protocols {
			t.Run(string(c.cause)+"/"+way.name, func(t *testing.T) {
				run(t, way, 4, func(f *fleet) {
					cause := c.cause
					if cause == fakebroker.PollIntervalExceeded && way.name == "KIP-848" {
						cause = fakebroker.MemberLeft // that protocol's heartbeat has no room for a reason; the client says it
					}
					var slow func(context.Context, consumer.Record) error
					if c.cause == fakebroker.PollIntervalExceeded {
						slow = func(ctx context.Context, _ consumer.Record) error { <-ctx.Done(); return ctx.Err() }
					}
					f.start(nil)
					f.start(slow)
					f.settled(4, time.Minute)
					before, err := f.k.Group(context.Background(), "g")
					require.NoError(t, err)
					c.do(f)
					ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // metadata is refreshed every five
					defer cancel()
					_, err = f.k.AwaitGroup(ctx, "g", func(g *fakebroker.Group) bool {
						for _, e := range g.History[len(before.History):] {
							if e.Cause == cause {
								return true
							}
						}
						return false
					})
					if err != nil {
						g, _ := f.k.Group(context.Background(), "g")
						require.NoError(t, err, "%+v", g)
					}
					if c.cause == fakebroker.PollIntervalExceeded {
						m := f.members[1]
						require.ErrorIs(t, <-m.done, consumer.ErrStalled)
						m.done <- nil
					}
				})
			})
		}
	}
}

// TestClientsLiveThroughAMinuteWithoutBrokerAndThroughReloads stops the broker for a minute and has the coordinator load its
// state anew, under consumption: nothing is lost.
func TestClientsLiveThroughAMinuteWithoutBrokerAndThroughReloads(t *testing.T) {
	for _, way := range protocols {
		t.Run(way.name, func(t *testing.T) {
			run(t, way, 4, func(f *fleet) {
				f.start(nil)
				f.start(nil)
				f.settled(4, time.Minute)
				f.write(200)
				require.NoError(t, f.k.Stop(context.Background()))
				time.Sleep(time.Minute)
				require.NoError(t, f.k.Restart(context.Background()))
				f.write(200)
				f.settled(4, 2*(session+rebalance))
				for range 3 {
					require.NoError(t, f.k.ReloadCoordinator(context.Background(), "g"))
					f.write(200)
					time.Sleep(2 * time.Second)
				}
				f.settled(4, 2*(session+rebalance))
				time.Sleep(5 * time.Second)
				distinct, again := f.ledger.counts()
				require.Equal(t, f.written, distinct)
				t.Logf("%d records, %d of them again after the minute without a broker", distinct, again)
				f.committedIsProcessed()
			})
		})
	}
}
