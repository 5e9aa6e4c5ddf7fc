// Package buffer holds a producer's memory: the account behind buffer.memory, and the chunks that batches are
// written into.
//
// A chunk is charged from Get to Put. Whoever finds the account empty waits in line, so that a large record is
// not starved by small ones. Chunks come in powers of two from 512 B to 1 MiB and are kept for reuse; larger ones
// are made to measure and left to the garbage collector.
package buffer

import (
	"context"
	"errors"
	"math/bits"
	"slices"
	"sync"
)

const (
	minBits = 9  // 512 B: with a thousand partitions most batches are small
	maxBits = 20 // 1 MiB
)

// ErrClosed ends waits on a closed Memory.
var ErrClosed = errors.New("buffer: closed")

// Memory is one account. All methods may be called from any goroutine.
type Memory struct {
	mu      sync.Mutex
	limit   int
	used    int // charged
	idle    int // in free, not charged
	free    [maxBits - minBits + 1][][]byte
	waiters []*waiter
	closed  bool

	// Poison overwrites chunks that come back, so that a test sees who still reads them.
	Poison bool
	// Shared, when set, is an account that others draw on too (the client's memory budget); chunks are charged there
	// as well.
	Shared Account
	debt   int // charged here, but Shared had no room for it

	// Changed, when set, is told about every change of what is charged.
	Changed func(delta int)
}

// Account is what client.Budget offers.
type Account interface {
	TryAcquire(n int64) bool
	Acquire(ctx context.Context, n int64) error
	Release(n int64)
}

type waiter struct {
	n     int
	chunk []byte
	ready chan struct{} // closed when chunk is set, or when the account is closed
}

// New opens an account for limit bytes.
func New(limit int) *Memory { return &Memory{limit: limit} }

// SizeFor is the size of the chunk that Get(n) gives.
func SizeFor(n int) int {
	if n > 1<<maxBits {
		return (n + 4095) &^ 4095
	}
	return 1 << max(minBits, bits.Len(uint(n-1)))
}

// Get gives a chunk of SizeFor(n) bytes, or nil when it would have to wait.
func (m *Memory) Get(n int) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	n = SizeFor(n)
	if len(m.waiters) > 0 || !m.fits(n) || m.Shared != nil && !m.Shared.TryAcquire(int64(n)) {
		return nil
	}
	return m.take(n)
}

// Force gives a chunk even if the account is overdrawn by it. It is for bytes that replace others about to be put back.
func (m *Memory) Force(n int) []byte {
	n = SizeFor(n)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Shared != nil && !m.Shared.TryAcquire(int64(n)) {
		m.debt += n
	}
	return m.take(n)
}

// Wait is Get that waits, until ctx ends: first for this account, then for the shared one.
func (m *Memory) Wait(ctx context.Context, n int) ([]byte, error) {
	n = SizeFor(n)
	chunk, err := m.wait(ctx, n)
	if err != nil || m.Shared == nil {
		return chunk, err
	}
	if err := m.Shared.Acquire(ctx, int64(n)); err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.putBack(chunk)
		return nil, err
	}
	return chunk, nil
}

func (m *Memory) wait(ctx context.Context, n int) ([]byte, error) {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil, ErrClosed
	}
	if len(m.waiters) == 0 && m.fits(n) {
		defer m.mu.Unlock()
		return m.take(n), nil
	}
	w := &waiter{n: n, ready: make(chan struct{})}
	m.waiters = append(m.waiters, w)
	m.mu.Unlock()
	select {
	case <-w.ready:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.chunk != nil {
		return w.chunk, nil // also when both happened
	}
	if i := slices.Index(m.waiters, w); i >= 0 {
		m.waiters = slices.Delete(m.waiters, i, i+1)
		m.serve() // the one behind may fit
		return nil, context.Cause(ctx)
	}
	return nil, ErrClosed
}

// Put takes a chunk back.
func (m *Memory) Put(chunk []byte) {
	if cap(chunk) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Shared != nil {
		paid := min(m.debt, cap(chunk))
		m.debt -= paid
		if n := cap(chunk) - paid; n > 0 {
			m.Shared.Release(int64(n))
		}
	}
	m.putBack(chunk)
}

func (m *Memory) putBack(chunk []byte) {
	n := cap(chunk)
	chunk = chunk[:n]
	if m.Poison {
		for i := range chunk {
			chunk[i] = 0xDB
		}
	}
	m.charge(-n)
	if n <= 1<<maxBits && !m.closed && m.room(n) {
		c := bits.Len(uint(n)) - 1 - minBits
		m.free[c] = append(m.free[c], chunk[:0])
		m.idle += n
	}
	m.serve()
}

// Used is what is charged, and the limit.
func (m *Memory) Used() (used, limit int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used, m.limit
}

// Close ends all waits. Chunks may still come back.
func (m *Memory) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, w := range m.waiters {
		close(w.ready)
	}
	m.waiters = nil
	m.free = [len(m.free)][][]byte{}
	m.idle = 0
}

// fits: a chunk larger than the whole account is given out when nothing else is, since it never could be otherwise.
func (m *Memory) fits(n int) bool { return m.used+n <= m.limit || m.used == 0 }

// room: idle chunks fill what is not charged, and half of the limit in any case: batches that are compressed move
// from large chunks to small ones, and under pressure neither kind would find one to reuse otherwise.
func (m *Memory) room(n int) bool {
	return m.used+m.idle+n <= m.limit || m.idle+n <= m.limit/2
}

func (m *Memory) charge(n int) {
	m.used += n
	if m.Changed != nil {
		m.Changed(n)
	}
}

// take charges n bytes, which is a chunk size, and finds or makes the chunk.
func (m *Memory) take(n int) []byte {
	m.charge(n)
	if n <= 1<<maxBits {
		c := bits.Len(uint(n)) - 1 - minBits
		if l := len(m.free[c]); l > 0 {
			chunk := m.free[c][l-1] // the newest: it is likely still in the cache
			m.free[c] = m.free[c][:l-1]
			m.idle -= n
			return chunk
		}
	}
	for c := len(m.free) - 1; c >= 0 && !m.room(0); {
		if l := len(m.free[c]); l > 0 {
			m.idle -= cap(m.free[c][l-1])
			m.free[c][l-1] = nil
			m.free[c] = m.free[c][:l-1]
			continue
		}
		c--
	}
	return make([]byte, 0, n)
}

func (m *Memory) serve() {
	for len(m.waiters) > 0 && m.fits(m.waiters[0].n) {
		w := m.waiters[0]
		m.waiters = slices.Delete(m.waiters, 0, 1)
		w.chunk = m.take(w.n)
		close(w.ready)
	}
}
