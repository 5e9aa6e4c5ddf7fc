package machine

import (
	"time"

	"github.com/ottla-kafka/ottla/wire/errcode"
)

// state of a batch in its partition's queue.
//
//	preparing -> waiting            Prepared
//	waiting   -> inFlight           Send
//	inFlight  -> waiting            a retriable answer, a lost connection
//	inFlight  -> splitting          MESSAGE_TOO_LARGE with more than one record
//	splitting -> (replaced)         Divided
//	any       -> resolved           a final answer, or time ran out
//	resolved  -> (left the queue)   when it has come to the front
type state uint8

const (
	preparing state = iota
	waiting
	inFlight
	splitting
	resolved
)

// Batch is a sealed batch. The driver fills the exported fields of the first
// group and may read all; only the machine writes the others.
type Batch struct {
	// Owner is the driver's own batch.
	Owner any
	// Count of records and Size in bytes on the wire.
	Count int32
	Size  int
	// Created is when its first record came; delivery.timeout.ms counts from it.
	Created time.Time

	// ProducerID, Epoch and BaseSequence to write into the header; -1 without idempotence.
	ProducerID   int64
	Epoch        int16
	BaseSequence int32
	// Attempts counts the requests that carried it.
	Attempts int

	part      *Partition
	pinned    bool    // sequenced in a transaction: nothing may be taken out any more
	pipe      *broker // of the newest attempt; while preparing, the one that waits for it
	state     state
	sequenced bool
	// maybeWritten: some attempt may have reached the log without our knowing.
	maybeWritten bool
	// gone: the verdict was given. carriers: requests in the air that carry it.
	// worked: it is being compressed or split. Both keep its bytes from release.
	gone     bool
	worked   bool
	carriers int
	verdict  Verdict
	lastCode errcode.Code
	lastErr  error
}

// Partition is the queue the batch belongs to, nil before the machine saw it.
func (b *Batch) Partition() *Partition { return b.part }

// Withdrawable reports whether records may still be taken out of the batch:
// no attempt is under way or in doubt.
func (b *Batch) Withdrawable() bool {
	return b.state == waiting && !b.worked && !b.maybeWritten && b.carriers == 0 && !b.pinned
}

// MaybeWritten reports whether an attempt in the air or in doubt may have put
// the batch in the log.
func (b *Batch) MaybeWritten() bool { return b.maybeWritten || b.state == inFlight }

// Reset makes the batch new, keeping its Owner.
func (b *Batch) Reset() { *b = Batch{Owner: b.Owner, ProducerID: -1, Epoch: -1, BaseSequence: -1} }
