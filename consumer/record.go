package consumer

import (
	"time"

	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/wire/record"
)

// TopicPartition names one partition of one topic. It is comparable.
type TopicPartition = machine.TopicPartition

// Position is the next offset to read together with the leader epoch of what was read before it.
type Position = machine.Position

// Headers are the headers of a record, decoded when looked at: Len, All, Last, AppendTo.
type Headers = record.Headers

// Record is one record as it was read. It is a value; nothing in it is used again by the consumer. Key, Value and
// Headers point into the bytes that came from the broker and must not be written to; they stay valid for ever, unless
// Config.ReuseMemory is set, and whoever keeps one small value for long may want to copy it, because it keeps the bytes
// around it alive. A null key or value is nil, an empty one is not.
type Record struct {
	Topic         string
	Partition     int32
	LeaderEpoch   int32 // of the leader that wrote it, -1 unknown (magic 0 and 1)
	Offset        int64
	TimestampMs   int64 // milliseconds since 1970, may be negative; -1 none
	TimestampType TimestampType
	Key, Value    []byte
	Headers       Headers

	claim *claim // of a member of a group: a record can be committed only while the partition is still its own
}

// Timestamp is TimestampMs as a time; the zero Time if the record has none.
func (r *Record) Timestamp() time.Time {
	if r.TimestampType == NoTimestamp || r.TimestampMs == -1 {
		return time.Time{}
	}
	return time.UnixMilli(r.TimestampMs)
}

// TopicPartition names where the record was read.
func (r *Record) TopicPartition() TopicPartition {
	return TopicPartition{Topic: r.Topic, Partition: r.Partition}
}

// TimestampType says who set a record's timestamp (message.timestamp.type).
type TimestampType int8

const (
	// NoTimestamp: records of magic 0 have none.
	NoTimestamp TimestampType = -1
	// CreateTime is set by the producer.
	CreateTime TimestampType = 0
	// LogAppendTime is set by the broker, the same for a whole batch.
	LogAppendTime TimestampType = 1
)

// String is Kafka's name of the type.
func (t TimestampType) String() string {
	switch t {
	case CreateTime:
		return "CreateTime"
	case LogAppendTime:
		return "LogAppendTime"
	}
	return "NoTimestampType"
}

func timestampType(h *record.BatchHeader) TimestampType {
	switch {
	case h.Magic == 0:
		return NoTimestamp
	case h.LogAppendTime():
		return LogAppendTime
	}
	return CreateTime
}
