package record

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/ottla-kafka/ottla/wire/compress"
)

// Messages of magic 0 and 1 (before Kafka 0.11), read only. A "batch" is one message:
//
//	0 int64 offset · 8 int32 size · 12 uint32 CRC-32 of what follows · 16 int8 magic · 17 int8 attributes
//	· magic 1: 18 int64 timestamp · int32 key length, -1 null · key · int32 value length, -1 null · value
//
// attributes: bits 0-2 codec, bit 3 LogAppendTime (magic 1). With a codec, the value holds a compressed set of messages of
// the same magic; the outer offset is that of the last one. Inside, magic 0 has absolute offsets and magic 1 offsets
// relative to the first (KIP-31).
const (
	legacyCRC        = 12
	legacyAttributes = 17
	legacyTimestamp  = 18
	legacyMinSize    = LogOverhead + minLegacySize
)

// ParseAny reads the header of a whole batch of any magic. Of a message of magic 0 or 1 it knows less: the fields about
// producers are -1, the timestamps are the message's, BaseOffset is its offset (of the last record if it is compressed),
// Count is 1. The checksum is not checked.
func ParseAny(batch []byte) (BatchHeader, error) {
	size, magic, err := Peek(batch)
	if err != nil {
		return BatchHeader{}, err
	}
	if magic == 2 {
		return ParseHeader(batch)
	}
	if size > len(batch) {
		return BatchHeader{}, ErrPartial
	}
	h := BatchHeader{
		BaseOffset:           int64(binary.BigEndian.Uint64(batch)),
		Length:               int32(size - LogOverhead),
		PartitionLeaderEpoch: NoLeaderEpoch,
		Magic:                magic,
		CRC:                  binary.BigEndian.Uint32(batch[legacyCRC:]),
		Attributes:           int16(batch[legacyAttributes] & (AttrCodecMask | AttrLogAppendTime)),
		BaseTimestamp:        NoTimestamp,
		MaxTimestamp:         NoTimestamp,
		ProducerID:           NoProducerID,
		ProducerEpoch:        NoProducerEpoch,
		BaseSequence:         NoSequence,
		Count:                1,
	}
	if magic == 0 {
		h.Attributes &= AttrCodecMask
		return h, nil
	}
	if size < legacyMinSize+8 {
		return h, corruptf("message at offset %d has %d bytes, less than magic 1 needs (%d)", h.BaseOffset, size,
			legacyMinSize+8)
	}
	h.BaseTimestamp = int64(binary.BigEndian.Uint64(batch[legacyTimestamp:]))
	h.MaxTimestamp = h.BaseTimestamp
	return h, nil
}

func validateLegacy(batch []byte, magic int8) error {
	if magic == 1 && len(batch) < legacyMinSize+8 {
		return corruptf("message at offset %d has %d bytes, less than magic 1 needs (%d)",
			int64(binary.BigEndian.Uint64(batch)), len(batch), legacyMinSize+8)
	}
	want, got := binary.BigEndian.Uint32(batch[legacyCRC:]), crc32.ChecksumIEEE(batch[offMagic:])
	if want != got {
		return corruptf("message at offset %d, %d bytes: CRC-32 is %08x, header says %08x",
			int64(binary.BigEndian.Uint64(batch)), len(batch), got, want)
	}
	return nil
}

// openLegacy prepares reading a message: itself, or the set inside it, which is walked once to learn offsets and count.
func (it *Iterator) openLegacy(batch []byte, o ReadOptions) error {
	h, err := ParseAny(batch)
	if err != nil {
		return err
	}
	it.legacy, it.header, it.data, it.count, it.left = true, h, batch, 1, 1
	codec := h.Codec()
	if codec == compress.None {
		return nil
	}
	it.stamp = h.LogAppendTime()
	_, value, err := legacyFields(batch, h.Magic)
	if err != nil {
		return it.fail(-1, "%v", err)
	}
	if value == nil {
		return it.fail(-1, "compressed message without a value")
	}
	plain, err := decompress(codec, value, h.Magic, o)
	if err != nil {
		return &RecordError{Offset: h.BaseOffset, Index: -1, Err: err}
	}
	it.plain, it.data, it.inner = plain, plain[len(o.Buffer):], true
	return it.walkInner(o.SkipCRC)
}

// walkInner checks that the decompressed set consists of whole, uncompressed messages of the wrapper's magic, and turns
// the header's numbers into those of the set.
func (it *Iterator) walkInner(skipCRC bool) error {
	last, maxTime := it.header.BaseOffset, it.header.MaxTimestamp
	var first, lastInner int64
	it.count = 0
	for rest := it.data; len(rest) > 0; it.count++ {
		var msg []byte
		var err error
		if msg, rest, err = Next(rest); err != nil {
			return it.fail(it.count, "message inside a compressed one: %v", err)
		}
		if int8(msg[offMagic]) != it.header.Magic {
			return it.fail(it.count, "magic %d inside a message of magic %d", msg[offMagic], it.header.Magic)
		}
		if msg[legacyAttributes]&AttrCodecMask != 0 {
			return it.fail(it.count, "compressed message inside a compressed one")
		}
		if !skipCRC {
			if err := validateLegacy(msg, it.header.Magic); err != nil {
				return &RecordError{Offset: it.header.BaseOffset, Index: it.count, Err: err}
			}
		}
		lastInner = int64(binary.BigEndian.Uint64(msg))
		if it.count == 0 {
			first = lastInner
		}
	}
	if it.count == 0 {
		return it.fail(-1, "compressed message without messages inside")
	}
	if it.header.Magic == 1 {
		it.base = last - lastInner
	}
	it.header.BaseOffset = it.base + first
	it.header.LastOffsetDelta = int32(last - it.header.BaseOffset)
	it.header.MaxTimestamp = maxTime
	it.header.Count = it.count
	it.left = it.count
	return nil
}

func (it *Iterator) legacyInto(r *Record) bool {
	msg := it.data
	if it.inner {
		var err error
		if msg, it.data, err = Next(it.data); err != nil { // cannot happen: walkInner went through
			return it.bad("%v", err)
		}
	}
	key, value, err := legacyFields(msg, it.header.Magic)
	if err != nil {
		return it.bad("%v", err)
	}
	*r = Record{
		Offset:    it.base + int64(binary.BigEndian.Uint64(msg)),
		Timestamp: NoTimestamp,
		Key:       key,
		Value:     value,
	}
	switch {
	case it.stamp:
		r.Timestamp = it.header.MaxTimestamp
	case it.header.Magic == 1:
		r.Timestamp = int64(binary.BigEndian.Uint64(msg[legacyTimestamp:]))
	}
	it.left--
	return true
}

// legacyFields returns key and value of a message, which must fill it exactly.
func legacyFields(msg []byte, magic int8) (key, value []byte, err error) {
	rest := msg[legacyTimestamp:]
	if magic == 1 {
		if len(rest) < 8 {
			return nil, nil, invalidf("message of %d bytes ends in the timestamp", len(msg))
		}
		rest = rest[8:]
	}
	if key, rest, err = legacyBytes(rest, "key"); err != nil {
		return nil, nil, err
	}
	if value, rest, err = legacyBytes(rest, "value"); err != nil {
		return nil, nil, err
	}
	if len(rest) > 0 {
		return nil, nil, invalidf("%d bytes behind the value of a message", len(rest))
	}
	return key, value, nil
}

func legacyBytes(b []byte, what string) (p, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, invalidf("%d bytes where the %s length should be", len(b), what)
	}
	n := int32(binary.BigEndian.Uint32(b))
	b = b[4:]
	if n < 0 {
		return nil, b, nil
	}
	if int(n) > len(b) {
		return nil, nil, invalidf("%s length %d, %d bytes are left", what, n, len(b))
	}
	return b[:n:n], b[n:], nil
}
