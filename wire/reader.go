package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Limits of what one input may make a Reader allocate: elements in memory are larger than on the wire (an empty
// compact string is one byte there and sixteen here), so the count alone does not bound it.
const (
	budgetFactor = 16
	budgetBase   = 1 << 20
)

// Reader takes primitives off the front of a byte slice. The first error stays: every later read returns a zero value,
// so that callers check once, at the end. A Reader belongs to one goroutine.
//
// It is safe on any input: a count is checked against the bytes that are left before anything is allocated for it, and
// all that one Reader lets its callers allocate is at most 16 times its input and 1 MiB.
type Reader struct {
	buf    []byte
	pos    int
	budget int
	err    *DecodeError
}

// NewReader reads b from its start. The Reader keeps b; bytes fields that are read point into it.
func NewReader(b []byte) *Reader {
	r := &Reader{}
	r.Reset(b)
	return r
}

// Reset starts over with b, with a fresh budget.
func (r *Reader) Reset(b []byte) {
	*r = Reader{buf: b, budget: budgetFactor*len(b) + budgetBase}
}

// Err is the first error, a *DecodeError, or nil.
func (r *Reader) Err() error {
	if r.err == nil {
		return nil
	}
	return r.err
}

// Result is Err with the message's name and version in it. Generated code ends with it.
func (r *Reader) Result(message string, version int16) error {
	if r.err == nil {
		return nil
	}
	if r.err.Message == "" {
		r.err.Message, r.err.Version = message, version
	}
	return r.err
}

// Remaining is the number of bytes left.
func (r *Reader) Remaining() int { return len(r.buf) - r.pos }

// Offset is the number of bytes read.
func (r *Reader) Offset() int { return r.pos }

// Rest is what is left, without reading it; it points into the input.
func (r *Reader) Rest() []byte { return r.buf[r.pos:] }

func (r *Reader) fail(err error, format string, args ...any) {
	if r.err == nil {
		r.err = &DecodeError{Offset: r.pos, Size: len(r.buf), What: fmt.Sprintf(format, args...), Err: err}
	}
	r.pos = len(r.buf) // nothing more is read: every later read finds too few bytes
}

// short keeps the making of an error out of the readers of numbers, which are called for every field.
//
//go:noinline
func (r *Reader) short(n int) {
	r.fail(ErrTruncated, "%d bytes are needed, %d are left", n, len(r.buf)-r.pos)
}

// Int8 reads one byte.
func (r *Reader) Int8() int8 {
	if r.pos >= len(r.buf) {
		r.short(1)
		return 0
	}
	v := r.buf[r.pos]
	r.pos++
	return int8(v)
}

// Bool reads one byte; everything but 0 is true, as in Kafka.
func (r *Reader) Bool() bool { return r.Int8() != 0 }

// Uint16 reads two bytes.
func (r *Reader) Uint16() uint16 {
	if len(r.buf)-r.pos < 2 {
		r.short(2)
		return 0
	}
	v := binary.BigEndian.Uint16(r.buf[r.pos:])
	r.pos += 2
	return v
}

// Int16 reads two bytes.
func (r *Reader) Int16() int16 { return int16(r.Uint16()) }

// Uint32 reads four bytes.
func (r *Reader) Uint32() uint32 {
	if len(r.buf)-r.pos < 4 {
		r.short(4)
		return 0
	}
	v := binary.BigEndian.Uint32(r.buf[r.pos:])
	r.pos += 4
	return v
}

// Int32 reads four bytes.
func (r *Reader) Int32() int32 { return int32(r.Uint32()) }

// Int64 reads eight bytes.
func (r *Reader) Int64() int64 {
	if len(r.buf)-r.pos < 8 {
		r.short(8)
		return 0
	}
	v := binary.BigEndian.Uint64(r.buf[r.pos:])
	r.pos += 8
	return int64(v)
}

// Float64 reads eight bytes.
func (r *Reader) Float64() float64 { return math.Float64frombits(uint64(r.Int64())) }

// UUID reads sixteen bytes.
func (r *Reader) UUID() (u UUID) {
	if len(r.buf)-r.pos < len(u) {
		r.short(len(u))
		return u
	}
	copy(u[:], r.buf[r.pos:])
	r.pos += len(u)
	return u
}

// Raw reads n bytes; they point into the input, with no capacity beyond their end.
func (r *Reader) Raw(n int) []byte {
	if n < 0 || n > len(r.buf)-r.pos {
		r.short(n)
		return nil
	}
	b := r.buf[r.pos : r.pos+n : r.pos+n]
	r.pos += n
	return b
}

// Null8 reads the byte before a nullable struct and reports whether the struct follows.
func (r *Reader) Null8() bool { return r.Int8() >= 0 && r.err == nil }

// NullUvarint is Null8 for a struct in a tagged field.
func (r *Reader) NullUvarint() bool { return r.Uvarint() != 0 }

// Charge takes n bytes of memory from the budget before they are allocated, and reports whether there was so much.
func (r *Reader) Charge(n int) bool {
	if r.err != nil || n > r.budget {
		r.fail(ErrMalformed, "decoding would take more than the %d bytes of memory that %d bytes of input may",
			budgetFactor*len(r.buf)+budgetBase, len(r.buf))
		return false
	}
	r.budget -= n
	return true
}
