package producer

import (
	"fmt"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer/partition"
	"github.com/ottla-kafka/ottla/wire/compress"
)

// FromProperties reads the Java properties of a producer: those of its connections into a client.Config, the others
// into a Config. Unknown keys, refused ones and bad values are all in the error, errors.Join of *client.FieldError.
// Both results are meant to be looked at and changed before client.NewFrom and NewFromConfig.
func FromProperties(properties map[string]string) (client.Config, Config, error) {
	of, c := client.DefaultConfig(), DefaultConfig()
	err := client.LoadProperties(properties, client.ClientProperties().Bind(&of), Properties().Bind(&c))
	return of, c, err
}

// Properties is the table of the keys that only producers have, and of the shared ones that have a field in Config too.
func Properties() client.PropertyTable[Config] {
	return append(append(deliveryProperties(), batchProperties()...), partitionProperties()...)
}

func deliveryProperties() client.PropertyTable[Config] {
	return client.PropertyTable[Config]{
		{Key: "acks", Default: "all", Doc: "how many replicas must have a record", Apply: applyAcks},
		{Key: "enable.idempotence", Default: "true", Doc: "retries neither double nor reorder", Apply: func(c *Config, v string) error {
			err := client.SetBool(func(c *Config) *bool { return &c.Idempotence })(c, v)
			c.idempotenceAsked = err == nil && c.Idempotence
			return err
		}},
		{Key: "retries", Default: "2147483647", Doc: "attempts after the first", Apply: client.SetInt(func(c *Config) *int { return &c.Retries })},
		{Key: "max.in.flight.requests.per.connection", Default: "5", Doc: "unanswered requests to a broker", Apply: client.SetInt(func(c *Config) *int { return &c.MaxInFlight })},
		{Key: "delivery.timeout.ms", Default: "120000", Doc: "a record has its verdict by then", Apply: client.SetMillis(func(c *Config) *time.Duration { return &c.DeliveryTimeout })},
		{Key: "request.timeout.ms", Default: "30000", Doc: "limit of one attempt", Apply: client.SetMillis(func(c *Config) *time.Duration { return &c.RequestTimeout })},
		{Key: "retry.backoff.ms", Default: "100", Doc: "first wait before sending again", Apply: client.SetMillis(func(c *Config) *time.Duration { return &c.RetryBackoff })},
		{Key: "retry.backoff.max.ms", Default: "1000", Doc: "what that wait grows to", Apply: client.SetMillis(func(c *Config) *time.Duration { return &c.RetryBackoffMax })},
		{Key: "transactional.id", Default: "(null)", Refuse: "transactions are package txn's: txn.FromProperties takes this key; without them leave it out, an idempotent producer needs no id"},
		{Key: "transaction.timeout.ms", Default: "60000", Refuse: "transactions are package txn's: txn.FromProperties takes this key"},
		{Key: "transaction.two.phase.commit.enable", Default: "false", Refuse: "two-phase commit (KIP-939) is not built; leave it out"},
	}
}

func batchProperties() client.PropertyTable[Config] {
	level := func(codec compress.Codec, field func(*Config) *int) client.Property[Config] {
		_, _, def := codec.Levels()
		return client.Property[Config]{
			Key: "compression." + codec.String() + ".level", Default: fmt.Sprint(def), Doc: "level of " + codec.String(), Apply: client.SetInt(field),
		}
	}
	return client.PropertyTable[Config]{
		{Key: "linger.ms", Default: "5", Doc: "how long a batch waits for company", Apply: client.SetMillis(func(c *Config) *time.Duration { return &c.Linger })},
		{Key: "batch.size", Default: "16384", Doc: "bytes of a full batch, before compression", Apply: client.SetInt(func(c *Config) *int { return &c.BatchSize })},
		{Key: "max.request.size", Default: "1048576", Doc: "bytes of a request, and of a record before compression", Apply: client.SetInt(func(c *Config) *int { return &c.MaxRequestSize })},
		{Key: "buffer.memory", Default: "33554432", Doc: "bytes held for records on their way", Apply: applyBufferMemory},
		{Key: "buffer.memory.allocation.strategy", Default: "full", Accept: []string{"incremental"},
			Refuse: "is full or incremental; either has no effect, a batch starts with what the last one took and grows"},
		{Key: "max.block.ms", Default: "60000", Doc: "how long Submit waits for memory and metadata", Apply: client.SetMillis(func(c *Config) *time.Duration { return &c.MaxBlock })},
		{Key: "compression.type", Default: "none", Doc: "codec of the batches", Apply: func(c *Config, v string) (err error) {
			c.Compression, err = compress.Parse(v)
			if v == "uncompressed" {
				err = fmt.Errorf("is for topics and brokers; a producer says none")
			}
			return err
		}},
		level(compress.Gzip, func(c *Config) *int { return &c.GzipLevel }),
		level(compress.Lz4, func(c *Config) *int { return &c.Lz4Level }),
		level(compress.Zstd, func(c *Config) *int { return &c.ZstdLevel }),
		{Key: "metadata.max.idle.ms", Default: "300000",
			Refuse: "topics a producer has sent to stay known until it is closed; leave it out"},
		{Key: "interceptor.classes", Default: "", Refuse: "names Java classes; write an Interceptor and use producer.Intercept"},
		{Key: "key.serializer", Default: "(required)", Doc: "how Any encodes keys", Differs: "bytes: a producer takes bytes unless Any or NewTyped is put on it",
			Apply: applyFormat(func(c *Config) *Format { return &c.KeyFormat })},
		{Key: "value.serializer", Default: "(required)", Doc: "how Any encodes values", Differs: "bytes: a producer takes bytes unless Any or NewTyped is put on it",
			Apply: applyFormat(func(c *Config) *Format { return &c.ValueFormat })},
	}
}

func partitionProperties() client.PropertyTable[Config] {
	return client.PropertyTable[Config]{
		{Key: "partitioner.class", Default: "(null)", Doc: "who chooses partitions", Apply: applyPartitioner},
		{Key: "partitioner.ignore.keys", Default: "false", Doc: "treat keyed records like others", Apply: client.SetBool(func(c *Config) *bool { return &c.IgnoreKeys })},
		{Key: "partitioner.adaptive.partitioning.enable", Default: "true", Doc: "prefer partitions with short queues", Apply: client.SetBool(func(c *Config) *bool { return &c.Adaptive })},
		{Key: "partitioner.availability.timeout.ms", Default: "0", Doc: "avoid partitions whose broker takes nothing", Apply: client.SetMillis(func(c *Config) *time.Duration { return &c.AvailabilityTimeout })},
		{Key: "partitioner.rack.aware", Default: "false", Doc: "prefer leaders in client.rack", Apply: client.SetBool(func(c *Config) *bool { return &c.RackAware })},
	}
}

func applyAcks(c *Config, v string) error {
	switch v {
	case "all", "-1":
		c.Acks = AcksAll
	case "1":
		c.Acks = AcksLeader
	case "0":
		c.Acks = AcksNone
	default:
		return fmt.Errorf("is one of all, -1, 1, 0")
	}
	return nil
}

func applyBufferMemory(c *Config, v string) error {
	var n int
	if err := client.SetInt(func(*Config) *int { return &n })(c, v); err != nil {
		return err
	}
	c.BufferMemory = int64(n)
	return nil
}

const clientsPackage = "org.apache.kafka.clients.producer."

// applyPartitioner takes Kafka's class names and our own names.
func applyPartitioner(c *Config, v string) error {
	name := strings.TrimPrefix(v, "class ")
	switch strings.TrimPrefix(strings.TrimPrefix(name, clientsPackage), "internals.") {
	case "RoundRobinPartitioner", "roundrobin":
		c.Partitioner = partition.RoundRobin()
	case "random":
		c.Partitioner = partition.Random
	case "default", "(null)", "":
		c.Partitioner = partition.Default
	case "DefaultPartitioner", "BuiltInPartitioner":
		return fmt.Errorf("was removed in Kafka 4.0 (KIP-794); leave partitioner.class out, which does the same: murmur2 of the key, sticky without one")
	case "UniformStickyPartitioner":
		return fmt.Errorf("was removed in Kafka 4.0 (KIP-794); leave partitioner.class out and set partitioner.ignore.keys=true")
	default:
		return fmt.Errorf("names a Java class that is not one of Kafka's own; write a partition.Partitioner and use producer.Partitioner")
	}
	return nil
}

// serializers are Kafka's own classes.
var serializers = map[string]Format{
	"ByteArraySerializer": FormatBytes, "ByteBufferSerializer": FormatBytes, "BytesSerializer": FormatBytes,
	"StringSerializer": FormatString, "ShortSerializer": FormatInt16, "IntegerSerializer": FormatInt32, "LongSerializer": FormatInt64,
	"FloatSerializer": FormatFloat32, "DoubleSerializer": FormatFloat64, "BooleanSerializer": FormatBool, "UUIDSerializer": FormatUUID,
	"VoidSerializer": FormatVoid,
}

const serializationPackage = "org.apache.kafka.common.serialization."

// applyFormat takes Kafka's class names and our formats.
func applyFormat(field func(*Config) *Format) func(*Config, string) error {
	return func(c *Config, v string) error {
		name := strings.TrimPrefix(strings.TrimPrefix(v, "class "), serializationPackage)
		if f, ok := serializers[name]; ok {
			*field(c) = f
			return nil
		}
		if f := Format(v); f.valid() {
			*field(c) = f
			return nil
		}
		if name == "ListSerializer" {
			return fmt.Errorf("ListSerializer is configured by further Java classes; write an Encoder and use NewTyped")
		}
		return fmt.Errorf("names a Java class that is not one of Kafka's own; write an Encoder and use NewTyped")
	}
}
