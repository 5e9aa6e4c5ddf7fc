package producer

import (
	"time"

	"github.com/ottla-kafka/ottla/wire/record"
)

// Header is one header of a record: a name and a value, nil for null.
type Header = record.Header

// Record is what is sent. It is a value: the producer has copied its bytes when Submit returns, or Send begins to wait for
// the verdict, and keeps no reference to them.
type Record struct {
	// Topic is required.
	Topic string
	// Key and Value are null when nil; an empty slice is an empty key or value. A null value is a tombstone in a
	// compacted topic.
	Key, Value []byte
	// Headers keep their order; names may repeat.
	Headers []Header
	// Timestamp goes out in milliseconds; the zero time means now. Times before 1970 are fine.
	Timestamp time.Time

	partition int32 // one more than the partition asked for, so that zero is no partition
}

// To is the record with its partition chosen, whatever the partitioner says.
func (r Record) To(partition int32) Record {
	r.partition = partition + 1
	return r
}

// Partition is the partition chosen by To, if there is one.
func (r Record) Partition() (partition int32, ok bool) { return r.partition - 1, r.partition != 0 }

// Ack says where a record is now.
type Ack struct {
	Topic     string
	Partition int32
	// Offset is -1 when the broker did not say: with acks=0, and for a record that an earlier attempt wrote so
	// long ago that the broker only knows that it has it.
	Offset int64
	// Timestamp is the record's, or the broker's where message.timestamp.type=LogAppendTime.
	Timestamp time.Time
}
