package config

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The expected lines are what Apache Kafka 4.4.0 answered with the same dynamic configs.
func TestSynonymsAreInApacheKafkasOrder(t *testing.T) {
	l, err := NewLayers(map[string]string{"num.partitions": "3"})
	require.NoError(t, err)
	l = l.With(
		map[string]string{"message.max.bytes": "2000000", "log.retention.ms": "100000", "nonsense.plugin": "x"},
		map[string]string{"message.max.bytes": "3000000", "min.insync.replicas": "2", "nonsense.plugin": "x"})

	broker := lines(l.DescribeBroker(OnlyNames([]string{"message.max.bytes", "log.retention.ms", "num.partitions", "log.retention.hours", "nonsense.plugin"})))
	require.Equal(t, []string{
		"log.retention.hours=168 5 ro [log.retention.hours=168/5]",
		"log.retention.ms=100000 2 [log.retention.ms=100000/2 log.retention.hours=168/5]",
		"message.max.bytes=2000000 2 [message.max.bytes=2000000/2 message.max.bytes=3000000/3 message.max.bytes=1048588/5]",
		"nonsense.plugin=null 2 ro [nonsense.plugin=null/2 nonsense.plugin=null/3]",
		"num.partitions=3 4 ro [num.partitions=3/4 num.partitions=1/5]",
	}, broker)

	require.Equal(t, []string{
		"message.max.bytes=3000000 3 [message.max.bytes=3000000/3]",
		"min.insync.replicas=2 3 [min.insync.replicas=2/3]",
		"nonsense.plugin=null 3 ro [nonsense.plugin=null/3]",
	}, lines(l.DescribeClusterDefault(nil)))

	topic := map[string]string{"retention.ms": "+3", "internal.segment.bytes": "10", "min.cleanable.dirty.ratio": "0.5d"}
	require.Equal(t, []string{
		"flush.ms=9223372036854775807 5 []",
		"internal.segment.bytes=10 1 [internal.segment.bytes=10/1]",
		"max.message.bytes=2000000 2 [message.max.bytes=2000000/2 message.max.bytes=3000000/3 message.max.bytes=1048588/5]",
		"min.cleanable.dirty.ratio=0.5 1 [min.cleanable.dirty.ratio=0.5/1 log.cleaner.min.cleanable.ratio=0.5/5]",
		"min.insync.replicas=2 3 [min.insync.replicas=2/3 min.insync.replicas=1/5]",
		"retention.ms=3 1 [retention.ms=3/1 log.retention.ms=100000/2 log.retention.hours=168/5]",
	}, lines(l.DescribeTopic(topic, OnlyNames([]string{"flush.ms", "retention.ms", "internal.segment.bytes", "max.message.bytes", "min.insync.replicas", "min.cleanable.dirty.ratio"}))))
	require.Len(t, l.DescribeTopic(nil, nil), 37, "internal configs are shown only when they are set")

	group := l.DescribeGroup(map[string]string{"consumer.session.timeout.ms": "50000"}, nil)
	require.Len(t, group, 21)
	require.Contains(t, lines(group), "consumer.session.timeout.ms=50000 8 [consumer.session.timeout.ms=50000/8 group.consumer.session.timeout.ms=45000/5]")
	require.Contains(t, lines(group), "share.auto.offset.reset=latest 5 [share.auto.offset.reset=latest/5]")
	require.Equal(t, []string{"interval.ms=5000 7 [interval.ms=5000/7]", "match= 5 []", "metrics= 5 []"},
		lines(l.DescribeClientMetrics(map[string]string{"interval.ms": "5000"}, nil)))
}

func lines(all []Description) (out []string) {
	text := func(s *string) string {
		if s == nil {
			return "null"
		}
		return *s
	}
	for _, d := range all {
		line := fmt.Sprintf("%s=%s %d ", d.Name, text(d.Value), d.Source)
		if d.ReadOnly {
			line += "ro "
		}
		var synonyms []string
		for _, s := range d.Synonyms {
			synonyms = append(synonyms, fmt.Sprintf("%s=%s/%d", s.Name, text(s.Value), s.Source))
		}
		out = append(out, line+fmt.Sprint(synonyms))
	}
	return out
}

func ExampleLayers_Log() {
	l, err := NewLayers(map[string]string{"log.retention.hours": "24"})
	if err != nil {
		panic(err)
	}
	log := l.Log(map[string]string{"cleanup.policy": "compact"})
	fmt.Println(log.RetentionMs, log.Compact, log.MaxMessageBytes)
	// Output: 86400000 true 1048588
}
