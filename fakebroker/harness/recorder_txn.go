package harness

import (
	"context"
	"errors"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker/history"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
)

// A Tx is a transaction whose doings are recorded. Its methods are those of txn.Tx.
type Tx struct {
	tx     *txn.Tx
	r      *Recorder
	h      *history.Txn
	commit *history.Call // since when the transaction may be committed; nil: it was not asked for
	// done is behind what was processed, by group; commits are the commits of that, begun with the transaction's.
	done    map[string]map[history.TopicPartition]int64
	commits map[string]*history.Call
}

// Begin is s.Begin, recorded.
func (r *Recorder) Begin(ctx context.Context, s *txn.Session) (*Tx, error) {
	tx, err := s.Begin(ctx)
	r.settle()
	if err != nil {
		return nil, err
	}
	return r.begun(tx), nil
}

func (r *Recorder) begun(tx *txn.Tx) *Tx {
	t := &Tx{tx: tx, r: r, h: r.Process.Begin(), done: map[string]map[history.TopicPartition]int64{}, commits: map[string]*history.Call{}}
	r.mu.Lock()
	r.last = t
	r.mu.Unlock()
	return t
}

// settle records what became of a transaction that had been in doubt.
func (r *Recorder) settle() {
	r.mu.Lock()
	t := r.last
	r.last = nil
	r.mu.Unlock()
	if t != nil && t.commit != nil {
		t.ended(nil)
	}
}

// Do is s.Do, recorded.
func (r *Recorder) Do(ctx context.Context, s *txn.Session, f func(ctx context.Context, tx *Tx) error) error {
	var t *Tx
	err := s.Do(ctx, func(ctx context.Context, tx *txn.Tx) error {
		r.settle()
		t = r.begun(tx)
		err := f(ctx, t)
		if err == nil {
			t.committing()
		}
		return err
	})
	if t != nil {
		t.ended(err)
	}
	return err
}

// Pipe is s.Pipe, recorded: each record counts as processed, for the consumer's group, in the transaction in which handle
// got it.
func (r *Recorder) Pipe(ctx context.Context, s *txn.Session, c *consumer.Consumer, handle func(ctx context.Context, tx *Tx, rec consumer.Record) error, opts ...txn.PipeOption) error {
	var t *Tx
	over := func(err error) {
		if t != nil {
			t.ended(err)
			t = nil
		}
	}
	tell := func(o *txn.PipeOptions) {
		committed, aborted := o.OnCommit, o.OnAbort
		o.OnCommit = func(n int) {
			over(nil)
			if committed != nil {
				committed(n)
			}
		}
		o.OnAbort = func(cause error) {
			over(cause)
			r.rewound()
			if aborted != nil {
				aborted(cause)
			}
		}
	}
	group := c.Config().Group.ID
	err := s.Pipe(ctx, c, func(ctx context.Context, tx *txn.Tx, rec consumer.Record) error {
		if t == nil || t.tx != tx {
			over(errors.New("another transaction has begun"))
			t = r.begun(tx)
		}
		t.Processed(group, rec)
		err := handle(ctx, t, rec)
		if err == nil {
			t.committing() // from here on Pipe may do that at any time
		}
		return err
	}, append(opts, tell)...)
	over(err)
	r.rewound()
	return err
}

// Processed records that a record of the input has been worked on in the transaction, for a group, and that the transaction
// commits the offset behind it. Pipe does that itself.
func (t *Tx) Processed(group string, rec consumer.Record) {
	tp := history.TopicPartition(rec.TopicPartition())
	t.h.Processed(group, tp, rec.Offset)
	if t.done[group] == nil {
		t.done[group] = map[history.TopicPartition]int64{}
	}
	t.done[group][tp] = rec.Offset + 1
}

// Submit is txn.Tx.Submit.
func (t *Tx) Submit(ctx context.Context, rec producer.Record, done func(producer.Ack, error)) error {
	call := t.h.Send(rec.Topic, t.r.value(rec.Value))
	return submitted(call, t.tx.Submit(ctx, rec, verdict(call, done)))
}

// Send is txn.Tx.Send.
func (t *Tx) Send(ctx context.Context, rec producer.Record) (producer.Ack, error) {
	call := t.h.Send(rec.Topic, t.r.value(rec.Value))
	ack, err := t.tx.Send(ctx, rec)
	verdict(call, nil)(ack, err)
	return ack, err
}

// SendOffsets is txn.Tx.SendOffsets. Records that were reported with Processed need no more than this call.
func (t *Tx) SendOffsets(ctx context.Context, group string, g groupmember.Generation, offsets map[groupmember.TopicPartition]groupmember.Offset) error {
	var list []history.Offset
	for tp, o := range offsets {
		list = append(list, history.Offset{TopicPartition: history.TopicPartition(tp), Offset: o.At})
	}
	call := t.h.CommitOffsets(group, list...)
	delete(t.done, group) // said by this
	err := t.tx.SendOffsets(ctx, group, g, offsets)
	if err != nil {
		call.Info(err)
	} else {
		call.OK()
	}
	return err
}

// Tx is the transaction itself, for what need not be recorded.
func (t *Tx) Tx() *txn.Tx { return t.tx }

// Commit is txn.Tx.Commit.
func (t *Tx) Commit(ctx context.Context) error {
	t.committing()
	err := t.tx.Commit(ctx)
	t.ended(err)
	return err
}

// Abort is txn.Tx.Abort. Positions of the session's consumers go back with it.
func (t *Tx) Abort(ctx context.Context) error {
	call := t.h.Abort()
	err := t.tx.Abort(ctx)
	if err != nil {
		call.Info(err)
	} else {
		call.OK()
	}
	if t.commit != nil {
		t.ended(errors.Join(errors.New("aborted"), err))
	}
	t.r.rewound()
	return err
}

// committing records that the transaction may be committed from now on.
func (t *Tx) committing() {
	if t.commit != nil {
		return
	}
	for group := range t.done {
		t.commits[group] = t.h.CommitOffsets(group)
	}
	t.commit = t.h.Commit()
}

// ended records how the transaction has ended, as far as the session knows by now. What it says of errors is held to: after
// one of class Abortable or Fenced nothing of the transaction is or will be committed.
func (t *Tx) ended(err error) {
	outcome, class := t.tx.Outcome(), txn.Class(err)
	switch {
	case outcome == txn.Committed:
		t.committing()
		t.offsets(nil)
		t.commit.OK()
	case t.commit == nil:
		if outcome == txn.Aborted {
			t.h.Abort().OK()
		}
	case outcome == txn.Open && err != nil && t.tx.Err() == nil:
		// Its ctx has ended before the commit began: it is open as before, and what comes later says how it ends.
	case outcome == txn.Aborted, err != nil && class != txn.OutcomeUnknown:
		t.offsets(errNotCommitted)
		t.commit.Fail(errors.Join(errNotCommitted, err))
	default:
		t.offsets(errInDoubt)
		t.commit.Info(errors.Join(errInDoubt, err))
	}
	if err != nil {
		t.r.rewound()
	}
}

var (
	errNotCommitted = errors.New("the transaction was not committed")
	errInDoubt      = errors.New("the transaction is in doubt")
)

// offsets ends the commits of offsets that need no SendOffsets: with an error nobody knows whether they were sent.
func (t *Tx) offsets(err error) {
	for group, call := range t.commits {
		var list []history.Offset
		for tp, offset := range t.done[group] {
			list = append(list, history.Offset{TopicPartition: tp, Offset: offset})
		}
		if call.With(list...); err != nil {
			call.Info(err)
		} else {
			call.OK()
		}
	}
}
