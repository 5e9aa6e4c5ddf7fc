package coordinator

import (
	"time"
)

// A Writer is the log of a coordinator's topic. Methods are called from the runtime's goroutines and may wait for the
// disk, but for nothing else.
type Writer interface {
	// Append appends one batch to a partition as its leader of an epoch, all of it or nothing, with acks=all semantics. It
	// returns the offset behind the batch and the high watermark after it. The error carries a code (see Code): the
	// machine and the clients are told of it. guard is that of a transactional batch (TxnBatch.Guard), else 0.
	Append(partition, epoch int32, batch []byte, guard uint64, now time.Time) (next, highWatermark int64, err error)
	// AppendMarker appends the end of a transaction, like Append.
	AppendMarker(partition, epoch int32, m Marker, now time.Time) (next, highWatermark int64, err error)
	// Size is how many bytes Load would have to read.
	Size(partition int32) int64
	// Load calls f with each batch of the partition, from the log start to the log end, and returns the log end and the
	// high watermark. It ends early when f returns an error, or when the broker does not lead the partition in that epoch.
	Load(partition, epoch int32, f func(batch []byte) error) (end, highWatermark int64, err error)
}
