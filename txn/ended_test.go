package txn_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
	"github.com/ottla-kafka/ottla/wire"
)

// early is what calls with a ctx that has ended may not touch: a session with an open transaction, and one without.
type early struct {
	*plant
	s, idle *txn.Session
	tx      *txn.Tx
	c       *consumer.Consumer // has not joined its group
}

// calls are all exported ones with a ctx, except those that have a duty whatever ctx says: Abort and Close.
var calls = map[string]func(ctx context.Context, e *early) error{
	"New": func(ctx context.Context, e *early) error { _, err := txn.New(ctx, e.cl, "other"); return err },
	"NewFromConfig": func(ctx context.Context, e *early) error {
		_, err := txn.NewFromConfig(ctx, e.cl, e.s.Config())
		return err
	},
	"Dial": func(ctx context.Context, e *early) error {
		_, err := txn.Dial(ctx, nil, "other", txn.Client(client.Cluster(e.k)))
		return err
	},
	"Begin":                   func(ctx context.Context, e *early) error { _, err := e.idle.Begin(ctx); return err },
	"Begin while one is open": func(ctx context.Context, e *early) error { _, err := e.s.Begin(ctx); return err },
	"Do": func(ctx context.Context, e *early) error {
		return e.idle.Do(ctx, func(context.Context, *txn.Tx) error { panic("Do called its function") })
	},
	"Pipe": func(ctx context.Context, e *early) error { return e.idle.Pipe(ctx, e.c, passOn) },
	"PipeBatches": func(ctx context.Context, e *early) error {
		return e.idle.PipeBatches(ctx, e.c, func(context.Context, *txn.Tx, []consumer.Record) error { panic("PipeBatches called its function") })
	},
	"Send": func(ctx context.Context, e *early) error { _, err := e.tx.Send(ctx, text("out", "late")); return err },
	"Submit": func(ctx context.Context, e *early) error {
		return e.tx.Submit(ctx, text("out", "late"), func(producer.Ack, error) { panic("Submit called its callback") })
	},
	"SendAll": func(ctx context.Context, e *early) error {
		_, err := e.tx.SendAll(ctx, slices.Values([]producer.Record{text("out", "late")}))
		return err
	},
	"Flush":  func(ctx context.Context, e *early) error { return e.tx.Flush(ctx) },
	"Commit": func(ctx context.Context, e *early) error { return e.tx.Commit(ctx) },
	"SendOffsets": func(ctx context.Context, e *early) error {
		return e.tx.SendOffsets(ctx, "g", groupmember.Generation{}, at(7))
	},
	"Warm":       func(ctx context.Context, e *early) error { return e.s.Warm(ctx, "small") },
	"Partitions": func(ctx context.Context, e *early) error { _, err := e.s.Partitions(ctx, "small"); return err },
}

// The cause of a ctx that has ended before the call is the call's error, of class Abortable, and no broker is asked anything.
// An open transaction is as it was, except that one that lacks its offsets can only be aborted.
func TestACtxThatHasEndedStartsNothing(t *testing.T) {
	for name, call := range calls {
		inPlant(t, 2, 1, func(t *testing.T, p *plant) {
			e := &early{plant: p, s: open(t, p.cl, "tx"), idle: open(t, p.cl, "idle"), c: p.reader("classic").c}
			tx, err := e.s.Begin(t.Context())
			require.NoError(t, err)
			submit(t, tx, "out", "first")
			require.NoError(t, tx.Flush(t.Context()))
			e.tx = tx
			enough := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(enough)
			synctest.Wait()
			before := p.requests()
			err = call(ctx, e)
			synctest.Wait()
			require.Equal(t, before, p.requests(), name)
			require.ErrorIs(t, err, enough, name)
			require.Equal(t, txn.Abortable, txn.Class(err), name)
			require.Equal(t, txn.Open, tx.Outcome(), name)
			if slices.Contains([]string{"Send", "Submit", "SendAll"}, name) {
				require.Equal(t, producer.NotWritten, producer.Outcome(err), name)
			}
			want := []string{"first"}
			if err := tx.Commit(t.Context()); name == "SendOffsets" {
				require.ErrorIs(t, err, enough)
				require.NoError(t, tx.Abort(t.Context()))
				want = nil
			} else {
				require.NoError(t, err, name)
			}
			require.Equal(t, want, committed(t, p.cl, "out"), name)
			require.NoError(t, e.idle.Do(t.Context(), func(context.Context, *txn.Tx) error { return nil }), name)
		})
	}
}

// requests are the numbers of all requests that the broker has answered.
func (p *plant) requests() map[wire.Key]int64 {
	n := map[wire.Key]int64{}
	for _, m := range p.k.Metrics() {
		n[m.Key] = m.Requests
	}
	return n
}

// Abort and Close do their duty whatever ctx says.
func TestAbortAndCloseIgnoreThatCtxHasEnded(t *testing.T) {
	inPlant(t, 2, 1, func(t *testing.T, p *plant) {
		s := open(t, p.cl, "tx")
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		tx, err := s.Begin(t.Context())
		require.NoError(t, err)
		submit(t, tx, "out", "aborted")
		require.NoError(t, tx.Flush(t.Context()))
		if err := tx.Abort(gone); err != nil { // the answer may have been faster
			require.ErrorIs(t, err, context.Canceled)
		}
		next, err := s.Begin(t.Context())
		require.NoError(t, err)
		require.Equal(t, txn.Aborted, tx.Outcome())
		submit(t, next, "out", "committed")
		require.NoError(t, next.Commit(t.Context()))
		require.NoError(t, next.Commit(gone), "it is committed")
		_ = s.Close(gone)
		require.Equal(t, txn.Closed, s.State())
		require.Equal(t, []string{"committed"}, committed(t, p.cl, "out"))
	})
}

// Whoever ends a transaction while the function given to Do works, Do says so: nil means committed, unless the function has
// ended it itself.
func TestDoNeverTakesTheEndOfItsTransactionForSuccess(t *testing.T) {
	behind := map[groupmember.TopicPartition]groupmember.Offset{{Topic: "in"}: groupmember.OffsetAt(1)}
	for name, end := range map[string]func(t *testing.T, p *plant, s *txn.Session){
		"another instance": func(t *testing.T, p *plant, s *txn.Session) { open(t, p.cl, "tx") },
		"Close":            func(t *testing.T, p *plant, s *txn.Session) { require.NoError(t, s.Close(t.Context())) },
	} {
		everyLevel(t, func(t *testing.T, level int16) {
			inPlant(t, level, 1, func(t *testing.T, p *plant) {
				for _, says := range []error{nil, errors.New("no")} {
					s := open(t, p.cl, "tx")
					err := s.Do(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
						_, err := tx.Send(ctx, text("out", "lost"))
						require.NoError(t, err)
						end(t, p, s)
						_ = tx.SendOffsets(ctx, "g", groupmember.Generation{}, behind) // a coordinator's word ends the session
						require.NotEqual(t, txn.Open, tx.Outcome(), name)
						return says
					})
					require.Equal(t, txn.Fenced, txn.Class(err), "%s: %v", name, err)
					if says != nil {
						require.ErrorIs(t, err, says)
					}
					require.ErrorIs(t, s.Do(t.Context(), func(context.Context, *txn.Tx) error { return nil }), txn.ErrFenced)
				}
				require.Empty(t, committed(t, p.cl, "out"))
				s := open(t, p.cl, "tx")
				require.NoError(t, s.Do(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
					submit(t, tx, "out", "dropped")
					return tx.Abort(ctx)
				}), "what the function has ended itself is its business")
			})
		})
	}
}
