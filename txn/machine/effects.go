package machine

import (
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Effects is what the driver must do after a Step, field by field in the order in which they stand here.
type Effects struct {
	Transitions []Transition
	// Seal: the producer takes no more records of the transaction. Unseal: it does again.
	Seal, Unseal bool
	// Drop: the producer gives up what was not sent, and tells the records this.
	Drop error
	// Enlisted: the records of these partitions may go.
	Enlisted []client.TopicPartition
	// Flush, unless zero: the producer flushes, and Flushed brings the number when everything has its verdict.
	Flush int
	// Open: the producer takes records of a new transaction, under ProducerID, Epoch and Implicit of the machine.
	Open bool
	// Doomed is why the open transaction can only be aborted any more.
	Doomed error
	// Done are offset jobs that came to their end; see OffsetJob.Err.
	Done []*OffsetJob
	// Finished is the end of a transaction.
	Finished *Finish
	// Find: ask anew where coordinators are, bring CoordinatorFound or CoordinatorFailed for each.
	Find []Coordinator
	// Send: issue each request once, bring Answered or Failed for it exactly once.
	Send []*Request
}

// Finish is the end of a transaction. One that is in doubt has two: InDoubt when the caller of commit has gone or
// the session is over, and later Committed or Aborted, if that ever becomes known.
type Finish struct {
	Serial  uint64
	Outcome Outcome
	Err     error // why it is not committed, or not known to be
}

// Coordinator names a coordinator.
type Coordinator struct {
	Kind client.CoordinatorKind
	Key  string
}

// Request is one attempt at one request to a coordinator.
type Request struct {
	Body message.Request
	// MinVersion and MaxVersion bound the version; zero for most means the latest stable one.
	MinVersion, MaxVersion int16
	Coordinator            Coordinator
	Broker                 int32
	Timeout                time.Duration // zero: the client's
	// Owner is for the driver.
	Owner any

	api   api
	job   *OffsetJob
	parts []client.TopicPartition
}

// Commit tells that the request is what decides about a commit.
func (r *Request) Commit() bool {
	end, ok := r.Body.(*message.EndTxnRequest)
	return ok && end.Committed
}

// Error is why a transaction or a session came to its end. The driver makes it the user's error.
type Error struct {
	Request string // Kafka's name of the request that failed, empty where none did
	Broker  string
	Hint    string
	// Fence has the evidence when the session was fenced.
	Fence *Fence
	Err   error
}

// Error is the cause.
func (e *Error) Error() string {
	s := e.Err.Error()
	if e.Broker != "" {
		s = "at " + e.Broker + ": " + s
	}
	if e.Request != "" {
		s = e.Request + " " + s
	}
	return s
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }
