package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sort"
)

// The offset index (.index): for some batches of a segment, where they begin.
//
//	entry, 8 bytes, big endian
//	+----------------------+------------------+
//	| relative offset (4)  | position (4)     |
//	+----------------------+------------------+
//	 last offset of a batch  where that batch
//	 minus base offset       begins in the .log
//
// Both columns rise strictly. Apache Kafka allocates the file of the active
// segment in full and cuts it when it is closed, so behind an unclean stop
// zeros may follow; ours has only what is valid.

// OffsetEntry is one entry of an offset index.
type OffsetEntry struct {
	RelativeOffset int32
	Position       int32
}

const offsetEntrySize = 8

// errCorruptIndex marks an index that contradicts itself or its log and has
// to be rebuilt.
var errCorruptIndex = errors.New("storage: corrupt index")

// AppendOffsetIndex appends entries in the file's form.
func AppendOffsetIndex(dst []byte, entries []OffsetEntry) []byte {
	for _, e := range entries {
		dst = binary.BigEndian.AppendUint32(dst, uint32(e.RelativeOffset))
		dst = binary.BigEndian.AppendUint32(dst, uint32(e.Position))
	}
	return dst
}

// ParseOffsetIndex reads an offset index. logSize is the length of the
// segment's log: an entry at or behind it is an error, as is one that does
// not rise. Zeros at the end, left by Kafka's allocation, are dropped.
func ParseOffsetIndex(b []byte, logSize int64) ([]OffsetEntry, error) {
	if len(b)%offsetEntrySize != 0 {
		return nil, fmt.Errorf("%w: %d bytes are no multiple of %d", errCorruptIndex, len(b), offsetEntrySize)
	}
	b = trimZeros(b, offsetEntrySize)
	entries := make([]OffsetEntry, 0, len(b)/offsetEntrySize)
	last := OffsetEntry{RelativeOffset: -1, Position: -1}
	for at := 0; at < len(b); at += offsetEntrySize {
		e := OffsetEntry{
			RelativeOffset: int32(binary.BigEndian.Uint32(b[at:])),
			Position:       int32(binary.BigEndian.Uint32(b[at+4:])),
		}
		if e.RelativeOffset <= last.RelativeOffset || e.Position <= last.Position || int64(e.Position) >= logSize {
			return nil, fmt.Errorf("%w: entry %d (relative offset %d, position %d) after (%d, %d) in a log of %d bytes",
				errCorruptIndex, at/offsetEntrySize, e.RelativeOffset, e.Position, last.RelativeOffset, last.Position, logSize)
		}
		entries, last = append(entries, e), e
	}
	return entries, nil
}

// trimZeros cuts entries of nothing but zeros from the end, but leaves a
// single entry alone: that one has been written.
func trimZeros(b []byte, size int) []byte {
	if len(b) == size {
		return b
	}
	end := len(b)
	for end > 0 && b[end-1] == 0 {
		end--
	}
	return b[:(end+size-1)/size*size]
}

// floorOffset returns the position of the last entry at or below the relative
// offset; 0 if there is none. A scan for the offset begins there.
func floorOffset(entries []OffsetEntry, relative int64) int64 {
	i := sort.Search(len(entries), func(i int) bool { return int64(entries[i].RelativeOffset) > relative })
	if i == 0 {
		return 0
	}
	return int64(entries[i-1].Position)
}

// floorPosition returns the largest position in the index that is not above
// pos; 0 if there is none.
func floorPosition(entries []OffsetEntry, pos int64) int64 {
	i := sort.Search(len(entries), func(i int) bool { return int64(entries[i].Position) > pos })
	if i == 0 {
		return 0
	}
	return int64(entries[i-1].Position)
}

// fitsRelative tells whether an offset can be written relative to base.
func fitsRelative(base, offset int64) bool {
	return offset >= base && offset-base <= math.MaxInt32
}
