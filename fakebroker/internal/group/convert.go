package group

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// upgrade makes a consumer group of a classic one, because a member joins by the consumer protocol. An empty group gives
// way; one with members takes them along, with their generation as epoch and what they have as target, provided they are
// consumers and group.consumer.migration.policy allows it. The result is not in the log yet.
func (m *Machine) upgrade(_ time.Time, g *group, out *coordinator.Result) (*consumerGroup, *refusal) {
	c := g.classic
	if len(c.members) == 0 && c.state == Empty {
		out.Tombstone(&logrecord.GroupMetadataKey{Group: g.id})
		return newConsumerGroup(), nil
	}
	switch {
	case !m.set.migrationUp:
		return nil, cannotUpgrade(g.id, "online upgrade is disabled")
	case c.protocolType != consumerProtocol:
		return nil, cannotUpgrade(g.id, "the group does not use the consumer embedded protocol")
	case len(c.members) > m.set.consumerMaxSize:
		return nil, cannotUpgrade(g.id, "the group size exceeds the consumer group maximum size")
	}
	var records coordinator.Result
	records.Tombstone(&logrecord.GroupMetadataKey{Group: g.id})
	members := make([]*consumerMember, len(c.members))
	for i, x := range c.members {
		member, ok := m.convertMember(c, x)
		if !ok {
			return nil, cannotUpgrade(g.id, "the embedded consumer protocol is malformed")
		}
		members[i] = member
		recordMember(g.id, member, &records)
	}
	m.stillHeld(c, members)
	recordEpoch(g.id, c.generation, 0, &records)
	for _, x := range members {
		recordTarget(g.id, x.id, x.owns(), &records)
	}
	recordTargetEpoch(g.id, c.generation, 0, &records)
	for _, x := range members {
		recordCurrent(g.id, x, &records)
	}
	converted := newConsumerGroup()
	for _, r := range records.Records[1:] {
		converted.replay(r.Key, r.Value)
	}
	for _, x := range c.members {
		m.refuseJoin(x.joining, x.id, errcode.RebalanceInProgress, &records) // beat forgets the tickets once it is sure to send this
		refuseSync(x.syncing, errcode.RebalanceInProgress, &records)
	}
	records.Written = append(records.Written, func(now time.Time, _ *coordinator.Result) {
		for _, x := range members {
			m.timers.set(timerKey{sessionTimer, g.id, x.id}, now.Add(m.session(g.id, x)))
			m.watchRevocation(now, g, x)
		}
		g.history.add(Event{Cause: Converted, Reason: "to a consumer group"}.at(now, c.generation))
	})
	merge(out, &records)
	return converted, nil
}

func cannotUpgrade(group, why string) *refusal {
	return refuse(errcode.GroupIdNotFound, "Cannot upgrade classic group %s to consumer group because %s.", group, why)
}

func (m *Machine) convertMember(c *classicGroup, x *classicMember) (*consumerMember, bool) {
	name := c.protocol
	if x.metadata(name) == nil && len(x.protocols) > 0 {
		name = x.protocols[0].name
	}
	s, ok := parseSubscription(x.metadata(name))
	if !ok {
		return nil, false
	}
	member := &consumerMember{id: x.id, instance: x.instance, rack: copyOf(s.RackId), clientID: x.clientID, clientHost: x.clientHost,
		topics: sortedStrings(s.Topics), rebalanceMs: x.rebalanceMs, epoch: c.generation, previous: c.generation,
		assigned: make(parts), classic: &logrecord.ClassicMemberMetadata{SessionTimeoutMs: x.sessionMs}}
	// The chosen protocol comes first: it is the one that the member goes on with.
	for _, p := range x.protocols {
		converted := logrecord.ClassicProtocol{Name: p.name, Metadata: p.metadata}
		if p.name == name {
			member.classic.SupportedProtocols = append([]logrecord.ClassicProtocol{converted}, member.classic.SupportedProtocols...)
			continue
		}
		member.classic.SupportedProtocols = append(member.classic.SupportedProtocols, converted)
	}
	if len(x.assignment) == 0 {
		return member, true // none yet: it takes part in the next target
	}
	a, ok := parseAssignment(x.assignment)
	if !ok {
		return nil, false
	}
	for i := range a.AssignedPartitions {
		if t := m.env.Image.Topic(a.AssignedPartitions[i].Topic); t != nil {
			for _, p := range a.AssignedPartitions[i].Partitions {
				member.assigned.put(t.ID, p, c.generation)
			}
		}
	}
	return member, true
}

// stillHeld finds what cooperative members have to give up after the last rebalance and may still hold: what they said they
// had when they joined it, and nobody was given. Nobody else may have that before they have joined again without it. Apache
// Kafka takes it for free.
func (m *Machine) stillHeld(c *classicGroup, members []*consumerMember) {
	taken := make(parts)
	for _, x := range members {
		for topic, partitions := range x.assigned {
			for p, since := range partitions {
				taken.put(topic, p, since)
			}
		}
	}
	for i, x := range members {
		s, ok := parseSubscription(c.members[i].metadata(x.classic.SupportedProtocols[0].Name))
		if !ok {
			continue
		}
		for topic, partitions := range m.ownedByName(s) {
			for p := range partitions {
				if _, ok := taken[topic][p]; ok {
					continue
				}
				if x.revoking == nil {
					x.revoking, x.state = make(parts), memberUnrevoked
				}
				x.revoking.put(topic, p, x.epoch)
				taken.put(topic, p, x.epoch)
			}
		}
	}
}

func parseAssignment(b []byte) (*message.ConsumerProtocolAssignment, bool) {
	r := wire.NewReader(b)
	version := r.Int16()
	a := message.NewConsumerProtocolAssignment()
	if r.Err() != nil || version < 0 || a.ReadFrom(r, min(version, 3)) != nil {
		return nil, false
	}
	return a, true
}

// downgrade makes a classic group of a consumer group once nobody but classic members is left of it, and has it rebalance.
// The generation is the group's epoch, so that the members' commits go on being accepted. It reports whether it did.
func (m *Machine) downgrade(_ time.Time, g *group, gone map[string]bool, why Event, out *coordinator.Result) bool {
	c := g.consumer
	var left []*consumerMember
	for _, x := range c.sorted() {
		if gone[x.id] {
			continue
		}
		if x.classic == nil {
			return false
		}
		left = append(left, x)
	}
	if !m.set.migrationDown || len(left) == 0 || len(left) > m.set.maxSize {
		return false
	}
	c.tombstones(g.id, out)
	name := c.commonProtocol(left)
	v := logrecord.NewGroupMetadataValue()
	v.ProtocolType, v.Generation, v.Protocol, v.Leader = consumerProtocol, c.epoch, &name, &left[0].id
	for _, x := range left {
		member := logrecord.MemberMetadata{MemberId: x.id, GroupInstanceId: x.instance, ClientId: x.clientID, ClientHost: x.clientHost,
			RebalanceTimeout: x.rebalanceMs, SessionTimeout: x.classic.SessionTimeoutMs, Assignment: m.classicAssignment(x)}
		for _, p := range x.classic.SupportedProtocols {
			if p.Name == name {
				member.Subscription = p.Metadata
			}
		}
		v.Members = append(v.Members, member)
	}
	out.Record(&logrecord.GroupMetadataKey{Group: g.id}, v, 3)
	epoch := c.epoch
	out.Written = append(out.Written, func(now time.Time, next *coordinator.Result) {
		for _, x := range left {
			member := g.classic.member(x.id)
			member.protocols = nil
			for _, p := range x.classic.SupportedProtocols {
				member.protocols = append(member.protocols, protocol{p.Name, p.Metadata})
			}
			for _, kind := range []timerKind{revokeTimer, rejoinTimer, conversionSync} {
				m.timers.stop(timerKey{kind, g.id, x.id}) // or they would strike if the group is converted back soon
			}
			m.heardOf(now, g, member)
		}
		g.history.add(Event{Cause: Converted, Reason: "to a classic group"}.at(now, epoch))
		m.rebalance(now, g, why, next)
	})
	return true
}

// commonProtocol is the first of the first member's protocols that all have.
func (c *consumerGroup) commonProtocol(members []*consumerMember) string {
	for _, p := range members[0].classic.SupportedProtocols {
		all := true
		for _, x := range members {
			has := false
			for _, q := range x.classic.SupportedProtocols {
				has = has || q.Name == p.Name
			}
			all = all && has
		}
		if all {
			return p.Name
		}
	}
	return ""
}
