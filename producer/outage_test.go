package producer_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// numbered submits records with the numbers [from, to) and reports any verdict but success.
func numbered(t *testing.T, p *producer.Producer, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		require.NoError(t, p.Submit(t.Context(), text("orders", fmt.Sprint(i)), func(_ producer.Ack, err error) {
			if err != nil {
				t.Errorf("record %d: %v", i, err)
			}
		}))
	}
}

// inOrder requires the numbers [0, n), each once and in order, in the log.
func inOrder(t *testing.T, k *fakebroker.Cluster, n int) {
	t.Helper()
	have, err := k.Records("orders", 0, 0)
	require.NoError(t, err)
	require.Len(t, have, n)
	for i, r := range have {
		require.Equal(t, fmt.Sprint(i), string(r.Value))
	}
}

// A broker that dies while it has a request of any kind in hand stops nobody for good.
func TestBrokerIsKilledAtEachStep(t *testing.T) {
	for _, key := range []wire.Key{wire.KeyApiVersions, wire.KeyMetadata, wire.KeyInitProducerId, wire.KeyProduce} {
		for nth := 1; nth <= 2; nth++ {
			synctest.Test(t, func(t *testing.T) {
				k, p := start(t, []fakebroker.Option{fakebroker.Topic("orders", 1)}, producer.BatchSize(200))
				in := k.Inject(fault.On(key).Nth(nth).Delay(time.Second))
				killed := make(chan error, 1)
				go func() {
					if in.Await(t.Context(), 1) != nil {
						killed <- nil // there was no such request
						return
					}
					if err := k.Crash(context.Background()); err != nil {
						killed <- err
						return
					}
					time.Sleep(2 * time.Second)
					killed <- k.Restart(context.Background())
				}()
				numbered(t, p, 0, 50)
				require.NoError(t, p.Flush(t.Context()))
				if in.Hits() > 0 {
					require.NoError(t, <-killed, "%v %d", key, nth)
				}
				inOrder(t, k, 50)
			})
		}
	}
}

// A peer that answers garbage for a while costs time, and neither records nor order.
func TestGarbageAnswersNeitherLoseNorDouble(t *testing.T) {
	for name, garbage := range map[string][]byte{
		"huge length":  {0x7f, 0xff, 0xff, 0xff, 1, 2, 3},
		"other answer": {0, 0, 0, 8, 9, 9, 9, 9, 0, 0, 0, 0},
		"HTTP":         []byte("HTTP/1.1 502 Bad Gateway\r\n\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &logs{t: t, parts: map[string]*logPart{}}
				var n atomic.Int32
				l.Peer = wiretest.NewCluster(1, func(r *wiretest.Request) message.Response {
					answer := l.answer(r)
					if r.Key == wire.KeyProduce && n.Add(1)%3 == 1 { // applied, and answered with garbage
						return wiretest.Bytes(garbage)
					}
					return answer
				})
				l.SetTopic("orders", 0, 1)
				t.Cleanup(l.Close)
				p := l.producer(producer.BatchSize(200))
				numbered(t, p, 0, 60)
				require.NoError(t, p.Flush(t.Context()))
				var want []string
				for i := range 60 {
					want = append(want, fmt.Sprint(i))
				}
				require.Equal(t, want, l.values("orders", 0))
			})
		})
	}
}

// A broker that stays away is an error within delivery.timeout.ms, typed and with what was tried.
func TestBrokerThatStaysAwayIsATypedError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, p := start(t, []fakebroker.Option{fakebroker.Topic("orders", 1)}, producer.DeliveryTimeout(10*time.Second), producer.RequestTimeout(2*time.Second))
		require.NoError(t, p.Warm(t.Context(), "orders"))
		require.NoError(t, k.Crash(t.Context()))
		began := time.Now()
		_, err := p.Send(t.Context(), text("orders", "x"))
		require.LessOrEqual(t, time.Since(began), 10*time.Second+time.Millisecond)
		var typed *producer.Error
		require.ErrorAs(t, err, &typed)
		require.Equal(t, producer.NotWritten, producer.Outcome(err))
		require.True(t, errors.Is(err, producer.ErrNotWritten))
	})
}

// moving is a name service: seeds lead to where the broker is now, or nowhere; addresses are what they say.
type moving struct{ to atomic.Value }

func (m *moving) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if strings.HasSuffix(addr, ".test:9092") {
		now := m.to.Load().([2]string)
		if addr != now[0] {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		addr = now[1]
	}
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

// On TCP, a broker with its data moves to another address and name under producer and consumer: every record is there
// once and in order, for the reader too; and when all is closed no goroutine is left.
func TestBrokerReplacedAtAnotherAddress(t *testing.T) {
	before := runtime.NumGoroutine()
	func() {
		dir, ctx := t.TempDir(), t.Context()
		var net moving
		at := func(name string) *fakebroker.Cluster {
			k, err := fakebroker.New(fakebroker.Dir(dir), fakebroker.Topic("orders", 1), fakebroker.Listen("127.0.0.1:0"))
			require.NoError(t, err)
			net.to.Store([2]string{name, k.Addrs()[0]})
			return k
		}
		k := at("old.test:9092")
		cl, err := client.New(client.Seeds("old.test:9092", "new.test:9092"), client.Dialer(net.dial),
			client.ReconnectBackoff(5*time.Millisecond, 20*time.Millisecond), client.RetryBackoff(5*time.Millisecond, 20*time.Millisecond))
		require.NoError(t, err)
		p, err := producer.New(cl, producer.BatchSize(200))
		require.NoError(t, err)
		c, err := consumer.New(cl, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest))
		require.NoError(t, err)
		read := make(chan int, 1)
		go func() {
			n := 0
			for r, err := range c.Records(ctx) {
				if err != nil || string(r.Value) != fmt.Sprint(n) {
					t.Errorf("record %d: %q, %v", n, r.Value, err)
				}
				if n++; n == 300 {
					break
				}
			}
			read <- n
		}()
		numbered(t, p, 0, 100)
		require.NoError(t, p.Flush(ctx))
		numbered(t, p, 100, 200)
		require.NoError(t, k.Crash(ctx))
		require.NoError(t, k.Close(ctx))
		numbered(t, p, 200, 300)
		old := k.Addrs()
		k = at("new.test:9092")
		require.NotEqual(t, old, k.Addrs())
		require.NoError(t, p.Flush(ctx))
		require.Equal(t, 300, <-read)
		inOrder(t, k, 300)
		require.Equal(t, k.Addrs()[0], cl.Topology().Brokers[1].Addr())
		require.NoError(t, c.Close(ctx))
		require.NoError(t, p.Close(ctx))
		require.NoError(t, cl.Close(ctx))
		require.NoError(t, k.Close(ctx))
	}()
	for i := 0; runtime.NumGoroutine() > before && i < 30_000; i++ {
		time.Sleep(time.Millisecond) // a goroutine that has done its last work needs a moment to be gone
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}
