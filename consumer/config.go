package consumer

import (
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/compress"
)

// Config is everything a consumer can be told. DefaultConfig fills it with Apache Kafka 4.x's defaults; an Option
// changes it. Durations are durations, sizes are bytes, zero means zero. The key in each comment is the Java
// property that sets the field.
type Config struct {
	// Assigned is what to read from the beginning; Add and Remove change it later.
	Assigned []Assignment
	// Start is where partitions start that Assigned says nothing else about. Unset means Reset.
	Start Where
	// Reset is what happens when there is no start position or the log does not have the offset: Earliest, Latest,
	// Nearest, ByDuration or Fail (auto.offset.reset, latest).
	Reset Where
	// OnTopicReplaced is what happens when a topic was deleted and another of its name was created.
	OnTopicReplaced ReplacedPolicy

	// MinBytes is how much data a broker waits for before it answers (fetch.min.bytes, 1). It is a sum over
	// partitions.
	MinBytes int
	// MaxWait is how long a broker waits for MinBytes at most (fetch.max.wait.ms, 500 ms).
	MaxWait time.Duration
	// MaxBytes bounds one answer (fetch.max.bytes, 50 MiB). A single batch that is larger still comes whole.
	MaxBytes int
	// MaxPartitionBytes bounds the data of one partition in one answer (max.partition.fetch.bytes, 1 MiB). A
	// partition is fetched ahead while at most this much of it waits to be read.
	MaxPartitionBytes int
	// MaxPollRecords is what Poll with max zero returns at most (max.poll.records, 500).
	MaxPollRecords int
	// Isolation decides whether records of open and aborted transactions are seen (isolation.level,
	// read_uncommitted).
	Isolation Isolation
	// CheckCRC verifies the checksum of each batch (check.crcs, true).
	CheckCRC bool
	// MaxDecompressed bounds what one batch may decompress to (max.decompressed.batch.bytes, 64 MiB). Kafka's
	// consumer has no limit: a batch of 1 MiB may hold 32 GiB.
	MaxDecompressed int
	// APITimeout bounds calls whose ctx has no deadline, and is how long a partition may fail to make progress
	// before the application is told (default.api.timeout.ms, 60 s). Zero takes the client's.
	APITimeout time.Duration
	// Rack is where this consumer runs, to fetch from the nearest replica (client.rack). Empty takes the client's.
	Rack string

	// FailFast ends Records, Batches and Poll at the first error of a partition. Otherwise the others go on.
	FailFast bool
	// Interceptors see each record before the application does, in this order (interceptor.classes).
	Interceptors []Interceptor
	// OnEvent is told of resets, truncations and the like, from the consumer's own goroutine; it must not block or
	// close the consumer.
	OnEvent func(Event)

	// KeyFormat and ValueFormat say how Any decodes (key.deserializer, value.deserializer).
	KeyFormat, ValueFormat Format

	client []client.Option // for Dial

	// Group holds the keys that concern consumer groups. They are read and checked so that a configuration file can
	// be shared; a consumer that is assigned its partitions uses none of them.
	Group GroupConfig
}

// GroupConfig holds the configuration keys of group membership.
type GroupConfig struct {
	ID                  string        // group.id
	InstanceID          string        // group.instance.id
	Protocol            string        // group.protocol: classic or consumer
	RemoteAssignor      string        // group.remote.assignor
	Assignors           []string      // partition.assignment.strategy: range, roundrobin, sticky, cooperative-sticky
	SessionTimeout      time.Duration // session.timeout.ms
	HeartbeatInterval   time.Duration // heartbeat.interval.ms
	MaxPollInterval     time.Duration // max.poll.interval.ms
	AutoCommit          bool          // enable.auto.commit
	AutoCommitInterval  time.Duration // auto.commit.interval.ms
	ExcludeInternal     bool          // exclude.internal.topics
	AcquireMode         string        // share.acquire.mode
	AcknowledgementMode string        // share.acknowledgement.mode
}

// Assignment is one partition to read and where to start.
type Assignment struct {
	TopicPartition
	Start Where // unset: Config.Start, and if that is unset too, Config.Reset
}

// DefaultConfig is Apache Kafka 4.x's configuration of a consumer.
func DefaultConfig() Config {
	return Config{
		Reset:             Latest,
		MinBytes:          1,
		MaxWait:           500 * time.Millisecond,
		MaxBytes:          50 << 20,
		MaxPartitionBytes: 1 << 20,
		MaxPollRecords:    500,
		CheckCRC:          true,
		MaxDecompressed:   compress.ClientLimit,
		APITimeout:        60 * time.Second,
		Group: GroupConfig{
			Protocol: "classic", Assignors: []string{"range", "cooperative-sticky"}, SessionTimeout: 45 * time.Second,
			HeartbeatInterval: 3 * time.Second, MaxPollInterval: 5 * time.Minute, AutoCommit: true,
			AutoCommitInterval: 5 * time.Second, ExcludeInternal: true, AcquireMode: "batch_optimized", AcknowledgementMode: "implicit",
		},
	}
}

// Isolation is a value of isolation.level.
type Isolation int8

const (
	// ReadUncommitted hands out every record up to the high watermark.
	ReadUncommitted Isolation = 0
	// ReadCommitted hands out records up to the last stable offset and leaves out those of aborted transactions.
	ReadCommitted Isolation = 1
)

// String is the value as the property has it.
func (i Isolation) String() string {
	if i == ReadCommitted {
		return "read_committed"
	}
	return "read_uncommitted"
}

// ReplacedPolicy says what to do when a topic was deleted and created again.
type ReplacedPolicy int8

const (
	// Stop halts the partitions of the topic with ErrTopicReplaced, because their offsets mean nothing in the new one.
	Stop ReplacedPolicy = iota
	// Adopt reads the new topic from its start.
	Adopt
)

// Interceptor sees a record before the application does and may change it. It runs in the reading goroutine and
// must not keep the pointer.
type Interceptor func(*Record)
