package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

func TestFailedRecordIsTriedAgainWhileOthersGoOn(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 97) // all keys differ
		a := fl.member()
		var mu sync.Mutex
		var at []time.Duration
		var l ledger
		begin := time.Now()
		ctx, cancel := context.WithCancel(context.Background())
		err := a.Run(ctx, func(_ context.Context, r consumer.Record) error {
			if r.Offset == 5 {
				mu.Lock()
				defer mu.Unlock()
				if at = append(at, time.Since(begin)); len(at) < 5 {
					return errors.New("not yet")
				}
				require.Equal(t, 96, l.len(), "the others did not wait")
			}
			if l.add(r) == 97 {
				cancel()
			}
			return nil
		}, consumer.Retry(10, time.Second, 4*time.Second))
		require.ErrorIs(t, err, context.Canceled)
		l.once(t, 97)
		for i, least := range []time.Duration{800 * time.Millisecond, 1600 * time.Millisecond, 3200 * time.Millisecond, 3200 * time.Millisecond} {
			require.GreaterOrEqual(t, at[i+1]-at[i], least)
			require.LessOrEqual(t, at[i+1]-at[i], least*5/4+time.Millisecond)
		}
		require.Equal(t, map[int32]int64{0: 97}, fl.committed(0))
	})
}

func TestDeadLettersTakeWhatCannotBeProcessed(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 20)
		a := fl.member()
		var l ledger
		var tries atomic.Int64
		ctx, cancel := context.WithCancel(context.Background())
		err := a.Run(ctx, func(_ context.Context, r consumer.Record) error {
			switch r.Offset {
			case 7:
				tries.Add(1)
				return errors.New("no such customer")
			case 8:
				tries.Add(100)
				return consumer.Permanent(errors.New("not even JSON"))
			}
			if l.add(r) == 18 {
				time.AfterFunc(10*time.Second, cancel)
			}
			return nil
		}, consumer.Retry(3, 10*time.Millisecond, time.Second), consumer.DeadLetter("dead"))
		require.ErrorIs(t, err, context.Canceled)
		require.EqualValues(t, 103, tries.Load())
		require.Equal(t, map[int32]int64{0: 20}, fl.committed(0))
		dead := consume2(t, fl, "dead")
		slices.SortFunc(dead, func(a, b consumer.Record) int { return strings.Compare(string(a.Value), string(b.Value)) })
		require.Len(t, dead, 2)
		require.Equal(t, "key-7", string(dead[0].Key))
		require.Equal(t, "7", string(dead[0].Value))
		header := func(i int, name string) string { v, _ := dead[i].Headers.Last(name); return string(v) }
		require.Equal(t, "orders 0 7 g 3 no such customer", strings.Join([]string{header(0, consumer.HeaderDeadTopic), header(0, consumer.HeaderDeadPartition),
			header(0, consumer.HeaderDeadOffset), header(0, consumer.HeaderDeadGroup), header(0, consumer.HeaderDeadCount), header(0, consumer.HeaderDeadMessage)}, " "))
		require.Equal(t, "1", header(1, consumer.HeaderDeadCount))
	}, fakebroker.Topic("dead", 1))
}

// consume2 reads two records of partition 0 of a topic, without a group.
func consume2(t *testing.T, fl *fleet, topic string) []consumer.Record {
	c, err := consumer.New(fl.cl, consumer.Assign(topic, 0), consumer.StartAt(consumer.Earliest))
	require.NoError(t, err)
	out := take(t, c, 2)
	require.NoError(t, c.Close(context.Background()))
	return out
}

func TestRunEndsWithARecordThatNobodyTakes(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 20)
		bad := errors.New("bad")
		a := fl.member()
		err := a.Run(context.Background(), func(_ context.Context, r consumer.Record) error {
			if r.Offset == 7 {
				return bad
			}
			return nil
		}, consumer.Retry(2, time.Millisecond, time.Millisecond))
		var failed *consumer.RecordError
		require.ErrorAs(t, err, &failed)
		require.ErrorIs(t, err, bad)
		require.EqualValues(t, 7, failed.Record.Offset)
		require.Equal(t, 2, failed.Attempts)
		require.ErrorContains(t, err, "orders-0 offset 7 failed in 2 attempts")
		require.Equal(t, map[int32]int64{0: 7}, fl.committed(0))
		require.Error(t, a.Run(context.Background(), nil))
		require.ErrorContains(t, a.Run(context.Background(), func(context.Context, consumer.Record) error { return nil }, consumer.Concurrency(0)), "at least 1")
	})
}

func TestErrorOfServesHandlerEndsServe(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 50)
		bad := errors.New("bad")
		a := fl.member()
		var ended atomic.Int64
		err := a.Serve(context.Background(), func(ctx context.Context, claim *consumer.Claim) error {
			defer ended.Add(1)
			for r := range claim.Records(ctx) {
				if r.Partition == 1 && r.Offset == 3 {
					return bad
				}
				if r.Partition == 1 && r.Offset == 1 {
					require.NoError(t, claim.Commit(ctx))
					require.EqualValues(t, 2, a.Membership().Claims[1].Committed)
				}
			}
			return nil
		})
		require.ErrorIs(t, err, bad)
		require.EqualValues(t, 2, ended.Load())
		require.EqualValues(t, 3, fl.committed(1)[1])
	})
}

func TestSeekInOnAssignedDecidesTheStart(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 20)
		var a *consumer.Consumer
		a = fl.member(consumer.OnAssigned(func(_ context.Context, parts []consumer.TopicPartition) {
			for _, p := range parts {
				require.NoError(t, a.Seek(p, consumer.AtOffset(11)))
			}
		}))
		rs, err := a.Poll(within(t, time.Minute), 3)
		require.NoError(t, err)
		require.EqualValues(t, 11, rs[0].Offset)
		require.NoError(t, a.Seek(tp("orders", 0), consumer.AtOffset(4)))
		rs, err = a.Poll(within(t, time.Minute), 100)
		require.NoError(t, err)
		require.EqualValues(t, 4, rs[0].Offset)
		require.NoError(t, a.Commit(within(t, time.Minute)))
		require.ErrorIs(t, a.Seek(tp("orders", 3), consumer.Earliest), consumer.ErrNotAssigned)
		require.ErrorContains(t, a.Add(consumer.Assignment{TopicPartition: tp("orders", 0)}), "the group assigns")
	})
}

func TestCommitsByHand(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 40)
		ctx := within(t, time.Hour)
		a := fl.member(consumer.ManualCommit)
		rs, err := a.Poll(ctx, 100)
		require.NoError(t, err)
		require.NoError(t, a.CommitRecords(ctx, rs[2], rs[1]))
		first := rs[2].TopicPartition()
		committed, err := a.Committed(ctx)
		require.NoError(t, err)
		require.EqualValues(t, rs[2].Offset+1, committed[first].At)
		require.EqualValues(t, rs[2].LeaderEpoch, committed[first].Epoch())

		withText := consumer.Offset{At: 1, Metadata: "half way"}
		require.NoError(t, a.CommitOffsets(ctx, map[consumer.TopicPartition]consumer.Offset{first: withText}))
		committed, err = a.Committed(ctx, first)
		require.NoError(t, err)
		require.Equal(t, withText, committed[first])
		require.ErrorIs(t, a.CommitOffsets(ctx, map[consumer.TopicPartition]consumer.Offset{tp("orders", 9): {}}), consumer.ErrNotOwned)

		done := make(chan error, 1)
		a.CommitAsync(func(err error) { done <- err })
		require.NoError(t, <-done)
		for _, cl := range a.Membership().Claims {
			if p, ok := a.Position(cl.TopicPartition); ok {
				require.Equal(t, p.Offset, cl.Committed)
			}
		}
		none := consume2Less(t, fl)
		require.ErrorIs(t, none.Commit(ctx), consumer.ErrNoGroup)
		require.ErrorIs(t, none.Run(ctx, func(context.Context, consumer.Record) error { return nil }), consumer.ErrNoGroup)
		_, err = none.Committed(ctx)
		require.ErrorIs(t, err, consumer.ErrNoGroup)
	})
}

// consume2Less is a consumer without a group.
func consume2Less(t *testing.T, fl *fleet) *consumer.Consumer {
	c, err := consumer.New(fl.cl, consumer.Assign("orders", 0))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	return c
}

func TestFailedCommitIsAnEventAndIsMadeUpFor(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 10)
		var failed atomic.Int64
		a := fl.member(consumer.AutoCommit(time.Second), consumer.OnEvent(func(e consumer.Event) {
			if e.Kind == consumer.EventCommitFailed {
				failed.Add(1)
			}
		}))
		fl.k.Inject(fault.On(wire.KeyOffsetCommit).Error(errcode.InvalidCommitOffsetSize).Times(1))
		_, err := a.Poll(within(t, time.Minute), 10)
		require.NoError(t, err)
		_, err = a.Poll(within(t, 10*time.Second), 10)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualValues(t, 1, failed.Load())
		require.EqualValues(t, 1, a.Client().Metrics().CommitErrors)
		require.EqualValues(t, 10, a.Membership().Claims[0].Committed)
	})
}

// TestKeptPartitionsAreFetchedDuringACooperativeRebalance looks at the timeline of two rebalances: what the member keeps is
// handed out all the time.
func TestKeptPartitionsAreFetchedDuringACooperativeRebalance(t *testing.T) {
	withFleet(t, 4, func(t *testing.T, fl *fleet) {
		ctx, cancel := context.WithCancel(context.Background())
		var work sync.WaitGroup
		work.Go(func() { // a record for each partition every 5 ms, the time as its value
			for n := 0; ctx.Err() == nil; n++ {
				write(t, fl.cl, "orders", n*100, 97)
				time.Sleep(5 * time.Millisecond)
			}
		})
		var mu sync.Mutex
		last, gap := map[int32]time.Time{}, map[int32]time.Duration{}
		state := "before"
		a := fl.member(consumer.Assignors("cooperative-sticky"), consumer.DrainTimeout(10*time.Second))
		slow := make(chan struct{})
		stop := running(t, a, func(ctx context.Context, r consumer.Record) error {
			mu.Lock()
			now := time.Now()
			if state != "before" && !last[r.Partition].IsZero() {
				gap[r.Partition] = max(gap[r.Partition], now.Sub(last[r.Partition]))
			}
			last[r.Partition] = now
			hold := state == "rebalance" && r.Partition >= 2
			mu.Unlock()
			if hold { // what is given up takes a second, during which the rest must go on
				select {
				case <-slow:
				case <-ctx.Done():
				}
			}
			return nil
		}, consumer.Concurrency(1000), consumer.Buffer(2000))
		awaitClaims(t, a, 4)
		time.Sleep(time.Second)
		mu.Lock()
		state = "rebalance"
		mu.Unlock()
		b := fl.member(consumer.Assignors("cooperative-sticky"))
		idle(t, b)
		time.Sleep(2 * time.Second)
		var draining []string
		for _, cl := range a.Membership().Claims {
			draining = append(draining, cl.State)
		}
		require.Equal(t, []string{"reading", "reading", "draining", "draining"}, draining)
		close(slow)
		awaitClaims(t, b, 2)
		time.Sleep(time.Second)
		mu.Lock()
		for p := range int32(2) {
			require.Less(t, gap[p], 200*time.Millisecond, "partition %d was kept and not fetched", p)
			require.Less(t, time.Since(last[p]), 200*time.Millisecond)
		}
		mu.Unlock()
		require.ErrorIs(t, stop(), context.Canceled)
		cancel()
		work.Wait()
		fmt.Fprintln(t.Output(), gap)
	})
}

func TestSubscriptionCanChange(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		a := fl.member()
		idle(t, a)
		awaitClaims(t, a, 1)
		require.NoError(t, a.Subscribe("orders", "bills"))
		awaitClaims(t, a, 3)
		require.NoError(t, a.SubscribePattern("bi..s"))
		awaitClaims(t, a, 2)
	}, fakebroker.Topic("bills", 2))
}

func TestPausedPartitionsStayPausedUnderRun(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, fl *fleet) {
		var counts [2]atomic.Int64
		a := fl.member()
		stop := running(t, a, func(_ context.Context, r consumer.Record) error { counts[r.Partition].Add(1); return nil }, consumer.Buffer(20))
		awaitClaims(t, a, 2)
		require.NoError(t, a.Pause(tp("orders", 0)))
		write(t, fl.cl, "orders", 0, 500)
		time.Sleep(5 * time.Second)
		require.Zero(t, counts[0].Load())
		other := counts[1].Load()
		require.Positive(t, other)
		require.NoError(t, a.Resume(tp("orders", 0)))
		time.Sleep(5 * time.Second)
		require.EqualValues(t, 500, counts[0].Load()+counts[1].Load())
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

func TestSubscribingIsValidated(t *testing.T) {
	for want, opts := range map[string][]consumer.Option{
		"group.id: is needed":            {consumer.Subscribe("a")},
		"exclude each other":             {consumer.Group("g"), consumer.Subscribe("a"), consumer.Assign("a", 0)},
		"group.protocol=new":             {consumer.Group("g"), consumer.Subscribe("a"), consumer.GroupProtocol("new")},
		"partition.assignment.strategy=": {consumer.Group("g"), consumer.Subscribe("a"), consumer.Assignors("fair")},
		"DrainTimeout=1h0m0s":            {consumer.Group("g"), consumer.Subscribe("a"), consumer.DrainTimeout(time.Hour)},
		"not a legal topic name":         {consumer.Group("g"), consumer.Subscribe("a b")},
		"missing closing":                {consumer.Group("g"), consumer.SubscribePattern("(")},
		"heartbeat.interval.ms":          {consumer.Group("g"), consumer.Subscribe("a"), consumer.SessionTimeout(time.Second, time.Minute)},
	} {
		c := consumer.DefaultConfig()
		for _, o := range opts {
			o(&c)
		}
		require.ErrorContains(t, c.Validate(), want)
	}
}

func TestCloseInsideTheLoopDoesNotWaitForItself(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 10)
		a := fl.member()
		begin := time.Now()
		for r, err := range a.Records(context.Background()) {
			if err != nil {
				require.ErrorIs(t, err, consumer.ErrClosed)
				break
			}
			if r.Offset == 3 {
				require.NoError(t, a.Close(context.Background()))
			}
		}
		require.Less(t, time.Since(begin), time.Second)
		require.Equal(t, map[int32]int64{0: 3}, fl.committed(0), "record 3 was in hand")
	})
}

func TestRunLeavesBehindAHandlerThatDoesNotListen(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 10)
		release := make(chan struct{})
		a := fl.member(consumer.MaxPollInterval(10*time.Second, consumer.Leave))
		begin := time.Now()
		err := a.Run(context.Background(), func(context.Context, consumer.Record) error { <-release; return nil })
		require.ErrorIs(t, err, consumer.ErrStalled)
		require.Less(t, time.Since(begin), 20*time.Second)
		// The consumer is of use again: it comes back to the group and gets what was not done.
		rs, err := a.Poll(within(t, time.Minute), 10)
		require.NoError(t, err)
		require.Zero(t, rs[0].Offset)
		close(release)
	})
}

func TestLeaveOfAStaticMemberGivesItsPartitionsAway(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, fl *fleet) {
		a, b := fl.member(consumer.InstanceID("a")), fl.member(consumer.InstanceID("b"))
		idle(t, a)
		idle(t, b)
		awaitClaims(t, a, 1)
		awaitClaims(t, b, 1)
		begin := time.Now()
		require.NoError(t, b.Leave(context.Background()))
		awaitClaims(t, a, 2)
		require.Less(t, time.Since(begin), 5*time.Second)
	})
}

func TestDrainTimeoutLeavesWhatIsInHandBehind(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 100)
		a := fl.member(consumer.DrainTimeout(3 * time.Second))
		release := make(chan struct{})
		stop := running(t, a, func(ctx context.Context, r consumer.Record) error {
			if r.Offset == 5 {
				<-release // does not listen
			}
			return nil
		})
		awaitClaims(t, a, 2)
		time.Sleep(time.Second)
		begin := time.Now()
		b := fl.member()
		idle(t, b)
		awaitClaims(t, b, 1)
		require.InDelta(t, 3, time.Since(begin).Seconds(), 1)
		g, err := fl.k.Group(context.Background(), "g")
		require.NoError(t, err)
		for _, o := range g.Offsets {
			require.LessOrEqual(t, o.Offset, int64(100))
		}
		close(release)
		require.ErrorIs(t, stop(), context.Canceled)
	})
}
