package txn

import (
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/consumer"
)

// PipeOptions is what Pipe can be told. DefaultPipeOptions fills it; a PipeOption changes it.
type PipeOptions struct {
	// CommitEvery is how long a transaction is open before it is committed, counted from its first record (100 ms, as
	// commit.interval.ms of Kafka Streams under exactly_once_v2). Readers see the results that much later at most; each
	// transaction costs the brokers a few writes.
	CommitEvery time.Duration
	// CommitRecords commits a transaction that has so many input records, even if CommitEvery has not passed (0: no limit).
	CommitRecords int
	// Grace is how long Pipe may take to commit or abort after its ctx has ended (10 s). Then the coordinator aborts what
	// is open, by transaction.timeout.ms.
	Grace time.Duration
	// OnCommit is told of each committed transaction, with how many input records it had; zero when only offsets moved, over
	// markers and aborted records. OnAbort is told why one was aborted, before Pipe goes on or returns. Both are called by Pipe's
	// goroutine.
	OnCommit func(records int)
	OnAbort  func(cause error)
}

// PipeOption changes PipeOptions.
type PipeOption func(*PipeOptions)

// DefaultPipeOptions is what Pipe does when it is told nothing.
func DefaultPipeOptions() PipeOptions {
	return PipeOptions{CommitEvery: 100 * time.Millisecond, Grace: 10 * time.Second}
}

// CommitEvery sets how long a transaction is open.
func CommitEvery(d time.Duration) PipeOption { return func(o *PipeOptions) { o.CommitEvery = d } }

// CommitRecords sets how many input records a transaction has at most.
func CommitRecords(n int) PipeOption { return func(o *PipeOptions) { o.CommitRecords = n } }

// Grace sets how long Pipe may take to end when its ctx has ended.
func Grace(d time.Duration) PipeOption { return func(o *PipeOptions) { o.Grace = d } }

// OnCommit sets who is told of commits.
func OnCommit(f func(records int)) PipeOption { return func(o *PipeOptions) { o.OnCommit = f } }

// OnAbort sets who is told of aborts.
func OnAbort(f func(cause error)) PipeOption { return func(o *PipeOptions) { o.OnAbort = f } }

// validate says what is wrong, all of it. timeout is transaction.timeout.ms.
func (o *PipeOptions) validate(timeout time.Duration) error {
	var errs []error
	if o.CommitEvery <= 0 {
		errs = append(errs, fmt.Errorf("CommitEvery is %s, must be more than zero", o.CommitEvery))
	}
	if o.CommitEvery >= timeout {
		errs = append(errs, fmt.Errorf("CommitEvery is %s, must be less than transaction.timeout.ms (%s), after which the coordinator aborts", o.CommitEvery, timeout))
	}
	if o.CommitRecords < 0 {
		errs = append(errs, fmt.Errorf("CommitRecords is %d, must not be negative; 0 means no limit", o.CommitRecords))
	}
	if o.Grace < 0 {
		errs = append(errs, fmt.Errorf("Grace is %s, must not be negative", o.Grace))
	}
	return errors.Join(errs...)
}

// HandlerError ends Pipe: the handler failed. Its transaction was aborted, and the consumer is back at the committed
// offsets, so that another Pipe begins with the same records.
type HandlerError struct {
	consumer.TopicPartition
	Offset int64 // of the record; with PipeBatches of the first one
	Err    error
}

// Error names the record, never its content.
func (e *HandlerError) Error() string {
	return fmt.Sprintf("the handler failed at %s offset %d, whose transaction was aborted: %v", e.TopicPartition, e.Offset, e.Err)
}

// Unwrap is the handler's error.
func (e *HandlerError) Unwrap() error { return e.Err }
