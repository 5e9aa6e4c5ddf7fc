package machine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// ProtocolType is what consumer groups call themselves in the classic protocol.
const ProtocolType = "consumer"

// NoGeneration is the generation of who is not a member.
const NoGeneration int32 = -1

// subscriptionVersion is the newest version of ConsumerProtocolSubscription and of ConsumerProtocolAssignment. Older
// members read it as far as they know it.
const subscriptionVersion = 3

// AppendSubscription appends what a member says of itself in JoinGroup: a version, then ConsumerProtocolSubscription.
func AppendSubscription(dst []byte, s Subscription) []byte {
	m := message.ConsumerProtocolSubscription{Topics: slices.Sorted(slices.Values(s.Topics)), UserData: s.UserData, GenerationId: s.Generation}
	if s.Rack != "" {
		m.RackId = &s.Rack
	}
	for _, g := range byTopic(s.Owned) {
		m.OwnedPartitions = append(m.OwnedPartitions, message.ConsumerProtocolSubscriptionTopicPartition{Topic: g.Topic, Partitions: g.Partitions})
	}
	dst, err := m.AppendTo(wire.AppendInt16(dst, subscriptionVersion), subscriptionVersion)
	if err != nil {
		panic(fmt.Sprintf("machine: subscription of %d topics: %v", len(s.Topics), err)) // the version is ours
	}
	return dst
}

// ParseSubscription reads what AppendSubscription or another client wrote. MemberID and InstanceID are not in it. A
// version that is newer than known is read as the newest known, as Kafka does.
func ParseSubscription(b []byte) (Subscription, error) {
	r := wire.NewReader(b)
	version := r.Int16()
	var m message.ConsumerProtocolSubscription
	if err := r.Err(); err != nil {
		return Subscription{}, fmt.Errorf("subscription of %d bytes: %w", len(b), err)
	}
	if version < 0 {
		return Subscription{}, fmt.Errorf("subscription has version %d", version)
	}
	if err := m.ReadFrom(r, min(version, subscriptionVersion)); err != nil {
		return Subscription{}, fmt.Errorf("subscription of version %d: %w", version, err)
	}
	s := Subscription{Topics: m.Topics, UserData: m.UserData, Generation: m.GenerationId}
	if m.RackId != nil {
		s.Rack = *m.RackId
	}
	for _, o := range m.OwnedPartitions {
		for _, p := range o.Partitions {
			s.Owned = append(s.Owned, TopicPartition{Topic: o.Topic, Partition: p})
		}
	}
	return s, nil
}

// AppendAssignment appends what a leader gives to a member in SyncGroup: a version, then
// ConsumerProtocolAssignment with the topics sorted.
func AppendAssignment(dst []byte, version int16, list []TopicPartition, userData []byte) []byte {
	m := message.ConsumerProtocolAssignment{UserData: userData}
	for _, g := range byTopic(list) {
		m.AssignedPartitions = append(m.AssignedPartitions, message.ConsumerProtocolAssignmentTopicPartition{Topic: g.Topic, Partitions: g.Partitions})
	}
	dst, err := m.AppendTo(wire.AppendInt16(dst, version), version)
	if err != nil {
		panic(fmt.Sprintf("machine: assignment of %d partitions in version %d: %v", len(list), version, err))
	}
	return dst
}

// ParseAssignment reads what AppendAssignment or another client wrote, sorted. No bytes at all mean no partitions.
func ParseAssignment(b []byte) ([]TopicPartition, error) {
	if len(b) == 0 {
		return nil, nil
	}
	r := wire.NewReader(b)
	version := r.Int16()
	var m message.ConsumerProtocolAssignment
	if err := r.Err(); err != nil {
		return nil, fmt.Errorf("assignment of %d bytes: %w", len(b), err)
	}
	if version < 0 {
		return nil, fmt.Errorf("assignment has version %d", version)
	}
	if err := m.ReadFrom(r, min(version, subscriptionVersion)); err != nil {
		return nil, fmt.Errorf("assignment of version %d: %w", version, err)
	}
	var out []TopicPartition
	for _, a := range m.AssignedPartitions {
		for _, p := range a.Partitions {
			out = append(out, TopicPartition{Topic: a.Topic, Partition: p})
		}
	}
	return sorted(out), nil
}

// group is a topic with some of its partitions.
type group struct {
	Topic      string
	Partitions []int32
}

// byTopic gathers partitions by topic, topics in order; the partitions of a topic keep their order.
func byTopic(list []TopicPartition) []group {
	at := map[string]int{}
	var out []group
	for _, tp := range list {
		i, ok := at[tp.Topic]
		if !ok {
			i = len(out)
			at[tp.Topic] = i
			out = append(out, group{Topic: tp.Topic})
		}
		out[i].Partitions = append(out[i].Partitions, tp.Partition)
	}
	slices.SortFunc(out, func(a, b group) int { return strings.Compare(a.Topic, b.Topic) })
	return out
}
