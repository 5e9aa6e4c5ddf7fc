package machine

import (
	"fmt"
	"strconv"
	"time"

	"github.com/ottla-kafka/ottla/client/machine"
)

// TopicPartition names one partition of one topic: the client's type, which administrators use too.
type TopicPartition = machine.TopicPartition

// Position is the next offset to read, with the leader epoch of what was read just before it. Epoch is -1 where
// that is unknown; such a position cannot be checked against a truncated log.
type Position struct {
	Offset int64
	Epoch  int32
}

// whereKind says how a Where finds its offset.
type whereKind uint8

const (
	whereUnset whereKind = iota
	whereEarliest
	whereLatest
	whereNearest
	whereFail
	whereOffset
	whereTime
	whereAgo
)

// Where is a place in a partition that a reader can be sent to: by StartAt, by Seek, or by a reset policy. The
// zero value means "not said": a start that is not said follows the reset policy.
type Where struct {
	kind  whereKind
	epoch int32
	value int64 // offset, milliseconds since 1970, or nanoseconds ago
}

var (
	// Earliest is the first record that the broker still has (its log start offset).
	Earliest = Where{kind: whereEarliest}
	// Latest is the end: only records written from now on. With isolation.level=read_committed it is the last
	// stable offset, which an open transaction holds back.
	Latest = Where{kind: whereLatest}
	// Nearest is for resets alone: the end of the log that is closer to the offset which is out of range.
	Nearest = Where{kind: whereNearest}
	// Fail is for resets alone: do not reset, report an error and stop reading the partition.
	Fail = Where{kind: whereFail}
)

// AtOffset is one offset. If the log no longer has it, or does not yet, the reset policy decides.
func AtOffset(offset int64) Where { return Where{kind: whereOffset, value: offset, epoch: -1} }

// AtPosition is an offset together with the leader epoch of what was read before it, as kept with a committed
// offset: the broker is asked first whether its log still agrees (KIP-320).
func AtPosition(p Position) Where { return Where{kind: whereOffset, value: p.Offset, epoch: p.Epoch} }

// At is the first record with that timestamp or a later one, or the end if there is none. The time is cut to
// milliseconds.
func At(t time.Time) Where { return Where{kind: whereTime, value: t.UnixMilli()} }

// ByDuration is At(now minus d), where now is when the broker is asked.
func ByDuration(d time.Duration) Where { return Where{kind: whereAgo, value: int64(d)} }

// IsZero tells whether nothing was said.
func (w Where) IsZero() bool { return w.kind == whereUnset }

// ValidStart explains why w cannot be a start position, nil if it can. Offsets below zero and durations below
// zero are refused.
func (w Where) ValidStart() error {
	switch {
	case w.kind == whereNearest || w.kind == whereFail:
		return fmt.Errorf("%s is a reset policy, not a place to start from", w)
	case w.kind == whereOffset && w.value < 0:
		return fmt.Errorf("offset %d is negative; use Earliest or Latest for the ends of the log", w.value)
	case w.kind == whereAgo && w.value < 0:
		return fmt.Errorf("duration %s is negative", time.Duration(w.value))
	case w.kind == whereTime && w.value < 0:
		return fmt.Errorf("%s is before 1970, which Kafka cannot look up", w)
	}
	return nil
}

// ValidReset explains why w cannot be a reset policy (auto.offset.reset), nil if it can.
func (w Where) ValidReset() error {
	switch w.kind {
	case whereEarliest, whereLatest, whereNearest, whereFail:
		return nil
	case whereAgo:
		return w.ValidStart()
	case whereUnset:
		return fmt.Errorf("auto.offset.reset is not set; it is one of earliest, latest, nearest, by_duration:<ISO 8601>, none")
	}
	return fmt.Errorf("%s cannot be a reset policy; auto.offset.reset is one of earliest, latest, nearest, by_duration:<ISO 8601>, none", w)
}

// String reads as in a configuration where it can be one.
func (w Where) String() string {
	switch w.kind {
	case whereEarliest:
		return "earliest"
	case whereLatest:
		return "latest"
	case whereNearest:
		return "nearest"
	case whereFail:
		return "none"
	case whereOffset:
		return "offset " + strconv.FormatInt(w.value, 10)
	case whereTime:
		return "time " + time.UnixMilli(w.value).UTC().Format("2006-01-02T15:04:05.000Z")
	case whereAgo:
		return "by_duration " + time.Duration(w.value).String()
	}
	return "unset"
}

// The timestamps that ListOffsets understands as names.
const (
	timestampLatest   int64 = -1
	timestampEarliest int64 = -2
)

// Moves tells whether w is another offset tomorrow than today although nothing was deleted, and if so what
// ListOffsets is asked for to find it.
func (w Where) Moves(now time.Time) (timestamp int64, moves bool) {
	switch w.kind {
	case whereLatest, whereTime, whereAgo:
		return w.timestamp(now), true
	}
	return 0, false
}

// timestamp is what ListOffsets is asked for to find w. Nearest begins with the start of the log.
func (w Where) timestamp(now time.Time) int64 {
	switch w.kind {
	case whereEarliest, whereNearest:
		return timestampEarliest
	case whereTime:
		return w.value
	case whereAgo:
		return max(now.Add(-time.Duration(w.value)).UnixMilli(), 0)
	}
	return timestampLatest
}
