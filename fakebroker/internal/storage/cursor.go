package storage

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/record"
)

// errBadBatch marks a place in a log where no sound batch begins.
var errBadBatch = errors.New("storage: no sound batch")

// scanWindow is how much a cursor reads at once from a disk: an index
// interval, so that a lookup takes one or two reads.
const scanWindow = 4096

// cursor walks over the batch headers of a segment's log, [pos, end), without
// reading the records. It belongs to one goroutine; release gives it back.
type cursor struct {
	f        vfs.File
	pos, end int64

	buf    []byte // the window: f's bytes from winAt on
	winAt  int64
	slicer vfs.Slicer // f's bytes are in memory: the window is a view of them
	slices [4][]byte
	space  [scanWindow]byte
}

var cursors = sync.Pool{New: func() any { return new(cursor) }}

func newCursor(f vfs.File, pos, end int64) *cursor {
	c := cursors.Get().(*cursor)
	c.f, c.pos, c.end, c.buf = f, pos, end, nil
	c.slicer, _ = vfs.AsSlicer(f)
	return c
}

func (c *cursor) release() {
	c.f, c.slicer, c.buf = nil, nil, nil
	clear(c.slices[:])
	cursors.Put(c)
}

// peek returns the header of the batch at pos; io.EOF at end. A batch that
// does not fit before end, or is none, is an errBadBatch.
func (c *cursor) peek(h *record.BatchHeader) error {
	if c.pos >= c.end {
		return io.EOF
	}
	if c.end-c.pos < record.HeaderSize {
		return fmt.Errorf("%w at position %d: %d bytes are less than a header", errBadBatch, c.pos, c.end-c.pos)
	}
	at := c.pos - c.winAt
	if at < 0 || at+record.HeaderSize > int64(len(c.buf)) {
		if err := c.fetch(); err != nil {
			return err
		}
		at = 0
	}
	return parseStored(c.buf[at:], c.pos, c.end, h)
}

// fetch moves the window to pos.
func (c *cursor) fetch() error {
	n := min(scanWindow, c.end-c.pos)
	c.winAt = c.pos
	if c.slicer != nil {
		got := c.slicer.Slices(c.slices[:0], c.pos, int(n))
		if len(got) > 0 && len(got[0]) >= record.HeaderSize {
			c.buf = got[0]
			return nil
		}
		n = record.HeaderSize // it lies across two blocks
	}
	if k, err := c.f.ReadAt(c.space[:n], c.pos); int64(k) < n {
		c.buf = nil
		return unexpectedEOF(err)
	}
	c.buf = c.space[:n]
	return nil
}

// skip moves behind the batch that peek showed.
func (c *cursor) skip(h *record.BatchHeader) { c.pos += int64(h.Size()) }

// parseStored reads the header of a stored batch and checks that it is one
// that fits into [pos, end).
func parseStored(b []byte, pos, end int64, h *record.BatchHeader) error {
	var err error
	if *h, err = record.ParseHeader(b); err != nil {
		return fmt.Errorf("%w at position %d: %w", errBadBatch, pos, err)
	}
	if h.Magic != 2 || h.Size() < record.HeaderSize || int64(h.Size()) > end-pos || h.LastOffsetDelta < 0 || h.BaseOffset < 0 {
		return fmt.Errorf("%w at position %d: magic %d, %d bytes where %d are left, offsets %d to %d",
			errBadBatch, pos, h.Magic, h.Size(), end-pos, h.BaseOffset, h.LastOffset())
	}
	return nil
}
