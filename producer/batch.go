package producer

import (
	"sync"
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
//
// What every record touches stands first, for the sake of the cache: with a thousand partitions each record finds
// another batch.
type batch struct {
	b   record.Builder // writes into chunk; the bytes on the wire unless packed is set
	cap int            // room of the builder's chunk
	// entries has the callback and timestamp of each record, in order. One slice for the whole batch: nothing is
	// allocated for a record.
	entries []entry
	async   int // entries that have a callback of the user's
	clock   clock

	part   *part
	m      machine.Batch
	opened time.Time
	// packed is the sealed batch when it is not the builder's: compressed, split or rebuilt.
	packed  []byte
	waiters []*waiter // those in Send
	flushes []*flush  // to be told when the verdict has been handed out

	// holds counts what keeps the batch from being recycled: its buffer and its entries.
	holds atomic.Int32
	over  conclusion
	// judged: the verdict is in the teller's hands. late: the teller gives the buffer back, after the callbacks.
	judged, late bool
}

type entry struct {
	done func(Ack, error) // nil: nobody wants to know
	ts   int64            // milliseconds
}

// newBatch takes one from the pool; the chunk becomes its.
func (p *Producer) newBatch(pt *part, chunk []byte) *batch {
	b := p.batches.get()
	b.m.Reset()
	b.part = pt
	b.cap = cap(chunk)
	b.b.Reset(chunk[:0])
	b.opened = time.Now()
	b.clock = clock{ms: b.opened.UnixMilli()}
	b.clock.openMs = b.clock.ms
	b.m.Created = b.opened
	b.holds.Store(2)
	return b
}

// clock gives records that have none their timestamp. Reading the time costs as much as encoding a small record, so as
// long as the milliseconds do not move it is read for fewer and fewer records, at most for one in 32. A stamp is late
// by no more than the batch lingers, which is why only short lingering may use it.
type clock struct {
	ms     int64 // of the last reading
	openMs int64 // when the batch was opened
	skip   uint8 // records to go without reading
	pace   uint8
}

// coarse is the longest lingering with which the clock is not read for every record.
const coarse = 20 * time.Millisecond

// now is the batch's wall clock time plus what the monotonic clock says since, which costs half of time.Now.
func (b *batch) now(linger time.Duration) int64 {
	c := &b.clock
	if c.skip > 0 {
		c.skip--
		return c.ms
	}
	ms := c.openMs + int64(time.Since(b.opened)/time.Millisecond)
	if ms == c.ms && linger <= coarse {
		c.pace = min(2*c.pace+1, 31)
		c.skip = c.pace
	} else {
		c.ms, c.pace = ms, 0
	}
	return ms
}

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
	b.over, b.judged, b.late = conclusion{}, false, false
	b.part = nil
	p.batches.put(b)
}

// shelf keeps batches for reuse. Unlike a sync.Pool it survives garbage collections: the entries of a batch have
// grown to what its kind of partition needs.
type shelf struct {
	mu   sync.Mutex
	free []*batch
}

// shelved is how many batches are kept at most, and shelvedEntries how large the entries of one may be.
const (
	shelved        = 4096
	shelvedEntries = 1 << 16
)

func (s *shelf) get() *batch {
	s.mu.Lock()
	if n := len(s.free); n > 0 {
		b := s.free[n-1]
		s.free = s.free[:n-1]
		s.mu.Unlock()
		return b
	}
	s.mu.Unlock()
	b := &batch{entries: make([]entry, 0, 8)}
	b.m.Owner = b
	return b
}

func (s *shelf) put(b *batch) {
	if cap(b.entries) > shelvedEntries {
		b.entries = make([]entry, 0, 8)
	}
	s.mu.Lock()
	if len(s.free) < shelved {
		s.free = append(s.free, b)
	}
	s.mu.Unlock()
}
