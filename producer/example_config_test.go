package producer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire/compress"
)

// The defaults are Apache Kafka 4's.
func ExampleDefaultConfig() {
	c := producer.DefaultConfig()
	fmt.Println(c.Acks, c.Idempotence, c.Linger, c.BatchSize, c.DeliveryTimeout)
	// Output: all true 5ms 16384 2m0s
}

// An option is a function over the configuration; a literal is one too.
func ExampleOption() {
	cfg := producer.DefaultConfig()
	for _, opt := range []producer.Option{
		producer.RequireAcks(producer.AcksLeader),
		producer.CompressionLevel(compress.Zstd, 6),
		producer.BatchSize(256 << 10),
		producer.MaxRequestSize(2 << 20),
		producer.RetryBackoff(50*time.Millisecond, time.Second),
		func(c *producer.Config) { c.DeliveryTimeout = time.Minute },
	} {
		opt(&cfg)
	}
	fmt.Println(cfg.Acks, cfg.Compression, cfg.BatchSize, cfg.DeliveryTimeout)
	// Output: 1 zstd 262144 1m0s
}

// Presets are options; what follows them has the last word.
func ExampleDurable() {
	for _, preset := range []producer.Option{producer.LowLatency, producer.HighThroughput, producer.Durable} {
		cfg := producer.DefaultConfig()
		preset(&cfg)
		fmt.Println(cfg.Linger, cfg.BatchSize>>10, "KiB", cfg.Compression, cfg.DeliveryTimeout)
	}
	// Output:
	// 0s 16 KiB none 2m0s
	// 20ms 512 KiB lz4 2m0s
	// 5ms 16 KiB none 10m0s
}

// Lint says what is allowed and probably not meant.
func ExampleConfig_Lint() {
	cfg := producer.DefaultConfig()
	producer.RequireAcks(producer.AcksLeader)(&cfg)
	producer.Idempotent(false)(&cfg)
	for _, line := range cfg.Lint() {
		fmt.Println(line)
	}
	// Output: idempotence is off (acks=1, max.in.flight.requests.per.connection=5) and retries are on: a lost answer writes records twice
}

// The configuration prints by Kafka's names.
func ExampleConfig_String() {
	cfg := producer.DefaultConfig()
	for line := range strings.Lines(cfg.String()) {
		if strings.HasPrefix(line, "acks") || strings.HasPrefix(line, "linger") {
			fmt.Print(line)
		}
	}
	// Output:
	// acks=all
	// linger.ms=5
}

// Validate reports everything at once; New does it too.
func ExampleConfig_Validate() {
	cfg := producer.DefaultConfig()
	cfg.BatchSize, cfg.BufferMemory = -1, -1
	for line := range strings.Lines(cfg.Validate().Error()) {
		key, _, _ := strings.Cut(line, "=")
		fmt.Println(key)
	}
	// Output:
	// batch.size
	// buffer.memory
}

// The table says what each of Kafka's keys does here.
func ExampleProperties() {
	p, ok := producer.Properties().Lookup("linger.ms")
	fmt.Println(ok, p.Default, p.Differs == "")
	// Output: true 5 true
}

// The error of a record says what is known of it.
func ExampleError() {
	cl, stop := connect()
	defer stop()
	p, _ := producer.New(cl)
	defer p.Close(context.Background())
	_, err := p.Send(context.Background(), producer.Record{Topic: "orders", Value: make([]byte, 2<<20)})
	var e *producer.Error
	fmt.Println(errors.As(err, &e), errors.Is(err, producer.ErrNotWritten), errors.Is(err, producer.ErrRecordTooLarge))
	// Output: true true true
}

// Partitions tells how many partitions a topic has, as the producer knows it.
func ExampleProducer_Partitions() {
	cl, stop := connect()
	defer stop()
	ctx := context.Background()
	p, _ := producer.New(cl)
	defer p.Close(ctx)
	n, err := p.Partitions(ctx, "orders")
	fmt.Println(n, err)
	// Output: 2 <nil>
}
