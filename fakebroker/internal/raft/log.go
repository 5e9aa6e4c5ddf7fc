package raft

import "time"

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
