package group

import (
	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// deleteOffsets answers OffsetDelete. Offsets of topics that a member is subscribed to stay; a group with members that
// does not say what they are subscribed to keeps all.
func (m *Machine) deleteOffsets(r coordinator.Request, req *message.OffsetDeleteRequest, out *coordinator.Result) {
	resp := &message.OffsetDeleteResponse{Topics: []message.OffsetDeleteResponseTopic{}}
	g := m.groups[req.GroupId]
	code := mayDeleteOffsets(g)
	if req.GroupId == "" {
		code = errcode.InvalidGroupId
	}
	if code != errcode.None {
		resp.ErrorCode = int16(code)
		out.Reply(r.Ticket, resp)
		return
	}
	for i := range req.Topics {
		t := &req.Topics[i]
		known := m.env.Image.Topic(t.Name)
		answer := message.OffsetDeleteResponseTopic{Name: t.Name}
		subscribed := g.subscribed(t.Name)
		for _, p := range t.Partitions {
			code := errcode.None
			switch {
			case !m.hasPartition(known, p.PartitionIndex):
				code = errcode.UnknownTopicOrPartition
			case subscribed:
				code = errcode.GroupSubscribedToTopic
			default:
				if _, ok := g.offsets.get(t.Name, p.PartitionIndex); ok || g.pending.has(t.Name, p.PartitionIndex) {
					offsetTombstone(out, g.id, t.Name, p.PartitionIndex)
				}
			}
			result := message.OffsetDeleteResponsePartition{PartitionIndex: p.PartitionIndex, ErrorCode: int16(code)}
			if code == errcode.UnknownTopicOrPartition { // these come first in Apache Kafka's answer
				answer.Partitions = append([]message.OffsetDeleteResponsePartition{result}, answer.Partitions...)
				continue
			}
			answer.Partitions = append(answer.Partitions, result)
		}
		resp.Topics = append(resp.Topics, answer)
	}
	out.Reply(r.Ticket, resp)
}

func mayDeleteOffsets(g *group) errcode.Code {
	switch {
	case g == nil:
		return errcode.GroupIdNotFound
	case g.classic != nil && g.classic.state != Empty && g.classic.subscription() == nil:
		return errcode.NonEmptyGroup
	}
	return errcode.None
}

// subscribed reports whether a member of the group is subscribed to a topic, as far as the group knows.
func (g *group) subscribed(topic string) bool {
	switch {
	case g.classic != nil:
		return g.classic.subscription()[topic]
	case g.consumer != nil:
		return g.consumer.subscribed(topic)
	}
	return false
}
