package group

import (
	"bytes"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// replayClassic takes a group as a record has it. While the group lives, members keep what is not in records: the
// requests that wait, and the protocols that were not chosen.
func (m *Machine) replayClassic(id string, v *logrecord.GroupMetadataValue) {
	if v == nil {
		if g := m.groups[id]; g != nil && g.classic != nil {
			m.timers.stopGroup(id, memberIDs(g.classic))
			g.classic = nil
			if g.offsets.count > 0 && g.consumer == nil {
				g.classic = newClassicGroup()
			}
			m.forget(g)
		}
		return
	}
	g := m.group(id)
	old := g.classic
	if old == nil {
		old = newClassicGroup()
	}
	if m.loaded && len(v.Members) == 0 && len(old.members) > 0 {
		// The record that a new group begins with, written when its first member is in it already.
		g.classic = old
		return
	}
	c := newClassicGroup()
	c.pending, c.unsynced, c.counts = old.pending, old.unsynced, old.counts
	c.protocolType, c.generation, c.since = v.ProtocolType, v.Generation, v.CurrentStateTimestamp
	if v.Protocol != nil {
		c.protocol, c.hasProtocol = *v.Protocol, true
	}
	for i := range v.Members {
		c.add(m.replayMember(&v.Members[i], c.protocol, old))
	}
	c.protocolType, c.leader = v.ProtocolType, deref(v.Leader)
	if len(c.members) > 0 {
		c.state = Stable
	}
	// Whoever holds the group holds this pointer: it stays the same one.
	*old = *c
	g.classic = old
}

// replayMember makes a member of a record, out of the one that lives if there is one. While the log is loaded nobody lives:
// of several records about a member the last one counts.
func (m *Machine) replayMember(r *logrecord.MemberMetadata, protocolName string, old *classicGroup) *classicMember {
	x := old.member(r.MemberId)
	if x == nil {
		x = &classicMember{id: r.MemberId}
	}
	x.instance, x.clientID, x.clientHost = copyOf(r.GroupInstanceId), r.ClientId, r.ClientHost
	x.rebalanceMs, x.sessionMs = r.RebalanceTimeout, r.SessionTimeout
	if x.rebalanceMs < 0 { // version 0 of the record
		x.rebalanceMs = r.SessionTimeout
	}
	x.assignment = bytes.Clone(r.Assignment)
	if len(x.protocols) == 0 || !m.loaded {
		x.protocols = []protocol{{name: protocolName, metadata: append([]byte{}, r.Subscription...)}}
	}
	return x
}

// classicLoaded starts the sessions of a group that was loaded.
func (m *Machine) classicLoaded(now time.Time, g *group, out *coordinator.Result) {
	for _, x := range g.classic.members {
		m.heardOf(now, g, x)
	}
	g.classic.counts = m.partitionCounts(g.classic.subscription())
	if limit := m.set.maxSize; len(g.classic.members) > limit {
		m.rebalance(now, g, Event{Cause: Forced, Reason: "group.max.size was lowered"}, out)
	}
}

func memberIDs(c *classicGroup) []string {
	ids := make([]string, 0, len(c.members)+len(c.pending))
	for _, x := range c.members {
		ids = append(ids, x.id)
	}
	for id := range c.pending {
		ids = append(ids, id)
	}
	return ids
}

// subscription is the set of topics that the members of a group of consumers are subscribed to; nil when the group is of
// another type, or does not say.
func (c *classicGroup) subscription() map[string]bool {
	if c.protocolType != consumerProtocol || len(c.members) == 0 || !c.hasProtocol {
		return nil
	}
	topics := make(map[string]bool)
	for _, x := range c.members {
		s, ok := parseSubscription(x.metadata(c.protocol))
		if !ok {
			return nil
		}
		for _, t := range s.Topics {
			topics[t] = true
		}
	}
	return topics
}

// parseSubscription reads what a consumer says when it joins. Other languages' clients put other bytes there, and newer
// versions may have more at the end.
func parseSubscription(b []byte) (*message.ConsumerProtocolSubscription, bool) {
	r := wire.NewReader(b)
	version := r.Int16()
	s := message.NewConsumerProtocolSubscription()
	if r.Err() != nil || version < 0 || s.ReadFrom(r, min(version, 3)) != nil {
		return nil, false
	}
	return s, true
}

// rejoinCause finds out why a member that is in the group joins again.
func (m *Machine) rejoinCause(g *group, x *classicMember, protocols []protocol, req *message.JoinGroupRequest) Event {
	c := g.classic
	e := Event{Cause: MemberRejoined, Member: x.id, Instance: deref(x.instance), Reason: deref(req.Reason)}
	before, ok := parseSubscription(x.metadata(c.protocol))
	var after *message.ConsumerProtocolSubscription
	for i := range protocols {
		if protocols[i].name == c.protocol && ok {
			after, ok = parseSubscription(protocols[i].metadata)
		}
	}
	switch {
	case c.protocolType != consumerProtocol || before == nil || after == nil:
	case !sameSet(before.Topics, after.Topics):
		e.Cause = SubscriptionChanged
	case c.state == Stable && !sameCounts(c.counts, m.partitionCounts(c.subscription())):
		e.Cause = PartitionsChanged
	}
	return e
}

func sameSet(a, b []string) bool {
	in := make(map[string]bool, len(a))
	for _, s := range a {
		in[s] = true
	}
	other := make(map[string]bool, len(b))
	for _, s := range b {
		if !in[s] {
			return false
		}
		other[s] = true
	}
	return len(in) == len(other)
}

func sameCounts(a, b map[string]int) bool {
	if len(a) != len(b) {
		return false
	}
	for k, n := range a {
		if b[k] != n {
			return false
		}
	}
	return true
}

// javaUUID is a UUID as Java prints it, which is how classic member ids end.
func javaUUID(u wire.UUID) string {
	const digits = "0123456789abcdef"
	b := make([]byte, 0, 36)
	for i, x := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			b = append(b, '-')
		}
		b = append(b, digits[x>>4], digits[x&15])
	}
	return string(b)
}
