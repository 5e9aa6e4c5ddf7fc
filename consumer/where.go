package consumer

import (
	"time"

	"github.com/ottla-kafka/ottla/consumer/machine"
)

// Where is a place in a partition: a start position, a target of Seek, or a reset policy.
type Where = machine.Where

var (
	// Earliest is the first record that the broker still has.
	Earliest = machine.Earliest
	// Latest is the end: only records written from now on. With isolation.level=read_committed it is the last
	// stable offset.
	Latest = machine.Latest
	// Nearest is a reset policy: the end of the log that is closer to the offset that is out of range. Without any
	// position it means Earliest. Kafka's consumer does not have it.
	Nearest = machine.Nearest
	// Fail is a reset policy: report an error and halt the partition (auto.offset.reset=none).
	Fail = machine.Fail
)

// AtOffset is one offset. If the log does not have it, the reset policy decides.
func AtOffset(offset int64) Where { return machine.AtOffset(offset) }

// AtPosition is an offset with the leader epoch of what was read before it; the broker is asked first whether its
// log still agrees (KIP-320). Record.LeaderEpoch and Record.Offset+1 make one.
func AtPosition(p Position) Where { return machine.AtPosition(p) }

// At is the first record with that timestamp or a later one, or the end if there is none.
func At(t time.Time) Where { return machine.At(t) }

// ByDuration is At(now minus d), where now is when the broker is asked (auto.offset.reset=by_duration:PT1H).
func ByDuration(d time.Duration) Where { return machine.ByDuration(d) }
