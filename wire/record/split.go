package record

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	// PeekSize is how many bytes Peek needs to see size and magic of a batch of any format.
	PeekSize = offMagic + 1
	// minLegacySize is the smallest length field of any format: a magic 0 message without key and value.
	minLegacySize = 14
)

// Peek returns the size of the batch that starts at b[0], header included, and its magic (0, 1 or 2). It needs the
// first PeekSize bytes (ErrPartial if there are fewer) and checks no more than that size and magic are possible
// (ErrCorrupt), which is what Kafka checks when it cuts a log into batches.
func Peek(b []byte) (size int, magic int8, err error) {
	if len(b) < LogOverhead {
		return 0, 0, ErrPartial
	}
	length := int32(binary.BigEndian.Uint32(b[offLength:]))
	if length < minLegacySize {
		return 0, 0, corruptf("length %d at offset %d is less than the smallest possible, %d", length,
			int64(binary.BigEndian.Uint64(b)), minLegacySize)
	}
	if len(b) < PeekSize {
		return 0, 0, ErrPartial
	}
	magic = int8(b[offMagic])
	if magic < 0 || magic > 2 {
		return 0, 0, corruptf("magic %d at offset %d, known are 0, 1 and 2", magic,
			int64(binary.BigEndian.Uint64(b)))
	}
	return LogOverhead + int(length), magic, nil
}

// Next cuts the first whole batch, of whatever magic, off the front of b. Both results alias b. When b is empty or ends
// inside the batch the error is ErrPartial and rest is b; when b cannot be cut it wraps ErrCorrupt. The batch is not
// validated. It does not allocate unless it fails with ErrCorrupt.
func Next(b []byte) (batch, rest []byte, err error) {
	size, _, err := Peek(b)
	if err != nil {
		return nil, b, err
	}
	if size > len(b) {
		return nil, b, ErrPartial
	}
	return b[:size:size], b[size:], nil
}

// Validate checks that batch is exactly one batch, of whatever magic, whose size, magic and checksum are right. This is
// all that can be said without looking at the records; see CheckRecords and Iterator for those. The error wraps
// ErrCorrupt.
func Validate(batch []byte) error {
	size, magic, err := Peek(batch)
	if err != nil {
		if err == ErrPartial {
			return corruptf("%d bytes are less than a batch", len(batch))
		}
		return err
	}
	if size != len(batch) {
		return corruptf("batch at offset %d says it has %d bytes, there are %d",
			int64(binary.BigEndian.Uint64(batch)), size, len(batch))
	}
	if magic < 2 {
		return validateLegacy(batch, magic)
	}
	if size < HeaderSize {
		return corruptf("batch at offset %d has %d bytes, less than a header (%d)",
			int64(binary.BigEndian.Uint64(batch)), size, HeaderSize)
	}
	if want, got := binary.BigEndian.Uint32(batch[offCRC:]), Checksum(batch); want != got {
		return corruptf("batch at offset %d, %d bytes: CRC-32C is %08x, header says %08x",
			int64(binary.BigEndian.Uint64(batch)), size, got, want)
	}
	return nil
}

// Checksum computes the CRC-32C of a magic 2 batch: of everything from the attributes on.
func Checksum(batch []byte) uint32 { return crc32.Checksum(batch[offAttributes:], castagnoli) }
