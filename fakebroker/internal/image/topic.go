package image

import (
	"slices"

	"github.com/ottla-kafka/ottla/wire"
)

// NoLeader is the leader of a partition that has none.
const NoLeader int32 = -1

// Topic is a topic and its partitions. It is immutable once it is part of an Image.
type Topic struct {
	Name string
	ID   wire.UUID
	// Partitions, by number. Apache Kafka writes the records of a topic in order of number and never leaves one out; a
	// log that does has nil entries.
	Partitions []*Partition
}

// Partition returns partition n, nil when the topic has no such partition.
func (t *Topic) Partition(n int32) *Partition {
	if t == nil || n < 0 || int(n) >= len(t.Partitions) {
		return nil
	}
	return t.Partitions[n]
}

// Internal reports whether a topic belongs to the broker itself: Metadata says so to clients, and CreateTopics by a
// client is allowed but unusual.
func Internal(topic string) bool {
	switch topic {
	case "__consumer_offsets", "__transaction_state", "__share_group_state":
		return true
	}
	return false
}

// Partition is the registration of a partition: who holds it, who leads it. It is immutable once it is part of an Image.
type Partition struct {
	ID          int32
	Replicas    []int32     // broker ids; the first is the preferred leader
	Directories []wire.UUID // log dir of each replica, same order; zero = not assigned
	ISR         []int32
	Leader      int32 // NoLeader when offline
	LeaderEpoch int32 // +1 per leader change
	// PartitionEpoch grows with every change of the registration: AlterPartition must name the newest.
	PartitionEpoch                   int32
	AddingReplicas, RemovingReplicas []int32 // a reassignment under way
	ELR, LastKnownELR                []int32 // KIP-966: may be elected though not in sync; last one standing
	LeaderRecoveryState              int8    // 1: elected uncleanly and still recovering
}

// HasReplica reports whether the broker holds a replica.
func (p *Partition) HasReplica(broker int32) bool { return slices.Contains(p.Replicas, broker) }

// Directory returns the log dir of a broker's replica; zero when it has none or it is not assigned.
func (p *Partition) Directory(broker int32) wire.UUID {
	if i := slices.Index(p.Replicas, broker); i >= 0 && i < len(p.Directories) {
		return p.Directories[i]
	}
	return wire.UUID{}
}
