package wire

import "unsafe"

// TagReader goes through the tagged fields at the end of a struct (KIP-482):
//
//	for tags := r.Tags(); tags.Next(); {
//		switch tags.ID {
//		case 0:
//			m.Field = r.Int32()
//		default:
//			m.UnknownTags = tags.Keep(m.UnknownTags)
//		}
//	}
//
// While one field is read the Reader ends where the field does, and what reads it must read all of it.
type TagReader struct {
	// ID is the number of the field that Next found.
	ID uint32

	r     *Reader
	left  uint32
	first bool
	end   int // of the reader's input outside the field
	in    bool
}

// Tags reads the number of tagged fields.
func (r *Reader) Tags() TagReader {
	n := r.Uvarint()
	if int64(n) > int64(r.Remaining()/2) { // a tag and a size of one byte each, at least
		r.fail(ErrTruncated, "%d tagged fields, %d bytes are left", n, r.Remaining())
		n = 0
	}
	return TagReader{r: r, left: n, first: true}
}

// Next goes to the next tagged field and reports whether there is one. Tags must rise.
func (t *TagReader) Next() bool {
	r := t.r
	if t.in {
		t.in = false
		if r.err == nil && r.pos != len(r.buf) {
			r.fail(ErrMalformed, "tagged field %d has %d bytes too many", t.ID, len(r.buf)-r.pos)
		}
		r.buf = r.buf[:t.end]
	}
	if t.left == 0 || r.err != nil {
		if r.err != nil {
			r.pos = len(r.buf)
		}
		return false
	}
	t.left--
	id, size := r.Uvarint(), r.Uvarint()
	switch {
	case r.err != nil:
		return false
	case !t.first && id <= t.ID:
		r.fail(ErrMalformed, "tagged field %d behind tagged field %d", id, t.ID)
		return false
	case int64(size) > int64(r.Remaining()):
		r.fail(ErrTruncated, "tagged field %d of %d bytes, %d are left", id, size, r.Remaining())
		return false
	}
	t.ID, t.first = id, false
	t.end, t.in = len(r.buf), true
	r.buf = r.buf[:r.pos+int(size)]
	return true
}

// Keep appends the field, which the definition does not know, to tags. Its data points into the input.
func (t *TagReader) Keep(tags Tags) Tags {
	if !t.r.Charge(int(unsafe.Sizeof(Tag{}))) {
		return tags
	}
	return append(tags, Tag{ID: t.ID, Data: t.r.Raw(t.r.Remaining())})
}

// UnknownTags reads the tagged fields of a struct that defines none, into tags from its start.
func (r *Reader) UnknownTags(tags Tags) Tags {
	tags = tags[:0]
	if r.pos < len(r.buf) && r.buf[r.pos] == 0 { // no tagged fields: nearly always
		r.pos++
		return tags
	}
	for t := r.Tags(); t.Next(); {
		tags = t.Keep(tags)
	}
	return tags
}
