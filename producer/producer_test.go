package producer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

func text(topic, value string) producer.Record {
	return producer.Record{Topic: topic, Value: []byte(value)}
}

func TestSendTellsWhereTheRecordIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs(t, "orders")
		p := l.producer()
		ctx := context.Background()
		require.NoError(t, p.Warm(ctx, "orders"))
		for i := range 3 {
			began := time.Now()
			ack, err := p.Send(ctx, text("orders", fmt.Sprint(i)).To(2))
			require.NoError(t, err)
			require.Equal(t, producer.Ack{Topic: "orders", Partition: 2, Offset: int64(i), Timestamp: ack.Timestamp}, ack)
			require.WithinDuration(t, began, ack.Timestamp, time.Millisecond)
			require.Zero(t, time.Since(began), "a lone Send does not linger")
		}
		require.Equal(t, []string{"0", "1", "2"}, l.values("orders", 2))
	})
}

func TestSubmitLingersAndKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs(t, "orders")
		p := l.producer(producer.Linger(10 * time.Millisecond))
		require.NoError(t, p.Warm(context.Background(), "orders"))
		began := time.Now()
		var mu sync.Mutex
		next := map[int32]int64{}
		var wg sync.WaitGroup
		for i := range 5000 {
			wg.Add(1)
			r := producer.Record{Topic: "orders", Key: fmt.Append(nil, i%7), Value: fmt.Appendf(nil, "%d", i)}
			require.NoError(t, p.Submit(context.Background(), r, func(a producer.Ack, err error) {
				defer wg.Done()
				mu.Lock()
				defer mu.Unlock()
				require.NoError(t, err)
				require.Equal(t, next[a.Partition], a.Offset, "callbacks of a partition come in order")
				next[a.Partition]++
			}))
		}
		wg.Wait()
		require.Equal(t, 10*time.Millisecond, time.Since(began))
		require.Len(t, l.records("orders", -1), 5000)
		last := map[string]int{}
		for i := range int32(3) {
			for _, r := range l.records("orders", i) {
				var n int
				_, _ = fmt.Sscan(string(r.value), &n)
				require.Greater(t, n, last[string(r.key)]-1)
				last[string(r.key)] = n
			}
		}
	})
}

func TestEveryProduceVersion(t *testing.T) {
	for v := int16(3); v <= 13; v++ {
		l := newLogs(t, "orders", "other")
		l.produceVersions(v)
		p := l.producer(producer.Linger(0))
		for i, topic := range []string{"orders", "other", "orders", "other"} {
			require.NoError(t, p.Submit(context.Background(), text(topic, fmt.Sprint(i)).To(int32(i%3)), nil))
		}
		require.NoError(t, p.Flush(context.Background()))
		require.Len(t, l.records("orders", -1), 2, "version %d", v)
		require.Len(t, l.records("other", -1), 2, "version %d", v)
	}
}

func TestEveryCodec(t *testing.T) {
	for codec := compress.None; codec <= compress.Zstd; codec++ {
		l := newLogs(t, "orders")
		p := l.producer(producer.Compression(codec), producer.BatchSize(2000))
		want := map[string]bool{}
		for i := range 500 {
			v := fmt.Sprintf("%d %s", i, strings.Repeat("x", i%100))
			want[v] = true
			require.NoError(t, p.Submit(context.Background(), text("orders", v), nil))
		}
		require.NoError(t, p.Flush(context.Background()))
		for _, v := range l.values("orders", -1) {
			require.True(t, want[v], "%v: %q twice or never sent", codec, v)
			delete(want, v)
		}
		require.Empty(t, want, codec)
	}
}

func TestRecordsOfAllShapes(t *testing.T) {
	l := newLogs(t, "t")
	p := l.producer(producer.BatchSize(1000), producer.MaxRequestSize(4<<20))
	var headers []producer.Header
	for i := range 100 {
		headers = append(headers, producer.Header{Key: fmt.Sprintf("h%d", i), Value: fmt.Append(nil, i)})
	}
	headers = append(headers, producer.Header{Key: "null"}, producer.Header{Key: "", Value: []byte{}})
	big := []byte(strings.Repeat("0123456789", 100_000))
	records := []producer.Record{
		{Topic: "t"},
		{Topic: "t", Key: []byte{}, Value: []byte{}},
		{Topic: "t", Key: []byte("k"), Value: nil},
		{Topic: "t", Value: []byte("v"), Headers: headers},
		{Topic: "t", Value: []byte("old"), Timestamp: time.Date(1969, 7, 20, 20, 17, 40, 0, time.UTC)},
		{Topic: "t", Value: big},
		{Topic: "t", Value: []byte("small again")},
	}
	for i, r := range records {
		ack, err := p.Send(context.Background(), r.To(1))
		require.NoError(t, err)
		require.Equal(t, int64(i), ack.Offset)
		if !r.Timestamp.IsZero() {
			require.True(t, ack.Timestamp.Equal(r.Timestamp))
		}
	}
	have := l.records("t", 1)
	require.Len(t, have, len(records))
	for i, r := range records {
		require.Equal(t, r.Key, have[i].key)
		require.Equal(t, r.Value, have[i].value)
		require.Equal(t, r.Headers, have[i].headers)
		if !r.Timestamp.IsZero() {
			require.Equal(t, r.Timestamp.UnixMilli(), have[i].timestamp)
		}
	}
}

func TestAcks(t *testing.T) {
	for _, acks := range []producer.Acks{producer.AcksNone, producer.AcksLeader, producer.AcksAll} {
		l := newLogs(t, "orders")
		p := l.producer(producer.RequireAcks(acks))
		for i := range 20 {
			ack, err := p.Send(context.Background(), text("orders", fmt.Sprint(i)).To(0))
			require.NoError(t, err)
			if acks == producer.AcksNone {
				require.Equal(t, int64(-1), ack.Offset)
			} else {
				require.Equal(t, int64(i), ack.Offset)
			}
		}
		require.Eventually(t, func() bool { return len(l.records("orders", 0)) == 20 }, time.Minute, time.Millisecond)
	}
}

func TestUnknownTopicIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs(t)
		p := l.producer(producer.MaxBlock(3 * time.Second))
		began := time.Now()
		err := p.Submit(context.Background(), text("nowhere", "v"), nil)
		require.ErrorIs(t, err, producer.ErrNotWritten)
		require.ErrorContains(t, err, "nowhere")
		require.LessOrEqual(t, time.Since(began), 3*time.Second)
		require.ErrorIs(t, p.TrySubmit(text("elsewhere", "v"), nil), producer.ErrTopicPending)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began = time.Now()
		_, err = p.Send(ctx, text("nowhere", "v"))
		require.Equal(t, producer.NotWritten, producer.Outcome(err))
		require.LessOrEqual(t, time.Since(began), time.Second)
		require.Error(t, p.Submit(context.Background(), producer.Record{Value: []byte("v")}, nil))
	})
}

func TestRefusedRecordsSayTheNumbers(t *testing.T) {
	l := newLogs(t, "orders")
	p := l.producer()
	_, err := p.Send(context.Background(), producer.Record{Topic: "orders", Value: make([]byte, 1_200_000)})
	require.ErrorIs(t, err, producer.ErrRecordTooLarge)
	require.ErrorIs(t, err, producer.ErrNotWritten)
	require.ErrorContains(t, err, "record of 1200074 bytes exceeds max.request.size 1048576")
	_, err = p.Send(context.Background(), text("orders", "v").To(99))
	require.ErrorContains(t, err, "Record.To named partition 99 of topic orders, which has partitions 0 to 2")
	p2 := l.producer(producer.BufferMemory(1000))
	_, err = p2.Send(context.Background(), producer.Record{Topic: "orders", Value: make([]byte, 2000)})
	require.ErrorContains(t, err, "exceeds buffer.memory 1000")
}

func TestCloseSaysWhatWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs(t, "orders")
		p := l.producer()
		require.NoError(t, p.Warm(context.Background(), "orders"))
		_, err := p.Send(context.Background(), text("orders", "first").To(0))
		require.NoError(t, err)
		l.setFault(func(int, *message.ProduceRequest) misdeed { return misdeed{delay: time.Minute} })
		verdicts := make(chan error, 100)
		for i := range 3 {
			require.NoError(t, p.Submit(context.Background(), text("orders", "sent").To(int32(i)), func(_ producer.Ack, err error) { verdicts <- err }))
		}
		time.Sleep(time.Second) // in the air
		l.Stop(1)
		for range 2 {
			require.NoError(t, p.Submit(context.Background(), text("orders", "kept").To(1), func(_ producer.Ack, err error) { verdicts <- err }))
		}
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		err = p.Close(ctx)
		require.Equal(t, 100*time.Millisecond, time.Since(began))
		var lost *producer.LostError
		require.ErrorAs(t, err, &lost)
		require.Equal(t, 5, lost.NotWritten+lost.Unknown)
		require.Equal(t, 3, lost.Unknown)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(time.Millisecond)
		require.Len(t, verdicts, 5)
		unknown := 0
		for range 5 {
			err := <-verdicts
			require.ErrorIs(t, err, producer.ErrClosed)
			if producer.Outcome(err) == producer.Unknown {
				unknown++
			}
		}
		require.Equal(t, 3, unknown)
		require.ErrorIs(t, p.Submit(context.Background(), text("orders", "late"), nil), producer.ErrClosed)
		require.ErrorIs(t, p.Close(context.Background()), context.DeadlineExceeded, "the same answer again")
	})
}

// Further calls of Close wait for the first, as long as their own ctx allows.
func TestCloseTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs(t, "orders")
		l.setFault(func(int, *message.ProduceRequest) misdeed { return misdeed{delay: 10 * time.Second} })
		p := l.producer()
		require.NoError(t, p.Submit(t.Context(), text("orders", "v"), nil))
		first := make(chan error, 1)
		go func() { first <- p.Close(context.Background()) }()
		synctest.Wait()
		began := time.Now()
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, enough)
		defer cancel()
		require.ErrorIs(t, p.Close(ctx), enough)
		require.Equal(t, time.Second, time.Since(began))
		require.NoError(t, p.Close(t.Context()))
		require.GreaterOrEqual(t, time.Since(began), 9*time.Second)
		require.NoError(t, <-first)
		require.NoError(t, p.Close(ctx), "the first one's answer")
	})
}

// Producers on one client ask for a topic at the same time: when one is closed, the client goes on to keep track of the
// topic for the other.
func TestClosedProducerTakesNoTopicFromAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs(t, "orders")
		cl := l.client()
		var ps []*producer.Producer
		var wg sync.WaitGroup
		for range 2 {
			p, err := producer.New(cl)
			require.NoError(t, err)
			ps = append(ps, p)
			wg.Go(func() { require.NoError(t, p.Warm(t.Context(), "orders")) })
		}
		wg.Wait()
		require.NoError(t, ps[0].Close(t.Context()))
		cl.RefreshMetadata()
		time.Sleep(time.Second)
		began := time.Now()
		_, err := ps[1].Send(t.Context(), text("orders", "v"))
		require.NoError(t, err)
		require.Less(t, time.Since(began), time.Second)
		for range 3 {
			require.ErrorIs(t, ps[1].TrySubmit(text("other", "v"), nil), producer.ErrTopicPending)
		}
		l.SetTopic("other", 0, 1)
		require.NoError(t, ps[1].Warm(t.Context(), "other"))
		require.NoError(t, ps[1].Close(t.Context()))
		cl.RefreshMetadata()
		time.Sleep(time.Second)
		require.Empty(t, cl.Topology().Topics(), "nobody needs them any more")
	})
}

func TestCloseFlushesAndLeavesNothingBehind(t *testing.T) {
	l := newLogs(t, "orders")
	cl := l.client()
	before := runtime.NumGoroutine()
	for _, codec := range []compress.Codec{compress.None, compress.Lz4} {
		p, err := producer.New(cl, producer.Linger(time.Hour), producer.DeliveryTimeout(2*time.Hour), producer.Compression(codec))
		require.NoError(t, err)
		for range 100 {
			require.NoError(t, p.Submit(context.Background(), text("orders", "v"), nil))
		}
		require.NoError(t, p.Close(context.Background()))
	}
	require.Len(t, l.records("orders", -1), 200)
	cl.Close(context.Background())
	for i := 0; runtime.NumGoroutine() > before && i < 30_000; i++ {
		time.Sleep(time.Millisecond)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

func TestCallbackMaySubmit(t *testing.T) {
	l := newLogs(t, "orders")
	p := l.producer(producer.Linger(0))
	done := make(chan struct{})
	var again func(n int) func(producer.Ack, error)
	again = func(n int) func(producer.Ack, error) {
		return func(_ producer.Ack, err error) {
			require.NoError(t, err)
			if n == 0 {
				close(done)
				return
			}
			require.NoError(t, p.Submit(context.Background(), text("orders", fmt.Sprint(n)), again(n-1)))
		}
	}
	require.NoError(t, p.Submit(context.Background(), text("orders", "start"), again(50)))
	<-done
	require.Len(t, l.records("orders", -1), 51)
}

func TestSlowCallbacksStopTheSubmitters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 20_000
		l := newLogs(t, "orders")
		p := l.producer(producer.BufferMemory(64<<10), producer.MaxBlock(50*time.Millisecond))
		producer.LimitUntold(p, most)
		gate := make(chan struct{})
		var told atomic.Int64
		n := int64(0)
		var err error
		for err == nil && n < 3*most {
			if err = p.Submit(context.Background(), producer.Record{Topic: "orders"}, func(producer.Ack, error) { <-gate; told.Add(1) }); err == nil {
				n++
			}
		}
		require.ErrorIs(t, err, producer.ErrBufferFull)
		require.Greater(t, n, int64(most), "as many untold records as may be")
		require.Less(t, n, int64(2*most), "and what buffer.memory holds")
		close(gate)
		require.NoError(t, p.Flush(context.Background()))
		require.Equal(t, n, told.Load())
		require.Zero(t, producer.BufferUsed(p))
	})
}

func TestSendAll(t *testing.T) {
	l := newLogs(t, "orders")
	p := l.producer()
	var seq iter.Seq[producer.Record] = func(yield func(producer.Record) bool) {
		for i := range 1000 {
			if !yield(text("orders", fmt.Sprint(i))) {
				return
			}
		}
	}
	n, err := p.SendAll(context.Background(), seq)
	require.NoError(t, err)
	require.Equal(t, 1000, n)
	l.setFault(func(int, *message.ProduceRequest) misdeed { return misdeed{code: errcode.TopicAuthorizationFailed} })
	n, err = p.SendAll(context.Background(), seq)
	require.Zero(t, n)
	require.ErrorContains(t, err, "1000 of 1000 records failed")
	require.ErrorIs(t, err, errcode.TopicAuthorizationFailed)
	require.ErrorContains(t, err, "the principal needs Write on the topic")
}

type spy struct {
	mu   sync.Mutex
	sent int
	ends []error
	veto bool
}

func (s *spy) OnSend(_ context.Context, r *producer.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.veto {
		return errors.New("not today")
	}
	s.sent++
	r.Headers = append(r.Headers, producer.Header{Key: "trace", Value: []byte("id")})
	return nil
}

func (s *spy) OnEnd(_ producer.Ack, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = append(s.ends, err)
}

func TestInterceptors(t *testing.T) {
	l := newLogs(t, "orders")
	s := &spy{}
	p := l.producer(producer.Intercept(s))
	_, err := p.Send(context.Background(), text("orders", "a").To(0))
	require.NoError(t, err)
	require.NoError(t, p.Submit(context.Background(), text("orders", "b").To(0), nil))
	require.NoError(t, p.Flush(context.Background()))
	require.Equal(t, []producer.Header{{Key: "trace", Value: []byte("id")}}, l.records("orders", 0)[1].headers)
	s.veto = true
	_, err = p.Send(context.Background(), text("orders", "c"))
	require.ErrorIs(t, err, producer.ErrNotWritten)
	require.ErrorContains(t, err, "not today")
	require.Equal(t, 2, s.sent)
	require.Len(t, s.ends, 3)
	require.Error(t, s.ends[2])
}

func TestTyped(t *testing.T) {
	l := newLogs(t, "orders")
	p := l.producer()
	type order struct{ ID int }
	typed := producer.NewTyped(p, "orders", producer.String, producer.JSON[*order])
	_, err := typed.Send(context.Background(), "k", &order{7})
	require.NoError(t, err)
	_, err = typed.Send(context.Background(), "", nil, producer.Header{Key: "h"})
	require.NoError(t, err)
	all := l.records("orders", -1)
	require.Len(t, all, 2)
	for _, r := range all {
		if string(r.key) == "k" {
			require.Equal(t, `{"ID":7}`, string(r.value))
		} else {
			require.Equal(t, []byte{}, r.key)
			require.Nil(t, r.value, "a nil pointer is a tombstone")
		}
	}
	any, err := producer.Any(p, "orders")
	require.NoError(t, err)
	_, err = any.Send(context.Background(), nil, "a string where bytes are configured")
	require.ErrorContains(t, err, "a string is given where a []uint8 is expected")
	require.ErrorIs(t, err, producer.ErrNotWritten)
}

func TestMetricsCount(t *testing.T) {
	l := newLogs(t, "orders")
	p := l.producer()
	for range 10 {
		_, err := p.Send(context.Background(), text("orders", "v"))
		require.NoError(t, err)
	}
	m := p.Client().Metrics()
	require.Equal(t, int64(10), m.SentRecords)
	require.Positive(t, m.SentBytes)
	require.Equal(t, int64(10), m.SendLatency.Count)
	require.Zero(t, m.BufferedBytes)
}

func TestDialOwnsItsClient(t *testing.T) {
	l := newLogs(t, "orders")
	p, err := producer.Dial(l.Addrs(), producer.Client(client.Dialer(l.DialContext)))
	require.NoError(t, err)
	_, err = p.Send(context.Background(), text("orders", "v"))
	require.NoError(t, err)
	require.NoError(t, p.Close(context.Background()))
	_, err = producer.Dial(nil, producer.RequireAcks(9))
	require.ErrorContains(t, err, "bootstrap.servers")
	require.ErrorContains(t, err, "acks=9")
	_, err = producer.New(l.client(), producer.Client(client.ClientID("x")))
	require.ErrorContains(t, err, "is for Dial")
}
