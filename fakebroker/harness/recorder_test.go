package harness_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/fakebroker/harness"
	"github.com/ottla-kafka/ottla/fakebroker/history"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
	"github.com/ottla-kafka/ottla/wire"
)

// recorded is a cluster, a client and a log, in a bubble.
type recorded struct {
	*testing.T
	k   *fakebroker.Cluster
	cl  *client.Client
	log *history.Log
	rec *harness.Recorder
}

func inBubble(t *testing.T, f func(*recorded)) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("in", 1), fakebroker.Topic("out", 1), fakebroker.Config("group.initial.rebalance.delay.ms", "0"))
		cl, err := client.New(client.Cluster(k), client.RequestTimeout(2*time.Second))
		require.NoError(t, err)
		log := history.New()
		f(&recorded{t, k, cl, log, harness.Record(log, "w")})
		require.NoError(t, cl.Close(context.Background()))
	})
}

func (r *recorded) session() *txn.Session {
	r.Helper()
	s, err := txn.New(r.Context(), r.cl, "w")
	require.NoError(r, err)
	return s
}

// ops are the recorded operations of some kinds.
func (r *recorded) ops(kinds ...history.Kind) (list []history.Op) {
	for _, o := range r.log.Ops() {
		for _, k := range kinds {
			if o.Kind == k {
				list = append(list, o)
			}
		}
	}
	return list
}

func TestRecorderSeesWhatBecomesOfRecords(t *testing.T) {
	inBubble(t, func(r *recorded) {
		t := r.T
		p, err := producer.New(r.cl, producer.DeliveryTimeout(3*time.Second), producer.Linger(0))
		require.NoError(t, err)
		_, err = r.rec.Send(t.Context(), p, producer.Record{Topic: "in", Value: []byte("a")})
		require.NoError(t, err)
		require.Error(t, r.rec.Submit(t.Context(), p, producer.Record{Topic: "in", Value: make([]byte, 2<<20)}, nil))
		in := r.k.Inject(fault.Produce().LoseResponse())
		done := make(chan error, 1)
		require.NoError(t, r.rec.Submit(t.Context(), p, producer.Record{Topic: "in", Value: []byte("b")}, func(_ producer.Ack, err error) { done <- err }))
		require.Error(t, <-done)
		in.Remove()
		require.NoError(t, p.Close(t.Context()))
		sends := r.ops(history.Send)
		require.Equal(t, []history.Outcome{history.OK, history.Fail, history.Info}, []history.Outcome{sends[0].Outcome, sends[1].Outcome, sends[2].Outcome})
		require.EqualValues(t, 0, sends[0].Offset)
		require.Less(t, len(sends[1].Value), 100)
	})
}

func TestRecorderFollowsTransactions(t *testing.T) {
	inBubble(t, func(r *recorded) {
		t := r.T
		s := r.session()
		ctx := t.Context()
		tx, err := r.rec.Begin(ctx, s)
		require.NoError(t, err)
		_, err = tx.Send(ctx, producer.Record{Topic: "out", Value: []byte("a")})
		require.NoError(t, err)
		in := consumer.TopicPartition{Topic: "in"}
		require.NoError(t, tx.SendOffsets(ctx, "g", groupmember.Generation{ID: -1}, map[consumer.TopicPartition]consumer.Offset{in: {At: 1}}))
		require.NoError(t, tx.Commit(ctx))
		require.NoError(t, r.rec.Do(ctx, s, func(ctx context.Context, tx *harness.Tx) error {
			return tx.Submit(ctx, producer.Record{Topic: "out", Value: []byte("b")}, nil)
		}))
		boom := errors.New("boom")
		require.ErrorIs(t, r.rec.Do(ctx, s, func(ctx context.Context, tx *harness.Tx) error { return boom }), boom)
		tx, err = r.rec.Begin(ctx, s)
		require.NoError(t, err)
		require.NoError(t, tx.Abort(ctx))
		require.NoError(t, s.Close(ctx))
		report, err := history.Check(r.log)
		require.NoError(t, err)
		require.NoError(t, report.Err())
		require.Equal(t, 2, report.Committed)
		require.Equal(t, 2, report.Aborted)
		offsets := r.ops(history.CommitOffsets)
		require.Len(t, offsets, 1)
		require.Equal(t, history.OK, offsets[0].Outcome)
	})
}

func TestRecorderLearnsLaterWhatBecameOfATransactionInDoubt(t *testing.T) {
	inBubble(t, func(r *recorded) {
		t := r.T
		s := r.session()
		tx, err := r.rec.Begin(t.Context(), s)
		require.NoError(t, err)
		_, err = tx.Send(t.Context(), producer.Record{Topic: "out", Value: []byte("a")})
		require.NoError(t, err)
		in := r.k.Inject(fault.On(wire.KeyEndTxn).LoseResponse())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err = tx.Commit(ctx)
		cancel()
		require.Equal(t, txn.OutcomeUnknown, txn.Class(err))
		require.Equal(t, history.Info, r.ops(history.Commit)[0].Outcome)
		in.Remove()
		next, err := r.rec.Begin(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, history.OK, r.ops(history.Commit)[0].Outcome)
		require.NoError(t, next.Abort(t.Context()))
		require.NoError(t, s.Close(t.Context()))
	})
}

func TestRecorderFollowsAPipe(t *testing.T) {
	inBubble(t, func(r *recorded) {
		t := r.T
		ctx := t.Context()
		p, err := producer.New(r.cl)
		require.NoError(t, err)
		for _, v := range []string{"a", "b", "c", "d"} {
			require.NoError(t, r.rec.Submit(ctx, p, producer.Record{Topic: "in", Value: []byte(v)}, nil))
		}
		require.NoError(t, p.Close(ctx))
		s := r.session()
		c, err := consumer.New(r.cl, append(r.rec.Consumer("g", consumer.ReadCommitted), consumer.Subscribe("in"), consumer.OnReset(consumer.Earliest))...)
		require.NoError(t, err)
		short, cancel := context.WithTimeout(ctx, 10*time.Second)
		calls, committed := 0, 0
		boom := errors.New("boom")
		handle := func(ctx context.Context, tx *harness.Tx, rec consumer.Record) error {
			if calls++; calls == 2 {
				return boom
			}
			return tx.Submit(ctx, producer.Record{Topic: "out", Value: rec.Value}, nil)
		}
		require.ErrorIs(t, r.rec.Pipe(short, s, c, handle), boom)
		require.ErrorIs(t, r.rec.Pipe(short, s, c, handle, txn.CommitRecords(2), txn.OnCommit(func(n int) { committed += n })), context.DeadlineExceeded)
		cancel()
		require.NoError(t, c.Close(ctx))
		require.NoError(t, s.Close(ctx))
		require.Equal(t, 4, committed)
		report, err := history.Check(r.log)
		require.NoError(t, err)
		require.NoError(t, report.Err())
		require.GreaterOrEqual(t, report.Committed, 2)
		require.Equal(t, 1, report.Aborted)
		require.Len(t, r.ops(history.Processed), 6) // two of them in the aborted transaction
		harness.CheckExactlyOnce(t, r.k, "in", "out", harness.Group("g"))
	})
}

// A Commit whose ctx has ended leaves the transaction open: what becomes of it is what counts.
func TestRecorderWaitsForACommitThatWasNotBegun(t *testing.T) {
	for _, commit := range []bool{true, false} {
		inBubble(t, func(r *recorded) {
			s := r.session()
			ended, cancel := context.WithCancel(r.Context())
			cancel()
			tx, err := r.rec.Begin(r.Context(), s)
			require.NoError(r, err)
			_, err = tx.Send(r.Context(), producer.Record{Topic: "out", Value: []byte("a")})
			require.NoError(r, err)
			for range 3 {
				require.ErrorIs(r, tx.Commit(ended), context.Canceled)
				require.Equal(r, history.Pending, r.ops(history.Commit)[0].Outcome)
			}
			want := history.OK
			if commit {
				require.NoError(r, tx.Commit(r.Context()))
			} else {
				require.NoError(r, tx.Abort(r.Context()))
				want = history.Fail
			}
			require.Len(r, r.ops(history.Commit), 1)
			require.Equal(r, want, r.ops(history.Commit)[0].Outcome)
			require.NoError(r, s.Close(r.Context()))
		})
	}
}
