package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// What users of Kafka clients suffer from: duplicates, loss, outages. The numbers are those of the project's list.

func TestUsers10RevokeDrainsBeforeItCommitsAndGivesUp(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 100)
		var l ledger
		var mu sync.Mutex
		var timeline []string
		say := func(f string, a ...any) {
			mu.Lock()
			defer mu.Unlock()
			timeline = append(timeline, fmt.Sprintf(f, a...))
		}
		var rival atomic.Pointer[consumer.Consumer]
		a := fl.member(consumer.OnRevoked(func(context.Context, []consumer.TopicPartition) { say("revoked after %d", l.len()) }))
		started := make(chan struct{}, 100)
		stop := running(t, a, func(ctx context.Context, r consumer.Record) error {
			started <- struct{}{}
			time.Sleep(3 * time.Second) // longer than some rebalances take
			l.add(r)
			return ctx.Err()
		}, consumer.Concurrency(4))
		for range 4 {
			<-started
		}
		b := fl.member(consumer.OnAssigned(func(_ context.Context, parts []consumer.TopicPartition) { say("%d to the rival", len(parts)) }))
		rival.Store(b)
		done := make(chan error, 1)
		go func() {
			done <- b.Run(within(t, 10*time.Minute), func(_ context.Context, r consumer.Record) error { l.add(r); return nil })
		}()
		require.Eventually(t, func() bool { return a.Membership().Generation.ID >= 2 }, time.Minute, 100*time.Millisecond)
		require.NoError(t, a.Close(context.Background()))
		require.ErrorIs(t, stop(), consumer.ErrClosed)
		require.Eventually(t, func() bool { return l.len() == 100 }, 10*time.Minute, time.Second)
		require.NoError(t, b.Close(context.Background()))
		require.ErrorIs(t, <-done, consumer.ErrClosed)
		l.once(t, 100)
		require.Regexp(t, `^revoked after [4-9]`, timeline[0])
	})
}

func TestUsers11NothingIsCommittedBeforeTheHandlerReturnedNil(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 10)
		a := fl.member(consumer.AutoCommit(100 * time.Millisecond))
		release := make(chan struct{})
		stop := running(t, a, func(ctx context.Context, r consumer.Record) error {
			if r.Offset == 6 {
				select {
				case <-release:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 6, a.Membership().Claims[0].Committed, "7 to 9 are done, but not without a gap")
		require.ErrorIs(t, stop(), context.Canceled)
		require.Equal(t, map[int32]int64{0: 6}, fl.committed(0), "the end of ctx consumes nothing")
		// Whoever reads next on the same consumer misses nothing and gets only what is not done.
		rs, err := a.Poll(within(t, time.Minute), 100)
		require.NoError(t, err)
		require.EqualValues(t, 6, rs[0].Offset)
	})
}

func TestUsers11EndOfCtxLosesNoRecord(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 300)
		a := fl.member()
		var l ledger
		for i := 0; l.len() < 300; i++ {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i%7)*time.Millisecond)
			rs, err := a.Poll(ctx, 1+i%5)
			if err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			for _, r := range rs {
				l.add(r)
			}
			cancel()
		}
		l.once(t, 300)
	})
}

func TestUsers12AutoCommitCommitsWhatIsProcessedNotWhatWasPolled(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 100)
		a := fl.member(consumer.AutoCommit(50 * time.Millisecond))
		_, err := a.Poll(within(t, time.Minute), 100)
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		require.EqualValues(t, 0, a.Membership().Claims[0].Committed, "all of it is in hand")
		require.NoError(t, a.Commit(within(t, time.Minute)))
		require.EqualValues(t, 100, a.Membership().Claims[0].Committed)
	})
}

func TestUsers13FirstStartAtLatestLosesNothing(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 50)
		first := fl.member(consumer.OnReset(consumer.Latest), consumer.ManualCommit)
		ctx, cancel := context.WithCancel(context.Background())
		go func() { first.Poll(ctx, 1) }()
		awaitClaims(t, first, 1)
		// It dies before it has committed anything, and records come before the next one starts.
		cancel()
		require.NoError(t, first.Close(context.Background()))
		write(t, fl.cl, "orders", 50, 30)
		second := fl.member(consumer.OnReset(consumer.Latest))
		rs, err := second.Poll(within(t, time.Minute), 100)
		require.NoError(t, err)
		require.EqualValues(t, 50, rs[0].Offset, "where the group first stood")
	})
}

func TestUsers13NothingIsFetchedBeforeTheStartIsCommitted(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 50)
		in := fl.k.Inject(fault.On(wire.KeyOffsetCommit).Error(errcode.CoordinatorLoadInProgress).Times(5))
		a := fl.member(consumer.OnReset(consumer.Latest))
		before := fl.k.Requests(wire.KeyFetch)
		go func() { a.Poll(within(t, 10*time.Second), 1) }()
		require.NoError(t, in.Await(context.Background(), 3))
		require.Equal(t, before, fl.k.Requests(wire.KeyFetch))
		awaitClaims(t, a, 1)
		time.Sleep(time.Second)
		require.Greater(t, fl.k.Requests(wire.KeyFetch), before)
	})
}

func TestUsers18EveryResetIsAnEvent(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 50)
		a := fl.member(consumer.ManualCommit)
		_, err := a.Poll(within(t, time.Minute), 1)
		require.NoError(t, err)
		require.NoError(t, a.CommitOffsets(within(t, time.Minute), map[consumer.TopicPartition]consumer.Offset{tp("orders", 0): consumer.OffsetAt(900)}))
		require.NoError(t, a.Close(context.Background()))
		events := make(chan consumer.Event, 32)
		b := fl.member(consumer.OnReset(consumer.Nearest), consumer.OnEvent(func(e consumer.Event) { events <- e }))
		idle(t, b)
		for e := range events {
			if e.Kind == consumer.EventReset {
				require.EqualValues(t, 900, e.Old.Offset)
				require.EqualValues(t, 50, e.New.Offset)
				break
			}
		}
	})
}

func TestUsers20GroupSurvivesABrokerThatIsAwayForAMinute(t *testing.T) {
	withFleet(t, 4, func(t *testing.T, fl *fleet) {
		var l ledger
		handle := func(ctx context.Context, r consumer.Record) error { l.add(r); return ctx.Err() }
		a, b := fl.member(), fl.member()
		stopA, stopB := running(t, a, handle), running(t, b, handle)
		awaitClaims(t, a, 2)
		awaitClaims(t, b, 2)
		write(t, fl.cl, "orders", 0, 500)
		require.Eventually(t, func() bool { return l.len() == 500 }, time.Minute, 10*time.Millisecond)
		time.Sleep(10 * time.Second) // commits by time
		require.NoError(t, fl.k.Stop(context.Background()))
		time.Sleep(time.Minute)
		require.NoError(t, fl.k.Restart(context.Background()))
		write(t, fl.cl, "orders", 500, 500)
		require.Eventually(t, func() bool { return l.len() == 1000 }, 5*time.Minute, 100*time.Millisecond)
		l.once(t, 1000)
		awaitClaims(t, a, 2)
		awaitClaims(t, b, 2)
		require.ErrorIs(t, stopA(), context.Canceled)
		require.ErrorIs(t, stopB(), context.Canceled)
	})
}

func TestUsers23NewTopicOfAPatternIsSeenSoon(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		a := fl.member(func(c *consumer.Config) { c.Group.Topics, c.Group.Pattern = nil, "bills-.*" })
		idle(t, a)
		time.Sleep(time.Minute)
		require.NoError(t, fl.k.CreateTopic(context.Background(), fakebroker.TopicSpec{Name: "bills-1", Partitions: 3}))
		require.NoError(t, fl.k.CreateTopic(context.Background(), fakebroker.TopicSpec{Name: "other", Partitions: 3}))
		begin := time.Now()
		awaitClaims(t, a, 3)
		require.LessOrEqual(t, time.Since(begin), 15*time.Second)
	})
}

func TestUsers26MembershipTellsWhetherItIsHealthy(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 10)
		a := fl.member(consumer.AutoCommit(time.Second))
		require.EqualValues(t, -1, a.Membership().Generation.ID, "not joined before anything is read")
		_, err := a.Poll(within(t, time.Minute), 4)
		require.NoError(t, err)
		_, err = a.Poll(within(t, time.Minute), 4)
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		m := a.Membership()
		require.Equal(t, "g", m.Group)
		require.Equal(t, "Stable", m.State.String())
		require.EqualValues(t, 1, m.Generation.ID)
		require.Equal(t, []consumer.ClaimInfo{{TopicPartition: tp("orders", 0), State: "reading", Done: 4, Committed: 4}}, m.Claims)
		lag, err := a.Lag(within(t, time.Minute))
		require.NoError(t, err)
		require.Equal(t, map[consumer.TopicPartition]int64{tp("orders", 0): 2}, lag)
		metrics := a.Client().Metrics()
		require.EqualValues(t, 1, metrics.Rebalances)
		require.EqualValues(t, 1, metrics.Commits)
	})
}

func TestUsers37EveryCallEndsWithItsContext(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		// The coordinator cannot be found, so nothing ever succeeds.
		fl.k.Inject(fault.On(wire.KeyFindCoordinator).Error(errcode.CoordinatorNotAvailable))
		calls := map[string]func(context.Context, *consumer.Consumer) error{
			"Poll": func(ctx context.Context, c *consumer.Consumer) error { _, err := c.Poll(ctx, 1); return err },
			"Records": func(ctx context.Context, c *consumer.Consumer) (err error) {
				for _, err = range c.Records(ctx) {
				}
				return err
			},
			"Batches": func(ctx context.Context, c *consumer.Consumer) (err error) {
				for _, err = range c.Batches(ctx) {
				}
				return err
			},
			"Run": func(ctx context.Context, c *consumer.Consumer) error {
				return c.Run(ctx, func(context.Context, consumer.Record) error { return nil })
			},
			"Serve": func(ctx context.Context, c *consumer.Consumer) error {
				return c.Serve(ctx, func(context.Context, *consumer.Claim) error { return nil })
			},
			"Committed": func(ctx context.Context, c *consumer.Consumer) error {
				_, err := c.Committed(ctx, tp("orders", 0))
				return err
			},
		}
		for name, call := range calls {
			a := fl.member()
			begin := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), 1500*time.Millisecond)
			err := call(ctx, a)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
			require.Equal(t, 1500*time.Millisecond, time.Since(begin), name)
			require.NoError(t, a.Close(context.Background()), name)
		}
	})
}

func TestUsers38CloseReturnsByTheEndOfItsContext(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 10)
		a := fl.member()
		in, release := make(chan struct{}, 10), make(chan struct{})
		go a.Run(context.Background(), func(ctx context.Context, r consumer.Record) error {
			in <- struct{}{}
			<-release // does not look at ctx
			return nil
		})
		<-in
		begin := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		require.ErrorIs(t, a.Close(ctx), context.DeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(begin))
		close(release)
	})
}

func TestUsers39CloseSaysWhatWasNotCommitted(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 10)
		a := fl.member(consumer.AutoCommit(time.Hour))
		_, err := a.Poll(within(t, time.Minute), 5)
		require.NoError(t, err)
		_, err = a.Poll(within(t, time.Minute), 1)
		require.NoError(t, err)
		fl.k.Inject(fault.On(wire.KeyOffsetCommit).Error(errcode.GroupAuthorizationFailed))
		err = a.Close(context.Background())
		require.ErrorIs(t, err, errcode.GroupAuthorizationFailed)
		require.ErrorContains(t, err, `group "g"`)
		require.NoError(t, a.Close(context.Background()), "told once")
	})
}

func TestUsers40GoroutinesEndWithClose(t *testing.T) {
	// Every test of a group runs in a bubble, which fails if one is left. This one closes at every moment of a join.
	for step := range 12 {
		withFleet(t, 3, func(t *testing.T, fl *fleet) {
			write(t, fl.cl, "orders", 0, 100)
			a := fl.member()
			go func() {
				for _, err := range a.Records(context.Background()) {
					if errors.Is(err, consumer.ErrClosed) {
						return
					}
				}
			}()
			time.Sleep(time.Duration(step) * 3 * time.Millisecond)
			begin := time.Now()
			require.NoError(t, a.Close(context.Background()))
			require.Less(t, time.Since(begin), 10*time.Second)
		})
	}
}
