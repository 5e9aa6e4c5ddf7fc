package producer

import (
	"math"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer/partition"
	"github.com/ottla-kafka/ottla/wire/compress"
)

// Acks says how many replicas must have a record before it counts as written (acks).
type Acks int16

// The values of acks.
const (
	AcksAll    Acks = -1 // all in-sync replicas
	AcksNone   Acks = 0  // nobody says anything: offsets are -1 and losses go unnoticed
	AcksLeader Acks = 1  // the leader alone
)

// String is the value as Kafka writes it.
func (a Acks) String() string {
	switch a {
	case AcksAll:
		return "all"
	case AcksNone:
		return "0"
	case AcksLeader:
		return "1"
	}
	return "invalid"
}

// Config is everything a producer can be told beside what the client knows. DefaultConfig fills it with Apache
// Kafka 4.x's defaults; an Option changes it. Zero means zero. The key in each comment is the Java property.
type Config struct {
	// Acks is how many replicas must have a record (acks, all).
	Acks Acks
	// Idempotence numbers the batches, so that a retry neither doubles nor reorders (enable.idempotence, true). As
	// in Kafka it switches itself off when it was not asked for and Acks, Retries or MaxInFlight forbid it.
	Idempotence bool
	// Retries bounds the attempts after the first; DeliveryTimeout is the better bound (retries, MaxInt32).
	Retries int
	// MaxInFlight is how many requests to one broker may be unanswered
	// (max.in.flight.requests.per.connection, 5). Without idempotence one batch of each partition is on the way at
	// a time whatever this says, so that retries keep the order; Kafka would reorder.
	MaxInFlight int

	// Linger is how long a batch waits for more records (linger.ms, 5 ms). A Send that nothing else is in the air
	// with does not linger, since its caller waits.
	Linger time.Duration
	// BatchSize is the size in bytes at which a batch is full, before compression (batch.size, 16384). A larger
	// record gets a batch of its own.
	BatchSize int
	// MaxRequestSize bounds a request, and before compression a record (max.request.size, 1 MiB).
	MaxRequestSize int
	// BufferMemory bounds the bytes held for records that are not acknowledged yet (buffer.memory, 32 MiB). A client's
	// MemoryBudget bounds them too.
	BufferMemory int64

	// MaxBlock is how long Submit and Send wait for buffer memory and for a topic's metadata, if ctx allows as
	// much (max.block.ms, 60 s).
	MaxBlock time.Duration
	// DeliveryTimeout is how long after Submit a record has its verdict at the latest (delivery.timeout.ms, 120 s).
	// The default is raised to Linger + RequestTimeout when those are more.
	DeliveryTimeout time.Duration
	// RequestTimeout bounds one attempt (request.timeout.ms; New takes the client's). The broker is told to wait for
	// replicas no longer than that.
	RequestTimeout time.Duration
	// RetryBackoff and its maximum space the attempts (retry.backoff.ms, retry.backoff.max.ms; New takes the client's).
	RetryBackoff, RetryBackoffMax time.Duration

	// Compression of batches (compression.type, none), with a level for each codec that has levels
	// (compression.gzip.level -1, compression.lz4.level 9, compression.zstd.level 3).
	Compression                    compress.Codec
	GzipLevel, Lz4Level, ZstdLevel int

	// Partitioner chooses partitions (partitioner.class); partition.Default unless set.
	Partitioner partition.Partitioner
	// IgnoreKeys makes the default partitioner treat keyed records like the others (partitioner.ignore.keys).
	IgnoreKeys bool
	// Adaptive makes the sticky partitioner prefer partitions with short queues
	// (partitioner.adaptive.partitioning.enable, true).
	Adaptive bool
	// AvailabilityTimeout makes it avoid partitions whose broker took nothing for so long although there was
	// something; zero never does (partitioner.availability.timeout.ms, 0).
	AvailabilityTimeout time.Duration
	// RackAware makes it prefer partitions led in the client's rack (partitioner.rack.aware, false).
	RackAware bool

	// KeyFormat and ValueFormat are how Any encodes (key.serializer, value.serializer; bytes).
	KeyFormat, ValueFormat Format

	// Interceptors see each record before it is sent, and its end.
	Interceptors []Interceptor

	idempotenceAsked bool
	client           []client.Option // for Dial
	problems         []error         // what options could not do
}

// DefaultConfig is Apache Kafka 4.x's configuration of a producer.
func DefaultConfig() Config {
	return Config{
		Acks:            AcksAll,
		Idempotence:     true,
		Retries:         math.MaxInt32,
		MaxInFlight:     5,
		Linger:          5 * time.Millisecond,
		BatchSize:       16384,
		MaxRequestSize:  1 << 20,
		BufferMemory:    32 << 20,
		MaxBlock:        60 * time.Second,
		DeliveryTimeout: defaultDeliveryTimeout,
		RequestTimeout:  30 * time.Second,
		RetryBackoff:    100 * time.Millisecond,
		RetryBackoffMax: time.Second,
		Compression:     compress.None,
		GzipLevel:       -1,
		Lz4Level:        9,
		ZstdLevel:       3,
		Partitioner:     partition.Default,
		Adaptive:        true,
		KeyFormat:       FormatBytes,
		ValueFormat:     FormatBytes,
	}
}

const defaultDeliveryTimeout = 120 * time.Second

// level is that of the codec in use.
func (c *Config) level() int {
	switch c.Compression {
	case compress.Gzip:
		return c.GzipLevel
	case compress.Lz4:
		return c.Lz4Level
	case compress.Zstd:
		return c.ZstdLevel
	}
	return compress.DefaultLevel
}
