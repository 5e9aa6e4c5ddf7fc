package vfs

import (
	"path/filepath"
	"sync"
)

// Count says how often a call was made and about how many bytes.
type Count struct {
	Calls int
	Bytes int64
}

// CountFS counts the calls made on another FS, by kind and by the suffix of
// the file's name (".log", ".index"; "" for none). Reads through Slicer or
// Descriptor are not counted. All methods may be called from any goroutine.
type CountFS struct {
	*FaultFS
	mu     sync.Mutex
	counts map[countKey]Count
}

type countKey struct {
	kind   OpKind
	suffix string
}

// NewCount wraps an FS.
func NewCount(under FS) *CountFS {
	c := &CountFS{FaultFS: NewFault(under), counts: make(map[countKey]Count)}
	c.Set(func(op Op) error {
		key := countKey{op.Kind, filepath.Ext(op.Name)}
		c.mu.Lock()
		defer c.mu.Unlock()
		n := c.counts[key]
		n.Calls++
		n.Bytes += int64(op.Len)
		c.counts[key] = n
		return nil
	})
	return c
}

// Count returns the calls of a kind on files with the suffix.
func (c *CountFS) Count(kind OpKind, suffix string) Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[countKey{kind, suffix}]
}

// Reset sets all counts to zero.
func (c *CountFS) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.counts)
}
