package machine

import "github.com/ottla-kafka/ottla/wire/errcode"

// Effects is what the driver must do after a Step, field by field in the order
// in which they stand here. It belongs to the machine and is valid until the
// next Step.
type Effects struct {
	// Seal: close the open batch of each partition and bring it as Gathered.
	// Nothing is sent from such a partition before that.
	Seal []*Partition
	// Prepare: compress each batch, then bring Prepared.
	Prepare []*Batch
	// Split: cut each batch into at least two, then bring Divided.
	Split []*Batch
	// Release: the buffers of these batches are free; no request carries them.
	// Before the verdicts, so that whoever hears one finds the memory free.
	Release []*Batch
	// Discard: the same, for batches that come to no verdict of their own: replaced by
	// their pieces, emptied, or pieces that came too late.
	Discard []*Batch
	// Enlist: make each partition part of the open transaction and bring Enlisted; in an
	// implicit one it is so already, and this says that something was sent there.
	Enlist []*Partition
	// Doomed: batches of the open transaction that were not acknowledged, so that it cannot be
	// committed. After the first, what was not sent is given up as after Dropped. It comes before
	// the verdicts, so that whoever waits for those knows.
	Doomed []Doom
	// Verdicts: tell the owners of the records, in this order.
	Verdicts []Verdict
	// Send: put the requests on the wire, in this order, and bring Replied for
	// each of them exactly once. The sequences of its batches are set.
	Send []*Request
	// InitProducerID: ask any broker for a producer id, bring ProducerIDReceived.
	InitProducerID bool
	// Refresh: the metadata is not right any more.
	Refresh bool
	// Bumped: these partitions have begun a new epoch, for whoever wants to know.
	Bumped []*Partition
}

// Doom is the end of a batch that spoils its transaction.
type Doom struct {
	Partition *Partition
	Outcome   Outcome
	Code      errcode.Code // of the broker, None when it said nothing
	Err       error        // why there was no answer, nil when there was
	Expired   bool
	// Sequenced: a place in the partition's sequence was given away for it, so that the next
	// transaction needs another epoch, or that place again (see Machine.renew).
	Sequenced bool
}

func (e *Effects) reset() {
	clear(e.Seal)
	clear(e.Prepare)
	clear(e.Split)
	clear(e.Verdicts)
	clear(e.Send)
	clear(e.Bumped)
	clear(e.Release)
	clear(e.Discard)
	clear(e.Enlist)
	clear(e.Doomed)
	*e = Effects{
		Seal: e.Seal[:0], Prepare: e.Prepare[:0], Split: e.Split[:0],
		Verdicts: e.Verdicts[:0], Send: e.Send[:0], Bumped: e.Bumped[:0],
		Release: e.Release[:0], Discard: e.Discard[:0], Enlist: e.Enlist[:0], Doomed: e.Doomed[:0],
	}
}

// Outcome says what is known about a record that came to its end.
type Outcome uint8

// The three outcomes. Acked is the zero value: no error, nothing in doubt.
const (
	// Acked: in the log, as far as acks asks for.
	Acked Outcome = iota
	// NotWritten: not in the log and never will be; sending again is safe.
	NotWritten
	// Unknown: it may be in the log; sending again may duplicate it.
	Unknown
)

// String names the outcome.
func (o Outcome) String() string {
	switch o {
	case Acked:
		return "acknowledged"
	case NotWritten:
		return "not written"
	default:
		return "unknown"
	}
}

// Verdict is the end of a batch. Each batch gets exactly one.
type Verdict struct {
	Batch   *Batch
	Outcome Outcome
	// Expired: delivery.timeout.ms ran out; Code and Err are of the last attempt.
	Expired bool
	// Code is the broker's error, None when there is none or the batch was never answered.
	Code errcode.Code
	// Err is the cause when no broker answered (connection, close, producer id).
	Err error
	// Result is the broker's answer; offsets are -1 when unknown (acks=0, duplicates).
	Result Result
}

// Result is a broker's answer about one batch.
type Result struct {
	// Missing: the response did not mention the partition.
	Missing    bool
	Code       errcode.Code
	BaseOffset int64
	AppendTime int64      // milliseconds; -1: the records' own timestamps stand
	Complaint  *Complaint // what the broker has to say about an error, nil when nothing
}

// Complaint is what a broker says beside an error code (KIP-467).
type Complaint struct {
	Message string
	Records []RecordError
}

// RecordError is the broker's complaint about one record of a batch (KIP-467).
type RecordError struct {
	Index   int32
	Message string
}
