package raft

import (
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/wire/record"
)

// Log is the log that a quorum writes to. Package storage implements it as an ordinary partition log; it is used from one
// goroutine.
type Log interface {
	// Append appends one batch, which carries its offset and the leader epoch already. Written, not yet durable.
	Append(batch []byte, epoch int32, now time.Time) error
	// Flush makes everything up to the end durable.
	Flush(now time.Time) error
	// Read appends whole batches from the one that holds offset from on to dst, about maxBytes of them but at least one
	// if there is one.
	Read(dst []byte, from int64, maxBytes int) ([]byte, error)
	StartOffset() int64
	EndOffset() int64
	// LastEpoch is the leader epoch of the last batch, -1 for an empty log.
	LastEpoch() int32
	// SetHighWatermark tells the log what is committed: retention and readers go by it.
	SetHighWatermark(offset int64)
	// DeleteBefore drops what a checkpoint covers.
	DeleteBefore(offset int64) error
	Close(now time.Time) error
}

// readSize is how much of the log is read at a time.
const readSize = 1 << 20

// ReplayLog hands the data batches of a log from an offset to its end to yield, and its control records, if controls is
// not nil, to controls. The batches' values may be kept.
func ReplayLog(log Log, from int64, yield func(Batch) error, controls func(record.ControlType, []byte) error) error {
	for end := log.EndOffset(); from < end; {
		data, err := log.Read(nil, from, readSize)
		if err != nil {
			return err
		}
		if len(data) == 0 {
			return fmt.Errorf("raft: nothing to read at offset %d of the metadata log, which ends at %d", from, end)
		}
		err = readBatches(data, func(b Batch) error {
			if b.BaseOffset < from {
				return nil // of the batch that holds from, below a checkpoint's end
			}
			return yield(b)
		}, controls)
		if err != nil {
			return err
		}
		if from, err = endOf(data); err != nil {
			return err
		}
	}
	return nil
}

func endOf(batches []byte) (next int64, err error) {
	for len(batches) > 0 {
		one, rest, err := record.Next(batches)
		if err != nil {
			return 0, err
		}
		h, err := record.ParseHeader(one)
		if err != nil {
			return 0, err
		}
		next, batches = h.LastOffset()+1, rest
	}
	return next, nil
}
