package purgatory

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// waiter is an operation on one flag that records how it ended.
type waiter struct {
	op    Operation
	ready atomic.Bool
	ends  atomic.Int64
	how   Outcome
	at    time.Time
}

func newWaiter() *waiter {
	w := &waiter{}
	w.op.Try = w.ready.Load
	w.op.Done = func(o Outcome) { w.how, w.at = o, time.Now(); w.ends.Add(1) }
	return w
}

func TestSatisfiedAtOnceIsNeverKept(t *testing.T) {
	p := New[string]()
	w := newWaiter()
	w.ready.Store(true)
	p.Watch(&w.op, time.Hour, "a")
	require.EqualValues(t, 1, w.ends.Load())
	require.Equal(t, Satisfied, w.how)
	require.Zero(t, p.Len())
}

func TestCheckOfAnyKeyCompletesOnce(t *testing.T) {
	p := New[string]()
	w := newWaiter()
	p.Watch(&w.op, time.Hour, "a", "b")
	require.Zero(t, p.Check("a"))
	w.ready.Store(true)
	require.Zero(t, p.Check("c"))
	require.Equal(t, 1, p.Check("b"))
	require.Zero(t, p.Check("a"))
	require.EqualValues(t, 1, w.ends.Load())
	require.Zero(t, p.Len())
	require.Empty(t, p.waiting)
}

func TestDeadlineEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New[int]()
		w := newWaiter()
		start := time.Now()
		p.Watch(&w.op, 500*time.Millisecond, 1)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, Expired, w.how)
		require.Equal(t, 500*time.Millisecond, w.at.Sub(start))
		require.Zero(t, p.Len())
		none := newWaiter()
		p.Watch(&none.op, 0, 1)
		require.Equal(t, Expired, none.how)
	})
}

func TestCancelledOperationIsForgotten(t *testing.T) {
	p := New[int]()
	w := newWaiter()
	p.Watch(&w.op, time.Hour, 1)
	p.Cancel(&w.op)
	w.ready.Store(true)
	require.Zero(t, p.Check(1))
	p.Close()
	require.Zero(t, w.ends.Load())
	require.Empty(t, p.waiting)
}

func TestCloseEndsAllAndStaysClosed(t *testing.T) {
	p := New[int]()
	a, b := newWaiter(), newWaiter()
	p.Watch(&a.op, time.Hour, 1)
	p.Close()
	p.Watch(&b.op, time.Hour, 1)
	require.Equal(t, Closed, a.how)
	require.Equal(t, Closed, b.how)
	require.EqualValues(t, 1, a.ends.Load())
}

func TestManyCheckersCompleteEachOperationExactlyOnce(t *testing.T) {
	p := New[int]()
	waiters := make([]*waiter, 200)
	for i := range waiters {
		waiters[i] = newWaiter()
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i, w := range waiters {
				if i%4 == g {
					p.Watch(&w.op, time.Minute, i%7, 7+i%3)
				}
			}
		})
		wg.Go(func() {
			for i, w := range waiters {
				w.ready.Store(true)
				p.Check(i % 7)
			}
		})
	}
	wg.Wait()
	for k := range 10 {
		p.Check(k)
	}
	for i, w := range waiters {
		require.EqualValues(t, 1, w.ends.Load(), "operation %d", i)
	}
	require.Zero(t, p.Len())
	require.Empty(t, p.waiting)
}

func BenchmarkCheckWithoutWaiters(b *testing.B) {
	p := New[int]()
	for b.Loop() {
		p.Check(1)
	}
}
