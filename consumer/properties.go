package consumer

import (
	"fmt"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/client"
)

// FromProperties reads the Java properties of a consumer: those of its connections into a client.Config, the others
// into a Config. Unknown keys, refused ones and bad values are all in the error, errors.Join of *client.FieldError. Both
// results are meant to be looked at and changed before client.NewFrom and NewFromConfig.
func FromProperties(properties map[string]string) (client.Config, Config, error) {
	of, c := client.DefaultConfig(), DefaultConfig()
	err := client.LoadProperties(properties, client.ClientProperties().Bind(&of), clientSide.Bind(&of), Properties().Bind(&c))
	return of, c, err
}

// clientSide are consumer keys whose fields are the client's.
var clientSide = client.PropertyTable[client.Config]{
	{Key: "allow.auto.create.topics", Default: "true", Doc: "asking for a topic may create it, if the broker allows it too",
		Apply: client.SetBool(func(c *client.Config) *bool { return &c.AutoCreateTopics })},
}

// Properties is the table of the keys that consumers have beside those of client.ClientProperties.
func Properties() client.PropertyTable[Config] {
	t := append(fetchProperties(), groupProperties()...)
	return append(t, client.Property[Config]{Key: "interceptor.classes", Default: "", Doc: "interceptors",
		Refuse: "names Java classes; use consumer.Intercept with a function"},
		client.Property[Config]{Key: "internal.throw.on.fetch.stable.offset.unsupported", Default: "false", Doc: "internal to Kafka Streams",
			Refuse: "is internal to Kafka Streams"})
}

func fetchProperties() client.PropertyTable[Config] {
	return client.PropertyTable[Config]{
		{Key: "fetch.min.bytes", Default: "1", Doc: "data a broker waits for before it answers", Apply: client.SetInt(func(c *Config) *int { return &c.MinBytes })},
		{Key: "fetch.max.wait.ms", Default: "500", Doc: "how long it waits at most", Apply: client.SetMillis(func(c *Config) *time.Duration { return &c.MaxWait })},
		{Key: "fetch.max.bytes", Default: "52428800", Doc: "size of one answer", Apply: client.SetInt(func(c *Config) *int { return &c.MaxBytes })},
		{Key: "max.partition.fetch.bytes", Default: "1048576", Doc: "size of one partition in one answer", Apply: client.SetInt(func(c *Config) *int { return &c.MaxPartitionBytes })},
		{Key: "max.poll.records", Default: "500", Doc: "what Poll returns at most when it is not told", Apply: client.SetInt(func(c *Config) *int { return &c.MaxPollRecords })},
		{Key: "default.api.timeout.ms", Default: "60000", Doc: "limit of calls without a deadline; how long a partition may fail silently", Apply: client.SetMillis(func(c *Config) *time.Duration { return &c.APITimeout })},
		{Key: "client.rack", Default: "", Doc: "where the consumer runs, for the nearest replica", Apply: client.SetString(func(c *Config) *string { return &c.Rack })},
		{Key: "check.crcs", Default: "true", Doc: "verify checksums", Apply: client.SetBool(func(c *Config) *bool { return &c.CheckCRC })},
		{Key: "isolation.level", Default: "read_uncommitted", Doc: "whether aborted transactions are seen", Apply: applyIsolation},
		{Key: "auto.offset.reset", Default: "latest", Doc: "where to go without a usable position", Apply: applyReset},
		{Key: "key.deserializer", Default: "(required)", Doc: "how Any decodes keys", Differs: "bytes: a consumer hands out bytes unless Any or NewTyped is put on it",
			Apply: applyFormat(func(c *Config) *Format { return &c.KeyFormat })},
		{Key: "value.deserializer", Default: "(required)", Doc: "how Any decodes values", Differs: "bytes: a consumer hands out bytes unless Any or NewTyped is put on it",
			Apply: applyFormat(func(c *Config) *Format { return &c.ValueFormat })},
		{Key: "max.decompressed.batch.bytes", Default: "67108864", Doc: "what one batch may decompress to; not a key of Kafka's", Apply: client.SetInt(func(c *Config) *int { return &c.MaxDecompressed })},
	}
}

// groupProperties are of use to consumers that subscribe. The share consumer's are read and checked only.
func groupProperties() client.PropertyTable[Config] {
	text := func(key, def, doc string, field func(*GroupConfig) *string) client.Property[Config] {
		return client.Property[Config]{Key: key, Default: def, Doc: doc, Apply: client.SetString(func(c *Config) *string { return field(&c.Group) })}
	}
	millis := func(key, def, doc string, field func(*GroupConfig) *time.Duration) client.Property[Config] {
		return client.Property[Config]{Key: key, Default: def, Doc: doc, Apply: client.SetMillis(func(c *Config) *time.Duration { return field(&c.Group) })}
	}
	return client.PropertyTable[Config]{
		text("group.id", "(null)", "name of the group, for consumers that subscribe; of those that are assigned their partitions, where their offsets are kept", func(g *GroupConfig) *string { return &g.ID }),
		text("group.instance.id", "(null)", "name of a static member", func(g *GroupConfig) *string { return &g.InstanceID }),
		{Key: "group.protocol", Default: "classic", Doc: "how members and coordinator talk: classic or consumer (KIP-848)", Differs: "auto: consumer where the cluster has it and partition.assignment.strategy is not set, else classic",
			Apply: applyWord("group.protocol", func(c *Config) *string { return &c.Group.Protocol }, "classic", "consumer", "auto")},
		text("group.remote.assignor", "(null)", "the coordinator's assignor", func(g *GroupConfig) *string { return &g.RemoteAssignor }),
		{Key: "partition.assignment.strategy", Default: "class org.apache.kafka.clients.consumer.RangeAssignor,class org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
			Doc: "the members' assignors (classic)", Differs: "not set means Kafka's two and leaves group.protocol its choice; set, it means classic unless group.protocol says otherwise", Apply: applyAssignors},
		millis("session.timeout.ms", "45000", "a silent member is dropped after it", func(g *GroupConfig) *time.Duration { return &g.SessionTimeout }),
		millis("heartbeat.interval.ms", "3000", "between heartbeats", func(g *GroupConfig) *time.Duration { return &g.HeartbeatInterval }),
		millis("max.poll.interval.ms", "300000", "how long one record, or what one poll handed out, may take; see GroupConfig.StallPolicy", func(g *GroupConfig) *time.Duration { return &g.MaxPollInterval }),
		{Key: "enable.auto.commit", Default: "true", Doc: "commit what is done by time, before partitions are given up, and at the end", Apply: client.SetBool(func(c *Config) *bool { return &c.Group.AutoCommit })},
		millis("auto.commit.interval.ms", "5000", "between such commits", func(g *GroupConfig) *time.Duration { return &g.AutoCommitInterval }),
		{Key: "exclude.internal.topics", Default: "true", Doc: "patterns do not match internal topics", Apply: client.SetBool(func(c *Config) *bool { return &c.Group.ExcludeInternal })},
		{Key: "share.acquire.mode", Default: "BATCH_OPTIMIZED", Doc: "how share consumers acquire", Apply: applyWord("share.acquire.mode", func(c *Config) *string { return &c.Group.AcquireMode }, "batch_optimized", "record_limit")},
		{Key: "share.acknowledgement.mode", Default: "implicit", Doc: "how share consumers acknowledge", Apply: applyWord("share.acknowledgement.mode", func(c *Config) *string { return &c.Group.AcknowledgementMode }, "implicit", "explicit")},
	}
}

// applyWord makes an Apply of a key with a few possible values, in any case as Kafka takes them.
func applyWord(key string, field func(*Config) *string, words ...string) func(*Config, string) error {
	return func(c *Config, value string) error {
		for _, w := range words {
			if strings.EqualFold(value, w) {
				*field(c) = w
				return nil
			}
		}
		return fmt.Errorf("%s is one of %s", key, strings.Join(words, ", "))
	}
}

func applyIsolation(c *Config, value string) error {
	switch value {
	case "read_committed":
		c.Isolation = ReadCommitted
	case "read_uncommitted":
		c.Isolation = ReadUncommitted
	default:
		return fmt.Errorf("is read_committed or read_uncommitted")
	}
	return nil
}

func applyReset(c *Config, value string) error {
	switch lower := strings.ToLower(value); {
	case lower == "earliest":
		c.Reset = Earliest
	case lower == "latest":
		c.Reset = Latest
	case lower == "none":
		c.Reset = Fail
	case lower == "nearest":
		c.Reset = Nearest
	case strings.HasPrefix(lower, "by_duration:"):
		d, err := parseISODuration(value[len("by_duration:"):])
		if err != nil {
			return err
		}
		c.Reset = ByDuration(d)
	default:
		return fmt.Errorf("is one of latest, earliest, none, nearest, by_duration:PnDTnHnMn.nS")
	}
	return nil
}

// deserializers are Kafka's own classes.
var deserializers = map[string]Format{
	"ByteArrayDeserializer": FormatBytes, "ByteBufferDeserializer": FormatBytes, "BytesDeserializer": FormatBytes,
	"StringDeserializer": FormatString, "ShortDeserializer": FormatInt16, "IntegerDeserializer": FormatInt32, "LongDeserializer": FormatInt64,
	"FloatDeserializer": FormatFloat32, "DoubleDeserializer": FormatFloat64, "BooleanDeserializer": FormatBool, "UUIDDeserializer": FormatUUID,
	"VoidDeserializer": FormatVoid,
}

const serializationPackage = "org.apache.kafka.common.serialization."

// applyFormat takes Kafka's class names and our formats.
func applyFormat(field func(*Config) *Format) func(*Config, string) error {
	return func(c *Config, value string) error {
		name := strings.TrimPrefix(strings.TrimPrefix(value, "class "), serializationPackage)
		if f, ok := deserializers[name]; ok {
			*field(c) = f
			return nil
		}
		if f := Format(value); f != "" {
			if _, err := f.Decoder(); err == nil {
				*field(c) = f
				return nil
			}
		}
		if name == "ListDeserializer" {
			return fmt.Errorf("ListDeserializer is configured by further Java classes; write a Decoder and use NewTyped")
		}
		return fmt.Errorf("names a Java class that is not one of Kafka's own; write a Decoder and use NewTyped")
	}
}

// assignors are Kafka's own classes.
var assignors = map[string]string{
	"RangeAssignor": "range", "RoundRobinAssignor": "roundrobin", "StickyAssignor": "sticky", "CooperativeStickyAssignor": "cooperative-sticky",
}

func applyAssignors(c *Config, value string) error {
	var names []string
	for word := range strings.SplitSeq(value, ",") {
		word = strings.TrimPrefix(strings.TrimSpace(word), "class ")
		name, ok := assignors[strings.TrimPrefix(word, "org.apache.kafka.clients.consumer.")]
		for _, own := range assignors {
			if word == own {
				name, ok = own, true
			}
		}
		if !ok {
			return fmt.Errorf("%q is not an assignor: RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor", word)
		}
		names = append(names, name)
	}
	c.Group.Assignors = names
	return nil
}
