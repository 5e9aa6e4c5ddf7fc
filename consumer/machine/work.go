package machine

import (
	"container/heap"
	"maps"
	"slices"

	"github.com/ottla-kafka/ottla/wire/hash"
)

// Work is what one claim has taken from the log and not finished: it decides which record may be processed next
// and how far the partition is done without a gap, which is what may be committed.
//
// Records with the same key are processed one after the other, in the order of the log; others side by side. A
// record without a key waits for nobody. A record goes through these states:
//
//	offered ──Take──▶ running ──Finish──▶ finished
//	            ▲        │ Fail
//	            └─Again─ failed        its key waits for it
//
// The frontier is the position behind the last record that is finished together with everything in front of it.
// T is whatever the driver keeps of a record. Work is not safe for concurrent use.
type Work[T any] struct {
	serial   bool
	tasks    fifo[task[T]] // in the order of the log; the first one is not finished
	first    uint64        // its sequence
	lanes    map[uint32]*lane
	spare    []*lane  // to be used again
	ready    laneHeap // have a record that may be taken; the oldest goes first, so that the frontier is close behind
	frontier Position
	running  int
	failed   int
	bytes    int    // of all tasks
	started  uint64 // one more than the highest sequence that was ever taken
}

type taskState uint8

const (
	offered taskState = iota
	running
	failed
	finished
)

type task[T any] struct {
	item  T
	size  int
	next  Position
	lane  *lane
	state taskState
}

// lane is the records of one key that wait, in order; the first one may be running.
type lane struct {
	key   uint32
	named bool // is in Work.lanes under key
	seqs  fifo[uint64]
}

// laneHeap has the lane with the oldest record in front.
type laneHeap []*lane

func (h laneHeap) Len() int           { return len(h) }
func (h laneHeap) Less(i, j int) bool { return *h[i].seqs.at(0) < *h[j].seqs.at(0) }
func (h laneHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *laneHeap) Push(l any)        { *h = append(*h, l.(*lane)) }
func (h *laneHeap) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return l
}

// Job is a record to process.
type Job[T any] struct {
	Seq  uint64 // names it in Finish, Fail and Again
	Item T
}

// NewWork starts at a position. With serial, all records count as having the same key.
func NewWork[T any](from Position, serial bool) *Work[T] {
	return &Work[T]{serial: serial, frontier: from, lanes: map[uint32]*lane{}}
}

// Offer adds the next record of the partition, with its size in bytes. next is the position behind it.
func (w *Work[T]) Offer(key []byte, item T, size int, next Position) {
	l := w.lane(key)
	seq := w.first + uint64(w.tasks.len())
	w.tasks.push(task[T]{item: item, size: size, next: next, lane: l})
	w.bytes += size
	if l.seqs.push(seq); l.seqs.len() == 1 {
		heap.Push(&w.ready, l)
	}
}

// lane is where records of that key wait. Different keys with the same hash share one; they only wait needlessly.
func (w *Work[T]) lane(key []byte) *lane {
	if key == nil && !w.serial {
		return w.newLane(lane{})
	}
	var h uint32
	if !w.serial {
		h = hash.Murmur2(key)
	}
	l := w.lanes[h]
	if l == nil {
		l = w.newLane(lane{key: h, named: true})
		w.lanes[h] = l
	}
	return l
}

// maxSpare bounds the lanes that are kept to be used again.
const maxSpare = 256

func (w *Work[T]) newLane(as lane) *lane {
	n := len(w.spare)
	if n == 0 {
		l := new(lane)
		*l = as
		return l
	}
	l := w.spare[n-1]
	w.spare = w.spare[:n-1]
	l.key, l.named = as.key, as.named
	return l
}

// free gives up a lane in which nothing waits.
func (w *Work[T]) free(l *lane) {
	if l.named {
		delete(w.lanes, l.key)
	}
	if len(w.spare) < maxSpare {
		w.spare = append(w.spare, l)
	}
}

// Take starts a record; ok is false when there is none that may be started now.
func (w *Work[T]) Take() (job Job[T], ok bool) {
	if len(w.ready) == 0 {
		return job, false
	}
	l := heap.Pop(&w.ready).(*lane)
	seq := *l.seqs.at(0)
	t := w.task(seq)
	t.state = running
	w.running++
	w.started = max(w.started, seq+1)
	return Job[T]{seq, t.item}, true
}

// task is the task of that sequence, nil if it is over or was dropped.
func (w *Work[T]) task(seq uint64) *task[T] {
	if seq < w.first || seq-w.first >= uint64(w.tasks.len()) {
		return nil
	}
	return w.tasks.at(int(seq - w.first))
}

// Finish ends a running record well; moved tells whether the frontier went on.
func (w *Work[T]) Finish(seq uint64) (moved bool) {
	t := w.task(seq)
	if t == nil || t.state != running {
		return false // of a time before Restart
	}
	t.state = finished
	w.running--
	l := t.lane
	if l.seqs.drop(1); l.seqs.len() > 0 {
		heap.Push(&w.ready, l)
	} else {
		w.free(l)
	}
	n := 0
	for ; n < w.tasks.len() && w.tasks.at(n).state == finished; n++ {
		w.frontier = w.tasks.at(n).next
		w.bytes -= w.tasks.at(n).size
	}
	w.tasks.drop(n)
	w.first += uint64(n)
	return n > 0
}

// Fail ends an attempt badly: the record and those behind it with the same key wait for Again.
func (w *Work[T]) Fail(seq uint64) {
	if t := w.task(seq); t != nil && t.state == running {
		t.state = failed
		w.running--
		w.failed++
	}
}

// Again lets a failed record be taken once more.
func (w *Work[T]) Again(seq uint64) {
	if t := w.task(seq); t != nil && t.state == failed {
		t.state = offered
		w.failed--
		heap.Push(&w.ready, t.lane)
	}
}

// Drain drops what is behind everything that was ever started. What is left has to be finished for the frontier to
// cover all finished work, so that none of it is done again elsewhere.
func (w *Work[T]) Drain() {
	keep := int(max(w.started, w.first) - w.first)
	for i := w.tasks.len() - 1; i >= keep; i-- {
		t := w.tasks.at(i)
		w.bytes -= t.size
		t.lane.seqs.cut(t.lane.seqs.len() - 1)
	}
	w.tasks.cut(min(keep, w.tasks.len()))
	w.ready = slices.DeleteFunc(w.ready, func(l *lane) bool { return l.seqs.len() == 0 })
	maps.DeleteFunc(w.lanes, func(_ uint32, l *lane) bool { return l.seqs.len() == 0 })
	heap.Init(&w.ready)
}

// Restart forgets everything, because the reader was sent elsewhere; what runs still is not counted when it ends. The
// frontier is unknown (-1) until a record from there is finished.
func (w *Work[T]) Restart() {
	*w = Work[T]{serial: w.serial, first: w.first + uint64(w.tasks.len()), started: w.started, lanes: map[uint32]*lane{}, frontier: Position{-1, -1}}
}

// Pass moves the frontier over what is not for the application, such as markers of transactions, if everything in front
// of it is finished.
func (w *Work[T]) Pass(to Position) {
	if w.tasks.len() == 0 && to.Offset > w.frontier.Offset {
		w.frontier = to
	}
}

// Frontier is what may be committed; its offset is -1 while unknown.
func (w *Work[T]) Frontier() Position { return w.frontier }

// Len is how many records are offered and not yet behind the frontier.
func (w *Work[T]) Len() int { return w.tasks.len() }

// Bytes is how large they are together.
func (w *Work[T]) Bytes() int { return w.bytes }

// Running is how many are being processed.
func (w *Work[T]) Running() int { return w.running }

// Ready tells whether Take would start one.
func (w *Work[T]) Ready() bool { return len(w.ready) > 0 }
