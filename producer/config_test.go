package producer

import (
	_ "embed"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/compress"
)

//go:embed testdata/producer.tsv
var kafkaKeys string

// differs are keys whose default is not written as Kafka writes it, and why.
var differs = map[string]string{
	"receive.buffer.bytes": "32768 for producers and 65536 for consumers; the client's table has one entry, and -1 is ours anyway",
}

func property(key string) (def, note, refuse string, ok bool) {
	if p, found := Properties().Lookup(key); found {
		return p.Default, p.Differs, p.Refuse, true
	}
	p, found := client.ClientProperties().Lookup(key)
	return p.Default, p.Differs, p.Refuse, found
}

func TestEveryKeyOfKafkasProducerIsMappedOrRefused(t *testing.T) {
	for line := range strings.Lines(kafkaKeys) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		key, def := f[0], f[2]
		if key == "name" {
			continue
		}
		got, _, refuse, ok := property(key)
		require.True(t, ok, "%s is neither mapped nor refused", key)
		if differs[key] == "" {
			require.Equal(t, def, got, "default of %s", key)
		}
		if refuse != "" {
			require.Greater(t, len(refuse), 20, "%s is refused without saying why", key)
		}
	}
}

func TestKafkasDefaultsAreOurs(t *testing.T) {
	for line := range strings.Lines(kafkaKeys) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		key, def := f[0], f[2]
		_, note, refuse, _ := property(key)
		if key == "name" || strings.HasPrefix(def, "(") || note != "" || refuse != "" || key == "sasl.mechanism" {
			continue
		}
		_, c, err := FromProperties(map[string]string{key: def})
		require.NoError(t, err, key)
		want := DefaultConfig()
		want.idempotenceAsked = key == "enable.idempotence"
		require.Equal(t, printed(want), printed(c), key)
	}
}

// printed leaves out what cannot be compared.
func printed(c Config) Config {
	c.Partitioner = nil
	return c
}

func TestPropertiesReachTheirFields(t *testing.T) {
	of, c, err := FromProperties(map[string]string{
		"bootstrap.servers": "a:1,b:2", "acks": "1", "enable.idempotence": "false", "retries": "3",
		"max.in.flight.requests.per.connection": "9", "linger.ms": "20", "batch.size": "100", "max.request.size": "200",
		"buffer.memory": "300", "max.block.ms": "400", "delivery.timeout.ms": "50000", "request.timeout.ms": "600",
		"retry.backoff.ms": "7", "retry.backoff.max.ms": "8", "compression.type": "zstd", "compression.zstd.level": "9",
		"compression.gzip.level": "5", "compression.lz4.level": "10", "partitioner.ignore.keys": "true",
		"partitioner.adaptive.partitioning.enable": "false", "partitioner.availability.timeout.ms": "11", "partitioner.rack.aware": "true",
		"partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner",
		"key.serializer":    "org.apache.kafka.common.serialization.StringSerializer", "value.serializer": "json",
		"buffer.memory.allocation.strategy": "INCREMENTAL",
	})
	require.NoError(t, err)
	require.Equal(t, []string{"a:1", "b:2"}, of.Seeds)
	require.Equal(t, 600*time.Millisecond, of.RequestTimeout)
	require.NotNil(t, c.Partitioner)
	require.Equal(t, Config{
		Acks: AcksLeader, Retries: 3, MaxInFlight: 9, Linger: 20 * time.Millisecond, BatchSize: 100, MaxRequestSize: 200,
		BufferMemory: 300, MaxBlock: 400 * time.Millisecond, DeliveryTimeout: 50 * time.Second, RequestTimeout: 600 * time.Millisecond,
		RetryBackoff: 7 * time.Millisecond, RetryBackoffMax: 8 * time.Millisecond, Compression: compress.Zstd, ZstdLevel: 9,
		GzipLevel: 5, Lz4Level: 10, IgnoreKeys: true, AvailabilityTimeout: 11 * time.Millisecond, RackAware: true,
		KeyFormat: FormatString, ValueFormat: FormatJSON,
	}, printed(c))
	require.NoError(t, c.Validate())
}

func TestRemovedPartitionersSayWhatToWrite(t *testing.T) {
	for class, want := range map[string]string{
		"org.apache.kafka.clients.producer.internals.DefaultPartitioner": "leave partitioner.class out",
		"org.apache.kafka.clients.producer.UniformStickyPartitioner":     "partitioner.ignore.keys=true",
		"com.example.Mine": "write a partition.Partitioner",
	} {
		_, _, err := FromProperties(map[string]string{"partitioner.class": class})
		require.ErrorContains(t, err, want)
	}
}

func TestBadPropertiesAreAllReported(t *testing.T) {
	_, _, err := FromProperties(map[string]string{
		"linger": "5", "acks": "2", "interceptor.classes": "com.example.Mine", "transactional.id": "tx",
		"value.serializer": "io.confluent.kafka.serializers.KafkaAvroSerializer", "compression.type": "brotli", "batch.size": "many",
	})
	for _, part := range []string{"did you mean linger.ms?", "acks=2", "producer.Intercept", "txn.FromProperties",
		"write an Encoder and use NewTyped", "brotli", "batch.size=many"} {
		require.ErrorContains(t, err, part)
	}
	var field *client.FieldError
	require.True(t, errors.As(err, &field))
}

func TestValidateAsKafkaDoes(t *testing.T) {
	for name, x := range map[string]struct {
		opts []Option
		err  string
	}{
		"defaults":                          {nil, ""},
		"asked for, acks 1":                 {[]Option{Idempotent(true), RequireAcks(AcksLeader)}, "acks=1: idempotence needs acks=all"},
		"asked for, no retries":             {[]Option{Idempotent(true), Retries(0)}, "retries=0: idempotence needs"},
		"asked for, 6 in flight":            {[]Option{Idempotent(true), MaxInFlight(6)}, "max.in.flight.requests.per.connection=6: idempotence needs 5 or less"},
		"delivery shorter than one attempt": {[]Option{DeliveryTimeout(time.Second)}, "delivery.timeout.ms=1s: must be at least linger.ms + request.timeout.ms, which is 5ms + 30s"},
		"level":                             {[]Option{CompressionLevel(compress.Lz4, 18)}, "compression.lz4.level=18"},
		"gzip level 0":                      {[]Option{CompressionLevel(compress.Gzip, 0)}, "compression.gzip.level=0"},
		"codec":                             {[]Option{Compression(7)}, "compression.type"},
		"negative":                          {[]Option{BatchSize(-1), BufferMemory(-1), Linger(-1), MaxInFlight(0)}, "buffer.memory=-1"},
		"back-off":                          {[]Option{RetryBackoff(time.Second, time.Millisecond)}, "retry.backoff.max.ms=1ms"},
		"interceptor":                       {[]Option{Intercept(nil)}, "nil interceptor"},
		"partitioner":                       {[]Option{Partitioner(nil)}, "partitioner.class"},
		"acks":                              {[]Option{RequireAcks(3)}, "acks=3"},
		"no time":                           {[]Option{RequestTimeout(0)}, "request.timeout.ms=0s: must be more than zero"},
		"nil option":                        {[]Option{nil}, ""},
		"presets":                           {[]Option{LowLatency, HighThroughput, Durable}, ""},
	} {
		c := DefaultConfig()
		c.apply(x.opts)
		err := c.Validate()
		if x.err == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, x.err, name)
		}
	}
}

func TestIdempotenceGivesWayWhenItWasNotAskedFor(t *testing.T) {
	for _, o := range []Option{RequireAcks(AcksLeader), RequireAcks(AcksNone), Retries(0), MaxInFlight(6)} {
		c := DefaultConfig()
		o(&c)
		require.NoError(t, c.Validate())
		require.False(t, c.Idempotence)
	}
	c := DefaultConfig()
	c.Linger = 100 * time.Second
	require.NoError(t, c.Validate())
	require.Equal(t, 130*time.Second, c.DeliveryTimeout)
}

func TestLintAndPrint(t *testing.T) {
	c := DefaultConfig()
	require.Empty(t, c.Lint())
	require.Contains(t, c.String(), "linger.ms=5\nbatch.size=16384\n")
	c.Acks, c.Idempotence, c.DeliveryTimeout, c.Linger, c.BatchSize, c.ZstdLevel = AcksNone, false, time.Second, 600*time.Millisecond, 20<<20, 9
	lines := strings.Join(c.Lint(), "\n")
	for _, part := range []string{"acks=0", "delivery.timeout.ms is 1s", "linger.ms (600ms)", "larger than max.request.size", "fewer than two batches", "compression.zstd.level is set"} {
		require.Contains(t, lines, part)
	}
	c.Acks = AcksLeader
	require.Contains(t, strings.Join(c.Lint(), "\n"), "a lost answer writes records twice")
}
