package producer_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire/message"
)

func TestFullBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs(t, "orders")
		l.setFault(func(int, *message.ProduceRequest) misdeed { return misdeed{delay: time.Minute} })
		p := l.producer(producer.BufferMemory(64<<10), producer.MaxBlock(5*time.Second), producer.RequestTimeout(100*time.Second))
		require.NoError(t, p.Warm(context.Background(), "orders"))
		value := strings.Repeat("x", 1000)
		var told atomic.Int64
		n := 0
		var err error
		for err == nil {
			if err = p.TrySubmit(text("orders", value), func(producer.Ack, error) { told.Add(1) }); err == nil {
				n++
			}
		}
		require.ErrorIs(t, err, producer.ErrBufferFull)
		require.ErrorIs(t, err, producer.ErrNotWritten)
		require.Greater(t, n, 40)
		require.Less(t, n, 65)

		began := time.Now()
		err = p.Submit(context.Background(), text("orders", value), nil)
		require.ErrorIs(t, err, producer.ErrBufferFull)
		require.ErrorContains(t, err, "max.block.ms 5s")
		require.Equal(t, 5*time.Second, time.Since(began))

		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err = p.Submit(ctx, text("orders", value), nil)
		require.ErrorIs(t, err, producer.ErrBufferFull)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		l.setFault(nil)
		time.Sleep(2 * time.Minute)
		require.NoError(t, p.Submit(context.Background(), text("orders", value), nil))
		require.NoError(t, p.Flush(context.Background()))
		require.Equal(t, int64(n), told.Load())
		require.Zero(t, producer.BufferUsed(p))
	})
}

func TestClientsBudgetBoundsProducersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs(t, "orders")
		cl := l.client(client.MemoryBudget(32 << 10))
		l.setFault(func(int, *message.ProduceRequest) misdeed { return misdeed{delay: time.Second} })
		var ps []*producer.Producer
		for range 2 {
			p, err := producer.New(cl, producer.MaxBlock(100*time.Millisecond))
			require.NoError(t, err)
			require.NoError(t, p.Warm(context.Background(), "orders"))
			ps = append(ps, p)
		}
		sent := 0
		for i := range 100 {
			if ps[i%2].TrySubmit(text("orders", strings.Repeat("x", 1000)).To(int32(i%3)), nil) == nil {
				sent++
			}
		}
		require.Less(t, sent, 33, "both together")
		require.ErrorIs(t, ps[0].Submit(context.Background(), text("orders", strings.Repeat("x", 10_000)), nil), producer.ErrBufferFull)
		for _, p := range ps {
			require.NoError(t, p.Flush(context.Background()))
			require.NoError(t, p.Close(context.Background()))
		}
		used, limit := cl.Budget().Used()
		require.Zero(t, used)
		require.Equal(t, int64(32<<10), limit)
		require.Len(t, l.records("orders", -1), sent)
	})
}

func TestSubmittersShareAFullBufferFairly(t *testing.T) {
	l := newLogs(t, "orders")
	p := l.producer(producer.BufferMemory(32<<10), producer.BatchSize(4<<10))
	var wg sync.WaitGroup
	var acked atomic.Int64
	for range 8 {
		wg.Go(func() {
			for range 300 {
				err := p.Submit(context.Background(), text("orders", strings.Repeat("y", 500)), func(_ producer.Ack, err error) {
					if err == nil {
						acked.Add(1)
					}
				})
				require.NoError(t, err)
			}
		})
	}
	wg.Wait()
	require.NoError(t, p.Flush(context.Background()))
	require.Equal(t, int64(2400), acked.Load())
	require.Zero(t, producer.BufferUsed(p))
}
