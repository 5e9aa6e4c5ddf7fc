package wire

import (
	"fmt"
	"math"
)

// Writer appends to a buffer and remembers the first error, so that generated code is a straight line of fields. It
// lives on the stack of AppendTo; nothing else needs it. The methods that take flexible write the compact form (length
// + 1 as an unsigned varint) when it is true and the fixed size length otherwise.
type Writer struct {
	buf []byte
	err *EncodeError
}

// NewWriter starts behind the bytes of dst.
func NewWriter(dst []byte) Writer { return Writer{buf: dst} }

// Result is the buffer, and the first error with the message's name and version in it. Generated code ends with it.
func (w *Writer) Result(message string, version int16) ([]byte, error) {
	if w.err == nil {
		return w.buf, nil
	}
	w.err.Message, w.err.Version = message, version
	return w.buf, w.err
}

func (w *Writer) fail(field string, err error, what string) {
	if w.err == nil {
		w.err = &EncodeError{Field: field, Err: err, What: what}
	}
}

// Unsupported records that a field is set which the version cannot carry.
func (w *Writer) Unsupported(field string) {
	w.fail(field, ErrUnsupportedVersion, "the field is set and this version does not have it")
}

// Null records that a field is null in a version that does not allow it.
func (w *Writer) Null(field string) { w.fail(field, ErrNull, "") }

// Bool writes one byte.
func (w *Writer) Bool(v bool) { w.buf = AppendBool(w.buf, v) }

// Int8 writes one byte.
func (w *Writer) Int8(v int8) { w.buf = append(w.buf, byte(v)) }

// Int16 writes two bytes.
func (w *Writer) Int16(v int16) { w.buf = AppendInt16(w.buf, v) }

// Uint16 writes two bytes.
func (w *Writer) Uint16(v uint16) { w.buf = AppendUint16(w.buf, v) }

// Int32 writes four bytes.
func (w *Writer) Int32(v int32) { w.buf = AppendInt32(w.buf, v) }

// Uint32 writes four bytes.
func (w *Writer) Uint32(v uint32) { w.buf = AppendUint32(w.buf, v) }

// Int64 writes eight bytes.
func (w *Writer) Int64(v int64) { w.buf = AppendInt64(w.buf, v) }

// Float64 writes eight bytes.
func (w *Writer) Float64(v float64) { w.buf = AppendFloat64(w.buf, v) }

// UUID writes sixteen bytes.
func (w *Writer) UUID(v UUID) { w.buf = append(w.buf, v[:]...) }

// Uvarint writes an unsigned varint.
func (w *Writer) Uvarint(v uint32) { w.buf = AppendUvarint(w.buf, v) }

// Null8 writes the byte before a nullable struct, 1 when the struct follows and -1 when it is null, and returns
// whether it follows.
func (w *Writer) Null8(present bool) bool {
	if present {
		w.buf = append(w.buf, 1)
	} else {
		w.buf = append(w.buf, 0xff)
	}
	return present
}

// NullUvarint is Null8 for a struct in a tagged field, where Kafka writes an unsigned varint, 1 or 0.
func (w *Writer) NullUvarint(present bool) bool {
	w.buf = AppendBool(w.buf, present)
	return present
}

// String writes a string that cannot be null.
func (w *Writer) String(flexible bool, s string) {
	if len(s) > MaxString {
		w.fail("string", ErrTooLong, fmt.Sprintf("%d bytes, %d are allowed: %.20q...", len(s), MaxString, s))
		return
	}
	if flexible {
		w.buf = AppendCompactString(w.buf, s)
	} else {
		w.buf = AppendString(w.buf, s)
	}
}

// NullableString writes a string or null.
func (w *Writer) NullableString(flexible bool, s *string) {
	switch {
	case s != nil:
		w.String(flexible, *s)
	case flexible:
		w.buf = append(w.buf, 0)
	default:
		w.buf = append(w.buf, 0xff, 0xff)
	}
}

// Bytes writes bytes; nil is null when nullable and empty otherwise.
func (w *Writer) Bytes(flexible, nullable bool, b []byte) {
	if w.ArrayLen(flexible, nullable && b == nil, len(b)) {
		w.buf = append(w.buf, b...)
	}
}

// ArrayLen writes the count of an array, or null, and returns whether elements follow.
func (w *Writer) ArrayLen(flexible, null bool, n int) bool {
	switch {
	case null:
		if flexible {
			w.buf = append(w.buf, 0)
		} else {
			w.buf = append(w.buf, 0xff, 0xff, 0xff, 0xff)
		}
		return false
	case n >= math.MaxInt32:
		w.fail("length", ErrTooLong, fmt.Sprintf("%d elements or bytes", n))
		return false
	case flexible:
		w.buf = AppendUvarint(w.buf, uint32(n)+1)
	default:
		w.buf = AppendInt32(w.buf, int32(n))
	}
	return true
}

// Int8s writes an array.
func (w *Writer) Int8s(flexible, nullable bool, s []int8) {
	w.ArrayLen(flexible, nullable && s == nil, len(s))
	for _, v := range s {
		w.Int8(v)
	}
}

// Int16s writes an array.
func (w *Writer) Int16s(flexible, nullable bool, s []int16) {
	w.ArrayLen(flexible, nullable && s == nil, len(s))
	for _, v := range s {
		w.Int16(v)
	}
}

// Int32s writes an array.
func (w *Writer) Int32s(flexible, nullable bool, s []int32) {
	w.ArrayLen(flexible, nullable && s == nil, len(s))
	for _, v := range s {
		w.Int32(v)
	}
}

// Int64s writes an array.
func (w *Writer) Int64s(flexible, nullable bool, s []int64) {
	w.ArrayLen(flexible, nullable && s == nil, len(s))
	for _, v := range s {
		w.Int64(v)
	}
}

// UUIDs writes an array.
func (w *Writer) UUIDs(flexible, nullable bool, s []UUID) {
	w.ArrayLen(flexible, nullable && s == nil, len(s))
	for i := range s {
		w.buf = append(w.buf, s[i][:]...)
	}
}

// Strings writes an array of strings that cannot be null.
func (w *Writer) Strings(flexible, nullable bool, s []string) {
	w.ArrayLen(flexible, nullable && s == nil, len(s))
	for _, v := range s {
		w.String(flexible, v)
	}
}
