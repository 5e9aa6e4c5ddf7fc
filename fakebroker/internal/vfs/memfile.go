package vfs

import (
	"io"
	"sort"
	"sync"
	"time"
)

// Sizes of the blocks that hold a file. The first block holds just what is
// written first: many files are written once. A further block is an eighth of
// what the file holds already, so that a file wastes at most about that much;
// files below smallFile, where it is about bytes and not about megabytes, grow
// by half, so that they do not fall into many pieces.
const (
	minBlock  = 512
	maxBlock  = 1 << 20
	smallFile = 64 << 10
)

// block is a run of bytes at a fixed place of the file. Bytes within len(data)
// are never written again (truncation and WriteAt put a new block in its
// place), so slices of them may be handed out.
type block struct {
	off  int64
	data []byte
}

// inode is the content of a file: shared by the name, by renames of it and by
// all open handles. mu is held for memory copies only.
type inode struct {
	mu      sync.RWMutex
	blocks  []block
	size    int64
	modTime time.Time

	// durable is what Sync last saw (only when layers is set). Blocks never
	// change within their length, so remembering the slices is enough.
	layers      bool
	durable     []block
	durableSize int64
}

func (n *inode) readAt(p []byte, off int64) (int, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	done := 0
	for i := n.find(off); done < len(p) && i < len(n.blocks); i++ {
		b := n.blocks[i]
		done += copy(p[done:], b.data[off+int64(done)-b.off:])
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// find returns the index of the block that holds offset off, len(blocks) if
// off is at or behind the end. mu must be held.
func (n *inode) find(off int64) int {
	if off >= n.size {
		return len(n.blocks)
	}
	return sort.Search(len(n.blocks), func(i int) bool {
		b := n.blocks[i]
		return b.off+int64(len(b.data)) > off
	})
}

func (n *inode) slices(dst [][]byte, off int64, length int) [][]byte {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for i := n.find(off); length > 0 && i < len(n.blocks); i++ {
		b := n.blocks[i]
		s := b.data[off-b.off:]
		if len(s) > length {
			s = s[:length]
		}
		dst = append(dst, s[:len(s):len(s)])
		off += int64(len(s))
		length -= len(s)
	}
	return dst
}

func (n *inode) append(p []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.modTime = time.Now()
	n.appendLocked(p)
}

func (n *inode) appendLocked(p []byte) {
	for len(p) > 0 {
		last := len(n.blocks) - 1
		if last < 0 || len(n.blocks[last].data) == cap(n.blocks[last].data) {
			n.grow(len(p))
			last = len(n.blocks) - 1
		}
		b := &n.blocks[last]
		k := min(len(p), cap(b.data)-len(b.data))
		b.data = append(b.data, p[:k]...)
		n.size += int64(k)
		p = p[k:]
	}
}

// grow adds an empty block with room for at least want bytes.
func (n *inode) grow(want int) {
	size := want
	switch {
	case n.size == 0:
	case n.size < smallFile:
		size = max(want, minBlock, int(n.size/2))
	default:
		size = max(want, int(min(n.size/8, maxBlock)))
	}
	n.blocks = append(n.blocks, block{off: n.size, data: make([]byte, 0, size)})
}

// writeAt replaces the blocks that it touches, so that readers of the old
// bytes keep them.
func (n *inode) writeAt(p []byte, off int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.modTime = time.Now()
	if off > n.size {
		n.extend(off)
	}
	for len(p) > 0 && off < n.size {
		b := &n.blocks[n.find(off)]
		data := append(make([]byte, 0, cap(b.data)), b.data...)
		k := copy(data[off-b.off:], p)
		b.data = data
		p, off = p[k:], off+int64(k)
	}
	n.appendLocked(p)
}

func (n *inode) truncate(size int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.modTime = time.Now()
	if size >= n.size {
		n.extend(size)
		return
	}
	i := n.find(size)
	kept := append([]block(nil), n.blocks[:i]...) // durable may share the array
	if b := n.blocks[i]; b.off < size {
		k := size - b.off
		kept = append(kept, block{off: b.off, data: b.data[:k:k]})
	}
	n.blocks, n.size = kept, size
}

func (n *inode) extend(size int64) {
	for n.size < size {
		n.appendLocked(make([]byte, min(size-n.size, maxBlock)))
	}
}

func (n *inode) sync() {
	if !n.layers {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.durable = append([]block(nil), n.blocks...)
	n.durableSize = n.size
}

// memFile is a handle on an inode.
type memFile struct {
	n        *inode
	writable bool
	mu       sync.Mutex
	closed   bool
}

func (m *memFile) check(write bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return ErrClosed
	case write && !m.writable:
		return errReadOnly
	}
	return nil
}

func (m *memFile) ReadAt(p []byte, off int64) (int, error) {
	if err := m.check(false); err != nil {
		return 0, err
	}
	return m.n.readAt(p, off)
}

// Slices implements Slicer. It works on a closed handle too: the bytes stay.
func (m *memFile) Slices(dst [][]byte, off int64, n int) [][]byte {
	return m.n.slices(dst, off, n)
}

func (m *memFile) Append(p []byte) (int, error) {
	if err := m.check(true); err != nil {
		return 0, err
	}
	m.n.append(p)
	return len(p), nil
}

func (m *memFile) WriteAt(p []byte, off int64) (int, error) {
	if err := m.check(true); err != nil {
		return 0, err
	}
	m.n.writeAt(p, off)
	return len(p), nil
}

func (m *memFile) Truncate(size int64) error {
	if err := m.check(true); err != nil {
		return err
	}
	m.n.truncate(size)
	return nil
}

func (m *memFile) Sync() error {
	if err := m.check(false); err != nil {
		return err
	}
	m.n.sync()
	return nil
}

func (m *memFile) Size() int64 {
	m.n.mu.RLock()
	defer m.n.mu.RUnlock()
	return m.n.size
}

func (m *memFile) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	m.closed = true
	return nil
}
