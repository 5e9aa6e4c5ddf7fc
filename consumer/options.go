package consumer

import (
	"time"

	"github.com/ottla-kafka/ottla/client"
)

// Option changes a Config. Options run in order, so a later one wins.
type Option func(*Config)

// Assign adds partitions of a topic to what the consumer reads, beginning at Config.Start, or with Group at its committed
// offsets.
func Assign(topic string, partitions ...int32) Option {
	return func(c *Config) {
		for _, p := range partitions {
			c.Assigned = append(c.Assigned, Assignment{TopicPartition: TopicPartition{Topic: topic, Partition: p}})
		}
	}
}

// AssignAt adds one partition with a start of its own, whatever Group has committed.
func AssignAt(topic string, partition int32, start Where) Option {
	return func(c *Config) {
		c.Assigned = append(c.Assigned, Assignment{TopicPartition{Topic: topic, Partition: partition}, start})
	}
}

// StartAt sets where partitions start, with Group those without a committed offset.
func StartAt(w Where) Option { return func(c *Config) { c.Start = w } }

// OnReset sets the reset policy (auto.offset.reset).
func OnReset(w Where) Option { return func(c *Config) { c.Reset = w } }

// OnTopicReplaced says what to do when a topic was deleted and created again.
func OnTopicReplaced(p ReplacedPolicy) Option { return func(c *Config) { c.OnTopicReplaced = p } }

// Fetching sets fetch.min.bytes and fetch.max.wait.ms: how long a broker holds an answer back to make it larger.
func Fetching(minBytes int, maxWait time.Duration) Option {
	return func(c *Config) { c.MinBytes, c.MaxWait = minBytes, maxWait }
}

// MaxBytes sets fetch.max.bytes and max.partition.fetch.bytes.
func MaxBytes(answer, partition int) Option {
	return func(c *Config) { c.MaxBytes, c.MaxPartitionBytes = answer, partition }
}

// WithIsolation sets isolation.level.
func WithIsolation(i Isolation) Option { return func(c *Config) { c.Isolation = i } }

// Standstill sets after how long it is told that an open transaction keeps a read_committed reader waiting.
func Standstill(d time.Duration) Option { return func(c *Config) { c.Standstill = d } }

// CheckCRC sets check.crcs.
func CheckCRC(on bool) Option { return func(c *Config) { c.CheckCRC = on } }

// MaxDecompressed sets max.decompressed.batch.bytes.
func MaxDecompressed(bytes int) Option { return func(c *Config) { c.MaxDecompressed = bytes } }

// ReuseMemory makes records short-lived: see Config.ReuseMemory.
func ReuseMemory(c *Config) { c.ReuseMemory = true }

// Rack sets client.rack for this consumer.
func Rack(rack string) Option { return func(c *Config) { c.Rack = rack } }

// FailFast ends loops, and Run, at the first error of any partition.
func FailFast(c *Config) { c.FailFast = true }

// Intercept adds interceptors.
func Intercept(list ...Interceptor) Option {
	return func(c *Config) { c.Interceptors = append(c.Interceptors, list...) }
}

// OnEvent sets who is told of resets, truncations and the like.
func OnEvent(f func(Event)) Option { return func(c *Config) { c.OnEvent = f } }

// Client gives options to the client that Dial makes. With New, which is given a client, it is an error.
func Client(opts ...client.Option) Option {
	return func(c *Config) { c.client = append(c.client, opts...) }
}

// LowLatency is a preset: brokers answer as soon as there is anything, and send up to 256 KiB of a partition, so that the
// first record of an answer is soon at hand.
func LowLatency(c *Config) {
	c.MinBytes, c.MaxWait, c.MaxPartitionBytes = 1, 500*time.Millisecond, 256<<10
}

// HighThroughput is a preset: brokers gather 64 KiB or wait half a second, and send up to 4 MiB of a partition.
func HighThroughput(c *Config) {
	c.MinBytes, c.MaxWait, c.MaxPartitionBytes = 64<<10, 500*time.Millisecond, 4<<20
}
