package storage

import (
	"encoding/binary"
	"fmt"
	"sort"
)

// The time index (.timeindex): up to an offset, no record of the segment is
// younger than a timestamp.
//
//	entry, 12 bytes, big endian
//	+---------------+----------------------+
//	| timestamp (8) | relative offset (4)  |
//	+---------------+----------------------+
//	 largest so far   last offset of the batch that brought it
//
// Timestamps rise strictly, offsets too. The last entry of a segment that is
// no longer written holds its largest timestamp, which retention goes by.

// TimeEntry is one entry of a time index.
type TimeEntry struct {
	Timestamp      int64
	RelativeOffset int32
}

const timeEntrySize = 12

// AppendTimeIndex appends entries in the file's form.
func AppendTimeIndex(dst []byte, entries []TimeEntry) []byte {
	for _, e := range entries {
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.Timestamp))
		dst = binary.BigEndian.AppendUint32(dst, uint32(e.RelativeOffset))
	}
	return dst
}

// ParseTimeIndex reads a time index. Entries that do not rise are an error;
// zeros at the end, left by Kafka's allocation, are dropped.
func ParseTimeIndex(b []byte) ([]TimeEntry, error) {
	if len(b)%timeEntrySize != 0 {
		return nil, fmt.Errorf("%w: %d bytes are no multiple of %d", errCorruptIndex, len(b), timeEntrySize)
	}
	b = trimZeros(b, timeEntrySize)
	entries := make([]TimeEntry, 0, len(b)/timeEntrySize)
	last := TimeEntry{Timestamp: noTimestamp, RelativeOffset: -1}
	for at := 0; at < len(b); at += timeEntrySize {
		e := TimeEntry{
			Timestamp:      int64(binary.BigEndian.Uint64(b[at:])),
			RelativeOffset: int32(binary.BigEndian.Uint32(b[at+8:])),
		}
		if e.Timestamp <= last.Timestamp || e.RelativeOffset <= last.RelativeOffset {
			return nil, fmt.Errorf("%w: entry %d (timestamp %d, relative offset %d) after (%d, %d)",
				errCorruptIndex, at/timeEntrySize, e.Timestamp, e.RelativeOffset, last.Timestamp, last.RelativeOffset)
		}
		entries, last = append(entries, e), e
	}
	return entries, nil
}

// floorTimestamp returns the relative offset of the last entry that is not
// younger than ts; 0 if there is none. A search for ts begins there.
func floorTimestamp(entries []TimeEntry, ts int64) int64 {
	i := sort.Search(len(entries), func(i int) bool { return entries[i].Timestamp > ts })
	if i == 0 {
		return 0
	}
	return int64(entries[i-1].RelativeOffset)
}
