package sim

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// The timeouts of all members. They are short, so that two virtual minutes hold many rebalances.
const (
	session    = 10 * time.Second
	rebalance  = 20 * time.Second
	heartbeat  = time.Second
	reconverge = 2 * (session + rebalance)
)

var epoch = time.Unix(1_800_000_000, 0)

// event is something that happens at a time; seq orders what happens at the same time.
type event struct {
	at  time.Time
	seq int
	do  func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at.Before(q[j].at) || q[i].at.Equal(q[j].at) && q[i].seq < q[j].seq
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any     { x := (*q)[len(*q)-1]; *q = (*q)[:len(*q)-1]; return x }

// failure is what a broken invariant panics with; scenario turns it into a failed test.
type failure struct{ text string }

// world is one run.
type world struct {
	seed  uint64
	fleet fleet
	now   time.Time
	queue events
	seq   int
	steps int
	trace uint64
	log   func(format string, args ...any) // nil: silent
	reach map[string]int

	// Streams of chance, one for each purpose, so that a new draw of one does not shift the others.
	net, work, fault, ids *rand.Rand

	menu    menu // which faults this seed has
	faulty  bool // they happen at present
	topics  topics
	brokers *brokers
	nodes   []*node
	made    int
	ledger  ledger
}

func newWorld(seed uint64, f fleet, log func(string, ...any)) *world {
	stream := func(name string) *rand.Rand {
		h := fnv.New64a()
		h.Write([]byte(name))
		return rand.New(rand.NewPCG(seed, h.Sum64()))
	}
	w := &world{seed: seed, fleet: f, now: epoch, log: log, reach: map[string]int{}, faulty: true,
		net: stream("net"), work: stream("work"), fault: stream("fault"), ids: stream("ids")}
	w.menu = drawMenu(w.fault)
	w.ledger.init(w)
	w.topics.init(w)
	w.brokers = newBrokers(w)
	return w
}

// after has f done after d.
func (w *world) after(d time.Duration, f func()) {
	w.seq++
	heap.Push(&w.queue, event{w.now.Add(max(d, 0)), w.seq, f})
}

// run lets time pass; every event is followed by the checks.
func (w *world) run(d time.Duration) {
	end := w.now.Add(d)
	for len(w.queue) > 0 && !w.queue[0].at.After(end) {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		w.steps++
		e.do()
		w.check()
	}
	w.now = end
}

// note adds a line to the trace, which is all that two runs of a seed have to agree on.
func (w *world) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	w.mix([]byte(line))
	if w.log != nil {
		w.log("%9.3f %s", w.now.Sub(epoch).Seconds(), line)
	}
}

// mix takes bytes into the trace.
func (w *world) mix(b []byte) {
	h := fnv.New64a()
	var head [16]byte
	binary.LittleEndian.PutUint64(head[:], w.trace)
	binary.LittleEndian.PutUint64(head[8:], uint64(w.now.UnixNano()))
	h.Write(head[:])
	h.Write(b)
	w.trace = h.Sum64()
}

// sometimes counts that a place was reached.
func (w *world) sometimes(place string) { w.reach[place]++ }

// fail ends the run.
func (w *world) fail(format string, args ...any) {
	panic(failure{fmt.Sprintf("at %.3f s: ", w.now.Sub(epoch).Seconds()) + fmt.Sprintf(format, args...)})
}

// chance is true once in n.
func chance(r *rand.Rand, n int) bool { return n > 0 && r.IntN(n) == 0 }

// between is a time from a to b.
func between(r *rand.Rand, a, b time.Duration) time.Duration {
	return a + time.Duration(r.Int64N(int64(b-a)+1))
}
