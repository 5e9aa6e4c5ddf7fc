package group

import (
	"maps"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// replayConsumer takes a record of a consumer group. Records of other kinds of groups, which Apache Kafka may have
// written to the same partition, are left alone.
func (m *Machine) replayConsumer(key, value logrecord.Record) {
	id, ok := consumerGroupOf(key)
	if !ok {
		return
	}
	g := m.groups[id]
	if value == nil && (g == nil || g.consumer == nil) {
		return
	}
	if g = m.group(id); g.consumer == nil {
		g.consumer = newConsumerGroup()
		g.classic = nil
	}
	if _, metadata := key.(*logrecord.ConsumerGroupMetadataKey); metadata && value == nil {
		m.timers.stopGroup(id, slices.Collect(maps.Keys(g.consumer.members)))
		g.consumer = nil
		if g.offsets.count > 0 && g.classic == nil {
			g.classic = newClassicGroup()
		}
		m.forget(g)
		return
	}
	g.consumer.replay(key, value)
}

func consumerGroupOf(key logrecord.Record) (string, bool) {
	switch k := key.(type) {
	case *logrecord.ConsumerGroupMetadataKey:
		return k.GroupId, true
	case *logrecord.ConsumerGroupMemberMetadataKey:
		return k.GroupId, true
	case *logrecord.ConsumerGroupTargetAssignmentMetadataKey:
		return k.GroupId, true
	case *logrecord.ConsumerGroupTargetAssignmentMemberKey:
		return k.GroupId, true
	case *logrecord.ConsumerGroupCurrentMemberAssignmentKey:
		return k.GroupId, true
	case *logrecord.ConsumerGroupRegularExpressionKey:
		return k.GroupId, true
	case *logrecord.ConsumerGroupPartitionMetadataKey: // of Kafka before 4.1: hashes have taken its place
		return k.GroupId, true
	}
	return "", false
}

// replay takes one record of this group.
func (c *consumerGroup) replay(key, value logrecord.Record) {
	switch k := key.(type) {
	case *logrecord.ConsumerGroupMetadataKey:
		v := value.(*logrecord.ConsumerGroupMetadataValue)
		c.epoch, c.hash = v.Epoch, v.MetadataHash
	case *logrecord.ConsumerGroupMemberMetadataKey:
		if v, ok := value.(*logrecord.ConsumerGroupMemberMetadataValue); ok {
			c.replayMember(k.MemberId, v)
		} else {
			c.dropMember(k.MemberId)
		}
	case *logrecord.ConsumerGroupTargetAssignmentMetadataKey:
		c.targetEpoch, c.targetAt = 0, 0
		if v, ok := value.(*logrecord.ConsumerGroupTargetAssignmentMetadataValue); ok {
			c.targetEpoch, c.targetAt = v.AssignmentEpoch, v.AssignmentTimestamp
		}
	case *logrecord.ConsumerGroupTargetAssignmentMemberKey:
		v, ok := value.(*logrecord.ConsumerGroupTargetAssignmentMemberValue)
		if !ok {
			delete(c.target, k.MemberId)
			return
		}
		t := make(map[wire.UUID][]int32, len(v.TopicPartitions))
		for i := range v.TopicPartitions {
			t[v.TopicPartitions[i].TopicId] = v.TopicPartitions[i].Partitions
		}
		c.target[k.MemberId] = t
	case *logrecord.ConsumerGroupCurrentMemberAssignmentKey:
		v, _ := value.(*logrecord.ConsumerGroupCurrentMemberAssignmentValue)
		c.replayCurrent(k.MemberId, v)
	case *logrecord.ConsumerGroupRegularExpressionKey:
		v, ok := value.(*logrecord.ConsumerGroupRegularExpressionValue)
		if !ok {
			delete(c.regexes, k.RegularExpression)
			return
		}
		c.regexes[k.RegularExpression] = &resolvedRegex{topics: v.Topics, version: v.Version, at: v.Timestamp}
	}
}

func (c *consumerGroup) replayMember(id string, v *logrecord.ConsumerGroupMemberMetadataValue) {
	x := &consumerMember{id: id}
	if old := c.members[id]; old != nil {
		*x = *old
		c.forgetMember(old)
	}
	x.instance, x.rack = v.InstanceId, v.RackId
	x.clientID, x.clientHost = v.ClientId, v.ClientHost
	x.topics = sortedStrings(v.SubscribedTopicNames)
	x.regex = deref(v.SubscribedTopicRegex)
	x.rebalanceMs, x.assignor, x.classic = v.RebalanceTimeoutMs, v.ServerAssignor, copyClassic(v.ClassicMemberMetadata)
	c.members[id] = x
	if x.instance != nil {
		c.static[*x.instance] = id
	}
	if x.classic != nil {
		c.classics++
	}
}

// copyClassic copies what a record says of a classic member: its bytes lie in a buffer of the log's reader. Without
// protocols it is the field's default, in records of a time before it existed.
func copyClassic(v *logrecord.ClassicMemberMetadata) *logrecord.ClassicMemberMetadata {
	if v == nil || len(v.SupportedProtocols) == 0 {
		return nil
	}
	c := &logrecord.ClassicMemberMetadata{SessionTimeoutMs: v.SessionTimeoutMs}
	for _, p := range v.SupportedProtocols {
		c.SupportedProtocols = append(c.SupportedProtocols, logrecord.ClassicProtocol{Name: p.Name, Metadata: append([]byte{}, p.Metadata...)})
	}
	return c
}

func (c *consumerGroup) forgetMember(x *consumerMember) {
	if x.instance != nil && c.static[*x.instance] == x.id {
		delete(c.static, *x.instance)
	}
	if x.classic != nil {
		c.classics--
	}
}

func (c *consumerGroup) dropMember(id string) {
	if x := c.members[id]; x != nil {
		c.forgetMember(x)
		c.disown(x)
		delete(c.members, id)
	}
}

// replayCurrent takes what a member has; nil when it is gone or begins anew.
func (c *consumerGroup) replayCurrent(id string, v *logrecord.ConsumerGroupCurrentMemberAssignmentValue) {
	old := c.members[id]
	if old == nil {
		return
	}
	c.disown(old)
	x := *old
	x.epoch, x.previous, x.state, x.assigned, x.revoking = 0, 0, memberStable, nil, nil
	if v != nil {
		x.epoch, x.previous, x.state = v.MemberEpoch, v.PreviousMemberEpoch, memberState(v.State)
		x.assigned, x.revoking = replayParts(v.AssignedPartitions, v.MemberEpoch), replayParts(v.PartitionsPendingRevocation, v.MemberEpoch)
	}
	c.members[id] = &x
	for _, p := range []parts{x.assigned, x.revoking} {
		for topic, partitions := range p {
			if c.owners[topic] == nil {
				c.owners[topic] = make(map[int32]string)
			}
			for partition := range partitions {
				c.owners[topic][partition] = id
			}
		}
	}
}

func (c *consumerGroup) disown(x *consumerMember) {
	for _, p := range []parts{x.assigned, x.revoking} {
		for topic, partitions := range p {
			for partition := range partitions {
				if c.owners[topic][partition] == x.id {
					delete(c.owners[topic], partition)
				}
			}
			if len(c.owners[topic]) == 0 {
				delete(c.owners, topic)
			}
		}
	}
}

// replayParts reads partitions with their epochs; those of a time before there were any count from the member's epoch.
func replayParts(list []logrecord.ConsumerGroupCurrentMemberAssignmentValueTopicPartitions, epoch int32) parts {
	p := make(parts, len(list))
	for i := range list {
		t := make(map[int32]int32, len(list[i].Partitions))
		for j, partition := range list[i].Partitions {
			t[partition] = epoch
			if j < len(list[i].AssignmentEpochs) {
				t[partition] = list[i].AssignmentEpochs[j]
			}
		}
		p[list[i].TopicId] = t
	}
	return p
}

// recordMember proposes what a member says of itself.
func recordMember(id string, x *consumerMember, out *coordinator.Result) {
	regex := x.regex
	out.Record(&logrecord.ConsumerGroupMemberMetadataKey{GroupId: id, MemberId: x.id}, &logrecord.ConsumerGroupMemberMetadataValue{
		InstanceId: x.instance, RackId: x.rack, ClientId: x.clientID, ClientHost: x.clientHost, SubscribedTopicNames: x.topics,
		SubscribedTopicRegex: &regex, RebalanceTimeoutMs: x.rebalanceMs, ServerAssignor: x.assignor, ClassicMemberMetadata: x.classic}, 0)
}

// recordEpoch proposes the group's epoch, and what its hash is.
func recordEpoch(id string, epoch int32, hash int64, out *coordinator.Result) {
	out.Record(&logrecord.ConsumerGroupMetadataKey{GroupId: id}, &logrecord.ConsumerGroupMetadataValue{Epoch: epoch, MetadataHash: hash}, 0)
}

// recordTarget proposes one member's target.
func recordTarget(id, member string, t map[wire.UUID][]int32, out *coordinator.Result) {
	v := &logrecord.ConsumerGroupTargetAssignmentMemberValue{}
	for _, topic := range sortedTopics(t) {
		v.TopicPartitions = append(v.TopicPartitions, logrecord.ConsumerGroupTargetAssignmentMemberValueTopicPartition{TopicId: topic, Partitions: t[topic]})
	}
	out.Record(&logrecord.ConsumerGroupTargetAssignmentMemberKey{GroupId: id, MemberId: member}, v, 0)
}

// recordTargetEpoch proposes that the target is complete.
func recordTargetEpoch(id string, epoch int32, at int64, out *coordinator.Result) {
	out.Record(&logrecord.ConsumerGroupTargetAssignmentMetadataKey{GroupId: id},
		&logrecord.ConsumerGroupTargetAssignmentMetadataValue{AssignmentEpoch: epoch, AssignmentTimestamp: at}, 0)
}

// recordCurrent proposes what a member has.
func recordCurrent(id string, x *consumerMember, out *coordinator.Result) {
	out.Record(&logrecord.ConsumerGroupCurrentMemberAssignmentKey{GroupId: id, MemberId: x.id}, &logrecord.ConsumerGroupCurrentMemberAssignmentValue{
		MemberEpoch: x.epoch, PreviousMemberEpoch: x.previous, State: int8(x.state),
		AssignedPartitions: recordParts(x.assigned), PartitionsPendingRevocation: recordParts(x.revoking)}, 0)
}

func recordParts(p parts) []logrecord.ConsumerGroupCurrentMemberAssignmentValueTopicPartitions {
	list := make([]logrecord.ConsumerGroupCurrentMemberAssignmentValueTopicPartitions, 0, len(p))
	for _, topic := range sortedTopics(p) {
		t := logrecord.ConsumerGroupCurrentMemberAssignmentValueTopicPartitions{TopicId: topic, Partitions: slices.Sorted(maps.Keys(p[topic]))}
		for _, partition := range t.Partitions {
			t.AssignmentEpochs = append(t.AssignmentEpochs, p[topic][partition])
		}
		list = append(list, t)
	}
	return list
}

// consumerLoaded starts the timers of a group that was loaded.
func (m *Machine) consumerLoaded(now time.Time, g *group, _ *coordinator.Result) {
	g.consumer.stale = true
	for _, x := range g.consumer.sorted() {
		m.timers.set(timerKey{sessionTimer, g.id, x.id}, now.Add(m.session(g.id, x)))
		m.watchRevocation(now, g, x)
	}
	m.watchRegexes(now, g)
}
