package storage

import (
	"encoding/binary"
	"fmt"
)

// The transaction index (.txnindex): the aborted transactions that ended in a
// segment, in the order of their abort markers.
//
//	entry, 34 bytes, big endian
//	+-----------+-----------------+------------------+-----------------+------------------------+
//	| version 2 | producer id (8) | first offset (8) | last offset (8) | last stable offset (8) |
//	+-----------+-----------------+------------------+-----------------+------------------------+
//	  = 0                           of the data        of the marker     once the transaction had ended
//
// A reader that needs the aborted transactions of [from, to) takes entries
// until one says that all transactions below `to` are known (last stable
// offset >= to). The file does not exist while it would be empty.

// TxnEntry is one entry of a transaction index.
type TxnEntry struct {
	ProducerID       int64
	FirstOffset      int64
	LastOffset       int64
	LastStableOffset int64
}

const (
	txnEntrySize    = 34
	txnIndexVersion = 0
)

// AppendTxnIndex appends entries in the file's form.
func AppendTxnIndex(dst []byte, entries []TxnEntry) []byte {
	for _, e := range entries {
		dst = binary.BigEndian.AppendUint16(dst, txnIndexVersion)
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.ProducerID))
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.FirstOffset))
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.LastOffset))
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.LastStableOffset))
	}
	return dst
}

// ParseTxnIndex reads the transaction index of the segment that begins at
// base. Markers must lie in the segment and rise.
func ParseTxnIndex(b []byte, base int64) ([]TxnEntry, error) {
	if len(b)%txnEntrySize != 0 {
		return nil, fmt.Errorf("%w: %d bytes are no multiple of %d", errCorruptIndex, len(b), txnEntrySize)
	}
	var entries []TxnEntry
	last := base - 1
	for at := 0; at < len(b); at += txnEntrySize {
		if v := binary.BigEndian.Uint16(b[at:]); v != txnIndexVersion {
			return nil, fmt.Errorf("%w: entry %d has version %d, only %d is known", errCorruptIndex, at/txnEntrySize, v, txnIndexVersion)
		}
		e := TxnEntry{
			ProducerID:       int64(binary.BigEndian.Uint64(b[at+2:])),
			FirstOffset:      int64(binary.BigEndian.Uint64(b[at+10:])),
			LastOffset:       int64(binary.BigEndian.Uint64(b[at+18:])),
			LastStableOffset: int64(binary.BigEndian.Uint64(b[at+26:])),
		}
		if e.LastOffset <= last || e.FirstOffset > e.LastOffset || e.FirstOffset < 0 {
			return nil, fmt.Errorf("%w: entry %d spans [%d, %d] after marker %d", errCorruptIndex, at/txnEntrySize, e.FirstOffset, e.LastOffset, last)
		}
		entries, last = append(entries, e), e.LastOffset
	}
	return entries, nil
}

// collectAborted appends the transactions that overlap [from, to), and tells
// whether later segments may hold more.
func collectAborted(dst []AbortedTxn, entries []TxnEntry, from, to int64) (_ []AbortedTxn, complete bool) {
	for _, e := range entries {
		if e.LastOffset >= from && e.FirstOffset < to {
			dst = append(dst, AbortedTxn{ProducerID: e.ProducerID, FirstOffset: e.FirstOffset})
		}
		if e.LastStableOffset >= to {
			return dst, true
		}
	}
	return dst, false
}
