package producer

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/compress"
)

// Validate reports everything that is wrong with the configuration, as errors.Join of *client.FieldError. Like Kafka,
// it switches idempotence off where it was not asked for and cannot be had, and raises a default delivery timeout.
func (c *Config) Validate() error {
	errs := append([]error(nil), c.problems...)
	bad := func(key, value, format string, args ...any) {
		errs = append(errs, &client.FieldError{Key: key, Value: value, Reason: fmt.Sprintf(format, args...)})
	}
	c.reconcile(bad)
	c.validateSizes(bad)
	c.validateTimes(bad)
	if !c.Compression.Valid() {
		bad("compression.type", c.Compression.String(), "must be none, gzip, snappy, lz4 or zstd")
	}
	for codec, level := range map[compress.Codec]int{compress.Gzip: c.GzipLevel, compress.Lz4: c.Lz4Level, compress.Zstd: c.ZstdLevel} {
		if _, err := compress.NewCompressor(codec, level); err != nil {
			bad("compression."+codec.String()+".level", strconv.Itoa(level), "%v", err)
		}
	}
	for key, f := range map[string]Format{"key.serializer": c.KeyFormat, "value.serializer": c.ValueFormat} {
		if !f.valid() {
			bad(key, string(f), "must be one of %v", Formats())
		}
	}
	for _, in := range c.Interceptors {
		if in == nil {
			bad("Config.Interceptors", "", "has a nil interceptor")
		}
	}
	if c.Partitioner == nil {
		bad("partitioner.class", "", "is nil; leave it out for partition.Default")
	}
	return errors.Join(errs...)
}

type complain func(key, value, format string, args ...any)

// reconcile is Kafka's: what idempotence forbids is an error when idempotence was asked for, and otherwise
// switches it off.
func (c *Config) reconcile(bad complain) {
	switch c.Acks {
	case AcksAll, AcksNone, AcksLeader:
	default:
		bad("acks", strconv.Itoa(int(c.Acks)), "must be all (-1), 1 or 0")
	}
	conflict := func(key, value, need string) {
		if c.idempotenceAsked {
			bad(key, value, "idempotence needs %s; set it, or enable.idempotence=false", need)
		} else {
			c.Idempotence = false
		}
	}
	if !c.Idempotence {
		return
	}
	if c.Acks != AcksAll {
		conflict("acks", c.Acks.String(), "acks=all")
	}
	if c.Retries == 0 {
		conflict("retries", "0", "retries above 0")
	}
	if c.MaxInFlight > 5 {
		conflict("max.in.flight.requests.per.connection", strconv.Itoa(c.MaxInFlight), "5 or less, the number of batches a broker remembers")
	}
}

func (c *Config) validateSizes(bad complain) {
	if c.Retries < 0 {
		bad("retries", strconv.Itoa(c.Retries), "must not be negative")
	}
	if c.MaxInFlight < 1 {
		bad("max.in.flight.requests.per.connection", strconv.Itoa(c.MaxInFlight), "must be at least 1")
	}
	if c.BatchSize < 0 {
		bad("batch.size", strconv.Itoa(c.BatchSize), "must not be negative; 0 puts every record in a batch of its own")
	}
	if c.MaxRequestSize < 0 {
		bad("max.request.size", strconv.Itoa(c.MaxRequestSize), "must not be negative")
	}
	if c.BufferMemory < 0 {
		bad("buffer.memory", strconv.FormatInt(c.BufferMemory, 10), "must not be negative")
	}
}

func (c *Config) validateTimes(bad complain) {
	for _, d := range []struct {
		key     string
		nanos   int64
		printed string
	}{
		{"linger.ms", int64(c.Linger), c.Linger.String()},
		{"max.block.ms", int64(c.MaxBlock), c.MaxBlock.String()},
		{"delivery.timeout.ms", int64(c.DeliveryTimeout), c.DeliveryTimeout.String()},
		{"request.timeout.ms", int64(c.RequestTimeout), c.RequestTimeout.String()},
		{"retry.backoff.ms", int64(c.RetryBackoff), c.RetryBackoff.String()},
		{"partitioner.availability.timeout.ms", int64(c.AvailabilityTimeout), c.AvailabilityTimeout.String()},
	} {
		if d.nanos < 0 {
			bad(d.key, d.printed, "must not be negative")
		}
	}
	if c.RequestTimeout == 0 {
		bad("request.timeout.ms", "0s", "must be more than zero")
	}
	if c.RetryBackoffMax < c.RetryBackoff {
		bad("retry.backoff.max.ms", c.RetryBackoffMax.String(), "must be at least retry.backoff.ms, which is %s", c.RetryBackoff)
	}
	if least := c.Linger + c.RequestTimeout; c.DeliveryTimeout < least {
		if c.DeliveryTimeout != defaultDeliveryTimeout {
			bad("delivery.timeout.ms", c.DeliveryTimeout.String(),
				"must be at least linger.ms + request.timeout.ms, which is %s + %s", c.Linger, c.RequestTimeout)
		} else {
			c.DeliveryTimeout = least
		}
	}
}
