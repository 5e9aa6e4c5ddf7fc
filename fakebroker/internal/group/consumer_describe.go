package group

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// DescribeConsumer asks for one group of a ConsumerGroupDescribe request. The answer is a
// message.ConsumerGroupDescribeResponseDescribedGroup.
type DescribeConsumer struct{ Group string }

func (m *Machine) describeConsumer(r coordinator.Request, req DescribeConsumer, out *coordinator.Result) {
	d := message.ConsumerGroupDescribeResponseDescribedGroup{GroupId: req.Group, AuthorizedOperations: notAsked}
	g := m.groups[req.Group]
	if g == nil || g.consumer == nil {
		text := fmt.Sprintf("Group %s not found.", req.Group)
		if g != nil {
			text = fmt.Sprintf("Group %s is not a consumer group.", req.Group)
		}
		d.ErrorCode, d.ErrorMessage = int16(errcode.GroupIdNotFound), &text
		out.Reply(r.Ticket, d)
		return
	}
	c := g.consumer
	d.GroupState, d.GroupEpoch, d.AssignmentEpoch = string(c.state()), c.epoch, c.targetEpoch
	members := c.sorted()
	d.AssignorName = m.preferredAssignor(members)
	for _, x := range members {
		regex := x.regex
		member := message.ConsumerGroupDescribeResponseMember{MemberId: x.id, InstanceId: x.instance, RackId: x.rack, MemberEpoch: x.epoch,
			ClientId: x.clientID, ClientHost: x.clientHost, SubscribedTopicNames: x.topics, SubscribedTopicRegex: &regex, MemberType: 1}
		if x.classic != nil {
			member.MemberType = 0
		}
		member.Assignment.TopicPartitions = m.describeParts(x.owns())
		target := make(map[wire.UUID][]int32, len(c.target[x.id]))
		maps.Copy(target, c.target[x.id])
		member.TargetAssignment.TopicPartitions = m.describeParts(target)
		d.Members = append(d.Members, member)
	}
	out.Reply(r.Ticket, d)
}

// owns is what a member has, with what it has not confirmed to have given up.
func (x *consumerMember) owns() map[wire.UUID][]int32 {
	all := make(map[wire.UUID][]int32)
	for _, p := range []parts{x.assigned, x.revoking} {
		for topic, partitions := range p {
			all[topic] = append(all[topic], slices.Collect(maps.Keys(partitions))...)
		}
	}
	for _, p := range all {
		slices.Sort(p)
	}
	return all
}

// describeParts names topics; those that are gone are left out.
func (m *Machine) describeParts(p map[wire.UUID][]int32) []message.ConsumerGroupDescribeResponseTopicPartitions {
	list := []message.ConsumerGroupDescribeResponseTopicPartitions{}
	for topic, partitions := range p {
		if name := topicName(m.env.Image, topic); name != "" {
			list = append(list, message.ConsumerGroupDescribeResponseTopicPartitions{TopicId: topic, TopicName: name, Partitions: partitions})
		}
	}
	slices.SortFunc(list, func(a, b message.ConsumerGroupDescribeResponseTopicPartitions) int {
		return compare(a.TopicName, b.TopicName)
	})
	return list
}
