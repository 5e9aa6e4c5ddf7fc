package driver

import "sync"

// inbox is what the driver's goroutine still has to do. Posting never blocks: what waits is bounded by who posts, one
// request per client connection and a few of the broker's own.
type inbox struct {
	mu     sync.Mutex
	queue  []func()
	closed bool
	wake   chan struct{} // one slot: there is something in queue
}

func newInbox() inbox { return inbox{wake: make(chan struct{}, 1)} }

// post adds f; false means that the inbox is closed and f will never run.
func (b *inbox) post(f func()) bool {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return false
	}
	b.queue = append(b.queue, f)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return true
}

// take empties the inbox.
func (b *inbox) take() []func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queue
	b.queue = nil
	return q
}

// close empties the inbox and refuses everything from now on.
func (b *inbox) close() []func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	q := b.queue
	b.queue = nil
	return q
}
