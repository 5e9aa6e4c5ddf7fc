package client

import (
	"context"
	"sync"
)

// lifetime counts the goroutines of one client, so that Close can wait for the last of them.
type lifetime struct {
	mu     sync.Mutex
	n      int
	closed bool
	gone   chan struct{} // closed when closed and n is zero
}

// start runs f in a goroutine, unless the client is closed.
func (l *lifetime) start(f func()) bool {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return false
	}
	l.n++
	l.mu.Unlock()
	go func() { // stopped by Client.Close, through ctx, closed links and closed sockets
		defer l.done()
		f()
	}()
	return true
}

func (l *lifetime) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n--
	if l.closed && l.n == 0 {
		close(l.gone)
	}
}

// close lets no further goroutine start. It tells whether this was the first call.
func (l *lifetime) close() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.closed = true
	if l.n == 0 {
		close(l.gone)
	}
	return true
}

// wait returns when the last goroutine is gone or ctx ends.
func (l *lifetime) wait(ctx context.Context) error {
	select {
	case <-l.gone:
		return nil
	default:
	}
	select {
	case <-l.gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
