package vfs

import (
	"math/rand/v2"
	"slices"
)

// NewCrash returns an empty MemFS that remembers what has been made durable,
// for use with Crash.
func NewCrash() *MemFS { return &MemFS{layers: true} }

// Crash returns what is on the disk after the power was cut now: everything
// that was synced, and of the rest what rnd decides. In each folder a random
// number of the unsynced changes of names happened, in their order. Each file
// holds its synced bytes and a random part of what came later; sometimes
// garbage up to the next multiple of 512 bytes stands behind it (a torn
// append), sometimes zeros (the length was written before the bytes).
//
// The MemFS itself does not change, so one state can crash in many ways; the
// result is independent of it and counts as wholly durable. It must have been
// made by NewCrash, or come from Crash.
func (m *MemFS) Crash(rnd *rand.Rand) *MemFS {
	if !m.layers {
		panic("vfs: Crash of a MemFS that was not made by NewCrash")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	after := NewCrash()
	if m.root == nil {
		return after
	}
	c := &crash{rnd: rnd, inodes: make(map[*inode]*inode)}
	after.root = c.folder(m.root)
	return after
}

// crash copies a tree; a file with two names stays one file.
type crash struct {
	rnd    *rand.Rand
	inodes map[*inode]*inode
}

func (c *crash) folder(d *folder) *folder {
	entries := make(map[string]any, len(d.entries))
	for name, v := range d.durable {
		entries[name] = v
	}
	for _, ch := range d.journal[:c.rnd.IntN(len(d.journal)+1)] {
		ch.on(entries)
	}
	out := &folder{layers: true, entries: make(map[string]any), durable: make(map[string]any)}
	for _, name := range sortedNames(entries) { // the order decides about the random draws
		var v any
		switch e := entries[name].(type) {
		case *folder:
			v = c.folder(e)
		case *inode:
			v = c.inode(e)
		}
		out.entries[name], out.durable[name] = v, v
	}
	return out
}

func (c *crash) inode(n *inode) *inode {
	if done := c.inodes[n]; done != nil {
		return done
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	out := &inode{layers: true, modTime: n.modTime}
	c.inodes[n] = out
	switch {
	case sameStart(n.durable, n.blocks):
		c.tail(out, n)
	case c.rnd.IntN(2) == 0:
		out.copyFrom(n.durable, n.durableSize) // rewritten or truncated, and none of it arrived
	default:
		out.copyFrom(n.blocks, n.size)
	}
	out.durable, out.durableSize = append([]block(nil), out.blocks...), out.size
	return out
}

// tail copies a file that only grew since its last Sync.
func (c *crash) tail(out, n *inode) {
	kept := n.durableSize
	if grown := n.size - n.durableSize; grown > 0 {
		kept += c.rnd.Int64N(grown + 1)
	}
	out.copyFrom(n.blocks, kept)
	if kept == n.size {
		return
	}
	rest := int((512 - kept%512) % 512)
	switch c.rnd.IntN(4) {
	case 0:
		garbage := make([]byte, rest)
		for i := range garbage {
			garbage[i] = byte(c.rnd.Uint32())
		}
		out.appendLocked(garbage)
	case 1:
		out.appendLocked(make([]byte, rest))
	}
}

// sameStart tells whether now still begins with the bytes of
// durable: in the same memory, as blocks are replaced when they are rewritten.
func sameStart(durable, now []block) bool {
	if len(now) < len(durable) {
		return false
	}
	for i, b := range durable {
		if len(b.data) > 0 && (len(now[i].data) < len(b.data) || &now[i].data[0] != &b.data[0]) {
			return false
		}
	}
	return true
}

// copyFrom fills an empty inode with the first size bytes of blocks.
func (n *inode) copyFrom(blocks []block, size int64) {
	for _, b := range blocks {
		if n.size == size {
			return
		}
		n.appendLocked(b.data[:min(int64(len(b.data)), size-n.size)])
	}
}

func sortedNames(entries map[string]any) []string {
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
