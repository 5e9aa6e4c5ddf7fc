package storage

import (
	"math"

	"github.com/ottla-kafka/ottla/wire/compress"
)

// LogConfig holds the topic configs that decide how a log is written and how
// long it is kept. Times are milliseconds, sizes bytes, as in Kafka's keys,
// which the comments name. DefaultLogConfig has Kafka's defaults; the zero
// value is not useful. A LogConfig is a value: a Log takes a new one by SetConfig.
type LogConfig struct {
	SegmentBytes       int32 // segment.bytes: a segment is rolled before it gets larger
	SegmentMs          int64 // segment.ms: a non-empty segment is rolled after this time
	SegmentJitterMs    int64 // segment.jitter.ms: subtracted at random from segment.ms
	SegmentIndexBytes  int32 // segment.index.bytes: a full index rolls the segment
	IndexIntervalBytes int32 // index.interval.bytes: log bytes between two index entries
	FlushMessages      int64 // flush.messages: fsync after so many records
	FlushMs            int64 // flush.ms: fsync after this time, by Tick
	RetentionMs        int64 // retention.ms: -1 no limit
	RetentionBytes     int64 // retention.bytes: -1 no limit
	FileDeleteDelayMs  int64 // file.delete.delay.ms: a deleted segment's files stay so long

	MaxMessageBytes             int32 // max.message.bytes: of one batch, compressed
	MaxDecompressedMessageBytes int32 // max.decompressed.message.bytes: of one record of a compressed batch
	MessageTimestampType        TimestampType
	MessageTimestampBeforeMaxMs int64 // message.timestamp.before.max.ms
	MessageTimestampAfterMaxMs  int64 // message.timestamp.after.max.ms

	// Compression is the codec that batches are stored in; CompressionType
	// says whether it applies at all (compression.type: producer keeps what
	// the producer chose, uncompressed is codec None).
	CompressionType  CompressionType
	Compression      compress.Codec
	CompressionLevel int // compression.<codec>.level, or compress.DefaultLevel

	CleanupDelete  bool // cleanup.policy contains delete
	CleanupCompact bool // cleanup.policy contains compact: records need a key
}

// TimestampType is message.timestamp.type.
type TimestampType int8

// The two timestamp types, with their wire codes.
const (
	CreateTime    TimestampType = 0 // the producer's time is kept
	LogAppendTime TimestampType = 1 // the broker's time is written into the batch
)

// CompressionType says what compression.type asks for.
type CompressionType int8

// The two cases of compression.type.
const (
	CompressionProducer CompressionType = iota // store batches as they come
	CompressionFixed                           // store all batches in LogConfig.Compression
)

// DefaultLogConfig returns the defaults of Apache Kafka 4.4.
func DefaultLogConfig() LogConfig {
	const day = 24 * 60 * 60 * 1000
	return LogConfig{
		SegmentBytes:                1 << 30,
		SegmentMs:                   7 * day,
		SegmentIndexBytes:           10 << 20,
		IndexIntervalBytes:          4096,
		FlushMessages:               math.MaxInt64,
		FlushMs:                     math.MaxInt64,
		RetentionMs:                 7 * day,
		RetentionBytes:              -1,
		FileDeleteDelayMs:           60_000,
		MaxMessageBytes:             1_048_588,
		MaxDecompressedMessageBytes: math.MaxInt32 - 8,
		MessageTimestampBeforeMaxMs: math.MaxInt64,
		MessageTimestampAfterMaxMs:  3_600_000,
		CompressionLevel:            compress.DefaultLevel,
		CleanupDelete:               true,
	}
}
