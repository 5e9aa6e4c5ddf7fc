package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func definitions() []*Definition {
	return []*Definition{TopicKeys(), BrokerKeys(), GroupKeys(), ClientMetricsKeys()}
}

// Defaults that Apache Kafka itself would refuse as a set value: the quorum lists are empty until somebody sets them.
func TestEveryDefaultParsesAndIsPrintedAsItStandsInTheTable(t *testing.T) {
	for _, d := range definitions() {
		for _, k := range d.Keys() {
			v, err := k.Parse(k.Default)
			require.NoError(t, err, k.Name)
			if k.Default != nil {
				require.Equal(t, *k.Default, *v.Format(k.Type), k.Name)
			}
			require.Contains(t, []string{"HIGH", "MEDIUM", "LOW"}, k.Importance, k.Name)
		}
	}
	require.Len(t, BrokerKeys().Keys(), 379)
	require.Len(t, TopicKeys().Keys(), 38)
	require.Len(t, GroupKeys().Keys(), 27)
	require.Len(t, ClientMetricsKeys().Keys(), 3)
}

func TestEverySynonymIsABrokerConfigWhoseDefaultIsTheTopics(t *testing.T) {
	l, err := NewLayers(nil)
	require.NoError(t, err)
	for _, k := range TopicKeys().Keys() {
		synonyms := topicSynonyms()[k.Name]
		if k.BrokerSynonym == "" {
			require.Empty(t, synonyms, k.Name)
			continue
		}
		require.Equal(t, k.BrokerSynonym, synonyms[0].broker)
		for _, s := range synonyms {
			_, ok := BrokerKeys().Lookup(s.broker)
			require.True(t, ok, s.broker)
		}
		require.Equal(t, k.Default, l.TopicValue(k.Name, nil).Format(k.Type), k.Name)
	}
}

// The answers are what Apache Kafka 4.4.0 said to the same IncrementalAlterConfigs; "" = accepted.
func TestValuesAreAcceptedAndRefusedAsApacheKafkaDoes(t *testing.T) {
	for _, c := range []struct{ key, value, reason string }{
		{"cleanup.policy", "", ""},
		{"cleanup.policy", "compact,compact", ""},
		{"cleanup.policy", " compact , delete ", ""},
		{"cleanup.policy", "Compact", "String must be one of: compact, delete"},
		{"compression.type", "bad", "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"},
		{"compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"},
		{"compression.gzip.level", "-1", ""},
		{"compression.lz4.level", "18", "Value must be no more than 17"},
		{"min.cleanable.dirty.ratio", "1.5", "Value must be no more than 1"},
		{"min.cleanable.dirty.ratio", "x", "Not a number of type DOUBLE"},
		{"min.cleanable.dirty.ratio", "0.5d", ""},
		{"preallocate", "TRUE", ""},
		{"preallocate", "yes", "Expected value to be either true or false"},
		{"retention.ms", " 5 ", ""},
		{"retention.ms", "+5", ""},
		{"retention.ms", "", "Not a number of type LONG"},
		{"retention.ms", "1_000", "Not a number of type LONG"},
		{"retention.ms", "9223372036854775808", "Not a number of type LONG"},
		{"segment.bytes", "1", "Value must be at least 1048576"},
		{"segment.bytes", "2147483648", "Not a number of type INT"},
		{"leader.replication.throttled.replicas", "0:1,1:2", ""},
		{"leader.replication.throttled.replicas", "*", ""},
		{"leader.replication.throttled.replicas", "", ""},
	} {
		k, ok := TopicKeys().Lookup(c.key)
		require.True(t, ok)
		_, err := k.Parse(&c.value)
		if c.reason == "" {
			require.NoError(t, err, "%s=%s", c.key, c.value)
			continue
		}
		require.EqualError(t, err, "Invalid value "+c.value+" for configuration "+c.key+": "+c.reason)
	}
	k, _ := TopicKeys().Lookup("leader.replication.throttled.replicas")
	bad := "a,b"
	_, err := k.Parse(&bad)
	require.ErrorContains(t, err, "Invalid value [a, b] for configuration")
}

func TestServerPropertiesAreCheckedAllAtOnce(t *testing.T) {
	_, err := NewLayers(map[string]string{
		"num.partition": "3", "log.retention.hours": "x", "message.max.bytes": "5",
		"listener.name.internal.sasl.jaas.config": "secret", "listener.name.sasl_ssl.plain.sasl.jaas.config": "secret",
	})
	require.EqualError(t, err, "config: server properties: Invalid value x for configuration log.retention.hours: Not a number of type INT\n"+
		"Unknown broker config name: num.partition (did you mean num.partitions?)")
	var unknown *UnknownKeyError
	require.True(t, errors.As(err, &unknown))
	require.Equal(t, "num.partitions", unknown.Suggest)
}

func TestPasswordsAreNeitherDescribedNorPrintedInErrors(t *testing.T) {
	l, err := NewLayers(map[string]string{"ssl.key.password": "canary", "listener.name.x.ssl.key.password": "canary"})
	require.NoError(t, err)
	l = l.With(map[string]string{"some.plugin.secret": "canary"}, nil)
	for _, d := range l.DescribeBroker(nil) {
		if strings.Contains(d.Name, "ssl.key.password") || d.Name == "some.plugin.secret" {
			require.True(t, d.Sensitive)
			require.Nil(t, d.Value)
			for _, s := range d.Synonyms {
				require.Nil(t, s.Value)
			}
		}
	}
}

func TestATopicTakesTheFinestUnitThatIsSet(t *testing.T) {
	l, err := NewLayers(map[string]string{"log.retention.hours": "2", "log.flush.scheduler.interval.ms": "7"})
	require.NoError(t, err)
	require.EqualValues(t, 7_200_000, l.Log(nil).RetentionMs)
	require.EqualValues(t, 7, l.Log(nil).FlushMs)
	l = l.With(nil, map[string]string{"log.retention.ms": "5"})
	require.EqualValues(t, 5, l.Log(nil).RetentionMs)
	require.EqualValues(t, 9, l.Log(map[string]string{"retention.ms": "9"}).RetentionMs)
	unlimited, err := NewLayers(map[string]string{"log.retention.hours": "-1"})
	require.NoError(t, err)
	require.EqualValues(t, -1, unlimited.Log(nil).RetentionMs)
	require.Same(t, l.Log(nil), l.Log(nil), "topics without overrides share the defaults")
}

func TestSuggestions(t *testing.T) {
	require.Equal(t, "retention.ms", TopicKeys().Suggest("retention.m"))
	require.Equal(t, "cleanup.policy", TopicKeys().Suggest("clean.policy"))
	require.Empty(t, TopicKeys().Suggest("nonsense"))
	require.Empty(t, TopicKeys().Suggest(""))
}

// FuzzConfigParse: no value makes a check panic, and what is accepted is accepted again in its printed form.
func FuzzConfigParse(f *testing.F) {
	f.Add("retention.ms", "604800000")
	f.Add("cleanup.policy", "compact,delete")
	f.Add("log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308")
	f.Add("share.auto.offset.reset", "by_duration:PT1H")
	f.Add("log.cleaner.io.buffer.load.factor", "-Infinity")
	f.Fuzz(func(t *testing.T, name, value string) {
		for _, d := range definitions() {
			k, ok := d.Lookup(name)
			if !ok {
				d.Suggest(name)
				continue
			}
			v, err := k.Parse(&value)
			if err != nil || k.Sensitive() {
				continue
			}
			printed := v.Format(k.Type)
			again, err := k.Parse(printed)
			require.NoError(t, err, "%s=%q printed as %q", name, value, *printed)
			require.Equal(t, *printed, *again.Format(k.Type))
		}
	})
}
