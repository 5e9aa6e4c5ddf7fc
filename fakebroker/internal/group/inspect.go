package group

import (
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// Inspect asks for everything about one group. The answer is a *View, of state Dead when the group is not there.
type Inspect struct{ Group string }

// A View is a group as it is at one moment. It shares nothing with the machine.
type View struct {
	ID           string
	Type         string // "classic" or "consumer"; "" for a group that is not there
	State        State
	ProtocolType string // "consumer" for consumers of either protocol
	Protocol     string // of a classic group the chosen assignor, of a consumer group the server-side one
	Generation   int32  // generation of a classic group, epoch of a consumer group
	// AssignmentEpoch is the epoch that the target of a consumer group was made for.
	AssignmentEpoch int32
	Leader          string // member id, classic groups only
	Members         []Member
	Offsets         []Offset
	History         []Event // oldest first; the oldest are dropped after a thousand or so
}

// A Member is one member of a group.
type Member struct {
	ID         string
	InstanceID string // group.instance.id; "" for a dynamic member
	ClientID   string
	Host       string
	// Epoch is the member epoch of a consumer group, the generation of a classic one.
	Epoch int32
	// State is how far the member is: "stable", "unrevoked" or "unreleased" in a consumer group; "joining", "syncing" or
	// "stable" in a classic one.
	State    string
	Classic  bool     // speaks the classic protocol
	Topics   []string // that it is subscribed to by name
	Regex    string   // that it is subscribed to by pattern
	Assigned []TopicPartition
	Revoking []TopicPartition // told to give up, not confirmed
	Target   []TopicPartition // consumer groups only
}

// A TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// An Offset is what a group has committed for one partition.
type Offset struct {
	TopicPartition
	Offset      int64
	LeaderEpoch int32 // -1 unknown
	Metadata    string
	CommittedAt time.Time
}

func (m *Machine) inspect(r coordinator.Request, req Inspect, out *coordinator.Result) {
	v := &View{ID: req.Group, State: Dead}
	g := m.groups[req.Group]
	if g == nil {
		out.Reply(r.Ticket, v)
		return
	}
	v.State, v.History = g.state(), slices.Clone(g.history.events)
	for _, topic := range g.offsets.topics() {
		for _, p := range g.offsets.partitions(topic) {
			c, _ := g.offsets.get(topic, p)
			v.Offsets = append(v.Offsets, Offset{TopicPartition{topic, p}, c.offset, c.leaderEpoch, c.metadata, time.UnixMilli(c.at)})
		}
	}
	switch {
	case g.classic != nil:
		m.inspectClassic(g.classic, v)
	case g.consumer != nil:
		m.inspectConsumer(g.consumer, v)
	}
	out.Reply(r.Ticket, v)
}

func (m *Machine) inspectClassic(c *classicGroup, v *View) {
	v.Type, v.ProtocolType, v.Protocol, v.Generation, v.Leader = classicType, c.protocolType, c.protocol, c.generation, c.leader
	for _, x := range c.members {
		member := Member{ID: x.id, InstanceID: deref(x.instance), ClientID: x.clientID, Host: x.clientHost, Epoch: c.generation, Classic: true, State: "stable"}
		switch {
		case x.joining != coordinator.NoTicket:
			member.State = "joining"
		case x.syncing != coordinator.NoTicket || c.unsynced[x.id]:
			member.State = "syncing"
		}
		if len(x.protocols) > 0 && c.protocolType == consumerProtocol {
			if s, ok := parseSubscription(x.protocols[0].metadata); ok {
				member.Topics = sortedStrings(s.Topics)
			}
			if a, ok := parseAssignment(x.assignment); ok {
				for i := range a.AssignedPartitions {
					for _, p := range a.AssignedPartitions[i].Partitions {
						member.Assigned = append(member.Assigned, TopicPartition{a.AssignedPartitions[i].Topic, p})
					}
				}
				sortPartitions(member.Assigned)
			}
		}
		v.Members = append(v.Members, member)
	}
}

func (m *Machine) inspectConsumer(c *consumerGroup, v *View) {
	members := c.sorted()
	v.Type, v.ProtocolType, v.Generation, v.AssignmentEpoch = consumerType, consumerProtocol, c.epoch, c.targetEpoch
	v.Protocol = m.preferredAssignor(members)
	states := map[memberState]string{memberStable: "stable", memberUnrevoked: "unrevoked", memberUnreleased: "unreleased"}
	for _, x := range members {
		member := Member{ID: x.id, InstanceID: deref(x.instance), ClientID: x.clientID, Host: x.clientHost, Epoch: x.epoch, State: states[x.state],
			Classic: x.classic != nil, Topics: append([]string(nil), x.topics...), Regex: x.regex}
		member.Assigned, member.Revoking = m.viewParts(x.assigned), m.viewParts(x.revoking)
		for topic, partitions := range c.target[x.id] {
			for _, p := range partitions {
				member.Target = append(member.Target, TopicPartition{m.nameOf(topic), p})
			}
		}
		sortPartitions(member.Target)
		v.Members = append(v.Members, member)
	}
}

func (m *Machine) viewParts(p parts) []TopicPartition {
	var list []TopicPartition
	for topic, partitions := range p {
		for partition := range partitions {
			list = append(list, TopicPartition{m.nameOf(topic), partition})
		}
	}
	sortPartitions(list)
	return list
}

// nameOf names a topic, by its id when it is gone.
func (m *Machine) nameOf(id wire.UUID) string {
	if name := topicName(m.env.Image, id); name != "" {
		return name
	}
	return id.String()
}

func sortPartitions(list []TopicPartition) {
	slices.SortFunc(list, func(a, b TopicPartition) int {
		if a.Topic != b.Topic {
			return compare(a.Topic, b.Topic)
		}
		return int(a.Partition - b.Partition)
	})
}

// ForceRebalance has a group rebalance for no reason of its own. The answer is an errcode.Code.
type ForceRebalance struct{ Group string }

func (m *Machine) force(now time.Time, r coordinator.Request, req ForceRebalance, out *coordinator.Result) {
	g := m.groups[req.Group]
	why := Event{Cause: Forced}
	switch {
	case g == nil || g.state() == Empty:
		out.Reply(r.Ticket, errcode.GroupIdNotFound)
		return
	case g.classic != nil:
		m.rebalance(now, g, why, out)
	default:
		ch := m.changeOf(g.id, g.consumer)
		ch.rehash()
		ch.bump(out)
		epoch := g.consumer.epoch
		out.Written = append(out.Written, func(now time.Time, _ *coordinator.Result) { g.history.add(why.at(now, epoch)) })
	}
	out.Reply(r.Ticket, errcode.None)
}

// FenceMember takes a member, named by its id or instance id, out of a group as if it had never been there. The answer is
// an errcode.Code.
type FenceMember struct{ Group, Member string }

func (m *Machine) fence(now time.Time, r coordinator.Request, req FenceMember, out *coordinator.Result) {
	m.takeMember(now, r, req.Group, req.Member, MemberFenced, out)
}

// ExpireSession does what the end of a member's session does. The answer is an errcode.Code.
type ExpireSession struct{ Group, Member string }

func (m *Machine) expireSession(now time.Time, r coordinator.Request, req ExpireSession, out *coordinator.Result) {
	m.takeMember(now, r, req.Group, req.Member, SessionTimeout, out)
}

func (m *Machine) takeMember(now time.Time, r coordinator.Request, id, member string, cause Cause, out *coordinator.Result) {
	g := m.groups[id]
	if g == nil {
		out.Reply(r.Ticket, errcode.GroupIdNotFound)
		return
	}
	if c := g.classic; c != nil {
		x := c.member(member)
		if x == nil {
			x = c.member(c.static[member])
		}
		if x != nil {
			m.removeMember(now, g, x, errcode.UnknownMemberId, Event{Cause: cause, Member: x.id, Instance: deref(x.instance)}, out)
			out.Reply(r.Ticket, errcode.None)
			return
		}
	}
	if c := g.consumer; c != nil {
		x := c.members[member]
		if x == nil {
			x = c.members[c.static[member]]
		}
		if x != nil {
			m.removeConsumers(now, g, []*consumerMember{x}, Event{Cause: cause, Member: x.id, Instance: deref(x.instance)}, out)
			out.Reply(r.Ticket, errcode.None)
			return
		}
	}
	out.Reply(r.Ticket, errcode.UnknownMemberId)
}
