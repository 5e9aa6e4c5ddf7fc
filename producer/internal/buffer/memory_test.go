package buffer

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSizesArePowersOfTwoUpToAMegabyte(t *testing.T) {
	for n, want := range map[int]int{1: 512, 512: 512, 513: 1024, 1024: 1024, 1025: 2048, 16384: 16384, 1 << 20: 1 << 20, 1<<20 + 1: 1<<20 + 4096} {
		require.Equal(t, want, SizeFor(n))
		require.Equal(t, want, cap(New(1<<22).Get(n)))
	}
}

func TestGetStopsAtTheLimit(t *testing.T) {
	m := New(4096)
	a, b := m.Get(2048), m.Get(2048)
	require.NotNil(t, a)
	require.NotNil(t, b)
	require.Nil(t, m.Get(1))
	m.Put(a)
	again := m.Get(2000)
	require.Equal(t, &a[:1][0], &again[:1][0], "the same chunk again")
	m.Put(b)
	m.Put(again)
	used, limit := m.Used()
	require.Zero(t, used)
	require.Equal(t, 4096, limit)
	require.NotNil(t, m.Get(8192), "more than the limit is given when nothing else is held")
	require.Nil(t, m.Get(1))
}

func TestWaitersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(4096)
		held := m.Get(4096)
		var mu sync.Mutex
		var order []int
		var waiters sync.WaitGroup
		for i, n := range []int{4096, 1024, 1024} {
			waiters.Go(func() {
				chunk, err := m.Wait(context.Background(), n)
				require.NoError(t, err)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Second)
				m.Put(chunk)
			})
			synctest.Wait()
		}
		require.Len(t, m.waiters, 3)
		require.Nil(t, m.Get(1), "nobody overtakes those who wait")
		m.Put(held)
		waiters.Wait()
		require.Equal(t, 0, order[0])
		require.Len(t, order, 3)
		used, _ := m.Used()
		require.Zero(t, used)
	})
}

func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(1024)
		m.Get(1024)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := m.Wait(ctx, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		done := make(chan error)
		go func() {
			_, err := m.Wait(context.Background(), 1)
			done <- err
		}()
		synctest.Wait()
		m.Close()
		require.ErrorIs(t, <-done, ErrClosed)
		_, err = m.Wait(context.Background(), 1)
		require.ErrorIs(t, err, ErrClosed)
	})
}

func TestIdleChunksStayBounded(t *testing.T) {
	m := New(1 << 20)
	for size := 1 << 10; size <= 1<<19; size *= 2 {
		var held [][]byte
		for c := m.Get(size); c != nil; c = m.Get(size) {
			held = append(held, c)
		}
		for _, c := range held {
			m.Put(c)
		}
		require.LessOrEqual(t, m.used+m.idle, m.limit*3/2)
	}
	require.Zero(t, m.used)
}

func TestPoisonShowsLateReaders(t *testing.T) {
	m := New(1 << 20)
	m.Poison = true
	total := 0
	m.Changed = func(d int) { total += d }
	b := append(m.Get(10), "secret"...)
	require.Equal(t, 512, total)
	m.Put(b)
	require.Equal(t, byte(0xDB), b[0])
	require.Zero(t, total)
	over := m.Force(2 << 20)
	require.Equal(t, 2<<20, cap(over))
}
