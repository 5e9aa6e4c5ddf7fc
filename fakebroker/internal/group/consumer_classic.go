package group

import (
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Classic members of a consumer group: the coordinator assigns for them too. Their generation is their member epoch.
// JoinGroup stands for a heartbeat with subscription and owned partitions, SyncGroup fetches what was assigned, Heartbeat
// tells them when to join again.

// joinConsumer answers a JoinGroup of a member of a consumer group, at once.
func (m *Machine) joinConsumer(now time.Time, g *group, r coordinator.Request, req *message.JoinGroupRequest, out *coordinator.Result) {
	c := g.consumer
	deny := func(code errcode.Code) { m.refuseJoin(r.Ticket, req.MemberId, code, out) }
	if req.ProtocolType != consumerProtocol || !c.supports(req.Protocols, req.MemberId) {
		deny(errcode.InconsistentGroupProtocol)
		return
	}
	if c.members[req.MemberId] == nil && len(c.members) >= m.set.consumerMaxSize {
		deny(errcode.GroupMaxSizeReached)
		return
	}
	id := req.MemberId
	if id == "" {
		id = m.o.NewUUID().String()
		if req.GroupInstanceId == nil && r.Version >= 4 {
			m.refuseJoin(r.Ticket, id, errcode.MemberIdRequired, out)
			return
		}
	}
	old, replaced := c.members[id], (*consumerMember)(nil)
	if req.GroupInstanceId != nil {
		current, ok := c.static[*req.GroupInstanceId]
		switch {
		case req.MemberId == "" && ok:
			replaced = c.members[current]
		case req.MemberId == "":
		case !ok:
			deny(errcode.UnknownMemberId)
			return
		case current != id:
			deny(errcode.FencedInstanceId)
			return
		}
	}
	s, ok := parseSubscription(req.Protocols[0].Metadata)
	if !ok {
		deny(errcode.InconsistentGroupProtocol)
		return
	}
	updated := &consumerMember{id: id}
	if before := first(old, replaced); before != nil {
		*updated = *before
		updated.id = id
	}
	if updated.epoch < 0 || replaced != nil {
		updated.epoch, updated.previous = 0, 0
	}
	m.tellClassic(updated, r, req, s)
	a := admission{m: m, g: g, ch: m.changeOf(g.id, c), old: old, replaced: replaced, updated: updated,
		owned: m.ownedByName(s), known: true, reason: deref(req.Reason)}
	after := a.run(now, out)
	out.Written = append(out.Written, func(now time.Time, _ *coordinator.Result) {
		m.timers.stop(timerKey{rejoinTimer, g.id, id})
		m.timers.set(timerKey{conversionSync, g.id, id}, now.Add(time.Duration(after.rebalanceMs)*time.Millisecond))
	})
	resp := message.NewJoinGroupResponse()
	name, kind := req.Protocols[0].Name, consumerProtocol
	resp.MemberId, resp.GenerationId, resp.ProtocolName, resp.ProtocolType = id, after.epoch, &name, &kind
	out.Reply(r.Ticket, resp)
}

func (m *Machine) tellClassic(x *consumerMember, r coordinator.Request, req *message.JoinGroupRequest, s *message.ConsumerProtocolSubscription) {
	x.clientID, x.clientHost = r.ClientID, r.ClientHost
	x.instance, x.rack = copyOf(req.GroupInstanceId), copyOf(s.RackId)
	x.rebalanceMs = rebalanceMs(r.Version, req)
	x.topics, x.regex, x.assignor = sortedStrings(s.Topics), "", nil
	x.classic = &logrecord.ClassicMemberMetadata{SessionTimeoutMs: req.SessionTimeoutMs}
	for _, p := range protocolsOf(req) {
		x.classic.SupportedProtocols = append(x.classic.SupportedProtocols, logrecord.ClassicProtocol{Name: p.name, Metadata: p.metadata})
	}
}

func (m *Machine) ownedByName(s *message.ConsumerProtocolSubscription) ownedParts {
	o := make(ownedParts)
	for i := range s.OwnedPartitions {
		t := m.env.Image.Topic(s.OwnedPartitions[i].Topic)
		if t == nil {
			continue
		}
		o[t.ID] = make(map[int32]bool)
		for _, p := range s.OwnedPartitions[i].Partitions {
			o[t.ID][p] = true
		}
	}
	return o
}

func sameClassic(a, b *consumerMember) bool {
	if a.classic == nil || b.classic == nil {
		return a.classic == b.classic
	}
	return a.classic.SessionTimeoutMs == b.classic.SessionTimeoutMs &&
		slices.EqualFunc(a.classic.SupportedProtocols, b.classic.SupportedProtocols, func(x, y logrecord.ClassicProtocol) bool {
			return x.Name == y.Name && string(x.Metadata) == string(y.Metadata)
		})
}

// classicMember finds a member that speaks the classic protocol.
func (c *consumerGroup) classicMember(id string, instance *string, generation int32) (*consumerMember, errcode.Code) {
	if instance != nil {
		current, ok := c.static[*instance]
		switch {
		case !ok:
			return nil, errcode.UnknownMemberId
		case current != id:
			return nil, errcode.FencedInstanceId
		}
	}
	x := c.members[id]
	switch {
	case x == nil || x.classic == nil:
		return nil, errcode.UnknownMemberId
	case x.epoch != generation:
		return nil, errcode.IllegalGeneration
	}
	return x, errcode.None
}

// syncConsumer answers SyncGroup of a classic member with what it has.
func (m *Machine) syncConsumer(now time.Time, g *group, r coordinator.Request, req *message.SyncGroupRequest, out *coordinator.Result) {
	c := g.consumer
	x, code := c.classicMember(req.MemberId, req.GroupInstanceId, req.GenerationId)
	if code != errcode.None {
		refuseSync(r.Ticket, code, out)
		return
	}
	p := x.classic.SupportedProtocols[0]
	if req.ProtocolType != nil && *req.ProtocolType != consumerProtocol || req.ProtocolName != nil && *req.ProtocolName != p.Name {
		refuseSync(r.Ticket, errcode.InconsistentGroupProtocol, out)
		return
	}
	if c.epoch > x.epoch && x.state != memberUnrevoked { // it joins again, and gets the newer assignment then
		m.awaitRejoin(now, g, x)
		refuseSync(r.Ticket, errcode.RebalanceInProgress, out)
		return
	}
	m.timers.stop(timerKey{conversionSync, g.id, x.id})
	m.timers.set(timerKey{sessionTimer, g.id, x.id}, now.Add(m.session(g.id, x)))
	kind := consumerProtocol
	out.Reply(r.Ticket, &message.SyncGroupResponse{ProtocolType: &kind, ProtocolName: &p.Name, Assignment: m.classicAssignment(x)})
}

// classicAssignment is what a member has in the form of the classic protocol, in the version that the member speaks.
func (m *Machine) classicAssignment(x *consumerMember) []byte {
	version := int16(0)
	if len(x.classic.SupportedProtocols) > 0 {
		version = min(max(wire.NewReader(x.classic.SupportedProtocols[0].Metadata).Int16(), 0), 3)
	}
	a := message.NewConsumerProtocolAssignment()
	for _, t := range recordParts(x.assigned) {
		if name := topicName(m.env.Image, t.TopicId); name != "" {
			a.AssignedPartitions = append(a.AssignedPartitions, message.ConsumerProtocolAssignmentTopicPartition{Topic: name, Partitions: t.Partitions})
		}
	}
	slices.SortFunc(a.AssignedPartitions, func(a, b message.ConsumerProtocolAssignmentTopicPartition) int { return compare(a.Topic, b.Topic) })
	b, err := a.AppendTo(wire.AppendInt16(nil, version), version)
	if err != nil {
		panic("group: an assignment is not encoded: " + err.Error())
	}
	return b
}

// heartbeatConsumer answers Heartbeat of a classic member: it has to join again when there is something newer for it, or
// something to give up, or when what it waited for has become free.
func (m *Machine) heartbeatConsumer(now time.Time, g *group, req *message.HeartbeatRequest) errcode.Code {
	c := g.consumer
	x, code := c.classicMember(req.MemberId, req.GroupInstanceId, req.GenerationId)
	if code != errcode.None {
		return code
	}
	m.timers.set(timerKey{sessionTimer, g.id, x.id}, now.Add(m.session(g.id, x)))
	if x.epoch < c.epoch || x.state == memberUnrevoked || x.state == memberUnreleased && !c.waits(x) {
		m.awaitRejoin(now, g, x)
		return errcode.RebalanceInProgress
	}
	return errcode.None
}

// waits reports whether something of the member's target is with others still.
func (c *consumerGroup) waits(x *consumerMember) bool {
	for topic, partitions := range c.target[x.id] {
		for _, p := range partitions {
			if c.ownedByOther(topic, p, x.id) {
				return true
			}
		}
	}
	return false
}

// awaitRejoin gives a member its rebalance timeout to join again.
func (m *Machine) awaitRejoin(now time.Time, g *group, x *consumerMember) {
	key := timerKey{rejoinTimer, g.id, x.id}
	if !m.timers.running(key) {
		m.timers.set(key, now.Add(time.Duration(x.rebalanceMs)*time.Millisecond))
	}
}

// leaveConsumer answers LeaveGroup about members of a consumer group, also about those that speak its own protocol: an
// administrator removes them so.
func (m *Machine) leaveConsumer(now time.Time, g *group, members []message.MemberIdentity, resp *message.LeaveGroupResponse, out *coordinator.Result) {
	c := g.consumer
	var gone []*consumerMember
	var why Event
	for i := range members {
		id, instance := members[i].MemberId, members[i].GroupInstanceId
		if id == "" && instance != nil {
			id, instance = c.static[*instance], nil
		}
		x := c.members[id]
		switch {
		case instance != nil && c.static[*instance] == "", x == nil:
			continue
		case instance != nil && c.static[*instance] != id:
			resp.Members[i].ErrorCode = int16(errcode.FencedInstanceId)
			continue
		}
		resp.Members[i].ErrorCode = 0
		if !slices.Contains(gone, x) {
			gone = append(gone, x)
		}
		why = leaving(x.id, x.instance, members[i].Reason)
	}
	if len(gone) > 0 {
		m.removeConsumers(now, g, gone, why, out)
	}
}
