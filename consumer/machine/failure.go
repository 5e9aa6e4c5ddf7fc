package machine

import (
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/wire"
)

var (
	// ErrTruncated: the log of a partition was cut below what had been read (an unclean leader election), so
	// records that were handed out no longer exist. The *TruncatedError beside it has the offsets.
	ErrTruncated = errors.New("the log was truncated below the position")
	// ErrOutOfRange: the log does not have the offset that was asked for and the reset policy is Fail. The
	// *RangeError beside it has the offsets.
	ErrOutOfRange = errors.New("the offset is out of range")
	// ErrTopicReplaced: the topic was deleted and another of the same name was created. The *ReplacedError
	// beside it has both topic ids.
	ErrTopicReplaced = errors.New("the topic was deleted and created again")
	// ErrNoPosition: there is no start position for a partition and the reset policy is Fail.
	ErrNoPosition = errors.New("the partition has no start position and auto.offset.reset is none")
	// ErrCorrupt: a batch came damaged twice from the same offset: wrong checksum, lengths or compression.
	ErrCorrupt = errors.New("the data is corrupt")
	// ErrNoLeader: metadata names no leader for the partition at present.
	ErrNoLeader = errors.New("the partition has no leader")
)

// TruncatedError says from where to where a log was cut, as far as this reader can tell.
type TruncatedError struct {
	TopicPartition
	From Position // the position before: everything below From.Offset had been handed out
	To   Position // the first offset at which the logs differ; Offset is -1 when the broker could not tell
}

// Error names both offsets and what to do.
func (e *TruncatedError) Error() string {
	if e.To.Offset < 0 {
		return fmt.Sprintf("%s: %v: position %d (leader epoch %d) is unknown to the new leader; seek to where reading should go on",
			e.TopicPartition, ErrTruncated, e.From.Offset, e.From.Epoch)
	}
	return fmt.Sprintf("%s: %v: position %d (leader epoch %d), but the log of the new leader agrees only up to %d (leader epoch %d); "+
		"records in between are lost or replaced: seek to %d to go on", e.TopicPartition, ErrTruncated, e.From.Offset, e.From.Epoch,
		e.To.Offset, e.To.Epoch, e.To.Offset)
}

// Is makes errors.Is(err, ErrTruncated) true.
func (e *TruncatedError) Is(target error) bool { return target == ErrTruncated }

// RangeError says which offset the log did not have.
type RangeError struct {
	TopicPartition
	Offset   int64 // asked for
	LogStart int64 // first offset of the log as last told, -1 unknown
	End      int64 // high watermark as last told, -1 unknown
}

// Error names the offset, the log's bounds as last seen, and what to do.
func (e *RangeError) Error() string {
	return fmt.Sprintf("%s: %v: %d is not in the log (last seen from %d to %d) and auto.offset.reset is none; seek to an offset the log has",
		e.TopicPartition, ErrOutOfRange, e.Offset, e.LogStart, e.End)
}

// Is makes errors.Is(err, ErrOutOfRange) true.
func (e *RangeError) Is(target error) bool { return target == ErrOutOfRange }

// ReplacedError says which topic took the place of which.
type ReplacedError struct {
	Topic    string
	Old, New wire.UUID
	Position Position // where the reader was in the old topic
}

// Error names both ids and what to do.
func (e *ReplacedError) Error() string {
	return fmt.Sprintf("topic %q: %v: its id was %s and is now %s; offset %d belongs to the old one: seek, or set the policy to Adopt",
		e.Topic, ErrTopicReplaced, e.Old, e.New, e.Position.Offset)
}

// Is makes errors.Is(err, ErrTopicReplaced) true.
func (e *ReplacedError) Is(target error) bool { return target == ErrTopicReplaced }

// Failure is an error of one partition, on its way to the application.
type Failure struct {
	Broker   int32 // -1 if none is concerned
	Attempts int
	Elapsed  time.Duration // since the partition last made progress
	Halted   bool          // nothing more is read from the partition until a seek
	Err      error
}

// NoticeKind says what happened.
type NoticeKind uint8

const (
	// NoticeStarted: the first position of a partition is known.
	NoticeStarted NoticeKind = iota + 1
	// NoticeReset: a position was replaced by the reset policy; Old, New and Reason say how.
	NoticeReset
	// NoticeTruncated: the log was cut below the position.
	NoticeTruncated
	// NoticeReplaced: the topic was deleted and created again.
	NoticeReplaced
	// NoticeHalted: reading of the partition stopped; Err says why.
	NoticeHalted
	// NoticeRetrying: an attempt failed and another will be made; Err says why.
	NoticeRetrying
	// NoticeReplica: the leader named a nearer replica (Broker), or it is no longer used (Broker -1).
	NoticeReplica
	// NoticeSession: a fetch session with Broker was lost and is made again; Err says why.
	NoticeSession
	// NoticeAssigned: the group gave this member a partition.
	NoticeAssigned
	// NoticeRevoked: a partition is being given up; nothing of it is in hand any more.
	NoticeRevoked
	// NoticeLost: a partition is gone without having been given up; Err says why.
	NoticeLost
	// NoticeCommitFailed: an offset could not be committed; Err says why.
	NoticeCommitFailed
	// NoticeStalled: what the application has in hand takes longer than max.poll.interval.ms.
	NoticeStalled
	// NoticeStandstill: the last stable offset (Old) has stood still below the high watermark (New) for long: an open
	// transaction keeps read_committed readers waiting. Open says whose.
	NoticeStandstill
)

var noticeNames = [...]string{"", "started", "reset", "truncated", "replaced", "halted", "retrying", "replica", "session",
	"assigned", "revoked", "lost", "commit failed", "stalled", "standstill"}

// String is the kind in one word.
func (k NoticeKind) String() string {
	if int(k) < len(noticeNames) {
		return noticeNames[k]
	}
	return fmt.Sprintf("notice %d", uint8(k))
}

// Notice is something worth telling that is not an error of the application's: every reset is one.
type Notice struct {
	Kind NoticeKind
	TopicPartition
	Broker   int32
	Old, New Position // Offset -1: none
	Where    Where    // what the new position was looked up by
	Reason   string   // in words, without the names
	Err      error
	Open     *OpenTransaction // NoticeStandstill alone
}

// OpenTransaction is whose transaction a partition waits for.
type OpenTransaction struct {
	ProducerID    int64 // -1: the leader could not tell
	ProducerEpoch int16
	FirstOffset   int64     // of the transaction in the partition
	LastWrite     time.Time // of the producer to the partition, by its records' timestamps
}
