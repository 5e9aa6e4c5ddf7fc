package txn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// round is one transaction of a pipe: it waits for records, has them handled, and commits or aborts.
//
//	read ──due, revoked, ctx ended──▶ commit ──▶ next round
//	  │                                 │ abortable: abort, positions back, next round after a pause
//	  │ lost, doomed ───────────────────┤
//	  └ handler failed ───────────────▶ abort, positions back, return
type round struct {
	p        *pipe
	ctx      context.Context // the caller's
	handling context.Context // what handle gets: ends with ctx, and when the transaction can only be aborted
	reading  context.Context // ends with handling, and when it is time to commit
	cut      context.CancelCauseFunc
	doom     context.CancelCauseFunc
	due      *time.Timer

	tx    *Tx // nil before the first record
	alone func() bool
	n     int // records handled
}

// errDue ends a round's reading in good order.
var errDue = errors.New("time to commit")

// errReading marks errors of the consumer that end Pipe, after what was handled is committed.
var errReading = errors.New("reading ended")

// transaction makes one round. A nil error means that it was committed, or that there was nothing to commit.
func (p *pipe) transaction(ctx context.Context) (err error) {
	reading, handling, stop := p.in.Watch(ctx)
	defer stop()
	t := &round{p: p, ctx: ctx}
	t.handling, t.doom = context.WithCancelCause(handling)
	t.reading, t.cut = context.WithCancelCause(t.handling)
	defer t.doom(context.Canceled) // ends both
	defer context.AfterFunc(reading, func() { t.cut(context.Cause(reading)) })()
	t.due = time.AfterFunc(p.wait(), func() { t.cut(errDue) })
	defer t.due.Stop()
	over := false
	defer func() {
		if !over { // handle panics, or ends the goroutine: that goes on when the transaction is aborted
			_ = t.abort(errors.New("the handler panicked"))
		}
	}()
	if p.unclear {
		err = t.begin() // learns what became of the transaction before, and puts the positions right, before anything is read
	}
	if err == nil {
		t.n, err = p.read(t)
	}
	err = t.end(err)
	over = true
	return err
}

// begin opens the transaction when there is something to put into it. When it fails what was read goes back.
func (t *round) begin() error {
	tx, err := t.p.s.Begin(t.p.bounded)
	if err != nil {
		t.p.unclear = true
		return errors.Join(err, t.p.s.intakes.rewind(t.p.bounded))
	}
	tx.late = &lateness{t.ctx, t.p.bounded}
	t.tx, t.p.unclear = tx, false
	t.alone = context.AfterFunc(tx.Context(), func() { t.doom(context.Cause(tx.Context())) })
	t.due.Reset(t.p.o.CommitEvery)
	return nil
}

// records hands out one record at a time until the round's time is over.
func (t *round) records(handle func(context.Context, *Tx, consumer.Record) error) (n int, err error) {
	for r, err := range t.p.c.Records(t.reading) {
		if err != nil {
			if err := t.unread(err); err != nil {
				return n, err
			}
			continue // the other partitions, or the end of the loop
		}
		if t.tx == nil {
			if err := t.begin(); err != nil {
				return n, err
			}
		}
		if err := handle(t.handling, t.tx, r); err != nil {
			return n, t.failed(&r, err)
		}
		if n++; n == t.p.o.CommitRecords || t.reading.Err() != nil {
			break
		}
	}
	return n, nil
}

// batches hands out what the consumer has at hand until the round's time is over.
func (t *round) batches(handle func(context.Context, *Tx, []consumer.Record) error) (n int, err error) {
	most := t.p.c.Config().MaxPollRecords
	for t.reading.Err() == nil {
		take := most
		if t.p.o.CommitRecords > 0 {
			take = min(most, t.p.o.CommitRecords-n)
		}
		rs, err := t.p.c.Poll(t.reading, take)
		if err != nil {
			if err := t.unread(err); err != nil {
				return n, err
			}
			continue
		}
		if len(rs) == 0 {
			continue
		}
		if t.tx == nil {
			if err := t.begin(); err != nil {
				return n, err
			}
		}
		n += len(rs)
		first := consumer.Record{Topic: rs[0].Topic, Partition: rs[0].Partition, Offset: rs[0].Offset}
		if err := handle(t.handling, t.tx, rs); err != nil {
			return n, t.failed(&first, err)
		}
		if n == t.p.o.CommitRecords {
			break
		}
	}
	return n, nil
}

// unread deals with an error in place of records: nil when the round goes on or has come to its time.
func (t *round) unread(err error) error {
	switch {
	case errors.Is(err, consumer.ErrClosed):
		return fmt.Errorf("%w: %w", errReading, err)
	case t.reading.Err() != nil:
		return nil
	case t.p.halted(err):
		return fmt.Errorf("%w: %w", errReading, err)
	}
	t.p.s.cl.Logger().Warn("kafka transactions: "+err.Error(), "transactional.id", t.p.s.ID(), "group", t.p.c.Config().Group.ID)
	return nil
}

// failed dresses a handler's error, unless the handler only says that its ctx has ended or that its transaction is doomed.
func (t *round) failed(r *consumer.Record, err error) error {
	if doomed := t.tx.Err(); doomed != nil {
		return doomed
	}
	if cause := context.Cause(t.handling); cause != nil && (t.ctx.Err() == nil || errors.Is(err, cause) || errors.Is(err, t.ctx.Err())) {
		return cause
	}
	return &HandlerError{TopicPartition: r.TopicPartition(), Offset: r.Offset, Err: err}
}

// end commits or aborts.
func (t *round) end(err error) error {
	switch {
	case err != nil && !errors.Is(err, errReading):
		return t.abort(err)
	case t.tx != nil && t.tx.Err() != nil:
		return t.abort(t.tx.Err())
	case t.handling.Err() != nil && t.ctx.Err() == nil:
		return t.abort(context.Cause(t.handling))
	case t.tx == nil && !t.p.in.Pending():
		t.p.idle++
		return err
	}
	t.p.idle = 0
	if t.tx == nil { // positions moved over what is not for the application
		if err := t.begin(); err != nil {
			return err
		}
	}
	if lost := t.commit(); lost != nil {
		return errors.Join(lost, err)
	}
	return err
}

// commit commits, and asks again while the outcome is not known.
func (t *round) commit() error {
	p := t.p
	news := t.n > 0 || p.in.Pending()
	t.alone()
	for attempt := 1; ; attempt++ {
		err := t.tx.Commit(p.bounded)
		switch Class(err) {
		case None:
			if news && p.o.OnCommit != nil {
				p.o.OnCommit(t.n)
			}
			return nil
		case Fenced:
			return err
		case Abortable:
			return t.abort(err)
		}
		p.unclear = true
		if p.bounded.Err() != nil || errors.Is(err, ErrFenced) { // the session is over, and nobody will ever tell
			return err
		}
		p.pause(p.bounded, attempt)
	}
}

// abort ends the transaction without a trace, and the positions are back when it returns. The error is the cause, with what
// went wrong meanwhile.
func (t *round) abort(cause error) error {
	p := t.p
	if t.tx == nil {
		return errors.Join(cause, p.s.intakes.rewind(p.bounded))
	}
	t.alone()
	p.unclear = true // so that the next round begins before it reads, which finishes what could not be finished here
	if err := t.tx.Abort(p.bounded); err != nil {
		if cause = errors.Join(cause, err); Class(err) == Fenced {
			cause = errors.Join(err, cause) // the first one's class counts
		}
	}
	p.aborted(cause)
	return cause
}

// lasting tells whether the same records and offsets would bring the same error again: what no broker can be asked, because it
// is too old or the request cannot be written, and what a broker will refuse again.
func lasting(err error) bool {
	var unwritable *wire.EncodeError
	if errors.Is(err, client.ErrUnsupportedVersion) || errors.As(err, &unwritable) {
		return true
	}
	var code errcode.Code
	if !errors.As(err, &code) {
		return false
	}
	switch code {
	case errcode.MessageTooLarge, errcode.RecordListTooLarge, errcode.InvalidRecord, errcode.InvalidTimestamp, errcode.InvalidTopicException,
		errcode.TopicAuthorizationFailed, errcode.GroupAuthorizationFailed, errcode.TransactionalIdAuthorizationFailed,
		errcode.ClusterAuthorizationFailed, errcode.UnsupportedVersion, errcode.UnsupportedForMessageFormat,
		errcode.UnsupportedCompressionType, errcode.PolicyViolation, errcode.FencedInstanceId, errcode.OffsetMetadataTooLarge,
		errcode.InvalidGroupId, errcode.InvalidRequiredAcks:
		return true
	}
	return false
}
