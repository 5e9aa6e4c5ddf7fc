package group

import (
	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// FetchOffsets asks for the offsets of one group: one group of an OffsetFetch request, in the form of version 8 and up.
// The answer is a message.OffsetFetchResponseGroup.
type FetchOffsets struct {
	Group         message.OffsetFetchRequestGroup
	RequireStable bool
}

func (m *Machine) fetchOffsets(r coordinator.Request, req FetchOffsets, out *coordinator.Result) {
	q := &req.Group
	if m.o.Bugs.Has(bug.StableNotRequired) {
		req.RequireStable = false
	}
	resp := message.OffsetFetchResponseGroup{GroupId: q.GroupId, Topics: []message.OffsetFetchResponseTopics{}}
	g := m.groups[q.GroupId]
	if g != nil && g.consumer != nil {
		if code := g.consumer.mayFetch(q.MemberId, q.MemberEpoch); code != errcode.None {
			resp.ErrorCode = int16(code)
			out.Reply(r.Ticket, resp)
			return
		}
	}
	if q.Topics == nil {
		resp.Topics = m.allOffsets(g, req.RequireStable, r.Version)
		out.Reply(r.Ticket, resp)
		return
	}
	for i := range q.Topics {
		t := &q.Topics[i]
		answer := message.OffsetFetchResponseTopics{Name: t.Name, TopicId: t.TopicId, Partitions: make([]message.OffsetFetchResponsePartitions, 0, len(t.PartitionIndexes))}
		name, id := t.Name, t.TopicId
		code := errcode.None
		if r.Version >= 10 {
			if known := m.env.Image.TopicByID(id); known != nil {
				name = known.Name
			} else {
				code = errcode.UnknownTopicId
			}
		} else if known := m.env.Image.Topic(name); known != nil {
			id = known.ID
		}
		for _, p := range t.PartitionIndexes {
			answer.Partitions = append(answer.Partitions, g.fetched(name, id, p, req.RequireStable, code))
		}
		resp.Topics = append(resp.Topics, answer)
	}
	out.Reply(r.Ticket, resp)
}

// fetched is the answer about one partition; -1 where nothing is committed, or where the commit was of a topic that had
// the name before. With stable there is no answer while a transaction may change it. A nil group has none.
func (g *group) fetched(topic string, id wire.UUID, partition int32, stable bool, code errcode.Code) message.OffsetFetchResponsePartitions {
	none := ""
	p := message.OffsetFetchResponsePartitions{PartitionIndex: partition, CommittedOffset: -1, CommittedLeaderEpoch: -1, Metadata: &none, ErrorCode: int16(code)}
	if g == nil || code != errcode.None {
		return p
	}
	if stable && g.pending.has(topic, partition) {
		p.ErrorCode = int16(errcode.UnstableOffsetCommit)
		return p
	}
	c, ok := g.offsets.get(topic, partition)
	if !ok || !id.IsZero() && !c.topicID.IsZero() && id != c.topicID {
		return p
	}
	p.CommittedOffset, p.CommittedLeaderEpoch, p.Metadata = c.offset, c.leaderEpoch, &c.metadata
	return p
}

// allOffsets lists everything a group has committed. By id only what still has one can be told.
func (m *Machine) allOffsets(g *group, stable bool, version int16) []message.OffsetFetchResponseTopics {
	all := []message.OffsetFetchResponseTopics{}
	if g == nil {
		return all
	}
	for _, topic := range g.offsets.topics() {
		t := message.OffsetFetchResponseTopics{Name: topic}
		if known := m.env.Image.Topic(topic); known != nil {
			t.TopicId = known.ID
		} else if version >= 10 {
			continue
		}
		for _, p := range g.offsets.partitions(topic) {
			t.Partitions = append(t.Partitions, g.fetched(topic, wire.UUID{}, p, stable, errcode.None))
		}
		all = append(all, t)
	}
	return all
}
