package txn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/client/machine"
	"github.com/ottla-kafka/ottla/consumer"
)

// Pipe reads records, lets handle process them, and commits what handle submits together with the offsets of what it has
// read: every input record has its effect in the output exactly once, whatever dies in between.
//
//	err := s.Pipe(ctx, c, func(ctx context.Context, tx *txn.Tx, r consumer.Record) error {
//		return tx.Submit(ctx, producer.Record{Topic: "invoices", Key: r.Key, Value: invoice(r.Value)}, nil)
//	})
//
// The consumer is a member of a group, reads read_committed, and is read by nobody else meanwhile; both group protocols will
// do. handle is called for one record at a time, in the order of each partition. It uses Submit and not Send, which would
// wait for the broker record by record; what could not be written shows when the transaction ends. Its ctx ends when Pipe's
// does and when the transaction can only be aborted any more. Effects outside of Kafka are not part of the transaction:
// handle may see a record again.
//
// A transaction begins with the first record and is committed after CommitEvery or CommitRecords, and as soon as the group
// wants one of its partitions back: partitions are given up when their records are committed. Positions that only moved over
// markers and aborted records are committed too, so that the lag reaches zero.
//
// What passes is ridden out: an aborted transaction (a rebalance that took partitions away by force, a broker that could not
// write in time) is done again from the committed offsets, after a pause that grows to retry.backoff.max.ms (OnAbort is told, a
// warning logged). A commit without an answer is asked about until it is known. Pipe returns
//
//   - when ctx ends, its cause. What handle has finished is committed first, within Grace, and so is the record that it is at
//     if it does not give up (Submit goes on working for it); else aborted;
//   - a *HandlerError when handle failed: the transaction is aborted, the consumer back at the committed offsets;
//   - an error of class Fenced (see FencedError for by whom): the session is over;
//   - the error of a record or an offset that no repetition can heal: too large, not authorized, invalid, not known to a
//     broker that is too old (at once, before the first record: a member's offsets take brokers from 2.5 on, KIP-447);
//   - the consumer's error when it was closed (consumer.ErrClosed), its membership is over, or a partition is halted.
//
// A panic of handle aborts and goes on panicking. Several sessions may work in one process, each with an id, a consumer and a
// Pipe of its own.
//
// One setting is worth a thought, TransactionTimeout: a worker that dies and does not come back under its id keeps readers of
// its output, and whoever gets its partitions, waiting for so long; Kafka Streams sets 10 s.
func (s *Session) Pipe(ctx context.Context, c *consumer.Consumer, handle func(ctx context.Context, tx *Tx, r consumer.Record) error, opts ...PipeOption) error {
	if handle == nil {
		return s.fail("Pipe", Abortable, errors.New("the handler is nil"))
	}
	p := &pipe{s: s, c: c, op: "Pipe"}
	p.read = func(t *round) (int, error) { return t.records(handle) }
	return p.run(ctx, opts)
}

// PipeBatches is Pipe for handlers that work on many records at once: one query for all of them, say. handle gets what the
// consumer has at hand, up to max.poll.records, of all partitions; in order within each. The slice is handle's.
func (s *Session) PipeBatches(ctx context.Context, c *consumer.Consumer, handle func(ctx context.Context, tx *Tx, rs []consumer.Record) error, opts ...PipeOption) error {
	if handle == nil {
		return s.fail("PipeBatches", Abortable, errors.New("the handler is nil"))
	}
	p := &pipe{s: s, c: c, op: "PipeBatches"}
	p.read = func(t *round) (int, error) { return t.batches(handle) }
	return p.run(ctx, opts)
}

// pipe is one call of Pipe or PipeBatches. It runs in the caller's goroutine and starts none.
type pipe struct {
	s    *Session
	c    *consumer.Consumer
	in   *consumer.Intake
	o    PipeOptions
	op   string
	read func(*round) (n int, err error)

	bounded context.Context // ends Grace after the caller's ctx: what may still be tried, is until then
	rand    machine.Rand    // of the jitter
	unclear bool            // what became of the last transaction, or where the positions are
	idle    int             // rounds in a row that had nothing to commit
}

// wait is how long a round waits for its first record: an idle pipe looks ever less often whether positions have moved over
// markers and aborted records, down to once in a second, or in CommitEvery when that is more.
func (p *pipe) wait() time.Duration {
	return max(p.o.CommitEvery, min(p.o.CommitEvery<<min(p.idle, 10), time.Second))
}

// run makes one transaction after the other.
func (p *pipe) run(ctx context.Context, opts []PipeOption) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.o = DefaultPipeOptions()
	for _, f := range opts {
		f(&p.o)
	}
	if err := p.o.validate(p.s.cfg.Timeout); err != nil {
		return p.s.fail(p.op, Abortable, err)
	}
	in, stop, err := p.s.consume(ctx, p.op, p.c)
	if err != nil {
		return err
	}
	defer stop()
	p.in, p.rand = in, machine.NewRand(rand.Uint64())
	p.unclear = p.s.unsettled()
	defer p.bound(ctx)()
	for aborts := 0; ; {
		err := p.transaction(ctx)
		switch {
		case err == nil:
			aborts = 0
		case !p.again(ctx, err):
			return err
		default:
			aborts++
			p.pause(ctx, aborts)
		}
		if ctx.Err() != nil {
			return p.ended(ctx, err)
		}
	}
}

// bound sets bounded; the result is called when Pipe returns.
func (p *pipe) bound(ctx context.Context) func() {
	bounded, end := context.WithCancelCause(context.WithoutCancel(ctx))
	p.bounded = bounded
	stop := context.AfterFunc(ctx, func() {
		late := time.AfterFunc(p.o.Grace, func() { end(fmt.Errorf("%w, and Grace (%s) has passed since", context.Cause(ctx), p.o.Grace)) })
		context.AfterFunc(bounded, func() { late.Stop() })
	})
	return func() { stop(); end(context.Canceled) }
}

// ended is what Pipe returns when ctx ends: its cause, with what went wrong in the end.
func (p *pipe) ended(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || err == cause {
		return cause
	}
	return fmt.Errorf("%w; the last transaction: %w", cause, err)
}

// pause waits after an abort, longer each time in a row; pipes that one rebalance aborted come back apart.
func (p *pipe) pause(ctx context.Context, aborts int) {
	cfg := p.s.cl.Config()
	backoff := machine.Backoff{First: cfg.RetryBackoff, Most: cfg.RetryBackoffMax}
	timer := time.NewTimer(backoff.After(aborts, &p.rand))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// again tells whether an error means to do the transaction again.
func (p *pipe) again(ctx context.Context, err error) bool {
	var handler *HandlerError
	switch {
	case errors.As(err, &handler), Class(err) == Fenced, Class(err) == OutcomeUnknown:
		return false
	case errors.Is(err, consumer.ErrClosed), errors.Is(err, consumer.ErrFenced), errors.Is(err, errReading):
		return false
	case errors.Is(err, ErrClosed):
		return false
	}
	if lasting(err) {
		p.s.cl.Logger().Error("kafka transactions: no repetition heals this", "transactional.id", p.s.ID(), "error", err)
		return false
	}
	return true
}

// aborted tells of an abort.
func (p *pipe) aborted(cause error) {
	p.s.cl.Logger().Warn("kafka transactions: aborted", "transactional.id", p.s.ID(), "group", p.c.Config().Group.ID, "cause", cause)
	if p.o.OnAbort != nil {
		p.o.OnAbort(cause)
	}
}

// halted tells whether nothing more is read from the partition that an error is about.
func (p *pipe) halted(err error) bool {
	var op *client.OpError
	if !errors.As(err, &op) || op.Topic == "" {
		return true // about the consumer as a whole
	}
	for _, i := range p.c.Partitions() {
		if i.Topic == op.Topic && i.Partition == op.Partition {
			return i.Halted != nil
		}
	}
	return false
}
