package producer

import (
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer/partition"
	"github.com/ottla-kafka/ottla/wire/compress"
)

// Option changes a Config. Options run in order, so a later one wins. A function literal over Config's fields is
// an Option too, and so are the presets.
type Option func(*Config)

// apply lets options change the configuration; nil ones do nothing.
func (c *Config) apply(opts []Option) {
	for _, o := range opts {
		if o != nil {
			o(c)
		}
	}
}

// RequireAcks sets acks.
func RequireAcks(a Acks) Option { return func(c *Config) { c.Acks = a } }

// Idempotent sets enable.idempotence. Asking for it makes what it forbids an error.
func Idempotent(on bool) Option {
	return func(c *Config) { c.Idempotence, c.idempotenceAsked = on, on }
}

// Linger sets linger.ms.
func Linger(d time.Duration) Option { return func(c *Config) { c.Linger = d } }

// BatchSize sets batch.size, in bytes.
func BatchSize(bytes int) Option { return func(c *Config) { c.BatchSize = bytes } }

// BufferMemory sets buffer.memory, in bytes.
func BufferMemory(bytes int64) Option { return func(c *Config) { c.BufferMemory = bytes } }

// MaxRequestSize sets max.request.size, in bytes.
func MaxRequestSize(bytes int) Option { return func(c *Config) { c.MaxRequestSize = bytes } }

// MaxInFlight sets max.in.flight.requests.per.connection.
func MaxInFlight(n int) Option { return func(c *Config) { c.MaxInFlight = n } }

// MaxBlock sets max.block.ms.
func MaxBlock(d time.Duration) Option { return func(c *Config) { c.MaxBlock = d } }

// DeliveryTimeout sets delivery.timeout.ms.
func DeliveryTimeout(d time.Duration) Option { return func(c *Config) { c.DeliveryTimeout = d } }

// RequestTimeout sets request.timeout.ms for produce requests.
func RequestTimeout(d time.Duration) Option { return func(c *Config) { c.RequestTimeout = d } }

// Retries sets retries.
func Retries(n int) Option { return func(c *Config) { c.Retries = n } }

// RetryBackoff sets retry.backoff.ms and retry.backoff.max.ms for produce requests.
func RetryBackoff(first, most time.Duration) Option {
	return func(c *Config) { c.RetryBackoff, c.RetryBackoffMax = first, most }
}

// Compression sets compression.type, at the codec's configured level.
func Compression(codec compress.Codec) Option { return func(c *Config) { c.Compression = codec } }

// CompressionLevel sets compression.type and that codec's level.
func CompressionLevel(codec compress.Codec, level int) Option {
	return func(c *Config) {
		c.Compression = codec
		switch codec {
		case compress.Gzip:
			c.GzipLevel = level
		case compress.Lz4:
			c.Lz4Level = level
		case compress.Zstd:
			c.ZstdLevel = level
		}
	}
}

// Partitioner sets who chooses partitions (partitioner.class).
func Partitioner(p partition.Partitioner) Option { return func(c *Config) { c.Partitioner = p } }

// Intercept adds an interceptor behind those there are.
func Intercept(i Interceptor) Option {
	return func(c *Config) { c.Interceptors = append(c.Interceptors, i) }
}

// Client gives options to the client that Dial makes. With New, which is given a client, it is an error.
func Client(opts ...client.Option) Option {
	return func(c *Config) { c.client = append(c.client, opts...) }
}

// LowLatency sends every record as soon as its broker can take it.
func LowLatency(c *Config) {
	c.Linger = 0
}

// HighThroughput fills large batches and compresses them fast: linger 20 ms, batches up to 512 KiB, lz4, 64 MiB of
// buffer.
func HighThroughput(c *Config) {
	c.Linger = 20 * time.Millisecond
	c.BatchSize = 512 << 10
	c.BufferMemory = 64 << 20
	c.Compression = compress.Lz4 // at its default level, which is the fast one
}

// Durable rides out long outages: all in-sync replicas, idempotence required, a verdict after ten minutes at the
// latest. What min.insync.replicas of the topic is remains the broker's business.
func Durable(c *Config) {
	c.Acks = AcksAll
	c.Idempotence, c.idempotenceAsked = true, true
	c.Retries = DefaultConfig().Retries
	c.DeliveryTimeout = 10 * time.Minute
}
