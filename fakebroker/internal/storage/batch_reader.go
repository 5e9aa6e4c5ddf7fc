package storage

import (
	"fmt"
	"io"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/record"
)

// readAhead is how much a batchReader reads at once.
const readAhead = 256 << 10

// batchReader reads a log from pos to end, in order: recovery and replay.
type batchReader struct {
	f        vfs.File
	pos, end int64
	// check compares the checksum; a batch that fails is an errBadBatch.
	check bool
	// controlOnly returns the bytes of control batches only and does not read
	// those of others.
	controlOnly bool

	buf   []byte
	bufAt int64
}

// next returns the next batch and moves behind it; io.EOF at end. What cannot
// be a batch is an errBadBatch, and the position stays. The bytes are good
// until the next call.
func (r *batchReader) next() (h record.BatchHeader, batch []byte, err error) {
	if r.pos >= r.end {
		return h, nil, io.EOF
	}
	if r.end-r.pos < record.HeaderSize {
		return h, nil, fmt.Errorf("%w at position %d: %d bytes are less than a header", errBadBatch, r.pos, r.end-r.pos)
	}
	b, err := r.bytes(record.HeaderSize)
	if err != nil {
		return h, nil, err
	}
	if err := parseStored(b, r.pos, r.end, &h); err != nil {
		return h, nil, err
	}
	if r.controlOnly && !h.Control() {
		r.pos += int64(h.Size())
		return h, nil, nil
	}
	if batch, err = r.bytes(h.Size()); err != nil {
		return h, nil, err
	}
	if r.check {
		if err := record.Validate(batch); err != nil {
			return h, nil, fmt.Errorf("%w at position %d: %w", errBadBatch, r.pos, err)
		}
	}
	r.pos += int64(h.Size())
	return h, batch, nil
}

// bytes returns n bytes from pos, which are known to be there.
func (r *batchReader) bytes(n int) ([]byte, error) {
	at := r.pos - r.bufAt
	if r.buf == nil || at < 0 || at+int64(n) > int64(len(r.buf)) {
		want := int(min(int64(max(n, readAhead)), r.end-r.pos))
		if cap(r.buf) < want {
			r.buf = make([]byte, want)
		}
		r.buf, r.bufAt, at = r.buf[:want], r.pos, 0
		if k, err := r.f.ReadAt(r.buf, r.pos); k < want {
			r.buf = r.buf[:0]
			return nil, unexpectedEOF(err)
		}
	}
	return r.buf[at : at+int64(n)], nil
}
