package producer

import (
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/producer/machine"
)

var (
	// ErrNotWritten matches every error of a record that is certainly not in the log: sending it again is safe.
	ErrNotWritten = errors.New("record was not written")
	// ErrOutcomeUnknown matches every error of a record that may be in the log: sending it again may duplicate it.
	ErrOutcomeUnknown = errors.New("record may or may not have been written")
	// ErrBufferFull is the cause when buffer.memory, or the client's memory budget, is used up: at once for TrySubmit,
	// otherwise after max.block.ms, or at the end of ctx, whose cause is there too.
	ErrBufferFull = errors.New("producer buffer is full")
	// ErrTopicPending is the cause when TrySubmit is called for a topic whose metadata is still being fetched.
	ErrTopicPending = errors.New("metadata of the topic is being fetched")
	// ErrRecordTooLarge is the cause when a record exceeds max.request.size or buffer.memory.
	ErrRecordTooLarge = errors.New("record is too large")
	// ErrDeliveryTimeout is the cause when delivery.timeout.ms ran out.
	ErrDeliveryTimeout = errors.New("delivery.timeout.ms ran out")
	// ErrOver is the cause when the record's transaction takes no more records: it ends, has ended, or has failed.
	ErrOver = errors.New("transaction takes no more records")
	// ErrClosed is the cause when the producer is closed, or closed before the record got through.
	ErrClosed = errors.New("producer is closed")
)

// Result is what is known about a record, see Outcome.
type Result = machine.Outcome

// The three results.
const (
	// Acked: the record is in the log, as far as acks asks for.
	Acked = machine.Acked
	// NotWritten: it is not and will not be; sending it again is safe.
	NotWritten = machine.NotWritten
	// Unknown: it may be; sending it again may duplicate it.
	Unknown = machine.Unknown
)

// Outcome answers the one question that matters after an error of Send, Submit, TrySubmit or a callback: is the
// record in the log? Acked for a nil error; Unknown for errors that do not come from a producer.
func Outcome(err error) Result {
	switch {
	case err == nil:
		return Acked
	case errors.Is(err, ErrNotWritten):
		return NotWritten
	default:
		return Unknown
	}
}

// Error is the error of a record. It matches ErrNotWritten or ErrOutcomeUnknown and everything in its cause, which
// is a *client.OpError once the record had a partition.
type Error struct {
	Outcome Result // NotWritten or Unknown
	Err     error
}

// Error says the outcome and the cause.
func (e *Error) Error() string {
	if e.Outcome == NotWritten {
		return "not written: " + e.Err.Error()
	}
	return "outcome unknown: " + e.Err.Error()
}

// Unwrap gives the outcome's sentinel and the cause.
func (e *Error) Unwrap() []error {
	if e.Outcome == NotWritten {
		return []error{ErrNotWritten, e.Err}
	}
	return []error{ErrOutcomeUnknown, e.Err}
}

func notWritten(err error) error { return &Error{Outcome: NotWritten, Err: err} }

// RecordError is the cause when the broker refused this very record (KIP-467), or another one of its batch.
type RecordError struct {
	Message string // the broker's own words, may be empty
	Other   bool   // the complaint is about another record of the batch; this one may be sent again
	Err     error  // the error code
}

// Error is the code with the broker's words.
func (e *RecordError) Error() string {
	s := e.Err.Error()
	if e.Other {
		s += ": another record of the same batch was refused"
	}
	if e.Message != "" {
		s += fmt.Sprintf(": %s", e.Message)
	}
	return s
}

// Unwrap is the error code.
func (e *RecordError) Unwrap() error { return e.Err }

// LostError is returned by Close when ctx ended before every record had got through. The records' callbacks have
// been told one by one.
type LostError struct {
	NotWritten int // records that are certainly not in the log
	Unknown    int // records that may be
	Err        error
}

// Error counts what was lost.
func (e *LostError) Error() string {
	return fmt.Sprintf("producer closed with records on the way: %d not written, %d of unknown outcome: %v", e.NotWritten, e.Unknown, e.Err)
}

// Unwrap is the cause of ctx's end.
func (e *LostError) Unwrap() error { return e.Err }
