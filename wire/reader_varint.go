package wire

// Uvarint reads an unsigned varint of 32 bits: at most 5 bytes, of whose last the bits beyond 32 are ignored, as Kafka
// does.
func (r *Reader) Uvarint() uint32 {
	if r.pos < len(r.buf) && r.buf[r.pos] < 0x80 { // nearly every one: lengths, counts and tags below 128
		v := r.buf[r.pos]
		r.pos++
		return uint32(v)
	}
	return uint32(r.uvarint(5, "32"))
}

// Uvarlong reads an unsigned varint of 64 bits: at most 10 bytes.
func (r *Reader) Uvarlong() uint64 { return r.uvarint(10, "64") }

// Varint reads a zigzag varint of 32 bits.
func (r *Reader) Varint() int32 {
	v := r.Uvarint()
	return int32(v>>1) ^ -int32(v&1)
}

// Varlong reads a zigzag varint of 64 bits.
func (r *Reader) Varlong() int64 {
	v := r.uvarint(10, "64")
	return int64(v>>1) ^ -int64(v&1)
}

func (r *Reader) uvarint(most int, bits string) uint64 {
	var v uint64
	for i := 0; i < most; i++ {
		if r.pos+i >= len(r.buf) {
			r.fail(ErrTruncated, "a varint has no end")
			return 0
		}
		b := r.buf[r.pos+i]
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			r.pos += i + 1
			return v
		}
	}
	r.fail(ErrMalformed, "a varint of %s bits is longer than %d bytes", bits, most)
	return 0
}
