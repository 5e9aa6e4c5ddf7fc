package producer_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// blocking are all exported calls that wait. Those that wait for records have one on its way before.
var blocking = map[string]func(ctx context.Context, p *producer.Producer) error{
	"Send": func(ctx context.Context, p *producer.Producer) error {
		_, err := p.Send(ctx, text("orders", "x"))
		return err
	},
	"Submit": func(ctx context.Context, p *producer.Producer) error {
		for { // until the buffer is full
			if err := p.Submit(ctx, text("orders", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"), nil); err != nil {
				return err
			}
		}
	},
	"SendAll": func(ctx context.Context, p *producer.Producer) error {
		_, err := p.SendAll(ctx, slices.Values([]producer.Record{text("orders", "x"), text("orders", "y")}))
		return err
	},
	"Flush": func(ctx context.Context, p *producer.Producer) error {
		go func() { _ = p.Submit(context.Background(), text("orders", "x"), nil) }()
		synctest.Wait()
		return p.Flush(ctx)
	},
	"Close": func(ctx context.Context, p *producer.Producer) error {
		go func() { _ = p.Submit(context.Background(), text("orders", "x"), nil) }()
		synctest.Wait()
		return p.Close(ctx)
	},
	"Warm": func(ctx context.Context, p *producer.Producer) error { return p.Warm(ctx, "orders") },
	"Partitions": func(ctx context.Context, p *producer.Producer) error {
		_, err := p.Partitions(ctx, "orders")
		return err
	},
}

// Wherever a call waits, the end of its ctx ends it at that moment, and the error has ctx's cause in it; a record that
// ended so is not told to be acknowledged.
func TestCtxEndsEveryCallAtEveryAwaitPoint(t *testing.T) {
	const connect wire.Key = -1
	stuckAt := map[string]wire.Key{"connect": connect, "hello": wire.KeyApiVersions, "metadata": wire.KeyMetadata,
		"producer id": wire.KeyInitProducerId, "produce": wire.KeyProduce}
	stuck := make(map[string]int)
	for call, do := range blocking {
		for step, key := range stuckAt {
			synctest.Test(t, func(t *testing.T) {
				l := &logs{t: t, parts: map[string]*logPart{}}
				peer := wiretest.NewCluster(1, func(r *wiretest.Request) message.Response {
					if r.Key == key {
						return wiretest.NoAnswer
					}
					return l.answer(r)
				})
				peer.SetTopic("orders", 0, 1)
				dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
					if key == connect {
						<-ctx.Done()
						return nil, context.Cause(ctx)
					}
					return peer.DialContext(ctx, network, addr)
				}
				cl, err := client.New(client.Cluster(peer), client.Dialer(dial))
				require.NoError(t, err)
				p, err := producer.New(cl, producer.BufferMemory(64<<10), producer.BatchSize(4<<10), producer.Linger(0))
				require.NoError(t, err)
				enough := errors.New("enough")
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(enough) })
				began := time.Now()
				if err = do(ctx, p); err != nil || time.Since(began) > 0 {
					stuck[call]++
					require.Equal(t, time.Second, time.Since(began), "%s at %s: %v", call, step, err)
					require.ErrorIs(t, err, enough, "%s at %s", call, step)
					require.NotEqual(t, producer.Acked, producer.Outcome(err), "%s at %s", call, step)
				}
				ctx, end := context.WithTimeout(context.Background(), time.Second)
				defer end()
				_ = p.Close(ctx)
				require.NoError(t, cl.Close(context.Background()))
				peer.Close()
			})
		}
	}
	for call := range blocking {
		require.GreaterOrEqual(t, stuck[call], 2, call)
	}
}
