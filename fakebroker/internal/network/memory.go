package network

import (
	"errors"
	"sync"
	"time"
)

// memory bounds what all connections hold in frame buffers beyond keepBuffer each (queued.max.request.bytes).
type memory struct {
	mu    sync.Mutex
	limit int64
	used  int64
	freed chan struct{} // closed and renewed when bytes come back while somebody waits; nil when nobody does
}

// memoryWait is how long a half-read frame may wait for memory. It must end: half requests that hold memory and never
// go on would otherwise starve everybody until they are idle-closed.
const memoryWait = 10 * time.Second

var errMemory = errors.New("no memory for the rest of the request within 10 s: queued.max.request.bytes is used up")

// charge swaps a charge of had for one of want, waiting for memory if it must. A connection that alone uses memory may
// exceed the limit: otherwise a limit below socket.request.max.bytes would never let a large request in.
func (m *memory) charge(had, want int64, stop <-chan struct{}) error {
	if want == had {
		return nil
	}
	var timeout *time.Timer
	for {
		m.mu.Lock()
		if m.used-had+want <= m.limit || m.used == had {
			m.used += want - had
			m.mu.Unlock()
			return nil
		}
		if m.freed == nil {
			m.freed = make(chan struct{})
		}
		freed := m.freed
		m.mu.Unlock()
		if timeout == nil {
			timeout = time.NewTimer(memoryWait)
			defer timeout.Stop()
		}
		select {
		case <-freed:
		case <-timeout.C:
			return errMemory
		case <-stop:
			return errClosing
		}
	}
}

func (m *memory) release(n int64) {
	if n == 0 {
		return
	}
	m.mu.Lock()
	m.used -= n
	if m.freed != nil {
		close(m.freed)
		m.freed = nil
	}
	m.mu.Unlock()
}

// inUse returns what is charged now.
func (m *memory) inUse() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}
