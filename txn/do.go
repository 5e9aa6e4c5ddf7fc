package txn

import (
	"context"
	"errors"
	"fmt"
)

// Do runs f in a transaction: nil commits, an error or a panic aborts, and a panic goes on afterwards. The error is
// f's, joined with what went wrong with the abort, or that of the commit; see Class. f's ctx ends when the transaction
// can only be aborted any more. Nothing is tried again: whether f may run again is f's business. When f has ended the
// transaction itself, Do does not.
func (s *Session) Do(ctx context.Context, f func(ctx context.Context, tx *Tx) error) error {
	tx, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	err = tx.run(ctx, f)
	if tx.endedByCaller() {
		return err
	}
	if err == nil {
		if err = tx.Commit(ctx); Class(err) != Abortable {
			return err
		}
	}
	return worst(err, tx.Abort(ctx))
}

// run calls f and aborts when it does not return.
func (tx *Tx) run(ctx context.Context, f func(ctx context.Context, tx *Tx) error) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(tx.Context(), func() { cancel(context.Cause(tx.Context())) })
	defer stop()
	returned := false
	defer func() {
		if !returned { // a panic, or runtime.Goexit: it goes on when the transaction is aborted
			_ = tx.abort(ctx, fmt.Errorf("%w: the function given to Do panicked", ErrAborted))
		}
	}()
	err := f(inner, tx)
	returned = true
	return err
}

// worst joins two errors, the more serious one first: Class sees that one.
func worst(err, other error) error {
	if Class(other) > Class(err) {
		return errors.Join(other, err)
	}
	if other == nil {
		return err
	}
	return errors.Join(err, other)
}
