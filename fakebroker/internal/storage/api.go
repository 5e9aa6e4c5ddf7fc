package storage

import (
	"io"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
)

// Origin says who hands batches to AppendAsLeader, which decides what is checked.
type Origin uint8

// Origins of an append.
const (
	// FromClient is a produce request: one batch, base offset 0, no control
	// records, sequences checked.
	FromClient Origin = iota
	// FromCoordinator is a coordinator writing to its internal topic, or a
	// transaction marker.
	FromCoordinator
	// FromRaft is the leader of the metadata quorum: offsets and leader epochs
	// are in the batches already and are checked, not assigned.
	FromRaft
)

// AppendInfo tells what an append did.
type AppendInfo struct {
	FirstOffset   int64 // of the first record; -1 when nothing was appended
	LastOffset    int64 // of the last record
	LogAppendTime int64 // ms, with LogAppendTime or for a duplicate; -1 otherwise
	// LogStartOffset goes into the produce answer, also with most errors; it
	// is -1 where Kafka sends none (corrupt, too large, disk).
	LogStartOffset int64
	LeaderEpoch    int32 // of the last batch
	Records        int32 // number of records
	Bytes          int   // as stored
	MaxTimestamp   int64 // largest timestamp, -1 for none
	// Duplicate says that the batch had been appended before; offsets and
	// time are those of the first time. With acks=all its answer waits for
	// the high watermark like that of the first.
	Duplicate bool
}

// Bound says up to where a read may go.
type Bound uint8

// Bounds of reads and of searches by time.
const (
	BoundLogEnd        Bound = iota // all there is: followers
	BoundHighWatermark              // read_uncommitted
	BoundStable                     // read_committed: below the last stable offset
)

// AbortedTxn is one aborted transaction, for read_committed answers.
type AbortedTxn struct {
	ProducerID  int64
	FirstOffset int64
}

// FetchData is the answer to Log.Read.
type FetchData struct {
	Records Records
	// NextOffset is where a reader that has taken Records goes on: behind the
	// last whole batch. The offset asked for when there are none.
	NextOffset       int64
	LogStartOffset   int64
	HighWatermark    int64
	LastStableOffset int64
	LogEndOffset     int64
	// Aborted lists, for BoundStable, the aborted transactions that overlap
	// Records, by marker; nil otherwise.
	Aborted []AbortedTxn
	// TooLarge says that the first batch alone is larger than maxBytes and was
	// therefore not returned (minOne was false).
	TooLarge bool
}

// Records is a run of batches as they are stored, the last one perhaps cut
// off: either slices of memory or a region of a file. The zero value is an
// empty run.
type Records struct {
	// Mem holds the stored bytes; nobody may write to them, they may be kept
	// for ever. Empty when the bytes are in File.
	Mem [][]byte
	// File is where the bytes are, from Pos on; nil when they are in Mem. It
	// stays open until Release, whatever happens to the log meanwhile.
	// vfs.AsDescriptor leads to sendfile.
	File vfs.File
	Pos  int64
	Len  int // bytes

	handle *handle
}

// Release gives the file back. It must be called once when the answer has
// been written or dropped, and does nothing for bytes in memory.
func (r *Records) Release() {
	if r.handle != nil {
		r.handle.release()
		r.handle = nil
	}
}

// AppendTo copies the records behind dst.
func (r *Records) AppendTo(dst []byte) ([]byte, error) {
	if r.File == nil {
		for _, b := range r.Mem {
			dst = append(dst, b...)
		}
		return dst, nil
	}
	at := len(dst)
	dst = append(dst, make([]byte, r.Len)...)
	n, err := r.File.ReadAt(dst[at:], r.Pos)
	if n < r.Len {
		return dst[:at], unexpectedEOF(err)
	}
	return dst, nil
}

// WriteTo writes the records to w, copying them in pieces when they are in a
// file. It implements io.WriterTo.
func (r *Records) WriteTo(w io.Writer) (int64, error) {
	var done int64
	for _, b := range r.Mem {
		n, err := w.Write(b)
		done += int64(n)
		if err != nil {
			return done, err
		}
	}
	if r.File == nil {
		return done, nil
	}
	return io.Copy(w, io.NewSectionReader(r.File, r.Pos, int64(r.Len)))
}

func unexpectedEOF(err error) error {
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// TimestampOffset is the answer to a search by time.
type TimestampOffset struct {
	Timestamp   int64 // ms; -1 when nothing was found
	Offset      int64 // -1 when nothing was found
	LeaderEpoch int32 // under which the record was appended; -1 unknown
}

// EpochEnd is the answer to OffsetForLeaderEpoch.
type EpochEnd struct {
	Epoch     int32 // largest known epoch that is not above the one asked for; -1 unknown
	EndOffset int64 // first offset of the epoch after it, or the log end; -1 unknown
}

// ActiveProducer is one line of DescribeProducers.
type ActiveProducer struct {
	ProducerID       int64
	ProducerEpoch    int16
	LastSequence     int32
	LastTimestamp    int64
	CoordinatorEpoch int32
	TxnStartOffset   int64 // -1 when no transaction is open
}
