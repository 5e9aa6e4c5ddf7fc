package consumer

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
)

//go:embed testdata/consumer.tsv
var kafkaKeys string

// differs are keys whose default is not written as Kafka writes it, and why.
var differs = map[string]string{
	"enable.metrics.push": "refused as long as nothing is pushed; the client's table is shared with tools whose default is false",
}

func property(key string) (def, differs, refuse string, ok bool) {
	if p, found := client.ClientProperties().Lookup(key); found {
		return p.Default, p.Differs, p.Refuse, true
	}
	if p, found := clientSide.Lookup(key); found {
		return p.Default, p.Differs, p.Refuse, true
	}
	p, found := Properties().Lookup(key)
	return p.Default, p.Differs, p.Refuse, found
}

func TestEveryKeyOfKafkasConsumerIsMappedOrRefused(t *testing.T) {
	for line := range strings.Lines(kafkaKeys) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		key, def := f[0], f[2]
		if key == "name" {
			continue
		}
		got, _, refuse, ok := property(key)
		require.True(t, ok, "%s is neither mapped nor refused", key)
		if differs[key] == "" {
			if got == "(null)" && def == "" {
				got = "" // an empty list and none are the same to Kafka
			}
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
		of, c, err := FromProperties(map[string]string{key: def})
		require.NoError(t, err, key)
		require.Equal(t, DefaultConfig(), c, key)
		want := client.DefaultConfig()
		// Set explicitly, these name things that are on by default.
		require.Equal(t, want.RequestTimeout, of.RequestTimeout, key)
		require.Equal(t, want.MetadataMaxAge, of.MetadataMaxAge, key)
		require.Equal(t, want.AutoCreateTopics, of.AutoCreateTopics, key)
	}
}

func TestPropertiesReachTheirFields(t *testing.T) {
	of, c, err := FromProperties(map[string]string{
		"bootstrap.servers": "a:1,b:2", "client.rack": "r1", "fetch.min.bytes": "7", "fetch.max.wait.ms": "8", "fetch.max.bytes": "9",
		"max.partition.fetch.bytes": "10", "max.poll.records": "11", "check.crcs": "false", "isolation.level": "read_committed",
		"auto.offset.reset": "by_duration:PT1H30M", "key.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
		"value.deserializer": "int64", "group.id": "g", "enable.auto.commit": "false", "group.protocol": "CONSUMER",
		"partition.assignment.strategy": "org.apache.kafka.clients.consumer.StickyAssignor,range", "default.api.timeout.ms": "12",
		"allow.auto.create.topics": "false", "max.decompressed.batch.bytes": "13",
		"group.instance.id": "i", "group.remote.assignor": "uniform", "session.timeout.ms": "9000", "heartbeat.interval.ms": "700",
		"max.poll.interval.ms": "80000", "auto.commit.interval.ms": "60", "exclude.internal.topics": "false",
	})
	require.NoError(t, err)
	require.Equal(t, []string{"a:1", "b:2"}, of.Seeds)
	require.Equal(t, "r1", of.Rack)
	require.False(t, of.AutoCreateTopics)
	require.Equal(t, 12*time.Millisecond, of.APITimeout)
	want := DefaultConfig()
	want.Rack, want.MinBytes, want.MaxWait, want.MaxBytes, want.MaxPartitionBytes = "r1", 7, 8*time.Millisecond, 9, 10
	want.MaxPollRecords, want.CheckCRC, want.Isolation, want.Reset = 11, false, ReadCommitted, ByDuration(90*time.Minute)
	want.KeyFormat, want.ValueFormat, want.APITimeout, want.MaxDecompressed = FormatString, FormatInt64, 12*time.Millisecond, 13
	want.Group.ID, want.Group.AutoCommit, want.Group.Protocol, want.Group.Assignors = "g", false, "consumer", []string{"sticky", "range"}
	g := &want.Group
	g.InstanceID, g.RemoteAssignor, g.SessionTimeout, g.HeartbeatInterval = "i", "uniform", 9*time.Second, 700*time.Millisecond
	g.MaxPollInterval, g.AutoCommitInterval, g.ExcludeInternal = 80*time.Second, 60*time.Millisecond, false
	require.Equal(t, want, c)
	require.NoError(t, c.Validate())
	Subscribe("orders")(&c)
	require.NoError(t, c.Validate())
	m := c.Group.member(c.Rack)
	require.Equal(t, "g i uniform 9s 700ms 1m20s false r1 consumer", fmt.Sprint(m.GroupID, " ", m.InstanceID, " ", m.RemoteAssignor, " ", m.SessionTimeout, " ",
		m.HeartbeatInterval, " ", m.RebalanceTimeout, " ", m.ExcludeInternal, " ", m.Rack, " ", m.Protocol))
	require.Equal(t, "sticky range", m.Assignors[0].Name()+" "+m.Assignors[1].Name())
}

func TestBadPropertiesAreAllReported(t *testing.T) {
	_, _, err := FromProperties(map[string]string{
		"auto.offset.rest": "latest", "auto.offset.reset": "sometimes", "interceptor.classes": "com.example.Mine",
		"value.deserializer": "io.confluent.kafka.serializers.KafkaAvroDeserializer", "isolation.level": "serializable",
		"partition.assignment.strategy": "com.example.Mine", "fetch.min.bytes": "many",
	})
	require.ErrorContains(t, err, "did you mean auto.offset.reset?")
	for _, part := range []string{"auto.offset.reset=sometimes", "use consumer.Intercept", "write a Decoder and use NewTyped",
		"isolation.level=serializable", "is not an assignor", "fetch.min.bytes=many"} {
		require.ErrorContains(t, err, part)
	}
	var field *client.FieldError
	require.True(t, errors.As(err, &field))
}

func TestISODurations(t *testing.T) {
	good := map[string]time.Duration{"P1D": 24 * time.Hour, "PT1H": time.Hour, "pt15m": 15 * time.Minute, "PT0.5S": 500 * time.Millisecond,
		"P2DT3H4M5S": 51*time.Hour + 4*time.Minute + 5*time.Second, "PT0S": 0}
	for text, want := range good {
		got, err := parseISODuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "P", "PT", "1H", "PT1D", "P1H", "PT1", "PT1M1H", "PT-1H", "PT1.5H", "PT1e3S", "PTinfS", "P1DT", "P200000D00D"} {
		_, err := parseISODuration(text)
		require.Error(t, err, text)
	}
	_, err := parseISODuration("P200000D")
	require.ErrorContains(t, err, "292 years")
}

func TestValidateSaysEverythingThatIsWrong(t *testing.T) {
	c := DefaultConfig()
	c.MinBytes, c.MaxPollRecords, c.MaxDecompressed = -1, 0, 0
	c.Reset, c.Start = AtOffset(3), Nearest
	c.Group.ID = "g"
	c.Assigned = []Assignment{{TopicPartition: TopicPartition{Topic: "a b", Partition: 0}}, {TopicPartition: TopicPartition{Topic: "t", Partition: -1}},
		{TopicPartition: TopicPartition{Topic: "t", Partition: 1}}, {TopicPartition: TopicPartition{Topic: "t", Partition: 1}}, {TopicPartition{Topic: "t", Partition: 2}, At(time.Unix(-5, 0))}}
	c.Interceptors = []Interceptor{nil}
	err := c.Validate()
	for _, part := range []string{"fetch.min.bytes=-1", "max.poll.records=0", "max.decompressed.batch.bytes=0", "auto.offset.reset=offset 3",
		"nearest is a reset policy", "not a legal topic name", "negative partition", "t-1: is assigned twice", "before 1970", "nil interceptor"} {
		require.ErrorContains(t, err, part)
	}
	ok := DefaultConfig()
	require.NoError(t, ok.Validate())
}

func TestLintSaysWhatIsProbablyNotMeant(t *testing.T) {
	c := DefaultConfig()
	require.Empty(t, c.Lint())
	c.MaxPartitionBytes, c.MaxBytes, c.MinBytes, c.MaxWait, c.CheckCRC = 3000, 1000, 2000, 0, false
	Assign("orders", 0)(&c)
	require.Len(t, c.Lint(), 6)
	StartAt(Earliest)(&c)
	require.Len(t, c.Lint(), 5)
	Group("g")(&c)
	InstanceID("i")(&c)
	require.Len(t, c.Lint(), 6)
	InstanceID("")(&c)
	Subscribe("orders")(&c)
	c.Group.HeartbeatInterval = 40 * time.Second
	require.Len(t, c.Lint(), 6)
}
