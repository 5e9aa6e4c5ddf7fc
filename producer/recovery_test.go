package producer_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Whatever a broker says of an idempotent producer's id, epoch or sequence, the producer goes on (KIP-360): with the
// next epoch or a new id, every record has one verdict, and what is told to be acknowledged is there once, in order.
func TestIdempotentProducerNeverDies(t *testing.T) {
	for _, code := range []errcode.Code{errcode.OutOfOrderSequenceNumber, errcode.UnknownProducerId, errcode.InvalidProducerEpoch,
		errcode.InvalidProducerIdMapping, errcode.ProducerFenced} {
		for at := 1; at <= 3; at++ {
			t.Run(fmt.Sprint(code.Name(), at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newLogs(t, "orders")
					l.setFault(func(n int, _ *message.ProduceRequest) misdeed {
						if n == at {
							return misdeed{code: code}
						}
						return misdeed{}
					})
					p := l.producer(producer.BatchSize(200))
					var acked, failed atomic.Int32
					for i := range 40 {
						err := p.Submit(t.Context(), text("orders", fmt.Sprintf("%03d", i)).To(0), func(_ producer.Ack, err error) {
							if err != nil {
								failed.Add(1)
								return
							}
							acked.Add(1)
						})
						require.NoError(t, err)
					}
					require.NoError(t, p.Flush(t.Context()))
					require.EqualValues(t, 40, acked.Load()+failed.Load())
					_, err := p.Send(t.Context(), text("orders", "999").To(0))
					require.NoError(t, err, "it goes on")
					values := l.values("orders", 0)
					require.GreaterOrEqual(t, len(values), int(acked.Load())+1)
					for i := 1; i < len(values); i++ {
						require.Greater(t, values[i], values[i-1])
					}
				})
			})
		}
	}
}

// A producer that waits for memory does not wait for linger.ms: a full buffer is sent.
func TestFullBufferCutsTheLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs(t, "orders")
		p := l.producer(producer.BufferMemory(32<<10), producer.BatchSize(16<<10), producer.Linger(time.Hour), producer.DeliveryTimeout(2*time.Hour))
		require.NoError(t, p.Warm(t.Context(), "orders"))
		began := time.Now()
		for range 200 {
			require.NoError(t, p.Submit(t.Context(), text("orders", strings.Repeat("x", 1000)), nil))
		}
		require.Zero(t, time.Since(began), "200 KB through 32 KiB without waiting for the hour")
		require.NoError(t, p.Flush(context.Background()))
		require.Len(t, l.records("orders", -1), 200)
	})
}
