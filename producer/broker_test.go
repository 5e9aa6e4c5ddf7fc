package producer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/record"
)

// start makes a broker and a producer on it; both end with the test.
func start(t *testing.T, opts []fakebroker.Option, popts ...producer.Option) (*fakebroker.Cluster, *producer.Producer) {
	k := fakebroker.Start(t, opts...)
	cl, err := client.New(client.Cluster(k), client.Jitter(1))
	require.NoError(t, err)
	p, err := producer.New(cl, popts...)
	require.NoError(t, err)
	producer.PoisonBuffers(p)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		require.NoError(t, p.Close(ctx))
		require.NoError(t, cl.Close(ctx))
	})
	return k, p
}

// TestEveryFaultAtEveryStep sends some twenty batches, with one fault at one of them, against a whole
// broker: each record must be in its log once, in order, and acknowledged.
func TestEveryFaultAtEveryStep(t *testing.T) {
	faults := map[string]func(fault.Rule) fault.Rule{
		"lost request":     fault.Rule.DropConnection,
		"lost response":    fault.Rule.LoseResponse,
		"delay":            func(r fault.Rule) fault.Rule { return r.Delay(time.Second) },
		"hang":             fault.Rule.Hang,
		"not leader":       func(r fault.Rule) fault.Rule { return r.Error(errcode.NotLeaderOrFollower) },
		"few replicas":     func(r fault.Rule) fault.Rule { return r.Error(errcode.NotEnoughReplicas) },
		"storage":          func(r fault.Rule) fault.Rule { return r.Error(errcode.KafkaStorageError) },
		"unknown topic id": func(r fault.Rule) fault.Rule { return r.Error(errcode.UnknownTopicId) },
		"lost id":          nil, // of InitProducerId
	}
	for name, set := range faults {
		t.Run(name, func(t *testing.T) {
			for _, at := range []int{1, 2, 5, 9} {
				synctest.Test(t, func(t *testing.T) {
					k, p := start(t, []fakebroker.Option{fakebroker.Topic("orders", 1)}, producer.BatchSize(200), producer.RequestTimeout(3*time.Second))
					rule := fault.InitProducerID().LoseResponse().Nth(1)
					if set != nil {
						rule = set(fault.Produce().Nth(at))
					}
					in := k.Inject(rule)
					var mu sync.Mutex
					next := int64(0)
					for i := range 80 {
						err := p.Submit(t.Context(), producer.Record{Topic: "orders", Value: fmt.Appendf(nil, "%03d some more bytes", i)}, func(a producer.Ack, err error) {
							mu.Lock()
							defer mu.Unlock()
							require.NoError(t, err)
							require.Equal(t, next, a.Offset)
							next++
						})
						require.NoError(t, err)
					}
					require.NoError(t, p.Flush(t.Context()))
					require.Equal(t, int64(80), next)
					require.Equal(t, 1, in.Hits())
					have, err := k.Records("orders", 0, 0)
					require.NoError(t, err)
					require.Len(t, have, 80)
					for i, r := range have {
						require.Equal(t, fmt.Sprintf("%03d some more bytes", i), string(r.Value))
					}
				})
			}
		})
	}
}

func TestBrokerRestartsUnderLoad(t *testing.T) {
	underLoad(t, func(t *testing.T, round int, k *fakebroker.Cluster) {
		if round%2 == 0 {
			require.NoError(t, k.Restart(t.Context()))
		} else {
			k.Disconnect()
		}
	})
}

func TestBrokerIsKilledUnderLoad(t *testing.T) {
	underLoad(t, func(t *testing.T, round int, k *fakebroker.Cluster) {
		require.NoError(t, k.Crash(t.Context()))
		time.Sleep(time.Duration(round) * time.Second)
		require.NoError(t, k.Restart(t.Context()))
	})
}

// underLoad sends while something happens to the broker: each record is acknowledged, and in its log once, in order.
func underLoad(t *testing.T, disturb func(t *testing.T, round int, k *fakebroker.Cluster)) {
	synctest.Test(t, func(t *testing.T) {
		k, p := start(t, []fakebroker.Option{fakebroker.Topic("orders", 3)}, producer.Compression(compress.Lz4), producer.BatchSize(2000))
		var mu sync.Mutex
		acked := map[string]bool{}
		n := 0
		for round := range 5 {
			for range 300 {
				v := fmt.Sprint(n)
				n++
				require.NoError(t, p.Submit(t.Context(), producer.Record{Topic: "orders", Key: []byte(v), Value: []byte(v)}, func(_ producer.Ack, err error) {
					mu.Lock()
					defer mu.Unlock()
					require.NoError(t, err)
					acked[v] = true
				}))
			}
			disturb(t, round, k)
		}
		require.NoError(t, p.Flush(t.Context()))
		require.Len(t, acked, n)
		seen := map[string]int{}
		for i := range int32(3) {
			have, err := k.Records("orders", i, 0)
			require.NoError(t, err)
			last := -1
			for _, r := range have {
				seen[string(r.Value)]++
				var x int
				_, _ = fmt.Sscan(string(r.Value), &x)
				require.Greater(t, x, last)
				last = x
			}
		}
		require.Len(t, seen, n)
		for v, times := range seen {
			require.Equal(t, 1, times, v)
		}
	})
}

func TestTopicLimitsOfTheBroker(t *testing.T) {
	k, p := start(t, []fakebroker.Option{fakebroker.TopicWith(fakebroker.TopicSpec{Name: "small", Partitions: 1, Configs: map[string]string{"max.message.bytes": "1000"}})},
		producer.Linger(time.Hour), producer.DeliveryTimeout(2*time.Hour))
	for range 50 {
		require.NoError(t, p.Submit(t.Context(), producer.Record{Topic: "small", Value: make([]byte, 100)}, func(_ producer.Ack, err error) {
			require.NoError(t, err)
		}))
	}
	require.NoError(t, p.Flush(t.Context()), "a batch of 5,000 bytes is cut into pieces the topic takes")
	have, err := k.Records("small", 0, 0)
	require.NoError(t, err)
	require.Len(t, have, 50)
	_, err = p.Send(t.Context(), producer.Record{Topic: "small", Value: make([]byte, 2000)})
	require.ErrorIs(t, err, errcode.MessageTooLarge)
	require.ErrorContains(t, err, "max.message.bytes")
}

func TestConnectionsOfAProducer(t *testing.T) {
	k, p := start(t, []fakebroker.Option{fakebroker.Topic("orders", 6)})
	for i := range 20 {
		_, err := p.Send(t.Context(), producer.Record{Topic: "orders", Value: fmt.Append(nil, i)})
		require.NoError(t, err)
	}
	require.LessOrEqual(t, k.Connections(), 2, "one for metadata, one for producing")
	require.Equal(t, int64(1), k.Requests(wire.KeyInitProducerId))
}

func TestHeadersAndTimestampsReachTheLog(t *testing.T) {
	k, p := start(t, []fakebroker.Option{fakebroker.Topic("orders", 1)})
	at := time.UnixMilli(1_700_000_000_123)
	_, err := p.Send(t.Context(), producer.Record{Topic: "orders", Key: []byte("k"), Timestamp: at, Headers: []producer.Header{{Key: "a", Value: []byte("1")}, {Key: "a"}}})
	require.NoError(t, err)
	have, err := k.Records("orders", 0, 0)
	require.NoError(t, err)
	require.Equal(t, at.UnixMilli(), have[0].Timestamp)
	require.Nil(t, have[0].Value)
	require.Equal(t, []record.Header{{Key: "a", Value: []byte("1")}, {Key: "a"}}, have[0].Headers.AppendTo(nil))
}
