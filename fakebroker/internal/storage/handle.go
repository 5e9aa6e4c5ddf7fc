package storage

import (
	"sync/atomic"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
)

// handle counts who uses an open segment file, so that a segment can be
// deleted while answers that hold regions of it are still being sent. The
// segment itself holds one reference.
type handle struct {
	file vfs.File
	refs atomic.Int64
}

func newHandle(f vfs.File) *handle {
	h := &handle{file: f}
	h.refs.Store(1)
	return h
}

// acquire adds a reference; false when the file is closed already.
func (h *handle) acquire() bool {
	for {
		n := h.refs.Load()
		if n <= 0 {
			return false
		}
		if h.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release drops a reference; the last one closes the file. The file holds
// nothing unwritten by then, so an error of Close has no consequence.
func (h *handle) release() {
	switch n := h.refs.Add(-1); {
	case n == 0:
		_ = h.file.Close()
	case n < 0:
		panic("storage: Records released twice")
	}
}
