package producer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
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

// TestFaultsNeitherDoubleNorReorder sends while connections break, answers get lost and errors come, and compares the
// log with what was told.
func TestFaultsNeitherDoubleNorReorder(t *testing.T) {
	for seed := range uint64(12) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))   // the submitter's
			chaos := rand.New(rand.NewPCG(seed, 2)) // the peer's
			l := newLogs(t, "orders")
			l.setFault(func(int, *message.ProduceRequest) misdeed {
				switch chaos.IntN(14) {
				case 0:
					return misdeed{hangUp: true}
				case 1:
					return misdeed{hangUp: true, apply: true}
				case 2:
					return misdeed{code: errcode.NotEnoughReplicas}
				case 3:
					return misdeed{code: errcode.NotEnoughReplicasAfterAppend, apply: true}
				case 4:
					return misdeed{code: errcode.RequestTimedOut, apply: true}
				case 5:
					return misdeed{delay: 400 * time.Millisecond}
				case 6:
					return misdeed{code: errcode.MessageTooLarge}
				case 7:
					return misdeed{code: errcode.NotLeaderOrFollower}
				}
				return misdeed{}
			})
			codec := compress.Codec(seed % 5)
			p := l.producer(producer.BatchSize(300), producer.Compression(codec), producer.RequestTimeout(2*time.Second))
			var mu sync.Mutex
			outcome := map[string]producer.Result{}
			n := 0
			for i := range 600 {
				v := fmt.Sprintf("%04d", i)
				err := p.Submit(context.Background(), text("orders", v).To(int32(i%3)), func(_ producer.Ack, err error) {
					mu.Lock()
					defer mu.Unlock()
					_, twice := outcome[v]
					require.False(t, twice, "second verdict for %s", v)
					outcome[v] = producer.Outcome(err)
				})
				require.NoError(t, err)
				if n++; rnd.IntN(20) == 0 {
					time.Sleep(time.Duration(rnd.IntN(50)) * time.Millisecond)
				}
			}
			require.NoError(t, p.Flush(context.Background()))
			require.Len(t, outcome, n)
			for part := range int32(3) {
				last := ""
				there := map[string]bool{}
				for _, v := range l.values("orders", part) {
					require.Greater(t, v, last, "seed %d: in order and once", seed)
					last, there[v] = v, true
				}
				for i := int(part); i < n; i += 3 {
					v := fmt.Sprintf("%04d", i)
					if outcome[v] != producer.Unknown {
						require.Equal(t, outcome[v] == producer.Acked, there[v], "seed %d: %s", seed, v)
					}
				}
			}
			require.Zero(t, producer.BufferUsed(p))
		})
	}
}

// stalling is a connection whose writes wait for the gate, piece by piece.
type stalling struct {
	net.Conn
	gate func()
}

func (s *stalling) Write(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		s.gate()
		w, err := s.Conn.Write(b[n:min(n+100, len(b))])
		if n += w; err != nil {
			return n, err
		}
	}
	return n, nil
}

// TestExpiryDuringASlowWriteKeepsTheBuffer is CVE-2026-35554: a batch expires while the socket is still reading its
// buffer. If the buffer were used again, records of another topic would go out under this one's name.
func TestExpiryDuringASlowWriteKeepsTheBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs(t, "orders", "other")
		var mu sync.Mutex
		slow := false
		gate := func() {
			mu.Lock()
			wait := slow
			mu.Unlock()
			if wait {
				time.Sleep(500 * time.Millisecond)
			}
		}
		cl := l.client(client.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := l.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &stalling{c, gate}, nil
		}))
		p, err := producer.New(cl, producer.RequestTimeout(2*time.Second), producer.DeliveryTimeout(2100*time.Millisecond), producer.MaxInFlight(1),
			producer.BufferMemory(40<<10), producer.BatchSize(8<<10), producer.Linger(0))
		require.NoError(t, err)
		producer.PoisonBuffers(p)
		require.NoError(t, p.Warm(context.Background(), "orders", "other"))
		_, err = p.Send(context.Background(), text("orders", "warm").To(0))
		require.NoError(t, err)

		mu.Lock()
		slow = true
		mu.Unlock()
		verdict := make(chan error, 1)
		require.NoError(t, p.Submit(context.Background(), text("orders", strings.Repeat("a", 3000)).To(0), func(_ producer.Ack, err error) { verdict <- err }))
		time.Sleep(2200 * time.Millisecond)
		require.ErrorIs(t, <-verdict, producer.ErrDeliveryTimeout)
		for range 20 {
			_ = p.TrySubmit(text("other", strings.Repeat("b", 1500)).To(0), nil)
		}
		mu.Lock()
		slow = false
		mu.Unlock()
		time.Sleep(time.Minute)
		// The peer checks every batch's checksum. What it has of orders is ours.
		for _, v := range l.values("orders", -1) {
			require.True(t, v == "warm" || v == strings.Repeat("a", 3000), "foreign bytes in orders")
		}
		for _, v := range l.values("other", -1) {
			require.Equal(t, strings.Repeat("b", 1500), v)
		}
		require.NoError(t, p.Close(context.Background()))
		require.Zero(t, producer.BufferUsed(p), "given back once nothing reads it")
	})
}

func TestSendEndedByItsContext(t *testing.T) {
	for _, codec := range []compress.Codec{compress.None, compress.Gzip} {
		synctest.Test(t, func(t *testing.T) {
			l := newLogs(t, "orders")
			p := l.producer(producer.Compression(codec), producer.RequestTimeout(5*time.Second))
			require.NoError(t, p.Warm(context.Background(), "orders"))
			_, err := p.Send(context.Background(), text("orders", "first").To(0))
			require.NoError(t, err)

			// In the air: nobody knows.
			l.setFault(func(int, *message.ProduceRequest) misdeed { return misdeed{delay: time.Second} })
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			began := time.Now()
			_, err = p.Send(ctx, text("orders", "in the air").To(0))
			cancel()
			require.Equal(t, 100*time.Millisecond, time.Since(began))
			require.ErrorIs(t, err, producer.ErrOutcomeUnknown)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			time.Sleep(5 * time.Second)
			l.setFault(nil)

			// The broker is away: no request carries the records, and they can be taken back, alone or from among others.
			l.Stop(1)
			time.Sleep(time.Second)
			kept := make(chan error, 2)
			for _, v := range []string{"kept 1", "kept 2"} {
				require.NoError(t, p.Submit(context.Background(), text("orders", v).To(0), func(_ producer.Ack, err error) { kept <- err }))
				ctx, cancel = context.WithTimeout(context.Background(), 10*time.Millisecond)
				_, err = p.Send(ctx, text("orders", "taken back").To(0))
				require.ErrorIs(t, err, producer.ErrNotWritten, "while the batch is fresh")
				cancel()
				ctx, cancel = context.WithTimeout(context.Background(), 1500*time.Millisecond)
				_, err = p.Send(ctx, text("orders", "taken back too").To(0))
				cancel()
				require.Error(t, err)
				if producer.Outcome(err) == producer.Unknown {
					t.Log("an attempt was under way")
				}
			}
			ctx, cancel = context.WithTimeout(context.Background(), 10*time.Millisecond)
			_, err = p.Send(ctx, text("orders", "alone").To(1))
			cancel()
			require.ErrorIs(t, err, producer.ErrNotWritten)
			l.Start(1)
			require.NoError(t, p.Flush(context.Background()))
			require.NoError(t, <-kept)
			require.NoError(t, <-kept)
			have := l.values("orders", 0)
			require.Equal(t, []string{"first", "in the air", "kept 1"}, have[:3])
			require.Equal(t, "kept 2", have[len(have)-1-strings.Count(strings.Join(have[3:], ","), "too")%2])
			require.NotContains(t, have, "taken back")
			require.Empty(t, l.values("orders", 1))
			require.Zero(t, producer.BufferUsed(p))
		})
	}
}

func TestBatchTooLargeForTheBrokerIsCut(t *testing.T) {
	for _, codec := range []compress.Codec{compress.None, compress.Zstd} {
		synctest.Test(t, func(t *testing.T) {
			l := newLogs(t, "orders")
			l.setFault(func(int, *message.ProduceRequest) misdeed {
				return misdeed{each: func(_ string, _ int32, records []byte) errcode.Code {
					if len(records) > 500 {
						return errcode.MessageTooLarge
					}
					return errcode.None
				}}
			})
			p := l.producer(producer.BatchSize(4000), producer.MaxRequestSize(100_000), producer.Compression(codec))
			require.NoError(t, p.Warm(context.Background(), "orders"))
			rnd := rand.New(rand.NewPCG(1, 2))
			var next int64
			for i := range 100 {
				v := fmt.Sprintf("%03d", i) + fmt.Sprint(rnd.Int64(), rnd.Int64(), rnd.Int64())
				require.NoError(t, p.Submit(context.Background(), text("orders", v).To(0), func(a producer.Ack, err error) {
					require.NoError(t, err)
					require.Equal(t, next, a.Offset)
					next++
				}))
			}
			noise := make([]byte, 1000)
			for i := range noise {
				noise[i] = byte(rnd.Uint32())
			}
			_, err := p.Send(context.Background(), producer.Record{Topic: "orders", Value: noise}.To(0))
			require.ErrorIs(t, err, errcode.MessageTooLarge)
			require.ErrorIs(t, err, producer.ErrNotWritten)
			require.ErrorContains(t, err, "raise max.message.bytes of the topic")
			require.NoError(t, p.Flush(context.Background()))
			require.Equal(t, int64(100), next)
			for i, v := range l.values("orders", 0) {
				require.Equal(t, fmt.Sprintf("%03d", i), v[:3])
			}
			require.Zero(t, producer.BufferUsed(p))
		})
	}
}

func TestRefusedRecordsOfABatch(t *testing.T) {
	l := newLogs(t, "orders")
	why := "timestamp 12 is too old"
	l.setFault(func(int, *message.ProduceRequest) misdeed {
		return misdeed{code: errcode.InvalidRecord, message: "one record is bad", perIndex: []message.BatchIndexAndErrorMessage{{BatchIndex: 1, BatchIndexErrorMessage: &why}}}
	})
	p := l.producer(producer.Linger(time.Hour), producer.DeliveryTimeout(2*time.Hour))
	var errs [3]error
	for i := range errs {
		require.NoError(t, p.Submit(context.Background(), text("orders", fmt.Sprint(i)).To(0), func(_ producer.Ack, err error) { errs[i] = err }))
	}
	require.NoError(t, p.Flush(context.Background()))
	for i, err := range errs {
		require.ErrorIs(t, err, errcode.InvalidRecord)
		require.ErrorIs(t, err, producer.ErrNotWritten)
		var re *producer.RecordError
		require.ErrorAs(t, err, &re)
		require.Equal(t, i != 1, re.Other)
		var op *client.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "orders", op.Topic)
	}
	require.ErrorContains(t, errs[1], why)
	require.ErrorContains(t, errs[0], "another record of the same batch was refused")
}

func TestDeliveryTimeoutWhileTheBrokerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs(t, "orders")
		p := l.producer(producer.RequestTimeout(time.Second), producer.DeliveryTimeout(10*time.Second))
		_, err := p.Send(context.Background(), text("orders", "v").To(0))
		require.NoError(t, err)
		l.Stop(1)
		time.Sleep(time.Second)
		began := time.Now()
		_, err = p.Send(context.Background(), text("orders", "w").To(0))
		require.LessOrEqual(t, time.Since(began), 10*time.Second+time.Millisecond)
		require.ErrorIs(t, err, producer.ErrDeliveryTimeout)
		require.ErrorContains(t, err, "delivery.timeout.ms ran out (10s)")
		l.Start(1)
		ack, err := p.Send(context.Background(), text("orders", "x").To(0))
		require.NoError(t, err)
		require.Equal(t, int64(1), ack.Offset)
	})
}

func TestDeliveryTimeoutWithoutALeaderSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs(t)
		l.SetTopic("orders", 0, 1, -1)
		p := l.producer(producer.RequestTimeout(time.Second), producer.DeliveryTimeout(10*time.Second))
		_, err := p.Send(t.Context(), text("orders", "v").To(1))
		require.ErrorIs(t, err, producer.ErrDeliveryTimeout)
		require.Equal(t, producer.NotWritten, producer.Outcome(err))
		require.ErrorContains(t, err, "metadata names no leader of the partition")
	})
}

func TestPartitionsAndLeadersChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs(t)
		l.SetTopic("orders", 0, 1)
		p, err := producer.New(l.client(client.MetadataMaxAge(5 * time.Second)))
		require.NoError(t, err)
		n, err := p.Partitions(context.Background(), "orders")
		require.NoError(t, err)
		require.Equal(t, int32(1), n)
		l.SetTopic("orders", 1, 1, 1, 1)
		_, err = p.Send(context.Background(), text("orders", "v").To(2))
		require.ErrorContains(t, err, "partitions 0 to 0")
		time.Sleep(6 * time.Second)
		_, err = p.Send(context.Background(), text("orders", "v").To(2))
		require.NoError(t, err)

		l.SetTopic("orders", 2, 1, -1, 1) // partition 1 has no leader
		time.Sleep(6 * time.Second)
		done := make(chan error, 1)
		require.NoError(t, p.Submit(context.Background(), text("orders", "patient").To(1), func(_ producer.Ack, err error) { done <- err }))
		time.Sleep(10 * time.Second)
		require.Empty(t, done)
		l.SetTopic("orders", 3, 1, 1, 1)
		require.NoError(t, <-done)
		require.NoError(t, p.Close(context.Background()))
	})
}

// notes collects what the producer reports.
type notes struct {
	client.NopObserver
	mu   sync.Mutex
	kind []string
}

func (n *notes) Note(e client.NoteEvent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kind = append(n.kind, e.Kind)
}

func TestObserverIsTold(t *testing.T) {
	l := newLogs(t, "orders")
	l.setFault(func(n int, _ *message.ProduceRequest) misdeed {
		if n == 1 {
			return misdeed{code: errcode.TopicAuthorizationFailed}
		}
		return misdeed{}
	})
	o := &notes{}
	p, err := producer.New(l.client(client.WithObserver(o)))
	require.NoError(t, err)
	_, err = p.Send(context.Background(), text("orders", "v").To(0))
	require.ErrorIs(t, err, errcode.TopicAuthorizationFailed)
	_, err = p.Send(context.Background(), text("orders", "v").To(0))
	require.NoError(t, err)
	require.NoError(t, p.Close(context.Background()))
	require.Contains(t, o.kind, "batch-failed")
	require.Contains(t, o.kind, "epoch-bump")
}

func TestOutcomeOfErrors(t *testing.T) {
	require.Equal(t, producer.Acked, producer.Outcome(nil))
	require.Equal(t, producer.Unknown, producer.Outcome(errors.New("from elsewhere")))
	require.Equal(t, producer.NotWritten, producer.Outcome(&producer.Error{Outcome: producer.NotWritten, Err: errors.New("x")}))
	require.Equal(t, "not written", producer.NotWritten.String())
}
