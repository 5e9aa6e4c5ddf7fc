// Package clockwork is time and chance of a simulation: an event heap for time, named streams of one seed for chance, and a
// trace of everything that happened, which two runs of a seed have to agree on. Tests are its only users; everything happens
// on their goroutine.
package clockwork

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// Epoch is when every simulation begins.
var Epoch = time.Unix(1_800_000_000, 0)

// A Failure is what Fail panics with; whoever runs a simulation turns it into a failed test.
type Failure struct{ Text string }

// A Clock is the time of one run.
type Clock struct {
	Now   time.Time
	Steps int
	Trace uint64
	Reach map[string]int                   // how often each place was reached
	Log   func(format string, args ...any) // nil: silent

	queue events
	seq   int
}

// New starts the clock at Epoch.
func New(log func(string, ...any)) *Clock {
	return &Clock{Now: Epoch, Reach: map[string]int{}, Log: log}
}

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

// After has f done after d.
func (c *Clock) After(d time.Duration, f func()) {
	c.seq++
	heap.Push(&c.queue, event{c.Now.Add(max(d, 0)), c.seq, f})
}

// Run lets time pass; every event is followed by check.
func (c *Clock) Run(d time.Duration, check func()) {
	end := c.Now.Add(d)
	for len(c.queue) > 0 && !c.queue[0].at.After(end) {
		e := heap.Pop(&c.queue).(event)
		c.Now = e.at
		c.Steps++
		e.do()
		check()
	}
	c.Now = end
}

// Note adds a line to the trace.
func (c *Clock) Note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	c.Mix([]byte(line))
	if c.Log != nil {
		c.Log("%9.3f %s", c.Now.Sub(Epoch).Seconds(), line)
	}
}

// Mix takes bytes into the trace.
func (c *Clock) Mix(b []byte) {
	h := fnv.New64a()
	var head [16]byte
	binary.LittleEndian.PutUint64(head[:], c.Trace)
	binary.LittleEndian.PutUint64(head[8:], uint64(c.Now.UnixNano()))
	h.Write(head[:])
	h.Write(b)
	c.Trace = h.Sum64()
}

// Sometimes counts that a place was reached.
func (c *Clock) Sometimes(place string) { c.Reach[place]++ }

// Fail ends the run.
func (c *Clock) Fail(format string, args ...any) {
	panic(Failure{fmt.Sprintf("at %.3f s: ", c.Now.Sub(Epoch).Seconds()) + fmt.Sprintf(format, args...)})
}

// Stream is a stream of chance of a seed, one for each purpose, so that a new draw of one does not shift the others.
func Stream(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// Chance is true once in n.
func Chance(r *rand.Rand, n int) bool { return n > 0 && r.IntN(n) == 0 }

// Between is a time from a to b.
func Between(r *rand.Rand, a, b time.Duration) time.Duration {
	return a + time.Duration(r.Int64N(int64(b-a)+1))
}
