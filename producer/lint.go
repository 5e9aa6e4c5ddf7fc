package producer

import (
	"fmt"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/wire/compress"
)

// Lint says what is allowed and still probably not meant. New logs each line as a warning.
func (c *Config) Lint() []string {
	var out []string
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if !c.Idempotence && c.Retries > 0 && c.Acks != AcksNone {
		warn("idempotence is off (acks=%s, max.in.flight.requests.per.connection=%d) and retries are on: a lost answer writes records twice", c.Acks, c.MaxInFlight)
	}
	if c.Acks == AcksNone {
		warn("acks=0: lost records are not noticed, and offsets are unknown")
	}
	if c.DeliveryTimeout < 10*time.Second {
		warn("delivery.timeout.ms is %s: a broker that restarts takes longer", c.DeliveryTimeout)
	}
	if c.Linger > c.DeliveryTimeout/2 {
		warn("linger.ms (%s) takes more than half of delivery.timeout.ms (%s)", c.Linger, c.DeliveryTimeout)
	}
	if c.BatchSize > c.MaxRequestSize {
		warn("batch.size %d is larger than max.request.size %d: such a batch goes in a request of its own, larger than that", c.BatchSize, c.MaxRequestSize)
	}
	if int64(c.BatchSize)*2 > c.BufferMemory {
		warn("buffer.memory %d holds fewer than two batches of batch.size %d: submitters wait for every answer", c.BufferMemory, c.BatchSize)
	}
	def := DefaultConfig()
	for _, l := range []struct {
		codec      compress.Codec
		level, def int
	}{{compress.Gzip, c.GzipLevel, def.GzipLevel}, {compress.Lz4, c.Lz4Level, def.Lz4Level}, {compress.Zstd, c.ZstdLevel, def.ZstdLevel}} {
		if l.level != l.def && c.Compression != l.codec {
			warn("compression.%s.level is set, but compression.type is %s", l.codec, c.Compression)
		}
	}
	return out
}

// String prints the configuration, one key a line.
func (c Config) String() string {
	var b strings.Builder
	line := func(key string, value any) { fmt.Fprintf(&b, "%s=%v\n", key, value) }
	line("acks", c.Acks)
	line("enable.idempotence", c.Idempotence)
	line("retries", c.Retries)
	line("max.in.flight.requests.per.connection", c.MaxInFlight)
	line("linger.ms", c.Linger.Milliseconds())
	line("batch.size", c.BatchSize)
	line("max.request.size", c.MaxRequestSize)
	line("buffer.memory", c.BufferMemory)
	line("max.block.ms", c.MaxBlock.Milliseconds())
	line("delivery.timeout.ms", c.DeliveryTimeout.Milliseconds())
	line("request.timeout.ms", c.RequestTimeout.Milliseconds())
	line("retry.backoff.ms", c.RetryBackoff.Milliseconds())
	line("retry.backoff.max.ms", c.RetryBackoffMax.Milliseconds())
	line("compression.type", c.Compression)
	line("compression.gzip.level", c.GzipLevel)
	line("compression.lz4.level", c.Lz4Level)
	line("compression.zstd.level", c.ZstdLevel)
	line("partitioner.ignore.keys", c.IgnoreKeys)
	line("partitioner.adaptive.partitioning.enable", c.Adaptive)
	line("partitioner.availability.timeout.ms", c.AvailabilityTimeout.Milliseconds())
	line("partitioner.rack.aware", c.RackAware)
	line("key.serializer", c.KeyFormat)
	line("value.serializer", c.ValueFormat)
	return b.String()
}
