package machine

import "time"

// Partition is the machine's side of one partition: the queue of sealed batches
// that have no verdict yet, and the sequence state.
type Partition struct {
	// Owner is the driver's own partition.
	Owner any

	leader      int32
	leaderEpoch int32
	broker      *broker
	active      bool // is in broker.active

	queue    []*Batch
	inFlight int
	pipe     *broker // that the batches in flight went to
	// recovering: an attempt failed; nothing is sent until all in flight are answered.
	recovering bool
	retryAt    time.Time
	failures   int  // failed rounds since the last success, for the back-off
	counted    bool // this round is in failures

	opened  time.Time // zero: no open batch
	urgent  bool
	sealing bool  // an effect Seal is being carried out
	doomed  error // end what is sealed next with this (no producer id to be had)

	producerID int64
	epoch      int16
	sequence   int32 // of the next batch
	// known: the broker has acknowledged a batch of this id and epoch. Before that one
	// batch is in flight at a time, since a broker that does not know the id takes any
	// sequence, and would take the second batch when the first one failed.
	known   bool
	gap     bool // see the package comment
	renewID bool // the gap needs a new producer id, a higher epoch is not enough

	// Of transactions; see transaction.go.
	asked, enlisted uint64 // the transaction that Enlist was said for, and the one it is in
	numbered        uint64 // the one in which it last gave a batch its sequence
	acked           int32  // the sequence behind the last acknowledged batch
	restart         bool   // the gap needs nothing but sequences from 0 in the same epoch
}

// NewPartition returns a partition without a leader; bring LeaderChanged.
func NewPartition(owner any) *Partition {
	return &Partition{Owner: owner, leader: -1, leaderEpoch: -1, producerID: -1}
}

// Leader is the broker that the partition's batches go to, -1 when none is known.
func (p *Partition) Leader() int32 { return p.leader }

// Producer is the id and epoch of the partition's next batch; -1 before the first.
func (p *Partition) Producer() (id int64, epoch int16) {
	if p.producerID < 0 {
		return -1, -1
	}
	return p.producerID, p.epoch
}

// Queued is the number of sealed batches without a verdict.
func (p *Partition) Queued() int { return len(p.queue) }

// Each calls f for every batch without a verdict, in order.
func (p *Partition) Each(f func(*Batch)) {
	for _, b := range p.queue {
		f(b)
	}
}

func (p *Partition) busy() bool { return len(p.queue) > 0 || !p.opened.IsZero() }

// remembered is how many batches of a producer a broker remembers per partition. A
// batch whose outcome is in doubt can only be asked about as long as no more than
// these are written from it on, whether they are acknowledged or not.
const remembered = 5

// next is the first batch that could be sent, nil when the queue has none. Only
// an unbroken line may be in flight: a batch still being compressed or split
// holds up those behind it.
func (p *Partition) next() *Batch {
	for i, b := range p.queue {
		if i == remembered {
			return nil
		}
		switch b.state {
		case waiting:
			if p.gap && !b.sequenced {
				return nil // must not be sequenced before the epoch is bumped
			}
			return b
		case preparing, splitting:
			return nil
		}
	}
	return nil
}

// first is the oldest batch without an answer.
func (p *Partition) first() *Batch {
	for _, b := range p.queue {
		if b.state != resolved {
			return b
		}
	}
	return nil
}

// drop takes b out of the queue and keeps the order of the rest.
func (p *Partition) drop(b *Batch) {
	for i, x := range p.queue {
		if x == b {
			copy(p.queue[i:], p.queue[i+1:])
			p.queue[len(p.queue)-1] = nil
			p.queue = p.queue[:len(p.queue)-1]
			return
		}
	}
}

// ending is why a batch sealed now has no future, nil normally.
func (p *Partition) ending(m *Machine) error {
	if m.abort != nil {
		return m.abort
	}
	if m.txn.doom != nil {
		return m.txn.doom
	}
	return p.doomed
}
