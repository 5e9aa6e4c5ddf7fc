package machine

import (
	"cmp"
	"slices"

	"github.com/ottla-kafka/ottla/client/machine"
)

// TopicPartition names one partition of one topic, as everywhere in the SDK.
type TopicPartition = machine.TopicPartition

// ComparePartitions orders by topic, then by partition.
func ComparePartitions(a, b TopicPartition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// sorted is a copy of list in order, without repetitions.
func sorted(list []TopicPartition) []TopicPartition {
	out := slices.Clone(list)
	slices.SortFunc(out, ComparePartitions)
	return slices.Compact(out)
}

// without is what of a is not in b. Both are sorted.
func without(a, b []TopicPartition) []TopicPartition {
	var out []TopicPartition
	for _, tp := range a {
		if _, in := slices.BinarySearchFunc(b, tp, ComparePartitions); !in {
			out = append(out, tp)
		}
	}
	return out
}
