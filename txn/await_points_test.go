package txn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
	"github.com/ottla-kafka/ottla/wire"
)

// scene is a session with an open transaction in which something was sent.
type scene struct {
	cl *client.Client
	s  *txn.Session
	tx *txn.Tx
}

// blocking are all exported calls that wait.
var blocking = map[string]func(ctx context.Context, c *scene) error{
	"New": func(ctx context.Context, c *scene) error {
		s, err := txn.New(ctx, c.cl, "other")
		if err == nil {
			err = s.Close(ctx)
		}
		return err
	},
	"Begin": func(ctx context.Context, c *scene) error {
		gone, cancel := context.WithCancel(ctx)
		cancel()
		_ = c.tx.Abort(gone) // it goes on without us
		tx, err := c.s.Begin(ctx)
		if err == nil {
			c.tx = tx
		}
		return err
	},
	"Send": func(ctx context.Context, c *scene) error {
		_, err := c.tx.Send(ctx, text("audit", "sent"))
		return err
	},
	"Submit": func(ctx context.Context, c *scene) error {
		for range 100 { // more than the buffer holds
			if err := c.tx.Submit(ctx, producer.Record{Topic: "audit", Value: make([]byte, 4<<10)}, nil); err != nil {
				return err
			}
		}
		return nil
	},
	"SendAll": func(ctx context.Context, c *scene) error {
		_, err := c.tx.SendAll(ctx, slices.Values([]producer.Record{text("audit", "sent"), text("audit", "sent")}))
		return err
	},
	"Flush": func(ctx context.Context, c *scene) error {
		_ = c.tx.Submit(ctx, text("audit", "sent"), nil)
		return c.tx.Flush(ctx)
	},
	"SendOffsets": func(ctx context.Context, c *scene) error {
		return c.tx.SendOffsets(ctx, "g", groupmember.Generation{}, at(7))
	},
	"Commit": func(ctx context.Context, c *scene) error { return c.tx.Commit(ctx) },
	"Abort":  func(ctx context.Context, c *scene) error { return c.tx.Abort(ctx) },
	"Do": func(ctx context.Context, c *scene) error {
		if err := c.tx.Abort(ctx); err != nil {
			return err
		}
		return c.s.Do(ctx, func(ctx context.Context, tx *txn.Tx) error {
			c.tx = tx
			_, err := tx.Send(ctx, text("orders", "done"))
			return err
		})
	},
	"Close":      func(ctx context.Context, c *scene) error { return c.s.Close(ctx) },
	"Warm":       func(ctx context.Context, c *scene) error { return c.s.Warm(ctx, "audit") },
	"Partitions": func(ctx context.Context, c *scene) error { _, err := c.s.Partitions(ctx, "audit"); return err },
}

// Wherever a call waits, the end of its ctx ends it at that moment, with ctx's cause in the error, which has one of the three
// classes. What it leaves behind the next calls repair: the transaction can be ended, another one begins and is committed, and
// readers see what the errors said.
func TestCtxEndsEveryCallAtEveryAwaitPoint(t *testing.T) {
	stuckAt := []wire.Key{wire.KeyMetadata, wire.KeyFindCoordinator, wire.KeyInitProducerId, wire.KeyAddPartitionsToTxn, wire.KeyAddOffsetsToTxn,
		wire.KeyTxnOffsetCommit, wire.KeyProduce, wire.KeyEndTxn}
	stuck := map[string]int{}
	bothKinds(t, func(t *testing.T, level int16) {
		for call, do := range blocking {
			for _, key := range stuckAt {
				synctest.Test(t, func(t *testing.T) {
					k, cl := cluster(t, level)
					s := open(t, cl, "tx", txn.Producer(producer.BufferMemory(64<<10), producer.Linger(0)))
					tx, err := s.Begin(t.Context())
					require.NoError(t, err)
					_, err = tx.Send(t.Context(), text("orders", "first"))
					require.NoError(t, err)
					c := &scene{cl: cl, s: s, tx: tx}
					in := k.Inject(fault.On(key).Hang())
					enough := errors.New("enough")
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					time.AfterFunc(time.Second, func() { cancel(enough) })
					began := time.Now()
					err = do(ctx, c)
					where := fmt.Sprintf("%s at %s, version %d: %v", call, key, level, err)
					if err != nil || time.Since(began) >= time.Second {
						stuck[call]++
						require.Equal(t, time.Second, time.Since(began), where)
						require.ErrorIs(t, err, enough, where)
						var e *txn.Error
						require.ErrorAs(t, err, &e, where)
					}
					in.Remove()
					repair(t, c, call, err, where)
				})
			}
		}
	})
	for call := range blocking {
		require.GreaterOrEqual(t, stuck[call], 2, call)
	}
}

// repair goes on after a call was ended by its ctx.
func repair(t *testing.T, c *scene, call string, err error, where string) {
	var want []string
	switch call {
	case "Close":
		c.s = open(t, c.cl, "tx")
	case "Commit":
		if err != nil {
			require.Contains(t, []txn.ErrorClass{txn.OutcomeUnknown, txn.Abortable}, txn.Class(err), where)
			require.NoError(t, c.tx.Commit(t.Context()), where)
		}
		want = append(want, "first")
	case "Do":
		if err == nil || txn.Class(err) == txn.OutcomeUnknown {
			want = append(want, "done")
			next, err := c.s.Begin(t.Context())
			require.NoError(t, err, where)
			require.Equal(t, txn.Committed, c.tx.Outcome(), where)
			require.NoError(t, next.Abort(t.Context()), where)
		}
	case "SendOffsets":
		if err != nil {
			require.Error(t, c.tx.Commit(t.Context()), "nobody knows whether the offsets are part of it")
		}
		require.NoError(t, c.tx.Abort(t.Context()), where)
	default:
		if c.tx.Outcome() != txn.Aborted {
			require.NoError(t, c.tx.Abort(t.Context()), where)
		}
	}
	require.NoError(t, c.s.Do(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		_, err := tx.Send(ctx, text("orders", "after"))
		return err
	}), where)
	require.Equal(t, append(want, "after"), committed(t, c.cl, "orders"), where)
}
