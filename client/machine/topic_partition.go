package machine

import "strconv"

// TopicPartition names one partition of one topic. It is comparable and serves as a map key.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String is the form that Kafka prints: topic, a hyphen, the partition.
func (tp TopicPartition) String() string {
	return tp.Topic + "-" + strconv.Itoa(int(tp.Partition))
}
