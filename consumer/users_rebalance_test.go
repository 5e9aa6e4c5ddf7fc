package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// What users of Kafka clients suffer from in rebalances, each as a test: the numbers are those of the project's list.

// awaitClaims waits until a consumer has n partitions that are being read.
func awaitClaims(t testing.TB, c *consumer.Consumer, n int) {
	t.Helper()
	for range 3000 {
		reading := 0
		for _, cl := range c.Membership().Claims {
			if cl.State == "reading" {
				reading++
			}
		}
		if reading == n && len(c.Membership().Claims) == n {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("no %d claims: %+v", n, c.Membership())
}

// idle reads and drops everything until the test ends, so that a consumer is a member.
func idle(t *testing.T, c *consumer.Consumer) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		for _, err := range c.Records(ctx) {
			if err != nil && (ctx.Err() != nil || errors.Is(err, consumer.ErrClosed)) {
				return
			}
		}
	})
	t.Cleanup(func() { cancel(); group.Wait() })
}

// running starts Run in the background; stop ends it and returns its error.
func running(t *testing.T, c *consumer.Consumer, f func(context.Context, consumer.Record) error, opts ...consumer.RunOption) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, f, opts...) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { stop() })
	return stop
}

// Users 1 and 5.
func TestUsers01SlowPartitionStallsNeitherTheOthersNorARebalance(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 2000)
		slow := make(chan struct{})
		var fast, slowCount atomic.Int64
		a := fl.member()
		stop := running(t, a, func(ctx context.Context, r consumer.Record) error {
			if r.Partition == 0 {
				slowCount.Add(1)
				select {
				case <-slow:
				case <-ctx.Done():
				}
				return ctx.Err()
			}
			fast.Add(1)
			return nil
		}, consumer.Buffer(50), consumer.Concurrency(100))
		off, err := fl.k.Offsets("orders", 1)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return fast.Load() == off.HighWatermark }, time.Minute, 10*time.Millisecond, "the other partition goes on")
		time.Sleep(time.Second)
		info := a.Membership().Claims
		require.True(t, info[0].Throttled, "the slow partition is not fetched any more")
		require.False(t, info[1].Throttled)
		require.LessOrEqual(t, info[0].Waiting, 50+128)
		// A rebalance goes through although the handlers are stuck, as soon as they return.
		b := fl.member(consumer.GroupProtocol("classic"))
		idle(t, b)
		time.Sleep(2 * time.Second)
		close(slow)
		awaitClaims(t, b, 1)
		awaitClaims(t, a, 1)
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

func TestUsers02AfterOnRevokedNothingOfTheClaimIsHandedOut(t *testing.T) {
	for _, mode := range []string{"records", "poll", "batches", "run"} {
		t.Run(mode, func(t *testing.T) {
			withFleet(t, 4, func(t *testing.T, fl *fleet) {
				var mu sync.Mutex
				owned := map[int32]bool{}
				set := func(on bool) func(context.Context, []consumer.TopicPartition) {
					return func(_ context.Context, parts []consumer.TopicPartition) {
						mu.Lock()
						defer mu.Unlock()
						for _, p := range parts {
							owned[p.Partition] = on
						}
					}
				}
				var l ledger
				see := func(r consumer.Record) {
					mu.Lock()
					require.True(t, owned[r.Partition], "%s was revoked", r.TopicPartition())
					mu.Unlock()
					time.Sleep(500 * time.Microsecond)
					mu.Lock()
					require.True(t, owned[r.Partition], "%s was revoked with a record in hand", r.TopicPartition())
					mu.Unlock()
					l.add(r)
				}
				a := fl.member(consumer.OnAssigned(set(true)), consumer.OnRevoked(set(false)))
				ctx, cancel := context.WithCancel(context.Background())
				var group sync.WaitGroup
				group.Go(func() { readAs(t, mode, ctx, a, see) })
				n := 0
				for range 4 {
					write(t, fl.cl, "orders", n, 200)
					n += 200
					time.Sleep(30 * time.Millisecond)
					b := fl.member()
					ctxB, cancelB := context.WithCancel(context.Background())
					var gb sync.WaitGroup
					gb.Go(func() { readAs(t, mode, ctxB, b, func(r consumer.Record) { l.add(r) }) })
					time.Sleep(700 * time.Millisecond)
					cancelB()
					gb.Wait()
					if mode == "poll" {
						require.NoError(t, b.Commit(context.Background()))
					}
					require.NoError(t, b.Close(context.Background()))
				}
				require.Eventually(t, func() bool { return l.len() == n }, time.Minute, 50*time.Millisecond)
				cancel()
				group.Wait()
				l.once(t, n)
			})
		})
	}
}

// readAs reads in one of four ways until ctx ends.
func readAs(t *testing.T, mode string, ctx context.Context, c *consumer.Consumer, see func(consumer.Record)) {
	over := func(err error) bool {
		require.True(t, ctx.Err() != nil || errors.Is(err, consumer.ErrClosed), "%v", err)
		return true
	}
	switch mode {
	case "records":
		for r, err := range c.Records(ctx) {
			if err != nil && over(err) {
				return
			}
			see(r)
		}
	case "poll":
		for {
			rs, err := c.Poll(ctx, 7)
			if err != nil && over(err) {
				return
			}
			for _, r := range rs {
				see(r)
			}
		}
	case "batches":
		for b, err := range c.Batches(ctx) {
			if err != nil && over(err) {
				return
			}
			for r := range b.Records() {
				see(r)
			}
		}
	case "run":
		over(c.Run(ctx, func(_ context.Context, r consumer.Record) error { see(r); return nil }))
	}
}

func TestUsers03ClaimsRecordsEndByThemselves(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, fl *fleet) {
		ended := make(chan error, 8)
		a := fl.member()
		ctx, cancel := context.WithCancel(context.Background())
		var group sync.WaitGroup
		group.Go(func() {
			require.ErrorIs(t, a.Serve(ctx, func(ctx context.Context, claim *consumer.Claim) error {
				for range claim.Records(context.Background()) { // it does not even look at its ctx
				}
				if ctx.Err() == nil { // what is in hand may end; at the end of the test it is over
					require.ErrorIs(t, context.Cause(claim.Ending()), consumer.ErrRevoked)
				}
				ended <- context.Cause(claim.Ending())
				return nil
			}), context.Canceled)
		})
		awaitClaims(t, a, 2)
		idle(t, fl.member())
		require.ErrorIs(t, <-ended, consumer.ErrRevoked)
		require.ErrorIs(t, <-ended, consumer.ErrRevoked, "eager: both are given up")
		awaitClaims(t, a, 1)
		cancel()
		group.Wait()
	})
}

func TestUsers04CausesTellRevokedLostFencedAndClosed(t *testing.T) {
	cause := func(t *testing.T, end func(t *testing.T, fl *fleet, a *consumer.Consumer), opts ...consumer.Option) (got error) {
		withFleet(t, 1, func(t *testing.T, fl *fleet) {
			write(t, fl.cl, "orders", 0, 1)
			causes, in := make(chan error, 1), make(chan struct{}, 8)
			a := fl.member(append(opts, consumer.DrainTimeout(time.Second))...)
			stop := running(t, a, func(ctx context.Context, r consumer.Record) error {
				in <- struct{}{}
				<-ctx.Done()
				select {
				case causes <- context.Cause(ctx):
				default:
				}
				return ctx.Err()
			})
			<-in
			end(t, fl, a)
			got = <-causes
			stop()
		})
		return got
	}
	require.ErrorIs(t, cause(t, func(t *testing.T, fl *fleet, a *consumer.Consumer) { idle(t, fl.member()) }), consumer.ErrRevoked)
	lost := cause(t, func(t *testing.T, fl *fleet, a *consumer.Consumer) {
		fl.k.Inject(fault.On(wire.KeyHeartbeat).Error(errcode.UnknownMemberId).Times(1))
	})
	require.ErrorIs(t, lost, consumer.ErrLost)
	require.NotErrorIs(t, lost, consumer.ErrFenced)
	require.ErrorIs(t, cause(t, func(t *testing.T, fl *fleet, a *consumer.Consumer) { idle(t, fl.member(consumer.InstanceID("one"))) },
		consumer.InstanceID("one")), consumer.ErrFenced)
	require.ErrorIs(t, cause(t, func(t *testing.T, fl *fleet, a *consumer.Consumer) { go a.Close(context.Background()) }), consumer.ErrClosed)
}

func TestUsers04FencedMemberEndsWithThatError(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		a := fl.member(consumer.InstanceID("one"))
		done := make(chan error, 1)
		go func() {
			done <- a.Run(context.Background(), func(context.Context, consumer.Record) error { return nil })
		}()
		awaitClaims(t, a, 1)
		idle(t, fl.member(consumer.InstanceID("one")))
		require.ErrorIs(t, <-done, consumer.ErrFenced)
		_, err := a.Poll(context.Background(), 1)
		require.ErrorIs(t, err, consumer.ErrFenced, "for ever")
	})
}

func TestUsers06StallIsReportedWithRecordAndStackAndNeverSilent(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 10)
		stalls := make(chan consumer.Stall, 8)
		a := fl.member(consumer.MaxPollInterval(20*time.Second, consumer.Leave), consumer.OnStall(func(s consumer.Stall) { stalls <- s }))
		err := a.Run(context.Background(), func(ctx context.Context, r consumer.Record) error {
			if r.Offset == 3 {
				deepInTheApplication(ctx)
			}
			return nil
		}, consumer.Concurrency(1))
		var stall *consumer.StallError
		require.ErrorAs(t, err, &stall)
		require.ErrorIs(t, err, consumer.ErrStalled)
		require.ErrorContains(t, err, "orders-0 offset 3")
		s := <-stalls
		require.EqualValues(t, 3, s.Offset)
		require.Contains(t, s.Stack, "deepInTheApplication")
		require.Equal(t, map[int32]int64{0: 3}, fl.committed(0))
	})
}

func deepInTheApplication(ctx context.Context) { <-ctx.Done() }

func TestUsers06StalledLoopIsToldAndComesBack(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 10)
		a := fl.member(consumer.MaxPollInterval(20*time.Second, consumer.Leave))
		var got []string
		for r, err := range a.Records(within(t, 5*time.Minute)) {
			if err != nil {
				require.ErrorIs(t, err, consumer.ErrStalled)
				got = append(got, "stalled")
				continue
			}
			got = append(got, fmt.Sprint(r.Offset))
			if r.Offset == 2 && len(got) == 3 {
				time.Sleep(time.Minute)
				require.ErrorIs(t, a.CommitRecords(within(t, time.Minute), r), consumer.ErrLost, "a lost claim cannot commit")
			}
			if r.Offset == 9 {
				break
			}
		}
		require.Equal(t, "0 1 2 stalled", strings.Join(got[:4], " "))
		require.Equal(t, "9", got[len(got)-1])
	})
}

func TestUsers06WarnStaysInTheGroup(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 5)
		var stalls atomic.Int64
		a := fl.member(consumer.MaxPollInterval(5*time.Second, consumer.Warn), consumer.OnStall(func(consumer.Stall) { stalls.Add(1) }))
		rs, err := a.Poll(within(t, time.Minute), 5)
		require.NoError(t, err)
		generation := a.Membership().Generation
		time.Sleep(time.Minute)
		require.EqualValues(t, 1, stalls.Load(), "told once")
		require.NoError(t, a.CommitRecords(within(t, time.Minute), rs...))
		require.Equal(t, generation, a.Membership().Generation)
	})
}

func TestUsers07EveryProtocolIsChosenByWhatTheBrokerSpeaks(t *testing.T) {
	for _, opt := range []consumer.Option{consumer.GroupProtocol("auto"), consumer.GroupProtocol("classic"), consumer.GroupProtocol("consumer"), consumer.Assignors("cooperative-sticky"),
		consumer.Assignors("roundrobin"), consumer.Assignors("sticky", "range"), consumer.InstanceID("static")} {
		withFleet(t, 4, func(t *testing.T, fl *fleet) {
			write(t, fl.cl, "orders", 0, 100)
			a := fl.member(opt)
			var l ledger
			for r, err := range a.Records(within(t, time.Minute)) {
				require.NoError(t, err)
				if l.add(r) == 100 {
					break
				}
			}
			l.once(t, 100)
		})
	}
}

func TestUsers08TopicThatAppearsLaterIsAssigned(t *testing.T) {
	for step := range 6 { // the topic comes at different moments of the join
		withFleet(t, 1, func(t *testing.T, fl *fleet) {
			a := fl.member(func(c *consumer.Config) { c.Group.Topics = []string{"late"} })
			idle(t, a)
			time.Sleep(time.Duration(step) * 7 * time.Millisecond)
			require.NoError(t, fl.k.CreateTopic(context.Background(), fakebroker.TopicSpec{Name: "late", Partitions: 2}))
			awaitClaims(t, a, 2)
		}, fakebroker.Config("auto.create.topics.enable", "false"))
	}
}

func TestUsers09StaticMemberComesBackWithoutARebalance(t *testing.T) {
	withFleet(t, 4, func(t *testing.T, fl *fleet) {
		a, b := fl.member(consumer.InstanceID("a")), fl.member(consumer.InstanceID("b"))
		idle(t, a)
		idle(t, b)
		awaitClaims(t, a, 2)
		awaitClaims(t, b, 2)
		generation := a.Membership().Generation.ID
		had := b.Membership().Claims
		require.NoError(t, b.Close(context.Background()))
		again := fl.member(consumer.InstanceID("b"))
		idle(t, again)
		awaitClaims(t, again, 2)
		for i, cl := range again.Membership().Claims {
			require.Equal(t, had[i].TopicPartition, cl.TopicPartition)
		}
		require.Equal(t, generation, a.Membership().Generation.ID)
		awaitClaims(t, a, 2)
	})
}
