package machine

import "time"

// Kind says which fields of an Event are set.
type Kind uint8

// The kinds of events.
const (
	// Tick: nothing happened but time; the driver sends it at Deadline.
	Tick Kind = iota
	// Gathered: Partition has the sealed Batches (in order) that the machine has not seen
	// yet, and an open batch since Opened (zero: none). Urgent: someone waits for it.
	Gathered
	// Prepared: Batch is compressed, Batch.Size is final.
	Prepared
	// Replied: Request is over, its Results or its Err are set.
	Replied
	// LeaderChanged: Partition is led by Leader (-1: nobody) in LeaderEpoch.
	LeaderChanged
	// ProducerIDReceived: ID and Epoch are ours, or Err says why not.
	ProducerIDReceived
	// Divided: Batch was cut into Batches after an effect Split.
	Divided
	// Withdrawn: records were taken out of Batch, whose Count and Size are new;
	// Count 0 drops it. Allowed while Batch.Withdrawable.
	Withdrawn
	// Hurried: do not linger from now on (flush) until Relaxed.
	Hurried
	// Relaxed ends one Hurried.
	Relaxed
	// Pressed: somebody waits for memory. Until Eased, brokers with nothing in the air
	// get what there is; an answer of the others frees memory anyway.
	Pressed
	// Eased ends one Pressed.
	Eased
	// Aborted: give every batch its verdict now, with Err, and every later one.
	Aborted
	// Begun: a transaction is open, under producer id ID and Epoch. Implicit: the leaders add
	// their partitions to it, so that nothing has to wait for effect Enlist (KIP-890).
	Begun
	// Enlisted: Partition is in the open transaction, batches may go.
	Enlisted
	// Dropped: the transaction is given up because of Err: what was not sent ends as not
	// written, what is on its way is waited for.
	Dropped
)

// Event is one thing that happened. It is a plain struct, not an interface, so
// that a stream of events does not allocate.
type Event struct {
	Kind        Kind
	Partition   *Partition
	Batch       *Batch
	Batches     []*Batch
	Opened      time.Time
	Urgent      bool
	Request     *Request
	Leader      int32
	LeaderEpoch int32
	ID          int64
	Epoch       int16
	Err         error
	// Fatal: Err will not go away by trying again.
	Fatal    bool
	Implicit bool
}
