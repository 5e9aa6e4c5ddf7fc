package producer

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/producer/internal/buffer"
	"github.com/ottla-kafka/ottla/producer/machine"
	"github.com/ottla-kafka/ottla/wire/record"
)

// part is one partition. Its lock is the only one that submitters of a record take, and it is held for the time of
// encoding one record; nothing blocks under it.
type part struct {
	mu     sync.Mutex
	open   *batch // records are appended to it
	p      *Producer
	news   bool // the loop has been told that there is something to gather
	urgent bool // somebody waits for the open batch
	closed bool
	hint   int      // bytes the last batch came to: the room the next one starts with
	filled int      // bytes since the sticky partitioner came here
	sealed []*batch // closed by submitters, not yet seen by the loop

	topic *topic
	index int32

	queued  atomic.Int32 // batches without a verdict, for adaptive partitioning
	blocked atomic.Int64 // since when (Unix ns) the oldest of them waits untaken; 0: none
	rack    atomic.Pointer[string]

	// the loop's own
	m      *machine.Partition
	slot   int  // index in the request whose answer is being decoded
	known  bool // the machine has been told a leader
	leader int32
	epoch  int32
}

// overhead bounds what a record takes beside key, value and headers: seven varints of 5 bytes at most, the timestamp
// delta of 10, attributes.
const overhead = 5 + 1 + 10 + 5 + 5 + 5 + 5

// bound is an upper bound of a record's size in a batch.
func bound(r *Record) int {
	n := overhead + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += 10 + len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return n
}

// added says what became of part.add.
type added struct {
	need   int       // bytes of memory that are missing; nothing was added
	closed bool      // the producer is closed; nothing was added
	over   bool      // the record's transaction takes no more; nothing was added
	wake   bool      // the loop should look now
	opened time.Time // a batch was opened; the loop should look when it has lingered
	fresh  bool      // the loop does not know yet that there is anything to look at here
}

// add appends a record to the open batch: the whole hot path. size is bound(r). chunk is memory that was waited for
// after an earlier call returned need, or nil; it is used or put back. txn is the number of the record's transaction.
func (pt *part) add(r *Record, size int, done func(Ack, error), w *waiter, chunk []byte, txn uint64) (res added) {
	p := pt.p
	pt.mu.Lock()
	if pt.closed || p.gate.Load() != txn { // under the lock: whoever takes it after the gate was closed sees all records
		res.closed, res.over = pt.closed, !pt.closed
		pt.mu.Unlock()
		p.mem.Put(chunk)
		return res
	}
	b := pt.open
	var ts int64
	for {
		if b == nil {
			room := pt.room(size)
			if chunk = p.chunk(chunk, room); chunk == nil {
				return pt.lacking(res, room)
			}
			b = p.newBatch(pt, chunk)
			chunk = nil
			pt.open = b
			res.opened = b.opened
		}
		if r.Timestamp.IsZero() {
			ts = b.now(p.cfg.Linger)
		} else {
			ts = r.Timestamp.UnixMilli()
		}
		limit := b.cap
		if len(b.entries) > 0 {
			limit = min(limit, p.cfg.BatchSize)
		}
		before := b.b.Size()
		if b.b.TryAppend(limit, ts, r.Key, r.Value, r.Headers) {
			// Full when another record like this one would not fit: waiting for it to try costs only time.
			if n := b.b.Size(); n+n-before > p.cfg.BatchSize {
				pt.seal(b)
				res.wake = true
			}
			break
		}
		if b.cap < p.cfg.BatchSize && before+size <= p.cfg.BatchSize {
			bigger := max(min(4*b.cap, p.cfg.BatchSize), before+size)
			if chunk = p.chunk(chunk, bigger); chunk == nil {
				return pt.lacking(res, bigger)
			}
			b.move(p.mem, chunk)
			chunk = nil
			continue
		}
		pt.seal(b)
		res.wake = true
		b = nil
	}
	b.entries = append(b.entries, entry{done, ts})
	if w != nil {
		w.batch, w.at = b, len(b.entries)-1
		b.waiters = append(b.waiters, w)
		pt.urgent = pt.open == b
		res.wake = true
	} else if done != nil {
		b.async++
	}
	pt.announce(&res)
	pt.mu.Unlock()
	if chunk != nil {
		p.mem.Put(chunk)
	}
	return res
}

// announce notes whether the loop has to be told to come here. The lock is held.
func (pt *part) announce(res *added) {
	if res.wake || !res.opened.IsZero() {
		res.fresh = !pt.news
		pt.news = true
	}
}

// lacking ends an add that needs n bytes of memory first. A batch may have been sealed on the way.
func (pt *part) lacking(res added, n int) added {
	res.need = n
	pt.announce(&res)
	pt.mu.Unlock()
	return res
}

// room is how much a new batch starts with: as much as the last one took, so that a busy partition does not copy and
// an idle one does not hold memory.
func (pt *part) room(size int) int {
	return max(min(pt.hint, pt.p.cfg.BatchSize), record.HeaderSize+size)
}

// seal closes the open batch. The lock is held.
func (pt *part) seal(b *batch) {
	n := b.b.Size()
	pt.hint = n
	pt.open = nil
	pt.urgent = false
	pt.sealed = append(pt.sealed, b)
	if pt.filled += n; pt.filled >= pt.p.cfg.BatchSize && pt.topic.sticky.Load() == pt {
		pt.filled = 0
		pt.topic.moveOn(pt.p, pt)
	}
}

// gather hands the loop what it has not seen: sealed batches in order, and since when the open one is open. With
// close the open one is sealed first.
func (pt *part) gather(close bool, into *[]*machine.Batch) (e machine.Event) {
	pt.mu.Lock()
	defer pt.mu.Unlock()
	pt.news = false
	e = machine.Event{Kind: machine.Gathered, Partition: pt.m, Urgent: pt.urgent}
	if close && pt.open != nil {
		pt.seal(pt.open)
		e.Urgent = false
	}
	first := len(*into)
	for _, b := range pt.sealed {
		b.m.Count, b.m.Size = b.b.Count(), b.b.Size()
		*into = append(*into, &b.m)
	}
	e.Batches = (*into)[first:len(*into):len(*into)]
	clear(pt.sealed)
	pt.sealed = pt.sealed[:0]
	if pt.open != nil {
		e.Opened = pt.open.opened
	}
	return e
}

// stalled: the oldest batch has waited for its broker for longer than d.
func (pt *part) stalled(d time.Duration) bool {
	since := pt.blocked.Load()
	return since != 0 && time.Since(time.Unix(0, since)) > d
}

// chunk gives memory for n bytes: the one at hand if it is large enough, else one from the account, nil if that is
// empty.
func (p *Producer) chunk(have []byte, n int) []byte {
	if have != nil {
		if cap(have) >= n {
			return have
		}
		p.mem.Put(have)
	}
	return p.mem.Get(n)
}

// move puts an open batch into a larger chunk.
func (b *batch) move(mem *buffer.Memory, chunk []byte) {
	b.cap = cap(chunk)
	mem.Put(b.b.MoveTo(chunk[:0]))
}
