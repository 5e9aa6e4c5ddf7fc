package machine

import (
	"cmp"
	"slices"
	"strconv"
)

// TopicPartition names one partition of one topic. It is comparable and serves as a map key.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String is the form that Kafka prints: topic, a hyphen, the partition.
func (tp TopicPartition) String() string {
	return tp.Topic + "-" + strconv.Itoa(int(tp.Partition))
}

// Compare orders by topic, then by partition.
func (tp TopicPartition) Compare(other TopicPartition) int {
	if c := cmp.Compare(tp.Topic, other.Topic); c != 0 {
		return c
	}
	return cmp.Compare(tp.Partition, other.Partition)
}

// sorted is a copy of list in order, without repetitions.
func sorted(list []TopicPartition) []TopicPartition {
	out := slices.Clone(list)
	slices.SortFunc(out, TopicPartition.Compare)
	return slices.Compact(out)
}

// without is what of a is not in b. Both are sorted.
func without(a, b []TopicPartition) []TopicPartition {
	var out []TopicPartition
	for _, tp := range a {
		if _, in := slices.BinarySearchFunc(b, tp, TopicPartition.Compare); !in {
			out = append(out, tp)
		}
	}
	return out
}
