package consumer

import (
	"context"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/wire/compress"
)

// Config is everything a consumer can be told. DefaultConfig fills it with Apache Kafka 4.x's defaults; an Option
// changes it. Durations are durations, sizes are bytes, zero means zero. The key in each comment is the Java
// property that sets the field.
type Config struct {
	// Assigned is what to read from the beginning; Add and Remove change it later.
	Assigned []Assignment
	// Start is where partitions start that Assigned says nothing else about and of which Group, if there is one, has no
	// committed offset. Unset means Reset.
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
	// MaxPollRecords is what Poll with n zero returns at most (max.poll.records, 500).
	MaxPollRecords int
	// Isolation decides whether records of open and aborted transactions are seen (isolation.level,
	// read_uncommitted).
	Isolation Isolation
	// Standstill is after how long OnEvent, observers and the logger are told that an open transaction keeps a read_committed
	// reader waiting, and of which producer (60 s, after which a transaction of Kafka's default transaction.timeout.ms has been
	// aborted; zero: never).
	Standstill time.Duration
	// CheckCRC verifies the checksum of each batch (check.crcs, true).
	CheckCRC bool
	// MaxDecompressed bounds what one batch may decompress to (max.decompressed.batch.bytes, 64 MiB). Kafka's
	// consumer has no limit: a batch of 1 MiB may hold 32 GiB.
	MaxDecompressed int
	// ReuseMemory reads the next answers into the memory of those that were read: what Records and Batches yield, and all
	// bytes in it, is then valid only until the loop asks for the next one (after a break: until the next call that
	// reads). Whoever keeps a key or a value longer copies it. What Poll returns, what handlers of Run and Serve get, and
	// what a transaction has in hand (Intake) stays valid for ever all the same. It halves what reading costs; up to four
	// answers are kept for it beside the memory budget (false).
	ReuseMemory bool
	// APITimeout bounds calls whose ctx has no deadline, and is how long a partition may fail to make progress
	// before the application is told (default.api.timeout.ms, 60 s). Zero takes the client's.
	APITimeout time.Duration
	// Rack is where this consumer runs, to fetch from the nearest replica (client.rack). Empty takes the client's.
	Rack string

	// FailFast ends loops, and Run, at the first error of a partition. Otherwise the others go on.
	FailFast bool
	// Interceptors see each record before the application does, in this order (interceptor.classes).
	Interceptors []Interceptor
	// OnEvent is told of resets, truncations and the like, from the consumer's own goroutine; it must not block or
	// close the consumer.
	OnEvent func(Event)

	// KeyFormat and ValueFormat say how Any decodes (key.deserializer, value.deserializer).
	KeyFormat, ValueFormat Format

	client []client.Option // for Dial

	// Group is for consumers that share topics as members of a group, or keep offsets in one: see Group and Subscribe.
	Group GroupConfig
}

// GroupConfig is the configuration of membership in a group. A consumer that is assigned its partitions uses ID, and with it
// AutoCommit, DrainTimeout, MaxPollInterval and OnStall (it leaves nothing when that has passed, and is told so); without ID
// it uses none of it.
type GroupConfig struct {
	// ID names the group (group.id). It is required to subscribe, and to commit.
	ID string
	// Topics or Pattern, an RE2 expression that has to match whole names, is what to subscribe to.
	Topics  []string
	Pattern string
	// InstanceID makes the member static: a restart within SessionTimeout keeps its partitions (group.instance.id).
	InstanceID string
	// Protocol is classic, consumer (KIP-848), or auto: consumer where the cluster has it and no Assignors are set
	// (group.protocol; Kafka's default is classic).
	Protocol string
	// Assignors are the classic protocol's by name: range, roundrobin, sticky, cooperative-sticky
	// (partition.assignment.strategy). None means range and cooperative-sticky, as in Kafka.
	Assignors []string
	// CustomAssignors come before Assignors.
	CustomAssignors []groupmember.Assignor
	// RemoteAssignor is the coordinator's with KIP-848: uniform, range, or empty for its choice
	// (group.remote.assignor).
	RemoteAssignor string
	// SessionTimeout is after how long without a heartbeat a member is dropped (session.timeout.ms, 45 s). With KIP-848 the
	// brokers' settings decide.
	SessionTimeout time.Duration
	// HeartbeatInterval is how often the member says that it lives (heartbeat.interval.ms, 3 s). The same goes for it.
	HeartbeatInterval time.Duration
	// DiscoverEvery is how often new topics are looked for that match Pattern (10 s), where the client does it.
	DiscoverEvery time.Duration
	// ExcludeInternal keeps Pattern from matching internal topics (exclude.internal.topics, true).
	ExcludeInternal bool

	// MaxPollInterval is how long one record of Run and Serve, or what a loop or Poll handed out, may take
	// (max.poll.interval.ms, 5 minutes); then StallPolicy decides. It is also how long the group waits for this member to
	// give up partitions.
	MaxPollInterval time.Duration
	// StallPolicy says what happens then; Leave unless set.
	StallPolicy StallPolicy
	// OnStall is told of it first, with the record and the stack of the goroutine. It must not block.
	OnStall func(Stall)
	// DrainTimeout is how long what is in hand may take to end when partitions are given up; then it is left behind,
	// uncommitted. Zero is nine tenths of MaxPollInterval.
	DrainTimeout time.Duration

	// AutoCommit commits what is done every AutoCommitInterval, before partitions are given up, and at the end
	// (enable.auto.commit, true; auto.commit.interval.ms, 5 s).
	AutoCommit         bool
	AutoCommitInterval time.Duration

	// OnAssigned is told of new partitions before they are read; Seek in it decides where they start.
	OnAssigned func(ctx context.Context, parts []TopicPartition)
	// OnRevoked is told of partitions that are being given up, when nothing of them is in hand any more and before the last
	// commit. It may commit itself.
	OnRevoked func(ctx context.Context, parts []TopicPartition)
	// OnLost is told of partitions that are gone already; commits for them fail.
	OnLost func(ctx context.Context, parts []TopicPartition, cause error)

	AcquireMode         string // share.acquire.mode
	AcknowledgementMode string // share.acknowledgement.mode
}

// subscribes tells whether the consumer is to be a member.
func (g *GroupConfig) subscribes() bool { return len(g.Topics) > 0 || g.Pattern != "" }

// drain is DrainTimeout as it is used.
func (g *GroupConfig) drain() time.Duration {
	if g.DrainTimeout > 0 {
		return g.DrainTimeout
	}
	return g.MaxPollInterval / 10 * 9
}

// Assignment is one partition to read and where to start.
type Assignment struct {
	TopicPartition
	Start Where // unset: the offset committed for Config.Group, else Config.Start, and if that is unset too, Config.Reset
}

// String is the partition and where to start, if that is said.
func (a Assignment) String() string {
	if a.Start.IsZero() {
		return a.TopicPartition.String()
	}
	return a.TopicPartition.String() + " from " + a.Start.String()
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
		Standstill:        60 * time.Second,
		CheckCRC:          true,
		MaxDecompressed:   compress.ClientLimit,
		APITimeout:        60 * time.Second,
		Group: GroupConfig{
			Protocol: "auto", SessionTimeout: 45 * time.Second, HeartbeatInterval: 3 * time.Second,
			DiscoverEvery: 10 * time.Second, MaxPollInterval: 5 * time.Minute, AutoCommit: true,
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

// Interceptor sees a record before the application does and may change it. It runs in the goroutine that reads (of Run and
// Serve that is the one that called them; of a Batch, whoever goes through its records, each time) and must not keep the
// pointer.
type Interceptor func(*Record)
