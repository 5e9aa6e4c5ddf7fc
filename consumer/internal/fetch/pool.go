package fetch

import (
	"math/bits"
	"sync"
	"time"
)

const (
	// maxIdle bounds how many blocks wait: one is read by the application, one or two lie in front of it, one is filled.
	maxIdle = 4
	// idleFor is after how long without need idle blocks are left to the garbage collector.
	idleFor = 10 * time.Second
	// maxSpare is the largest buffer for decompressed records that is kept.
	maxSpare = 4 << 20
)

// pool keeps the memory of answers that nobody reads any more and gives it to the next ones. It is only there when the
// application agreed that records are short-lived (Options.Reuse). What is saved is not so much the allocation as its
// consequences: clearing, page faults, and garbage collections, most of which a fast reader causes by these buffers
// alone. Its methods may be called from any goroutine.
type pool struct {
	mu    sync.Mutex
	idle  [][]byte
	asked time.Time // last time that a block was wanted
}

// get gives memory for an answer of n bytes. What was in it before is still there.
func (p *pool) get(n int) []byte {
	p.mu.Lock()
	p.asked = time.Now()
	best := -1
	for i, b := range p.idle {
		if cap(b) >= n && (best < 0 || cap(b) < cap(p.idle[best])) {
			best = i
		}
	}
	if best < 0 {
		p.mu.Unlock()
		return make([]byte, n, roomFor(n))
	}
	b := p.idle[best]
	p.remove(best)
	p.mu.Unlock()
	return b[:n]
}

// roomFor rounds up by an eighth at most, so that answers that differ a little fit each other's blocks.
func roomFor(n int) int {
	step := 1 << max(bits.Len(uint(n))-4, 0)
	return (n + step - 1) / step * step
}

// put takes a block back that nobody will look at any more.
func (p *pool) put(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, b)
	if len(p.idle) <= maxIdle {
		return
	}
	smallest := 0
	for i, b := range p.idle {
		if cap(b) < cap(p.idle[smallest]) {
			smallest = i
		}
	}
	p.remove(smallest)
}

// trim forgets idle blocks when none was wanted for long: answers have become small, or nothing is read.
func (p *pool) trim(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) > 0 && now.Sub(p.asked) > idleFor {
		p.idle = nil
	}
}

// remove takes one out of idle. p.mu is held.
func (p *pool) remove(i int) {
	last := len(p.idle) - 1
	p.idle[i] = p.idle[last]
	p.idle[last] = nil
	p.idle = p.idle[:last]
}
