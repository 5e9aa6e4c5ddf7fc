package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	readAhead  = 16 << 10 // read past the size word at most this far, so little of the next frame is ever moved
	growStep   = 64 << 10 // a buffer grows by the larger of this and its own size
	keepBuffer = 64 << 10 // a connection may always hold this much
	shrinkTime = 16       // frames in a row that fit a quarter of the buffer before it is given back
)

// A frameReader cuts the byte stream of one connection into frames:
//
//	+------+------+------+------+----------------------+
//	| size of what follows      | header, body ...     |   size is a signed big-endian int32
//	+------+------+------+------+----------------------+
//
// Its one buffer holds the current frame and at most readAhead bytes of the next. The size word is only ever compared,
// never allocated: the buffer grows after bytes have arrived, so a liar costs what it sent, twice at most.
type frameReader struct {
	from       io.Reader
	memory     *memory
	max        int32
	limit      string // which config max is, for errors
	buf        []byte
	start, end int // unread bytes are buf[start:end]
	frame      int // length of the frame handed out at start, size word included
	small      int // frames in a row that needed little of buf
	stop       <-chan struct{}
}

// A FrameError says why a stream cannot be cut on: its connection has to be closed.
type FrameError struct {
	Size, Max int32
	Limit     string // the config that Max is from
	Hint      string
}

// Error says the size, the limit and where it comes from.
func (e *FrameError) Error() string {
	s := fmt.Sprintf("frame of %d bytes announced, the limit is %d (%s)", e.Size, e.Max, e.Limit)
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// next returns the next frame without its size word; it stays valid until next is called again. io.EOF means that the
// stream ended between frames.
func (f *frameReader) next() ([]byte, error) {
	f.drop()
	for f.end-f.start < 4 {
		if err := f.fill(readAhead); err != nil {
			if err == io.EOF && f.end > f.start {
				return nil, io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	head := f.buf[f.start:]
	size := int32(binary.BigEndian.Uint32(head))
	if size < 0 || size > f.max {
		return nil, &FrameError{Size: size, Max: f.max, Limit: f.limit, Hint: hint(head[:4])}
	}
	need := 4 + int(size)
	for f.end-f.start < need {
		if err := f.fill(need); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	f.frame = need
	return f.buf[f.start+4 : f.start+need : f.start+need], nil
}

// fill reads once, aiming at want bytes from start.
func (f *frameReader) fill(want int) error {
	if err := f.room(want); err != nil {
		return err
	}
	n, err := f.from.Read(f.buf[f.end:min(cap(f.buf), f.start+want):cap(f.buf)])
	f.end += n
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// room makes space for at least one more byte towards want: by moving what is there to the front, or by growing.
func (f *frameReader) room(want int) error {
	if cap(f.buf) == 0 {
		f.buf = make([]byte, 4<<10)
	}
	if f.start > 0 && f.start+min(want, readAhead) > cap(f.buf) || f.end == f.start {
		f.end = copy(f.buf, f.buf[f.start:f.end])
		f.start = 0
	}
	if f.end < cap(f.buf) {
		return nil
	}
	if f.start > 0 {
		f.end = copy(f.buf, f.buf[f.start:f.end])
		f.start = 0
		return nil
	}
	size := min(want, max(2*cap(f.buf), growStep))
	if err := f.memory.charge(charged(cap(f.buf)), charged(size), f.stop); err != nil {
		return err
	}
	grown := make([]byte, size)
	copy(grown, f.buf[:f.end])
	f.buf = grown
	return nil
}

// drop forgets the frame handed out last, and a large buffer once frames have become small.
func (f *frameReader) drop() {
	f.start += f.frame
	if f.start == f.end {
		f.start, f.end = 0, 0
	}
	if f.frame > cap(f.buf)/4 {
		f.small = 0
	} else if f.small++; f.small >= shrinkTime && cap(f.buf) > keepBuffer && f.end-f.start <= keepBuffer {
		kept := make([]byte, keepBuffer)
		f.end = copy(kept, f.buf[f.start:f.end])
		f.start = 0
		f.memory.release(charged(cap(f.buf)))
		f.buf, f.small = kept, 0
	}
	f.frame = 0
}

// close gives back what the buffer was charged.
func (f *frameReader) close() {
	f.memory.release(charged(cap(f.buf)))
	f.memory = nil
}

// charged is the part of a buffer that counts against queued.max.request.bytes.
func charged(size int) int64 { return int64(max(0, size-keepBuffer)) }

// hint recognises what other protocols' first four bytes look like when read as a size.
func hint(b []byte) string {
	switch {
	case b[0] == 0x16 && b[1] == 3:
		return "that is a TLS handshake, and this listener is not TLS"
	case b[0] == 0x15 && b[1] == 3:
		return "that is a TLS alert, and this listener is not TLS"
	case string(b) == "GET " || string(b) == "POST" || string(b) == "HEAD" || string(b) == "PUT " || string(b) == "OPTI":
		return "that is an HTTP request, and this is a Kafka port"
	case string(b) == "SSH-":
		return "that is SSH, and this is a Kafka port"
	}
	return ""
}

var errClosing = errors.New("broker is closing")
