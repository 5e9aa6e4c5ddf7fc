package producer_test

import (
	"context"
	"errors"
	"maps"
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

// A ctx that has ended before the call starts nothing, whether the topic is known or not: the error is its cause and says
// that nothing was written, and neither a connection nor a request follows. Close closes all the same.
func TestEndedCtxStartsNothing(t *testing.T) {
	enough := errors.New("enough")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	calls := maps.Clone(blocking)
	delete(calls, "Close")
	calls["Flush"] = func(ctx context.Context, p *producer.Producer) error { return p.Flush(ctx) }
	calls["Typed.Send"] = func(ctx context.Context, p *producer.Producer) error {
		_, err := producer.NewTyped(p, "orders", producer.String, producer.String).Send(ctx, "k", "v")
		return err
	}
	calls["Typed.Submit"] = func(ctx context.Context, p *producer.Producer) error {
		return producer.NewTyped(p, "orders", producer.String, producer.String).Submit(ctx, "k", "v", nil)
	}
	calls["SendAll, nothing read"] = func(ctx context.Context, p *producer.Producer) error {
		_, err := p.SendAll(ctx, func(func(producer.Record) bool) { t.Error("read") })
		return err
	}
	calls["Warm, no topics"] = func(ctx context.Context, p *producer.Producer) error { return p.Warm(ctx) }
	for _, warm := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := newLogs(t, "orders")
			s := &spy{}
			p, err := producer.New(l.client(), producer.Intercept(s))
			require.NoError(t, err)
			if warm {
				_, err = p.Send(t.Context(), text("orders", "first"))
				require.NoError(t, err)
			}
			dialled, asked, seen := l.Dialled(), len(l.Requests()), s.sent
			for range 20 { // a choice among ready channels is made by chance
				for call, do := range calls {
					err := do(ended, p)
					require.ErrorIs(t, err, enough, call)
					if call != "Flush" {
						require.Equal(t, producer.NotWritten, producer.Outcome(err), call)
					}
				}
			}
			synctest.Wait()
			require.Equal(t, dialled, l.Dialled())
			require.Len(t, l.Requests(), asked)
			require.Equal(t, seen, s.sent, "no interceptor was told")
			require.ErrorIs(t, p.Close(ended), enough)
			require.ErrorIs(t, p.Submit(t.Context(), text("orders", "late"), nil), producer.ErrClosed)
		})
	}
}

// The same of a transaction's records, and of its ends.
func TestEndedCtxStartsNothingInATransaction(t *testing.T) {
	enough := errors.New("enough")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	synctest.Test(t, func(t *testing.T) {
		l := newLogs(t, "orders")
		p, err := producer.NewTransactional(l.client(), producer.DefaultConfig(), "billing-1", producer.Hooks{
			Enlist: func([]client.TopicPartition) { t.Error("enlisted") },
			Doomed: func(producer.Doom) { t.Error("doomed") },
		})
		require.NoError(t, err)
		p.Begin(1, 7, 0, true)
		_, err = p.Send(ended, 1, text("orders", "x"))
		require.ErrorIs(t, err, enough)
		require.ErrorIs(t, p.Submit(ended, 1, text("orders", "x"), nil), enough)
		_, err = p.SendAll(ended, 1, slices.Values([]producer.Record{text("orders", "x")}))
		require.ErrorIs(t, err, enough)
		require.ErrorIs(t, p.FlushWait(ended), enough)
		require.ErrorIs(t, p.Warm(ended, "orders"), enough)
		_, err = p.Partitions(ended, "orders")
		require.ErrorIs(t, err, enough)
		synctest.Wait()
		require.Zero(t, l.Dialled())
		require.ErrorIs(t, p.Close(ended), enough)
	})
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
