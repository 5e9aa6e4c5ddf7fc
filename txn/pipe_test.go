package txn_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

func TestPipeCopiesExactlyOnce(t *testing.T) {
	everyWay(t, func(t *testing.T, level int16, protocol string) {
		inPlant(t, level, 3, func(t *testing.T, p *plant) {
			p.write(500)
			w := p.start("a", protocol, nil)
			p.once()
			p.write(500)
			p.once()
			require.Zero(t, w.aborted())
			time.Sleep(time.Second) // the pipe hears later than we do that its last commit has come through
			commits := w.committed()
			time.Sleep(time.Minute)
			require.Equal(t, commits, w.committed(), "nothing to commit, nothing committed")
			w.stop(t)
			require.ErrorIs(t, w.err, context.Canceled)
		})
	})
}

// The handler's error comes back with the record's place; nothing of its transaction is seen, and the next Pipe begins there.
func TestPipeEndsWithTheHandlersError(t *testing.T) {
	inPlant(t, 2, 1, func(t *testing.T, p *plant) {
		p.write(100)
		oops := errors.New("no such customer")
		w := p.start("a", "classic", func(ctx context.Context, tx *txn.Tx, r consumer.Record) error {
			if r.Offset == 40 {
				return oops
			}
			return passOn(ctx, tx, r)
		}, txn.CommitRecords(30))
		<-w.ended
		require.ErrorIs(t, w.err, oops)
		var h *txn.HandlerError
		require.ErrorAs(t, w.err, &h)
		require.EqualValues(t, 40, h.Offset)
		require.Equal(t, "in-0", h.TopicPartition.String())
		require.Contains(t, w.err.Error(), "the handler failed at in-0 offset 40")
		require.Len(t, p.outcome(), 30)
		require.Equal(t, 1, w.aborted())
		require.NoError(t, w.s.Close(context.Background()))

		first := int64(-1)
		w = p.pipe(w.again(), "b", func(ctx context.Context, tx *txn.Tx, r consumer.Record) error {
			if first < 0 {
				first = r.Offset
			}
			return passOn(ctx, tx, r)
		})
		p.once()
		require.EqualValues(t, 30, first, "the same consumer goes on at the committed offset")
		w.stop(t)
	})
}

// again is a worker's consumer for another pipe.
func (w *worker) again() *worker { return &worker{cl: w.cl, c: w.c, ended: make(chan struct{})} }

func TestPipePanics(t *testing.T) {
	inPlant(t, 2, 1, func(t *testing.T, p *plant) {
		p.write(10)
		w := p.reader("classic")
		s := open(t, w.cl, "a")
		require.PanicsWithValue(t, "oops", func() {
			_ = s.Pipe(t.Context(), w.c, func(ctx context.Context, tx *txn.Tx, r consumer.Record) error {
				if r.Offset == 5 {
					panic("oops")
				}
				return passOn(ctx, tx, r)
			})
		})
		require.Empty(t, p.outcome())
		require.Equal(t, txn.Ready, s.State())
		require.NoError(t, s.Close(t.Context()))
		w = p.pipe(w.again(), "a", nil)
		p.once()
		w.stop(t)
	})
}

// What is handled when ctx ends is committed, and only that.
func TestPipeCommitsWhenItsContextEnds(t *testing.T) {
	inPlant(t, 2, 1, func(t *testing.T, p *plant) {
		p.write(10)
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		w := p.reader("classic")
		s := open(t, w.cl, "a")
		err := s.Pipe(ctx, w.c, func(hctx context.Context, tx *txn.Tx, r consumer.Record) error {
			if r.Offset == 6 {
				cancel(cause)
				require.ErrorIs(t, context.Cause(hctx), cause)
			}
			return passOn(hctx, tx, r)
		}, txn.CommitEvery(30*time.Second))
		require.Equal(t, cause, err)
		require.Len(t, p.outcome(), 7)
		require.EqualValues(t, 3, p.lag())
		require.NoError(t, w.c.Close(t.Context()))
	})
}

// A handler that gives up because its ctx has ended is not blamed.
func TestPipeAbortsWhatItsHandlerGaveUp(t *testing.T) {
	inPlant(t, 2, 1, func(t *testing.T, p *plant) {
		p.write(10)
		ctx, cancel := context.WithCancel(t.Context())
		w := p.reader("classic")
		s := open(t, w.cl, "a")
		err := s.Pipe(ctx, w.c, func(hctx context.Context, tx *txn.Tx, r consumer.Record) error {
			if r.Offset == 6 {
				cancel()
				<-hctx.Done()
				return hctx.Err()
			}
			return passOn(hctx, tx, r)
		}, txn.CommitEvery(30*time.Second))
		require.Equal(t, context.Canceled, err)
		require.Empty(t, p.outcome())
		require.NoError(t, w.c.Close(t.Context()))
	})
}

// A broker that is gone keeps Pipe from ending for Grace and no longer.
func TestPipeEndsWithinGrace(t *testing.T) {
	inPlant(t, 2, 1, func(t *testing.T, p *plant) {
		p.write(10)
		ctx, cancel := context.WithCancel(t.Context())
		w := p.reader("classic")
		s := open(t, w.cl, "a")
		var stopped time.Time
		err := s.Pipe(ctx, w.c, func(hctx context.Context, tx *txn.Tx, r consumer.Record) error {
			if r.Offset == 6 {
				require.NoError(t, p.k.Stop(context.Background()))
				stopped = time.Now()
				cancel()
			}
			return passOn(hctx, tx, r)
		}, txn.CommitEvery(30*time.Second), txn.Grace(3*time.Second))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "Grace (3s)")
		require.Less(t, time.Since(stopped), 4*time.Second)
		gone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = s.Close(gone)
		_ = w.c.Close(gone)
	})
}

// The end of the input is markers and aborted records: they are passed, and committed, so that the lag is zero.
func TestPipeCommitsPositionsBehindMarkers(t *testing.T) {
	everyLevel(t, func(t *testing.T, level int16) {
		inPlant(t, level, 1, func(t *testing.T, p *plant) {
			upstream := open(t, p.cl, "upstream")
			send := func(value string, commit bool) {
				tx, err := upstream.Begin(t.Context())
				require.NoError(t, err)
				submit(t, tx, "in", value)
				if commit {
					require.NoError(t, tx.Commit(t.Context()))
					p.wrote++
				} else {
					require.NoError(t, tx.Flush(t.Context()))
					require.NoError(t, tx.Abort(t.Context()))
				}
			}
			send("never", false)
			w := p.start("a", "classic", nil)
			p.idle()
			require.Zero(t, w.aborted())
			for i := range 5 {
				send(string(rune('0'+i)), true)
				p.idle()
				send("never", false)
				p.idle()
			}
			p.once()
			w.stop(t)
		})
	})
}

func TestPipeBatches(t *testing.T) {
	inPlant(t, 2, 3, func(t *testing.T, p *plant) {
		p.write(1000)
		w := p.reader("consumer", func(c *consumer.Config) { c.MaxPollRecords = 70 })
		s := open(t, w.cl, "a")
		ctx, cancel := context.WithCancel(t.Context())
		most, fail := 0, true
		handle := func(ctx context.Context, tx *txn.Tx, rs []consumer.Record) error {
			most = max(most, len(rs))
			for _, r := range rs {
				if err := passOn(ctx, tx, r); err != nil {
					return err
				}
			}
			if fail {
				return errors.New("not yet")
			}
			return nil
		}
		var h *txn.HandlerError
		require.ErrorAs(t, s.PipeBatches(ctx, w.c, handle), &h)
		require.Zero(t, h.Offset)
		fail = false
		go func() {
			p.once()
			cancel()
		}()
		total := 0
		require.ErrorIs(t, s.PipeBatches(ctx, w.c, handle, txn.CommitRecords(100), txn.OnCommit(func(n int) {
			require.LessOrEqual(t, n, 100)
			total += n
		})), context.Canceled)
		require.Equal(t, 70, most)
		require.Equal(t, 1000, total)
		require.NoError(t, w.c.Close(t.Context()))
	})
}

func TestPipeSaysWhatIsWrongBeforeItBegins(t *testing.T) {
	inPlant(t, 2, 1, func(t *testing.T, p *plant) {
		s := open(t, p.cl, "a", txn.TransactionTimeout(10*time.Second))
		w := p.reader("classic")
		err := s.Pipe(t.Context(), w.c, passOn, txn.CommitEvery(10*time.Second), txn.CommitRecords(-1), txn.Grace(-1))
		require.ErrorContains(t, err, "must be less than transaction.timeout.ms (10s)")
		require.ErrorContains(t, err, "CommitRecords is -1")
		require.ErrorContains(t, err, "Grace is -1ns")
		require.ErrorContains(t, s.Pipe(t.Context(), w.c, nil), "handler is nil")
		require.ErrorContains(t, s.PipeBatches(t.Context(), w.c, nil), "handler is nil")
		require.ErrorContains(t, s.Pipe(t.Context(), nil, passOn), "consumer is nil")
		alone, err := consumer.New(p.cl, consumer.Assign("in", 0))
		require.NoError(t, err)
		require.ErrorIs(t, s.Pipe(t.Context(), alone, passOn), consumer.ErrNoGroup)
		require.NoError(t, alone.Close(t.Context()))
		stop, err := s.Consume(w.c)
		require.NoError(t, err)
		require.ErrorIs(t, s.Pipe(t.Context(), w.c, passOn), consumer.ErrBusy)
		stop()
		stop()
		require.NoError(t, w.c.Close(t.Context()))
		require.ErrorIs(t, s.Pipe(t.Context(), w.c, passOn), consumer.ErrClosed)
	})
}

func TestLintOfThePipesConsumer(t *testing.T) {
	cfg := consumer.DefaultConfig()
	require.Len(t, txn.LintConsumer(cfg), 2)
	require.Contains(t, txn.LintConsumer(cfg)[0], "read_uncommitted")
	cfg.Isolation, cfg.Reset = consumer.ReadCommitted, consumer.Earliest
	require.Empty(t, txn.LintConsumer(cfg))
}

// What no repetition heals ends Pipe: here a record that is too large for the topic.
func TestPipeEndsWithWhatStays(t *testing.T) {
	inPlant(t, 2, 1, func(t *testing.T, p *plant) {
		p.write(10)
		w := p.start("a", "classic", func(ctx context.Context, tx *txn.Tx, r consumer.Record) error {
			return tx.Submit(ctx, producer.Record{Topic: "small", Value: make([]byte, 5000)}, nil)
		})
		<-w.ended
		require.ErrorIs(t, w.err, errcode.MessageTooLarge)
		require.Equal(t, txn.Abortable, txn.Class(w.err))
		require.Equal(t, 1, w.aborted())
		w.close(t)
	})
}
