package client

import (
	"context"
	"fmt"
	"sync"
)

// Budget is an accountant for memory: bytes are acquired before they are allocated and released when they are
// given up. Waiters are served in the order in which they came, so that a large request is not starved by small
// ones. A request for more than the whole limit is granted when nothing else is held, because it could never be
// granted otherwise.
type Budget struct {
	mu      sync.Mutex
	limit   int64 // <= 0: no limit
	used    int64
	waiters []*budgetWaiter
}

type budgetWaiter struct {
	n     int64
	ready chan struct{} // closed when granted
}

// NewBudget makes an accountant for limit bytes; zero or less means without limit.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// TryAcquire takes n bytes if that is possible without waiting.
func (b *Budget) TryAcquire(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiters) > 0 || !b.fits(n) {
		return false
	}
	b.used += n
	return true
}

// Acquire takes n bytes, waiting for others to release theirs until ctx ends. The error then wraps
// context.Cause(ctx) and says how much is held. A ctx that has ended already takes nothing.
func (b *Budget) Acquire(ctx context.Context, n int64) error {
	b.mu.Lock()
	if cause := context.Cause(ctx); cause != nil {
		defer b.mu.Unlock()
		return b.refusal(n, cause)
	}
	if len(b.waiters) == 0 && b.fits(n) {
		b.used += n
		b.mu.Unlock()
		return nil
	}
	w := &budgetWaiter{n: n, ready: make(chan struct{})}
	b.waiters = append(b.waiters, w)
	b.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.waiters {
		if other == w {
			b.waiters = append(b.waiters[:i], b.waiters[i+1:]...)
			b.grant() // the one behind may fit
			return b.refusal(n, context.Cause(ctx))
		}
	}
	return nil // granted at the same moment
}

// refusal says what an acquisition that ended was about. The lock is held.
func (b *Budget) refusal(n int64, cause error) error {
	return fmt.Errorf("memory budget: %d of %d bytes are held, %d more were wanted: %w", b.used, b.limit, n, cause)
}

// Charge takes n bytes without asking, beyond the limit if need be: for memory that is needed to go on at all
// (a batch larger than was asked for). Whoever comes next waits the longer.
func (b *Budget) Charge(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += n
}

// Limit is the most that may be held; zero or less means no limit.
func (b *Budget) Limit() int64 { return b.limit }

// Release gives n bytes back.
func (b *Budget) Release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.used < 0 {
		panic(fmt.Sprintf("client: memory budget released %d bytes more than were acquired", -b.used))
	}
	b.grant()
}

// Used tells how many bytes are held, and the limit.
func (b *Budget) Used() (used, limit int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, b.limit
}

func (b *Budget) fits(n int64) bool {
	return b.limit <= 0 || b.used+n <= b.limit || b.used == 0
}

func (b *Budget) grant() {
	for len(b.waiters) > 0 && b.fits(b.waiters[0].n) {
		w := b.waiters[0]
		b.waiters = b.waiters[1:]
		b.used += w.n
		close(w.ready)
	}
}

// Budget is the accountant of this client, shared by its producers and consumers.
func (c *Client) Budget() *Budget { return c.budget }
