package groupmember

import "sync"

// inbox hands functions to one goroutine, which calls them in order.
type inbox struct {
	mu     sync.Mutex
	list   []func()
	closed bool
	wake   chan struct{} // one slot
}

func (b *inbox) init() { b.wake = make(chan struct{}, 1) }

// add appends a function; false, and nothing done, after close.
func (b *inbox) add(f func()) bool {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return false
	}
	b.list = append(b.list, f)
	b.mu.Unlock()
	signal(b.wake)
	return true
}

// close lets serve return when it has called what is there.
func (b *inbox) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	signal(b.wake)
}

// serve calls what is added, until close.
func (b *inbox) serve() {
	for {
		b.mu.Lock()
		list, closed := b.list, b.closed
		b.list = nil
		b.mu.Unlock()
		for _, f := range list {
			f()
		}
		if len(list) > 0 {
			continue
		}
		if closed {
			return
		}
		<-b.wake
	}
}

// signal fills a one-slot channel.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
