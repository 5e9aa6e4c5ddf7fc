package group

import (
	"bytes"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// newMemberJoinMs is how long the first JoinGroup of a member may wait, in ms: it cannot send heartbeats yet, and a client
// that gave up and came back would leave a dead member behind.
const newMemberJoinMs = 5 * 60 * 1000

// join answers JoinGroup: at once with an error or the id of a new member, otherwise when the join phase ends.
func (m *Machine) join(now time.Time, r coordinator.Request, req *message.JoinGroupRequest, out *coordinator.Result) {
	if req.GroupId == "" {
		m.refuseJoin(r.Ticket, req.MemberId, errcode.InvalidGroupId, out)
		return
	}
	if req.SessionTimeoutMs < m.set.minSessionMs || req.SessionTimeoutMs > m.set.maxSessionMs {
		m.refuseJoin(r.Ticket, req.MemberId, errcode.InvalidSessionTimeout, out)
		return
	}
	g := m.groups[req.GroupId]
	switch {
	case g != nil && g.consumer != nil && len(g.consumer.members) > 0:
		m.joinConsumer(now, g, r, req, out)
	case g == nil && req.MemberId != "":
		m.refuseJoin(r.Ticket, req.MemberId, errcode.UnknownMemberId, out)
	default:
		g = m.group(req.GroupId)
		if g.classic == nil {
			m.makeClassic(now, g, out)
		}
		m.joinClassic(now, g, r, req, out)
	}
}

// makeClassic makes a new group and says so in the log: an empty record. An empty consumer group gives way to it.
func (m *Machine) makeClassic(now time.Time, g *group, out *coordinator.Result) {
	if g.consumer != nil {
		g.consumer.tombstones(g.id, out)
	}
	v := &logrecord.GroupMetadataValue{CurrentStateTimestamp: now.UnixMilli()}
	out.Record(&logrecord.GroupMetadataKey{Group: g.id}, v, 3)
	before, made := g.consumer, newClassicGroup()
	g.classic, g.consumer = made, nil
	made.since = now.UnixMilli()
	out.Failed = append(out.Failed, func(_ time.Time, code errcode.Code, next *coordinator.Result) {
		for _, x := range made.members { // nothing of it is in the log: the group is again what it was
			m.refuseJoin(x.joining, x.id, code, next)
		}
		m.timers.stopGroup(g.id, memberIDs(made))
		g.classic, g.consumer = nil, before
		m.forget(g)
	})
}

// refuseJoin answers a JoinGroup with an error; generation is -1 then.
func (m *Machine) refuseJoin(t coordinator.Ticket, member string, code errcode.Code, out *coordinator.Result) {
	resp := message.NewJoinGroupResponse()
	resp.MemberId, resp.ErrorCode = member, int16(code)
	resp.ProtocolName = nil
	out.Reply(t, resp)
}

func protocolsOf(req *message.JoinGroupRequest) []protocol {
	all := make([]protocol, len(req.Protocols))
	for i := range req.Protocols {
		// The bytes lie in the connection's buffer, and members stay.
		all[i] = protocol{name: req.Protocols[i].Name, metadata: append([]byte{}, req.Protocols[i].Metadata...)}
	}
	return all
}

func (m *Machine) joinClassic(now time.Time, g *group, r coordinator.Request, req *message.JoinGroupRequest, out *coordinator.Result) {
	c := g.classic
	protocols := protocolsOf(req)
	switch {
	case !m.hasRoom(c, req):
		c.remove(req.MemberId)
		m.forgetPending(g, req.MemberId)
		m.refuseJoin(r.Ticket, "", errcode.GroupMaxSizeReached, out)
	case !c.supports(req.ProtocolType, protocols):
		m.refuseJoin(r.Ticket, req.MemberId, errcode.InconsistentGroupProtocol, out)
	case req.MemberId == "" && req.GroupInstanceId == nil:
		m.joinDynamic(now, g, r, req, protocols, out)
	case req.MemberId == "":
		m.joinStatic(now, g, r, req, protocols, out)
	default:
		m.joinKnown(now, g, r, req, protocols, out)
	}
}

// hasRoom applies group.max.size. While a group prepares a rebalance only those count that have joined it.
func (m *Machine) hasRoom(c *classicGroup, req *message.JoinGroupRequest) bool {
	member := c.member(req.MemberId)
	switch c.state {
	case PreparingRebalance:
		return member != nil && member.joining != coordinator.NoTicket || c.joined() < m.set.maxSize
	case CompletingRebalance, Stable:
		return member != nil || len(c.members) < m.set.maxSize
	}
	return true
}

// joinDynamic takes a member that has no id. From version 4 on it is told one first and has to come back with it
// (KIP-394), so that a client that never sees the answer leaves nothing behind but a pending id.
func (m *Machine) joinDynamic(now time.Time, g *group, r coordinator.Request, req *message.JoinGroupRequest, protocols []protocol, out *coordinator.Result) {
	id := r.ClientID + "-" + javaUUID(m.o.NewUUID())
	if r.Version < 4 {
		m.addMember(now, g, id, r, req, protocols, out)
		return
	}
	g.classic.pending[id] = true
	m.timers.set(timerKey{pendingTimer, g.id, id}, now.Add(time.Duration(req.SessionTimeoutMs)*time.Millisecond))
	m.refuseJoin(r.Ticket, id, errcode.MemberIdRequired, out)
}

// joinStatic takes a member with an instance id and without a member id: new, or restarted.
func (m *Machine) joinStatic(now time.Time, g *group, r coordinator.Request, req *message.JoinGroupRequest, protocols []protocol, out *coordinator.Result) {
	id := *req.GroupInstanceId + "-" + javaUUID(m.o.NewUUID())
	if old, ok := g.classic.static[*req.GroupInstanceId]; ok {
		m.replaceStatic(now, g, old, id, r, req, protocols, out)
		return
	}
	m.addMember(now, g, id, r, req, protocols, out)
}

// joinKnown takes a member that has its id: a pending one, or one that joins again.
func (m *Machine) joinKnown(now time.Time, g *group, r coordinator.Request, req *message.JoinGroupRequest, protocols []protocol, out *coordinator.Result) {
	c := g.classic
	if c.pending[req.MemberId] {
		if req.GroupInstanceId != nil {
			m.refuseJoin(r.Ticket, req.MemberId, errcode.UnknownServerError, out) // static members have no pending ids
			return
		}
		m.addMember(now, g, req.MemberId, r, req, protocols, out)
		return
	}
	if code := c.validate(req.MemberId, req.GroupInstanceId); code != errcode.None {
		m.refuseJoin(r.Ticket, req.MemberId, code, out)
		return
	}
	member := c.member(req.MemberId)
	switch c.state {
	case PreparingRebalance:
		m.updateMember(now, g, member, r, req, protocols, m.rejoinCause(g, member, protocols, req), out)
	case CompletingRebalance:
		if member.sameProtocols(protocols) { // the answer to its last JoinGroup was lost
			m.heardOf(now, g, member)
			out.Reply(r.Ticket, c.joinResponse(member))
			return
		}
		m.updateMember(now, g, member, r, req, protocols, m.rejoinCause(g, member, protocols, req), out)
	case Stable:
		if c.leader == member.id || !member.sameProtocols(protocols) {
			m.updateMember(now, g, member, r, req, protocols, m.rejoinCause(g, member, protocols, req), out)
			return
		}
		m.heardOf(now, g, member)
		out.Reply(r.Ticket, c.joinResponse(member))
	default:
		m.refuseJoin(r.Ticket, req.MemberId, errcode.UnknownMemberId, out)
	}
}

// addMember puts a new member into the group and has it rebalance.
func (m *Machine) addMember(now time.Time, g *group, id string, r coordinator.Request, req *message.JoinGroupRequest, protocols []protocol, out *coordinator.Result) {
	c := g.classic
	member := &classicMember{id: id, instance: copyOf(req.GroupInstanceId), clientID: r.ClientID, clientHost: r.ClientHost,
		sessionMs: req.SessionTimeoutMs, rebalanceMs: rebalanceMs(r.Version, req), protocols: protocols, joining: r.Ticket, isNew: true}
	m.forgetPending(g, id)
	if len(c.members) == 0 {
		c.protocolType = req.ProtocolType
	}
	c.add(member)
	if c.state == PreparingRebalance && c.initial {
		c.newcomer = true
	}
	m.timers.set(timerKey{sessionTimer, g.id, id}, now.Add(newMemberJoinMs*time.Millisecond))
	m.rebalance(now, g, Event{Cause: MemberJoined, Member: id, Instance: deref(member.instance), Reason: deref(req.Reason)}, out)
}

// updateMember takes what a member that joins again says, and has the group rebalance.
func (m *Machine) updateMember(now time.Time, g *group, member *classicMember, r coordinator.Request, req *message.JoinGroupRequest, protocols []protocol, why Event, out *coordinator.Result) {
	member.protocols = protocols
	member.rebalanceMs, member.sessionMs = rebalanceMs(r.Version, req), req.SessionTimeoutMs
	if member.joining != coordinator.NoTicket { // only the newest request of a member is answered
		m.refuseJoin(member.joining, member.id, errcode.RebalanceInProgress, out)
	}
	member.joining = r.Ticket
	m.heardOf(now, g, member)
	m.rebalance(now, g, why, out)
}

// replaceStatic gives a restarted static member its new id. The old one is fenced. While the group is Stable and the
// protocol stays what it is, nobody else notices (KIP-345); the leader is told not to assign again (KIP-814).
func (m *Machine) replaceStatic(now time.Time, g *group, oldID, id string, r coordinator.Request, req *message.JoinGroupRequest, protocols []protocol, out *coordinator.Result) {
	c := g.classic
	old := c.member(oldID)
	before := *old
	led := c.leader == oldID
	swap := func(from, to string) {
		delete(c.byID, from)
		c.byID[to] = old
		c.static[*req.GroupInstanceId] = to
		old.id = to
		if led {
			c.leader = to
		}
		if c.unsynced[from] {
			delete(c.unsynced, from)
			c.unsynced[to] = true
		}
	}
	swap(oldID, id)
	m.refuseJoin(before.joining, oldID, errcode.FencedInstanceId, out)
	refuseSync(before.syncing, errcode.FencedInstanceId, out)
	old.joining, old.syncing = coordinator.NoTicket, coordinator.NoTicket
	old.protocols, old.clientID, old.clientHost = protocols, r.ClientID, r.ClientHost
	old.rebalanceMs, old.sessionMs = rebalanceMs(r.Version, req), req.SessionTimeoutMs
	m.timers.stop(timerKey{sessionTimer, g.id, oldID})
	m.heardOf(now, g, old)

	why := Event{Cause: StaticMemberReplaced, Member: id, Instance: *req.GroupInstanceId, Reason: deref(req.Reason)}
	if c.state != Stable || c.choose() != c.protocol {
		old.joining, old.isNew = r.Ticket, true
		m.rebalance(now, g, why, out)
		return
	}
	g.history.add(why.at(now, c.generation))
	c.record(g.id, out)
	resp := c.joinResponse(old)
	switch {
	case r.Version >= 9:
		resp.SkipAssignment = led
	case led: // it must not think that it leads: the assignment stands
		resp.Leader, resp.Members = oldID, nil
	}
	out.Reply(r.Ticket, resp)
	out.Failed = append(out.Failed, func(_ time.Time, code errcode.Code, _ *coordinator.Result) {
		swap(id, oldID)
		old.protocols, old.clientID, old.clientHost = before.protocols, before.clientID, before.clientHost
		old.rebalanceMs, old.sessionMs = before.rebalanceMs, before.sessionMs
		resp := message.NewJoinGroupResponse()
		resp.ErrorCode, resp.ProtocolName = int16(code), nil
		replace(out, r.Ticket, resp)
	})
}

// replace changes the reply to a ticket that has not left yet.
func replace(out *coordinator.Result, t coordinator.Ticket, resp any) {
	for i := range out.Replies {
		if out.Replies[i].Ticket == t {
			out.Replies[i].Response = resp
		}
	}
}

// joinResponse is the answer to a member that is in the current generation; the leader gets the members too.
func (c *classicGroup) joinResponse(member *classicMember) *message.JoinGroupResponse {
	resp := message.NewJoinGroupResponse()
	name, kind := c.protocol, c.protocolType
	resp.GenerationId, resp.Leader, resp.MemberId = c.generation, c.leader, member.id
	resp.ProtocolName, resp.ProtocolType = &name, &kind
	if c.leader == member.id {
		resp.Members = make([]message.JoinGroupResponseMember, len(c.members))
		for i, x := range c.members {
			resp.Members[i] = message.JoinGroupResponseMember{MemberId: x.id, GroupInstanceId: x.instance, Metadata: x.metadata(c.protocol)}
		}
	}
	return resp
}

// rebalanceMs is the rebalance timeout; version 0 had none.
func rebalanceMs(version int16, req *message.JoinGroupRequest) int32 {
	if version == 0 {
		return req.SessionTimeoutMs
	}
	return req.RebalanceTimeoutMs
}

// forgetPending drops an id that was given out.
func (m *Machine) forgetPending(g *group, id string) {
	delete(g.classic.pending, id)
	m.timers.stop(timerKey{pendingTimer, g.id, id})
}

func copyOf(s *string) *string {
	if s == nil {
		return nil
	}
	t := *s
	return &t
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func sameText(a, b *string) bool {
	return (a == nil) == (b == nil) && deref(a) == deref(b)
}

// record proposes the group as it is.
func (c *classicGroup) record(id string, out *coordinator.Result) {
	out.Record(&logrecord.GroupMetadataKey{Group: id}, c.value(nil), 3)
}

// value is the group as a record; assignments, when given, stand for the members' own.
func (c *classicGroup) value(assignments map[string][]byte) *logrecord.GroupMetadataValue {
	v := logrecord.NewGroupMetadataValue()
	v.ProtocolType, v.Generation, v.CurrentStateTimestamp = c.protocolType, c.generation, c.since
	v.Protocol, v.Leader = nil, nil
	if c.hasProtocol {
		name := c.protocol
		v.Protocol = &name
	}
	if c.leader != "" {
		leader := c.leader
		v.Leader = &leader
	}
	for _, x := range c.members {
		assignment := x.assignment
		if assignments != nil {
			assignment = assignments[x.id]
		}
		v.Members = append(v.Members, logrecord.MemberMetadata{MemberId: x.id, GroupInstanceId: x.instance, ClientId: x.clientID,
			ClientHost: x.clientHost, RebalanceTimeout: x.rebalanceMs, SessionTimeout: x.sessionMs,
			Subscription: bytes.Clone(x.metadata(c.protocol)), Assignment: bytes.Clone(assignment)})
	}
	return v
}
