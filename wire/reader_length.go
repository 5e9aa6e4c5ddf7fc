package wire

import "unsafe"

// length reads the length of a string, bytes field or array: -1 is null, and only a nullable one may be. What is below
// -1 is an error in both forms. The result is at most math.MaxInt32.
func (r *Reader) length(flexible, nullable bool) int {
	var n int
	if flexible {
		n = int(int64(r.Uvarint()) - 1)
	} else {
		n = int(r.Int32())
	}
	if r.err != nil {
		return 0
	}
	if n < 0 && !(nullable && n == -1) {
		r.fail(ErrMalformed, "length %d", n)
		return 0
	}
	return n
}

func (r *Reader) stringLength(flexible, nullable bool) int {
	if flexible {
		n := r.length(true, nullable)
		if n > MaxString {
			r.fail(ErrMalformed, "string of %d bytes, %d are allowed", n, MaxString)
			return 0
		}
		return n
	}
	n := int(r.Int16())
	if n < 0 && r.err == nil && !(nullable && n == -1) {
		r.fail(ErrMalformed, "string length %d", n)
		return 0
	}
	return n
}

// StringIn reads a string that cannot be null; compact when flexible.
func (r *Reader) StringIn(flexible bool) string {
	return r.text(r.stringLength(flexible, false))
}

// text copies n bytes, and charges for the eight bytes that the allocator gives at least.
func (r *Reader) text(n int) string {
	b := r.Raw(n)
	if n > 0 && !r.Charge((n+7)&^7) {
		return ""
	}
	return string(b)
}

// NullableStringIn reads a string, or nil for null when the version allows it.
func (r *Reader) NullableStringIn(flexible, nullable bool) *string {
	n := r.stringLength(flexible, nullable)
	if n < 0 || r.err != nil {
		return nil
	}
	s := r.text(n)
	if !r.Charge(int(unsafe.Sizeof(s))) {
		return nil
	}
	return &s
}

// String reads a string with an int16 length.
func (r *Reader) String() string { return r.StringIn(false) }

// CompactString reads a string with an unsigned varint of its length + 1.
func (r *Reader) CompactString() string { return r.StringIn(true) }

// NullableString reads a string with an int16 length; -1 gives nil.
func (r *Reader) NullableString() *string { return r.NullableStringIn(false, true) }

// CompactNullableString reads a string with an unsigned varint of its length + 1; 0 gives nil.
func (r *Reader) CompactNullableString() *string { return r.NullableStringIn(true, true) }

// BytesIn reads a bytes or records field; it points into the input. Null, when allowed, gives nil; empty does not.
func (r *Reader) BytesIn(flexible, nullable bool) []byte {
	n := r.length(flexible, nullable)
	if n < 0 || r.err != nil {
		return nil
	}
	return r.Raw(n)
}

// Bytes reads bytes with an int32 length.
func (r *Reader) Bytes() []byte { return r.BytesIn(false, false) }

// CompactBytes reads bytes with an unsigned varint of their length + 1.
func (r *Reader) CompactBytes() []byte { return r.BytesIn(true, false) }

// NullableBytes reads bytes with an int32 length; -1 gives nil.
func (r *Reader) NullableBytes() []byte { return r.BytesIn(false, true) }

// CompactNullableBytes reads bytes with an unsigned varint of their length + 1; 0 gives nil.
func (r *Reader) CompactNullableBytes() []byte { return r.BytesIn(true, true) }

// ArrayLen reads the count of an array whose elements take at least minElem bytes each on the wire and elemSize bytes
// each in memory. It fails before anything is allocated when so many cannot be there, or may not be held. -1 is null.
func (r *Reader) ArrayLen(flexible, nullable bool, minElem, elemSize int) int {
	n := r.length(flexible, nullable)
	if n <= 0 {
		return n
	}
	if minElem > 0 && n > r.Remaining()/minElem {
		r.fail(ErrTruncated, "array of %d elements of at least %d bytes each, %d bytes are left", n, minElem, r.Remaining())
		return 0
	}
	if elemSize > 0 && n > r.budget/elemSize {
		elemSize, n = 1, r.budget+1 // let Charge say so
	}
	if !r.Charge(n * elemSize) {
		return 0
	}
	return n
}

// ReadArray reads the count of an array and returns a slice of that length, s again when its capacity is enough: the
// caller reads every element. Null gives nil, empty does not.
func ReadArray[T any](r *Reader, s []T, flexible, nullable bool, minElem int) []T {
	var zero T
	n := r.ArrayLen(flexible, nullable, minElem, int(unsafe.Sizeof(zero)))
	switch {
	case n < 0:
		return nil
	case n <= cap(s) && s != nil:
		return s[:n]
	default:
		return make([]T, n)
	}
}

// NewStruct allocates what a nullable struct is read into, from the reader's budget.
func NewStruct[T any](r *Reader) *T {
	p := new(T)
	r.Charge(int(unsafe.Sizeof(*p)))
	return p
}

// Int8s reads an array into s, which is reused when large enough.
func (r *Reader) Int8s(s []int8, flexible, nullable bool) []int8 {
	s = ReadArray(r, s, flexible, nullable, 1)
	for i := range s {
		s[i] = r.Int8()
	}
	return s
}

// Int16s reads an array into s, which is reused when large enough.
func (r *Reader) Int16s(s []int16, flexible, nullable bool) []int16 {
	s = ReadArray(r, s, flexible, nullable, 2)
	for i := range s {
		s[i] = r.Int16()
	}
	return s
}

// Int32s reads an array into s, which is reused when large enough.
func (r *Reader) Int32s(s []int32, flexible, nullable bool) []int32 {
	s = ReadArray(r, s, flexible, nullable, 4)
	for i := range s {
		s[i] = r.Int32()
	}
	return s
}

// Int64s reads an array into s, which is reused when large enough.
func (r *Reader) Int64s(s []int64, flexible, nullable bool) []int64 {
	s = ReadArray(r, s, flexible, nullable, 8)
	for i := range s {
		s[i] = r.Int64()
	}
	return s
}

// UUIDs reads an array into s, which is reused when large enough.
func (r *Reader) UUIDs(s []UUID, flexible, nullable bool) []UUID {
	s = ReadArray(r, s, flexible, nullable, 16)
	for i := range s {
		s[i] = r.UUID()
	}
	return s
}

// Strings reads an array of strings into s, which is reused when large enough; the strings are new.
func (r *Reader) Strings(s []string, flexible, nullable bool) []string {
	least := 2
	if flexible {
		least = 1
	}
	s = ReadArray(r, s, flexible, nullable, least)
	for i := range s {
		s[i] = r.StringIn(flexible)
	}
	return s
}
