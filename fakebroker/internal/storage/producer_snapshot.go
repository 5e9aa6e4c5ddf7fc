package storage

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/wire/hash"
	"github.com/ottla-kafka/ottla/wire/record"
)

// The producer snapshot (.snapshot): what is known about each producer at the
// offset in the file's name, so that a restart need not read the whole log.
//
//	header, 10 bytes, big endian
//	+-------------+------------------------------------+-------------+
//	| version (2) | crc-32c of all that follows it (4) | entries (4) |
//	+-------------+------------------------------------+-------------+
//	entry, 46 bytes, once per producer
//	+-----------------+-----------+-------------------+-----------------+------------------+
//	| producer id (8) | epoch (2) | last sequence (4) | last offset (8) | offset delta (4) |
//	+-----------------+-----------+-------------------+-----------------+------------------+
//	| timestamp (8)   | coordinator epoch (4) | first offset of the open transaction (8)   |
//	+-----------------+-----------------------+--------------------------------------------+
//
// Only the last of a producer's five remembered batches is kept; its first
// sequence is last sequence - offset delta. A producer without a batch (only
// markers) has last sequence and last offset -1. -1 also stands for "no open
// transaction" and "no coordinator".

// ProducerSnapshotEntry is what a snapshot holds about one producer.
type ProducerSnapshotEntry struct {
	ProducerID            int64
	ProducerEpoch         int16
	LastSequence          int32
	LastOffset            int64
	OffsetDelta           int32
	Timestamp             int64
	CoordinatorEpoch      int32
	CurrentTxnFirstOffset int64
}

const (
	snapshotVersion    = 1
	snapshotHeaderSize = 10
	snapshotEntrySize  = 46
)

// ErrCorruptSnapshot marks a producer snapshot that cannot be used; an older
// one, or the log, has what is needed.
var ErrCorruptSnapshot = errors.New("storage: corrupt producer snapshot")

// FirstSequence returns the first sequence of the last batch, -1 if there is none.
func (e *ProducerSnapshotEntry) FirstSequence() int32 {
	if e.LastSequence < 0 {
		return -1
	}
	return record.AddSequence(e.LastSequence, -e.OffsetDelta)
}

// AppendProducerSnapshot appends a snapshot in the file's form.
func AppendProducerSnapshot(dst []byte, entries []ProducerSnapshotEntry) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, snapshotVersion)
	dst = binary.BigEndian.AppendUint32(dst, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(entries)))
	for i := range entries {
		e := &entries[i]
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.ProducerID))
		dst = binary.BigEndian.AppendUint16(dst, uint16(e.ProducerEpoch))
		dst = binary.BigEndian.AppendUint32(dst, uint32(e.LastSequence))
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.LastOffset))
		dst = binary.BigEndian.AppendUint32(dst, uint32(e.OffsetDelta))
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.Timestamp))
		dst = binary.BigEndian.AppendUint32(dst, uint32(e.CoordinatorEpoch))
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.CurrentTxnFirstOffset))
	}
	crc := hash.CRC32C(dst[start+6:])
	binary.BigEndian.PutUint32(dst[start+2:], crc)
	return dst
}

// ParseProducerSnapshot reads a snapshot; every error is an ErrCorruptSnapshot.
func ParseProducerSnapshot(b []byte) ([]ProducerSnapshotEntry, error) {
	if len(b) < snapshotHeaderSize {
		return nil, fmt.Errorf("%w: %d bytes, the header alone has %d", ErrCorruptSnapshot, len(b), snapshotHeaderSize)
	}
	if v := binary.BigEndian.Uint16(b); v != snapshotVersion {
		return nil, fmt.Errorf("%w: version %d, only %d is known", ErrCorruptSnapshot, v, snapshotVersion)
	}
	if stored, sum := binary.BigEndian.Uint32(b[2:]), hash.CRC32C(b[6:]); stored != sum {
		return nil, fmt.Errorf("%w: crc is %08x, the content has %08x", ErrCorruptSnapshot, stored, sum)
	}
	n := int64(binary.BigEndian.Uint32(b[6:]))
	if want := snapshotHeaderSize + n*snapshotEntrySize; want != int64(len(b)) {
		return nil, fmt.Errorf("%w: %d entries need %d bytes, there are %d", ErrCorruptSnapshot, n, want, len(b))
	}
	entries := make([]ProducerSnapshotEntry, n)
	for i := range entries {
		e := b[snapshotHeaderSize+i*snapshotEntrySize:]
		entries[i] = ProducerSnapshotEntry{
			ProducerID:            int64(binary.BigEndian.Uint64(e)),
			ProducerEpoch:         int16(binary.BigEndian.Uint16(e[8:])),
			LastSequence:          int32(binary.BigEndian.Uint32(e[10:])),
			LastOffset:            int64(binary.BigEndian.Uint64(e[14:])),
			OffsetDelta:           int32(binary.BigEndian.Uint32(e[22:])),
			Timestamp:             int64(binary.BigEndian.Uint64(e[26:])),
			CoordinatorEpoch:      int32(binary.BigEndian.Uint32(e[34:])),
			CurrentTxnFirstOffset: int64(binary.BigEndian.Uint64(e[38:])),
		}
	}
	return entries, nil
}
