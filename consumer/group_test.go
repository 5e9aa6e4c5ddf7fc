package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
)

// The tests of groups run against the broker of this project, in virtual time.

// fleet is a topic and the consumers of one group.
type fleet struct {
	t  *testing.T
	k  *fakebroker.Cluster
	cl *client.Client // of the test itself
}

// withFleet runs a test in a bubble with a topic "orders" of n partitions. The bubble fails if a goroutine is left.
func withFleet(t *testing.T, n int, f func(t *testing.T, fl *fleet), opts ...fakebroker.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		opts = append([]fakebroker.Option{fakebroker.Topic("orders", n), fakebroker.Config("group.initial.rebalance.delay.ms", "0")}, opts...)
		k := fakebroker.Start(t, opts...)
		cl, err := client.New(client.Cluster(k))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, cl.Close(context.Background())) })
		f(t, &fleet{t, k, cl})
	})
}

// member makes a consumer of group "g" that reads "orders" from the start.
func (fl *fleet) member(opts ...consumer.Option) *consumer.Consumer {
	fl.t.Helper()
	cl, err := client.New(client.Cluster(fl.k))
	require.NoError(fl.t, err)
	opts = append([]consumer.Option{consumer.Group("g"), consumer.Subscribe("orders"), consumer.OnReset(consumer.Earliest),
		consumer.GroupProtocol("classic"), consumer.SessionTimeout(10*time.Second, 300*time.Millisecond)}, opts...)
	c, err := consumer.New(cl, opts...)
	require.NoError(fl.t, err)
	fl.t.Cleanup(func() {
		assert.NoError(fl.t, c.Close(context.Background())) // a client that stays open would bring the whole bubble down
		require.NoError(fl.t, cl.Close(context.Background()))
	})
	return c
}

// committed asks what the group has.
func (fl *fleet) committed(parts ...int32) map[int32]int64 {
	fl.t.Helper()
	c := fl.member()
	var list []consumer.TopicPartition
	for _, p := range parts {
		list = append(list, tp("orders", p))
	}
	found, err := c.Committed(within(fl.t, time.Minute), list...)
	require.NoError(fl.t, err)
	out := map[int32]int64{}
	for tp, o := range found {
		out[tp.Partition] = o.At
	}
	require.NoError(fl.t, c.Close(context.Background()))
	return out
}

// ledger notes what was processed.
type ledger struct {
	mu   sync.Mutex
	seen map[string]int
}

func (l *ledger) add(r consumer.Record) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[string]int{}
	}
	l.seen[string(r.Value)]++
	return len(l.seen)
}

func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.seen)
}

// once checks that each of n values was processed exactly once.
func (l *ledger) once(t testing.TB, n int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Len(t, l.seen, n)
	for v, times := range l.seen {
		require.Equal(t, 1, times, "value %s", v)
	}
}

func TestGroupReadsEverythingOnce(t *testing.T) {
	withFleet(t, 6, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 1000)
		var l ledger
		a := fl.member()
		for r, err := range a.Records(within(t, time.Minute)) {
			require.NoError(t, err)
			if l.add(r) == 1000 {
				require.NoError(t, a.Commit(within(t, time.Minute)))
				break
			}
		}
		l.once(t, 1000)
		require.NoError(t, a.Close(context.Background()))
		sum := int64(0)
		for _, o := range fl.committed(0, 1, 2, 3, 4, 5) {
			sum += o
		}
		require.EqualValues(t, 1000, sum)
	})
}

func TestRecordIsDoneWhenTheLoopAsksForTheNext(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 10)
		a := fl.member(consumer.AutoCommit(time.Second))
		for r, err := range a.Records(within(t, time.Minute)) {
			require.NoError(t, err)
			if r.Offset == 4 {
				time.Sleep(3 * time.Second) // commits by time go on meanwhile
				break
			}
		}
		require.NoError(t, a.Close(context.Background()))
		require.Equal(t, map[int32]int64{0: 4}, fl.committed(0), "record 4 was in hand")
	})
}

func TestPolledRecordsAreDoneWithTheNextPoll(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 10)
		a := fl.member(consumer.AutoCommit(time.Second))
		_, err := a.Poll(within(t, time.Minute), 3)
		require.NoError(t, err)
		_, err = a.Poll(within(t, time.Minute), 3)
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		require.NoError(t, a.Close(context.Background()))
		require.Equal(t, map[int32]int64{0: 3}, fl.committed(0))
	})
}

func TestMembersShareAndHandOver(t *testing.T) {
	withFleet(t, 6, func(t *testing.T, fl *fleet) {
		var l ledger
		var group sync.WaitGroup
		ctx, cancel := context.WithCancel(context.Background())
		start := func() *consumer.Consumer {
			c := fl.member()
			group.Go(func() {
				for r, err := range c.Records(ctx) {
					if err != nil {
						require.True(t, errors.Is(err, context.Canceled) || errors.Is(err, consumer.ErrClosed), "%v", err)
						return
					}
					time.Sleep(time.Millisecond)
					l.add(r)
				}
			})
			return c
		}
		a := start()
		for i := range 10 {
			write(t, fl.cl, "orders", i*300, 300)
			switch i {
			case 2, 4, 5:
				start()
			case 7:
				require.NoError(t, a.Close(context.Background()))
			}
			time.Sleep(100 * time.Millisecond)
		}
		require.Eventually(t, func() bool { return l.len() == 3000 }, time.Minute, 100*time.Millisecond)
		cancel()
		group.Wait()
		l.once(t, 3000)
	})
}

func TestRunProcessesKeysInOrderAndOthersSideBySide(t *testing.T) {
	withFleet(t, 3, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 2000)
		var (
			l    ledger
			mu   sync.Mutex
			busy = map[string]bool{}
			last = map[string]int64{}
			most int
		)
		c := fl.member()
		ctx, cancel := context.WithCancel(context.Background())
		err := c.Run(ctx, func(ctx context.Context, r consumer.Record) error {
			key := string(r.Key)
			mu.Lock()
			require.False(t, busy[key], "two records of %s at once", key)
			require.GreaterOrEqual(t, r.Offset, last[key])
			busy[key], last[key] = true, r.Offset
			most = max(most, len(busy))
			mu.Unlock()
			time.Sleep(time.Millisecond)
			mu.Lock()
			delete(busy, key)
			mu.Unlock()
			if l.add(r) == 2000 {
				cancel()
			}
			return nil
		}, consumer.Concurrency(8))
		require.ErrorIs(t, err, context.Canceled)
		l.once(t, 2000)
		require.Equal(t, 8, most)
		sum := int64(0)
		for _, o := range fl.committed(0, 1, 2) {
			sum += o
		}
		require.EqualValues(t, 2000, sum)
	})
}

// ownContext is a context that package context does not know: its end reaches what is derived from it one by one, through
// goroutines, in any order.
type ownContext struct{ context.Context }

func (ownContext) Value(any) any { return nil } // by which package context would recognise its own

// When the end of Serve's ctx ends the loop over a claim's records, the handler's own ctx has ended, too.
func TestEndOfServeIsSeenByEveryHandler(t *testing.T) {
	for range 20 {
		withFleet(t, 6, func(t *testing.T, fl *fleet) {
			c := fl.member()
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Second, cancel)
			var handlers atomic.Int64
			err := c.Serve(ownContext{ctx}, func(ctx context.Context, claim *consumer.Claim) error {
				for _, err := range claim.Records(ctx) {
					require.NoError(t, err)
				}
				require.ErrorIs(t, context.Cause(ctx), context.Canceled)
				handlers.Add(1)
				return nil
			})
			require.ErrorIs(t, err, context.Canceled)
			require.EqualValues(t, 6, handlers.Load())
		})
	}
}

func TestServeHasOneGoroutineForEachClaim(t *testing.T) {
	withFleet(t, 4, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 1000)
		var l ledger
		var mu sync.Mutex
		causes := map[string]error{}
		c := fl.member()
		ctx, cancel := context.WithCancel(context.Background())
		err := c.Serve(ctx, func(ctx context.Context, claim *consumer.Claim) error {
			for r, err := range claim.Records(ctx) {
				require.NoError(t, err)
				require.Equal(t, claim.TopicPartition(), r.TopicPartition())
				if l.add(r) == 1000 {
					cancel()
				}
			}
			mu.Lock()
			defer mu.Unlock()
			causes[claim.TopicPartition().String()] = context.Cause(ctx)
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
		l.once(t, 1000)
		require.Len(t, causes, 4)
		for p, cause := range causes {
			require.ErrorIs(t, cause, context.Canceled, p)
		}
		fmt.Fprintln(t.Output(), causes)
	})
}
