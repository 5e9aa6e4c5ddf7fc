package txn

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn/machine"
)

// Tx is one transaction. Its methods may be called from any goroutine until Commit or Abort was called; what comes
// later fails with ErrOver.
type Tx struct {
	s      *Session
	serial uint64
	life   context.Context // ends when the transaction has, or can only be aborted
	cancel context.CancelCauseFunc
	late   *lateness // nil outside of Pipe

	mu      sync.Mutex
	doom    error
	outcome Outcome
	err     error // why it is not committed
	settled bool  // the consumers know
	asked   bool  // Commit or Abort was called
}

// Outcome is what became of a transaction.
type Outcome = machine.Outcome

// The outcomes.
const (
	Open      = machine.Open      // neither Commit nor Abort has come through
	Committed = machine.Committed // readers see all of it
	Aborted   = machine.Aborted   // read_committed readers see nothing of it
	InDoubt   = machine.InDoubt   // the answer to Commit did not come; Commit again or Begin finds out
)

// lateness lets a handler of Pipe finish the record that it is at when Pipe's ctx ends, within Grace: what was handled before
// would have to be aborted with it.
type lateness struct{ ctx, bounded context.Context }

func newTx(s *Session, serial uint64) *Tx {
	tx := &Tx{s: s, serial: serial}
	tx.life, tx.cancel = context.WithCancelCause(context.Background())
	return tx
}

// Submit is producer.Producer.Submit within the transaction. An error of Submit itself leaves the transaction as it
// was, without the record. An error that done gets later dooms the transaction: Commit will fail.
func (tx *Tx) Submit(ctx context.Context, r producer.Record, done func(producer.Ack, error)) error {
	if ctx.Err() != nil {
		if tx.late == nil || tx.late.ctx.Err() == nil {
			return tx.early("Submit", ctx)
		}
		ctx = tx.late.bounded
	}
	if err := tx.s.p.Submit(ctx, tx.serial, r, done); err != nil {
		return tx.refused("Submit", err)
	}
	return nil
}

// Send is producer.Producer.Send within the transaction. A record whose Send was ended by its ctx may be part of the
// transaction, unless the error matches producer.ErrNotWritten.
func (tx *Tx) Send(ctx context.Context, r producer.Record) (producer.Ack, error) {
	if ctx.Err() != nil {
		return producer.Ack{}, tx.early("Send", ctx)
	}
	ack, err := tx.s.p.Send(ctx, tx.serial, r)
	if err != nil {
		return ack, tx.refused("Send", err)
	}
	return ack, nil
}

// SendAll is producer.Producer.SendAll within the transaction.
func (tx *Tx) SendAll(ctx context.Context, records iter.Seq[producer.Record]) (acked int, err error) {
	if ctx.Err() != nil {
		return 0, tx.early("SendAll", ctx)
	}
	acked, err = tx.s.p.SendAll(ctx, tx.serial, records)
	if err != nil {
		return acked, tx.refused("SendAll", err)
	}
	return acked, nil
}

// Flush waits for the verdicts of everything submitted. Commit does that as well.
func (tx *Tx) Flush(ctx context.Context) error {
	if ctx.Err() != nil {
		return tx.s.fail("Flush", Abortable, context.Cause(ctx))
	}
	if err := tx.s.p.FlushWait(ctx); err != nil {
		return tx.refused("Flush", err)
	}
	return tx.Err()
}

// early is the error of a record whose ctx had ended before anything was done with it.
func (tx *Tx) early(op string, ctx context.Context) error {
	return tx.refused(op, &producer.Error{Outcome: producer.NotWritten, Err: context.Cause(ctx)})
}

// refused dresses an error of the producer. What the transaction itself has to say goes first.
func (tx *Tx) refused(op string, err error) error {
	if over := tx.s.overErr(op); over != nil {
		return over
	}
	if errors.Is(err, producer.ErrOver) {
		if doom := tx.Err(); doom != nil {
			return tx.s.fail(op, Abortable, fmt.Errorf("%w: %w", err, doom))
		}
		err = fmt.Errorf("%w (%s): %w", ErrOver, tx.Outcome(), err)
	}
	return tx.s.failed(op, Abortable, err)
}

// Commit sends what is buffered, waits for all verdicts, and commits. After nil readers see all of it. After an error of
// class OutcomeUnknown it may be called again; after one of class Abortable, Abort. A ctx that ends while records are
// still on their way, or had ended before, leaves the transaction open: Commit may be called again then too.
func (tx *Tx) Commit(ctx context.Context) error {
	s := tx.s
	tx.ask()
	if err := tx.open("Commit"); err != nil {
		return err
	}
	if out := tx.Outcome(); out == Open {
		if ctx.Err() != nil {
			return tx.uncommitted(context.Cause(ctx))
		}
		s.step(machine.CommitAsked{})
		if err := s.intakes.send(ctx, tx); err != nil {
			s.step(machine.Spoiled{Err: err})
		} else {
			s.step(machine.CommitAllowed{})
		}
	}
	err := s.await(ctx, func() bool {
		out := tx.Outcome()
		return out != Open && out != InDoubt || tx.Err() != nil || s.m.State() == Over
	})
	if err != nil {
		tx.recall()
	}
	return tx.committed(ctx, err)
}

// open tells why a transaction cannot be ended any more by the caller, nil if it can, or is in doubt.
func (tx *Tx) open(op string) error {
	s := tx.s
	s.mu.Lock()
	current, state := s.tx == tx, s.m.State()
	s.mu.Unlock()
	switch out, err := tx.result(); {
	case out == Committed && op == "Commit":
		return nil
	case out == Aborted && op == "Abort" && current:
		return nil
	case out == Aborted && err != nil:
		return err
	case out == Aborted || out == Committed || !current:
		return s.fail(op, Abortable, fmt.Errorf("%w: it is %s", ErrOver, out))
	case state == Doomed && op == "Commit":
		return tx.Err()
	}
	return nil
}

// recall: the caller of Commit goes. What was not sent yet, will not be.
func (tx *Tx) recall() {
	s := tx.s
	s.mu.Lock()
	events := make([]machine.Event, 0, 2)
	if air := s.m.Air(); air != nil && air.Commit() && air.Owner.(*attempt).revoke() {
		events = append(events, machine.Failed{Request: air, Err: errRevoked})
	}
	s.stepLocked(append(events, machine.CommitRecalled{})...)
	s.unlock()
}

// committed says how a commit came out. cause is why it was not waited for, nil if it was.
func (tx *Tx) committed(ctx context.Context, cause error) error {
	out, err := tx.result()
	switch out {
	case Committed:
		_ = tx.settle(ctx)
		return nil
	case Aborted:
		if err == nil { // somebody else called Abort meanwhile
			err = tx.s.fail("Commit", Abortable, ErrAborted)
		}
		return err
	case InDoubt:
		if err != nil {
			return errors.Join(err, tx.lookUp(ctx))
		}
		return tx.s.failed("Commit", OutcomeUnknown, fmt.Errorf("no answer to EndTxn: %w", cause))
	}
	return tx.uncommitted(fmt.Errorf("records or offsets are still on their way: %w", cause))
}

// uncommitted is why an open transaction was not committed: what dooms it, the end of the session, or else cause.
func (tx *Tx) uncommitted(cause error) error {
	if doom := tx.Err(); doom != nil {
		return doom
	}
	if over := tx.s.overErr("Commit"); over != nil {
		return over
	}
	return tx.s.failed("Commit", Abortable, cause)
}

// Abort gives up what was not sent, waits for what is on its way, and aborts. The session can begin another one then.
// When ctx ends first, or had ended before, the abort goes on, and Begin waits for it. A transaction whose commit is in doubt cannot be
// aborted; Abort waits until it is known then, and fails if it is committed.
func (tx *Tx) Abort(ctx context.Context) error { return tx.abort(ctx, ErrAborted) }

func (tx *Tx) abort(ctx context.Context, cause error) error {
	s := tx.s
	tx.ask()
	if err := tx.open("Abort"); err != nil {
		return err
	}
	if tx.Outcome() == Open {
		s.step(machine.AbortAsked{Cause: &Error{Class: Abortable, Op: "Abort", ID: s.cfg.ID, Err: cause}})
	}
	err := s.await(ctx, func() bool { out := tx.Outcome(); return out != Open && out != InDoubt || s.m.State() == Over })
	out, why := tx.result()
	switch {
	case out == Committed:
		_ = tx.settle(ctx)
		return s.failed("Abort", OutcomeUnknown, errors.New("the transaction is committed: the answer to its commit was lost"))
	case out == InDoubt && why != nil:
		return errors.Join(why, tx.lookUp(ctx))
	case err != nil && out == InDoubt:
		return s.failed("Abort", OutcomeUnknown, err)
	case err != nil && out == Open:
		return s.failed("Abort", Abortable, fmt.Errorf("the abort has not come through yet, it goes on and Begin waits for it: %w", err))
	}
	if over := s.overErr("Abort"); over != nil {
		return over
	}
	if err := tx.settle(ctx); err != nil {
		return s.failed("Abort", Abortable, fmt.Errorf("aborted, but the consumer is not back at the committed offsets: %w", err))
	}
	return nil
}

// settle tells the consumers what became of the transaction, once.
func (tx *Tx) settle(ctx context.Context) error {
	tx.mu.Lock()
	out, first := tx.outcome, !tx.settled
	if out == Committed || out == Aborted {
		tx.settled = true
	}
	tx.mu.Unlock()
	switch {
	case !first:
	case out == Committed:
		tx.s.intakes.settle()
	case out == Aborted:
		return tx.s.intakes.rewind(ctx)
	}
	return nil
}

// lookUpLimit bounds lookUp: whoever fenced the session has ended its transaction, so the answer is there as a rule.
const lookUpLimit = 5 * time.Second

// lookUp puts the consumers, once, where the groups' coordinators say that they are, since the session, which is over, will
// never know whether the transaction is committed. Otherwise the consumer's next session would do again what is.
func (tx *Tx) lookUp(ctx context.Context) error {
	tx.mu.Lock()
	first := !tx.settled
	tx.settled = true
	tx.mu.Unlock()
	if !first {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookUpLimit)
	defer cancel()
	if err := tx.s.intakes.rewind(ctx); err != nil {
		return fmt.Errorf("nor is it known where the consumer should go on: %w", err)
	}
	return nil
}

// Err is why the transaction can only be aborted, nil while it can be committed.
func (tx *Tx) Err() error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	return tx.doom
}

// Context ends when the transaction has ended or can only be aborted; its cause is Err, or ErrOver.
func (tx *Tx) Context() context.Context { return tx.life }

// Outcome is what became of it.
func (tx *Tx) Outcome() Outcome {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	return tx.outcome
}

func (tx *Tx) ask() {
	tx.mu.Lock()
	tx.asked = true
	tx.mu.Unlock()
}

// endedByCaller tells that the transaction has come to its end by Commit or Abort, and not with its session.
func (tx *Tx) endedByCaller() bool {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	return tx.asked && tx.outcome != Open
}

// ending is how far the transaction has come: over says that nothing more will become known of it.
func (tx *Tx) ending() (out Outcome, settled, over bool) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	return tx.outcome, tx.settled, tx.outcome == InDoubt && tx.err != nil
}

func (tx *Tx) result() (Outcome, error) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	return tx.outcome, tx.err
}

// doomed and finished are called under the session's lock.
func (tx *Tx) doomed(err error) {
	tx.mu.Lock()
	tx.doom = err
	tx.mu.Unlock()
	tx.cancel(err)
}

func (tx *Tx) finished(out Outcome, err error) {
	tx.mu.Lock()
	tx.outcome, tx.err = out, err
	if tx.doom == nil && out == Aborted { // with the session itself: nobody doomed it before
		tx.doom = err
	}
	tx.mu.Unlock()
	if err == nil {
		err = ErrOver
	}
	tx.cancel(err)
}
