package raft

import (
	"errors"
	"fmt"
	"time"
)

// NoLeader is the leader's id while there is none.
const NoLeader int32 = -1

// LeaderAndEpoch is who leads the quorum.
type LeaderAndEpoch struct {
	LeaderID int32 // NoLeader when unknown
	Epoch    int32
}

// ErrNotLeader is returned by Append when this node does not lead the epoch that the records were made in. Nothing was
// appended; whoever waits has to ask the new leader.
var ErrNotLeader = errors.New("raft: not the leader of this epoch")

// Quorum is a replicated log of record values, seen from the state machine that reads and, while it leads, writes it.
// All methods are called by the one goroutine that owns the state machine.
type Quorum interface {
	// Leader tells who leads now.
	Leader() LeaderAndEpoch
	// EndOffset is the offset that the next record gets.
	EndOffset() int64
	// HighWatermark is the first offset that is not committed yet.
	HighWatermark() int64
	// Append appends values as one batch, all or none, in the given epoch, and returns the offset of the last of them. They are not
	// committed yet: that is when the high watermark passes that offset. The values are not kept.
	Append(now time.Time, epoch int32, values [][]byte) (last int64, err error)
	// WriteCheckpoint stores the state machine's content as of all offsets below id.Offset. Data appends the next value
	// each time it is called, until it returns false.
	WriteCheckpoint(now time.Time, id CheckpointID, lastTimestamp int64, next func() (value []byte, ok bool, err error)) error
	// Close gives up leadership and makes everything durable.
	Close(now time.Time) error
}

// Batch is a data batch on its way to the state machine.
type Batch struct {
	BaseOffset int64
	Epoch      int32
	Timestamp  int64    // ms, when the leader appended it
	Values     [][]byte // offsets follow each other; they stay as they are and may be kept
	// Checkpoint is set for batches of a checkpoint: offsets count within its file, and all its content together stands
	// for the log below Checkpoint.Offset.
	Checkpoint *CheckpointID
}

// CheckpointID names a checkpoint: it holds the content of all offsets below Offset, and Epoch is that of the last of
// them.
type CheckpointID struct {
	Offset int64
	Epoch  int32
}

// String is the name of the checkpoint's file without its suffix.
func (id CheckpointID) String() string { return fmt.Sprintf("%020d-%010d", id.Offset, id.Epoch) }

// Compare orders checkpoints by offset, then epoch.
func (id CheckpointID) Compare(o CheckpointID) int {
	switch {
	case id.Offset != o.Offset:
		return sign(id.Offset < o.Offset)
	case id.Epoch != o.Epoch:
		return sign(id.Epoch < o.Epoch)
	}
	return 0
}

func sign(less bool) int {
	if less {
		return -1
	}
	return 1
}
