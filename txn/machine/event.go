package machine

import (
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Event is something that happened; see the types that implement it.
type Event interface{ event() }

// What the owner asks for. What the state does not allow is ignored; the owner looks at State before.
type (
	// Started begins: the producer id is asked for.
	Started struct{}
	// Checked says, between transactions, whether the leaders add their partitions themselves in the next one: the
	// cluster's transaction.version is 2 or more. The owner then waits for Ready before Begun.
	Checked struct{ Implicit bool }
	// Begun opens a transaction.
	Begun struct{}
	// CommitAsked ends the taking of records and has those that are there flushed; offsets may still come.
	CommitAsked struct{}
	// CommitAllowed lets EndTxn go once everything before it is through.
	CommitAllowed struct{}
	// CommitRecalled: the caller of commit has gone. If EndTxn may have got out the commit goes on without him, else
	// the transaction is open again.
	CommitRecalled struct{}
	// AbortAsked gives the transaction up. Cause is what the records that were not sent are told.
	AbortAsked struct{ Cause error }
	// OffsetsGiven makes offsets part of the transaction. They are done when the job says so.
	OffsetsGiven struct{ Job *OffsetJob }
	// OffsetsRecalled: the caller has gone, because of Err. The transaction is doomed, since nobody knows about it
	// whether the offsets are part of it.
	OffsetsRecalled struct {
		Job *OffsetJob
		Err error
	}
	// Spoiled dooms the transaction for a reason of the owner's.
	Spoiled struct{ Err error }
	// Ended closes the machine.
	Ended struct{}
	// Woke: time has passed. The driver steps it at Deadline.
	Woke struct{}
)

// What the producer says.
type (
	// PartitionsUsed: there are records for partitions that are not part of the transaction yet. In an implicit one they
	// are by now.
	PartitionsUsed struct{ Parts []client.TopicPartition }
	// BatchFailed: records of the transaction are not in the log, or nobody knows.
	BatchFailed struct {
		client.TopicPartition
		InDoubt   bool // they may be in the log
		Sequenced bool // the sequence of the partition has a hole
		Code      errcode.Code
		Err       error // what the owner shall be told; has Code in it
	}
	// Flushed answers Effects.Flush of that number.
	Flushed struct{ Number int }
)

// What the cluster says.
type (
	// CoordinatorFound answers Effects.Find.
	CoordinatorFound struct {
		Coordinator Coordinator
		Broker      int32
	}
	// CoordinatorFailed answers it too; Final says that trying again cannot help.
	CoordinatorFailed struct {
		Coordinator Coordinator
		Err         error
		Final       bool
	}
	// Answered is the answer to a request, in the version spoken.
	Answered struct {
		Request  *Request
		Response message.Response
		Version  int16
		Broker   string // for errors: "broker 1 (10.0.0.7:9092)"
	}
	// Failed says that a request has no answer. Written: it may have been carried out. Final: trying again cannot help.
	// Unsupported: the broker does not know the request, or not in a version that will do.
	Failed struct {
		Request     *Request
		Err         error
		Written     bool
		Final       bool
		Unsupported bool
	}
)

func (Started) event()           {}
func (Checked) event()           {}
func (Begun) event()             {}
func (CommitAsked) event()       {}
func (CommitAllowed) event()     {}
func (CommitRecalled) event()    {}
func (AbortAsked) event()        {}
func (OffsetsGiven) event()      {}
func (OffsetsRecalled) event()   {}
func (Spoiled) event()           {}
func (Ended) event()             {}
func (Woke) event()              {}
func (PartitionsUsed) event()    {}
func (BatchFailed) event()       {}
func (Flushed) event()           {}
func (CoordinatorFound) event()  {}
func (CoordinatorFailed) event() {}
func (Answered) event()          {}
func (Failed) event()            {}
