package consumer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/producer"
)

// RunOptions is what Run can be told. DefaultRunOptions fills it; a RunOption changes it.
type RunOptions struct {
	// Concurrency is how many records are processed at the same time, over all partitions (16).
	Concurrency int
	// Buffer is how many records of one partition may wait or be processed before its fetching is paused (1000). It is
	// paused too when they have max.partition.fetch.bytes together.
	Buffer int
	// Attempts is how often a record is tried in all (10); the first counts.
	Attempts int
	// RetryBackoff and RetryBackoffMax are how long is waited before the next attempt: the first doubles with each until
	// the second (100 ms, 10 s). Records with the same key wait, others go on.
	RetryBackoff, RetryBackoffMax time.Duration
	// DeadLetter is the topic that takes records whose attempts are used up. Without one Run ends with the error.
	DeadLetter string
	// Producer writes dead letters. Without one Run makes its own on the consumer's client.
	Producer *producer.Producer
}

// RunOption changes RunOptions.
type RunOption func(*RunOptions)

// DefaultRunOptions is what Run does when it is told nothing.
func DefaultRunOptions() RunOptions {
	return RunOptions{Concurrency: 16, Buffer: 1000, Attempts: 10, RetryBackoff: 100 * time.Millisecond, RetryBackoffMax: 10 * time.Second}
}

// Concurrency sets how many records are processed at the same time.
func Concurrency(n int) RunOption { return func(o *RunOptions) { o.Concurrency = n } }

// Buffer sets how many records of one partition may wait or be processed.
func Buffer(records int) RunOption { return func(o *RunOptions) { o.Buffer = records } }

// Retry sets how often a record is tried and how long is waited in between.
func Retry(attempts int, first, most time.Duration) RunOption {
	return func(o *RunOptions) { o.Attempts, o.RetryBackoff, o.RetryBackoffMax = attempts, first, most }
}

// DeadLetter sets the topic that takes records whose attempts are used up.
func DeadLetter(topic string) RunOption { return func(o *RunOptions) { o.DeadLetter = topic } }

func (o *RunOptions) validate() error {
	switch {
	case o.Concurrency < 1:
		return fmt.Errorf("consumer: Run: Concurrency is %d, must be at least 1", o.Concurrency)
	case o.Buffer < 1:
		return fmt.Errorf("consumer: Run: Buffer is %d records, must be at least 1", o.Buffer)
	case o.Attempts < 1:
		return fmt.Errorf("consumer: Run: Attempts is %d, must be at least 1", o.Attempts)
	case o.RetryBackoff < 0 || o.RetryBackoffMax < o.RetryBackoff:
		return fmt.Errorf("consumer: Run: RetryBackoff is %s and RetryBackoffMax %s: the first must not be negative nor more than the second", o.RetryBackoff, o.RetryBackoffMax)
	}
	return nil
}

// RecordError ends Run: a record could not be processed and there is nowhere to put it. It is not committed.
type RecordError struct {
	Record   Record
	Attempts int
	Err      error // of the handler, or of writing the dead letter
}

// Error names the record, never its content.
func (e *RecordError) Error() string {
	return fmt.Sprintf("consumer: %s offset %d failed in %d attempts and no dead-letter topic took it; it is not committed: %v",
		e.Record.TopicPartition(), e.Record.Offset, e.Attempts, e.Err)
}

// Unwrap is what went wrong.
func (e *RecordError) Unwrap() error { return e.Err }

// permanent marks an error that another attempt does not cure.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Permanent marks an error of a handler of Run: the record is not tried again, but goes to the dead letters at once.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

// Run processes the records of the group's partitions that are this member's: handle is called for each, for several at
// the same time, but for records with the same key of the same partition one after the other in the order of the log. A
// record is done when handle returned nil, and what is done without a gap is committed every auto.commit.interval.ms,
// before partitions are given up, and at the end.
//
// An error of handle is tried again (Retry), unless it is Permanent; then the record is written to the dead-letter topic
// and counts as done, or without one Run ends with a *RecordError. handle's ctx ends when Run's ctx does, and when the
// partition is lost or had to be given up before handle returned; context.Cause says which: ErrRevoked, ErrLost, ErrFenced,
// ErrClosed. What handle returns for a partition that is gone does not count; after the end of Run's ctx nil still means done,
// and an error means not done. A handler that does not return (runtime.Goexit, FailNow of a test) has failed for good; its panic
// ends the process.
//
// Run returns when ctx ends (its cause), when the consumer is closed (ErrClosed, after handlers have ended in good
// order), when a record failed for good, when the membership is over (ErrFenced), when the application stalled and the
// policy is Leave (*StallError), or when a partition was halted; without a group with ErrNoGroup. Other errors of partitions,
// which pass, go to the logger. Handlers have returned by then (after a stall they are waited for 5 s) and what is done is
// committed. Run can be called again.
func (c *Consumer) Run(ctx context.Context, handle func(context.Context, Record) error, opts ...RunOption) (err error) {
	if err := c.ended(ctx); err != nil {
		return err
	}
	o := DefaultRunOptions()
	for _, f := range opts {
		f(&o)
	}
	if err := o.validate(); err != nil {
		return err
	}
	if handle == nil {
		return errors.New("consumer: Run: the handler is nil")
	}
	if o.DeadLetter != "" && o.Producer == nil && c.group != nil {
		if o.Producer, err = producer.New(c.cl); err != nil {
			return err
		}
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeDrain)
			defer cancel()
			err = errors.Join(err, o.Producer.Close(ctx)) // nothing is under way: each dead letter was waited for
		}()
	}
	return c.drive(ctx, &engine{run: &o, each: handle, buffer: o.Buffer})
}

// worker is one goroutine of Run, as the stall watch sees it.
type worker struct {
	id     string // of the goroutine
	claim  *claim
	record Record
	since  time.Time
	told   bool
}

// spawn starts goroutines while there is work for them and there are not too many. g.mu is held.
func (e *engine) spawn() {
	for e.running < e.run.Concurrency && len(e.turns) > e.fresh && !e.stopping {
		e.running++
		e.fresh++
		e.handlers.Go(e.process) // ends when nothing is left to start
	}
}

// process handles records until there is none that may be started.
func (e *engine) process() {
	w := &worker{id: goroutineID()}
	g := e.g
	g.mu.Lock()
	e.fresh--
	e.workers[w] = struct{}{}
	for {
		cl, job, ok := e.take()
		if !ok {
			break
		}
		w.claim, w.record, w.since, w.told = cl, job.Item, time.Now(), false
		ctx := cl.handling
		g.mu.Unlock()
		err := e.handle(ctx, w, cl, job)
		g.mu.Lock()
		w.claim = nil
		e.finished(cl, job.Seq, ctx, err)
	}
	e.leave(w)
	g.mu.Unlock() // not deferred: a handler that panics does so without the lock
}

// leave ends a worker. g.mu is held.
func (e *engine) leave(w *worker) {
	delete(e.workers, w)
	e.running--
}

// errNoReturn is the failure of a handler that has ended its goroutine.
var errNoReturn = errors.New("the handler ended its goroutine without returning (runtime.Goexit, as FailNow of a test does)")

// handle calls the handler for one record. If that does not return, its goroutine ends here, and the record has failed for good;
// a panic goes on to end the process. No lock is held.
func (e *engine) handle(ctx context.Context, w *worker, cl *claim, job machine.Job[Record]) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		e.g.mu.Lock()
		defer e.g.mu.Unlock()
		e.finished(cl, job.Seq, ctx, &RecordError{job.Item, cl.attempts[job.Seq] + 1, errNoReturn})
		e.leave(w)
		e.spawn() // for what it would have done next
	}()
	err = e.each(ctx, job.Item)
	if err != nil && ctx.Err() == nil {
		err = e.bury(ctx, cl, job, err)
	}
	returned = true
	return err
}

// take starts the next record, partitions taking turns. g.mu is held.
func (e *engine) take() (*claim, machine.Job[Record], bool) {
	for len(e.turns) > 0 && !e.stopping {
		cl := e.turns[0]
		e.turns = e.turns[1:]
		cl.queued = false
		if cl.work == nil || !cl.alive() {
			continue
		}
		job, ok := cl.work.Take()
		if !ok {
			continue
		}
		if cl.work.Ready() {
			cl.queued = true
			e.turns = append(e.turns, cl)
			e.spawn()
		}
		return cl, job, true
	}
	return nil, machine.Job[Record]{}, false
}

// errAgain says that a record is to be tried once more.
var errAgain = errors.New("try again")

// bury decides about a record that failed: errAgain, nil if the dead letters have it, or what ends Run. No lock is held.
func (e *engine) bury(ctx context.Context, cl *claim, job machine.Job[Record], err error) error {
	e.g.mu.Lock()
	cl.attempts[job.Seq]++
	attempts := cl.attempts[job.Seq]
	e.g.mu.Unlock()
	var p permanent
	if final := errors.As(err, &p); !final && attempts < e.run.Attempts {
		return errAgain
	} else if final {
		err = p.error
	}
	if e.run.DeadLetter == "" {
		return &RecordError{job.Item, attempts, err}
	}
	if lost := e.deadLetter(ctx, &job.Item, attempts, err); lost != nil {
		return &RecordError{job.Item, attempts, fmt.Errorf("%w; writing it to %s: %w", err, e.run.DeadLetter, lost)}
	}
	return nil
}

// finished takes the outcome of a record. g.mu is held.
func (e *engine) finished(cl *claim, seq uint64, ctx context.Context, err error) {
	e.g.asked.Add(1)
	if cl.work == nil || !cl.alive() || cl.final != nil {
		return // lost, or given up without waiting any longer: the next owner does it again
	}
	switch {
	case err == nil:
		delete(cl.attempts, seq)
		cl.work.Finish(seq)
		e.room(cl)
		e.turn(cl)
	case err == errAgain && !e.stopping:
		cl.work.Fail(seq)
		e.later(cl, seq, e.run.backoff(cl.attempts[seq]))
	default:
		cl.work.Fail(seq)
		if ctx.Err() == nil && err != errAgain {
			e.fail(err)
		}
	}
	if e.g.draining.Load() > 0 || e.stopping {
		e.g.poke()
	}
}

// later lets a record be tried again after a while; its goroutine does something else meanwhile. g.mu is held.
func (e *engine) later(cl *claim, seq uint64, wait time.Duration) {
	var t *time.Timer
	t = time.AfterFunc(wait, func() {
		e.g.mu.Lock()
		defer e.g.mu.Unlock()
		delete(e.timers, t)
		if cl.work != nil && cl.alive() && !e.stopping {
			cl.work.Again(seq)
			e.turn(cl)
		}
	})
	e.timers[t] = struct{}{}
}

// backoff is how long is waited after so many attempts, with a fifth of chance so that failures do not march in step.
func (o *RunOptions) backoff(attempts int) time.Duration {
	d := o.RetryBackoff
	for i := 1; i < attempts && d < o.RetryBackoffMax; i++ {
		d *= 2
	}
	d = min(d, o.RetryBackoffMax)
	return d - time.Duration(rand.Int64N(int64(d)/5+1))
}
