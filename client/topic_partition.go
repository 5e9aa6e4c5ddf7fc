package client

import "github.com/ottla-kafka/ottla/client/machine"

// TopicPartition names one partition of one topic. Consumers and administrators use the same type.
type TopicPartition = machine.TopicPartition
