package producer

import (
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/producer/internal/buffer"
	"github.com/ottla-kafka/ottla/producer/machine"
	"github.com/ottla-kafka/ottla/wire/record"
)

// batch is a batch in the making, and later on its way. While it is open it belongs to its part and that one's lock;
// once gathered, to the runner of the loop.
//
//	open -> sealed (size, or gathered when due) -> [compressed] -> carried by requests -> verdict -> recycled
type batch struct {
	m    machine.Batch
	part *part
	b    record.Builder // writes into chunk; the bytes on the wire unless packed is set
	cap  int            // room of the builder's chunk
	// packed is the sealed batch when it is not the builder's: compressed, split or rebuilt.
	packed []byte
	opened time.Time
	openMs int64 // opened, as a wall clock's milliseconds

	// entries has the callback and timestamp of each record, in order. One slice for the whole batch: nothing is
	// allocated for a record.
	entries []entry
	async   int       // entries that have a callback of the user's
	waiters []*waiter // those in Send
	flushes []*flush  // to be told when the verdict has been handed out

	// holds counts what keeps the batch from being recycled: its buffer and its entries.
	holds  atomic.Int32
	judged bool // conclude has seen it
	over   conclusion
}

type entry struct {
	done func(Ack, error) // nil: nobody wants to know
	ts   int64            // milliseconds
}

// newBatch takes one from the pool; the chunk becomes its.
func (p *Producer) newBatch(pt *part, chunk []byte) *batch {
	b, _ := p.batches.Get().(*batch)
	if b == nil {
		b = new(batch)
		b.m.Owner = b
	}
	b.m.Reset()
	b.part = pt
	b.cap = cap(chunk)
	b.b.Reset(chunk[:0])
	b.opened = time.Now()
	b.openMs = b.opened.UnixMilli()
	b.m.Created = b.opened
	b.holds.Store(2)
	return b
}

// nowMs is the time for a record that has none: the batch's wall clock time plus what the monotonic clock says since,
// which costs half of time.Now.
func (b *batch) nowMs() int64 { return b.openMs + int64(time.Since(b.opened)/time.Millisecond) }

// size is what the batch takes on the wire as it is.
func (b *batch) size() int {
	if b.packed != nil {
		return len(b.packed)
	}
	return b.b.Size()
}

// bytes stamps the batch for the request that carries it now. Nobody else reads the bytes at that time: a batch is in
// at most one request, and is not in any while it waits for the next.
func (b *batch) bytes(transactional bool) []byte {
	s := record.Stamp{
		ProducerID: b.m.ProducerID, ProducerEpoch: b.m.Epoch, BaseSequence: b.m.BaseSequence,
		Transactional: transactional,
	}
	if b.packed != nil {
		record.Reseal(b.packed, s)
		return b.packed
	}
	return b.b.Seal(s)
}

// plain is the batch as it is, for reading it back.
func (b *batch) plain() []byte {
	if b.packed != nil {
		return b.packed
	}
	return b.b.Seal(record.NoProducer())
}

// dropBuffer gives the memory back. No request may carry the batch.
func (b *batch) dropBuffer(mem *buffer.Memory) {
	if b.packed != nil {
		mem.Put(b.packed)
		b.packed = nil
		return
	}
	mem.Put(b.b.Release())
}

// let drops one hold and recycles the batch with the last.
func (p *Producer) let(b *batch) {
	if b.holds.Add(-1) > 0 {
		return
	}
	clear(b.entries)
	clear(b.waiters)
	b.entries, b.waiters, b.flushes, b.async = b.entries[:0], b.waiters[:0], nil, 0
	b.over, b.judged = conclusion{}, false
	b.part = nil
	p.batches.Put(b)
}
