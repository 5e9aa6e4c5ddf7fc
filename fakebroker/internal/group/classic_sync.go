package group

import (
	"bytes"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// sync answers SyncGroup. Followers wait for the leader, whose assignment everybody gets once it is in the log.
func (m *Machine) sync(now time.Time, r coordinator.Request, req *message.SyncGroupRequest, out *coordinator.Result) {
	g := m.groups[req.GroupId]
	switch {
	case r.Version >= 5 && (req.ProtocolType == nil || req.ProtocolName == nil):
		refuseSync(r.Ticket, errcode.InconsistentGroupProtocol, out)
	case req.GroupId == "":
		refuseSync(r.Ticket, errcode.InvalidGroupId, out)
	case g != nil && g.consumer != nil:
		m.syncConsumer(now, g, r, req, out)
	case g == nil:
		refuseSync(r.Ticket, errcode.UnknownMemberId, out)
	default:
		m.syncClassic(now, g, r, req, out)
	}
}

func (m *Machine) syncClassic(now time.Time, g *group, r coordinator.Request, req *message.SyncGroupRequest, out *coordinator.Result) {
	c := g.classic
	if code := c.maySync(req); code != errcode.None {
		refuseSync(r.Ticket, code, out)
		return
	}
	member := c.member(req.MemberId)
	switch c.state {
	case PreparingRebalance:
		refuseSync(r.Ticket, errcode.RebalanceInProgress, out)
	case CompletingRebalance:
		refuseSync(member.syncing, errcode.RebalanceInProgress, out) // only the newest request of a member is answered
		member.syncing = r.Ticket
		m.synced(g, member.id)
		if c.leader == member.id {
			m.assign(now, g, req, out)
		}
	case Stable:
		m.synced(g, member.id)
		m.heardOf(now, g, member)
		out.Reply(r.Ticket, c.syncResponse(member))
	default:
		refuseSync(r.Ticket, errcode.UnknownMemberId, out)
	}
}

func (c *classicGroup) maySync(req *message.SyncGroupRequest) errcode.Code {
	if code := c.validate(req.MemberId, req.GroupInstanceId); code != errcode.None {
		return code
	}
	switch {
	case req.GenerationId != c.generation:
		return errcode.IllegalGeneration
	case req.ProtocolType != nil && c.protocolType != "" && *req.ProtocolType != c.protocolType,
		req.ProtocolName != nil && c.hasProtocol && *req.ProtocolName != c.protocol:
		return errcode.InconsistentGroupProtocol
	}
	return errcode.None
}

// synced notes that a member has synced in this generation.
func (m *Machine) synced(g *group, id string) {
	c := g.classic
	delete(c.unsynced, id)
	if len(c.unsynced) == 0 {
		m.timers.stop(timerKey{kind: syncTimer, group: g.id})
	}
}

// assign takes the leader's assignment: members that it left out get none. It holds once it is in the log.
func (m *Machine) assign(now time.Time, g *group, req *message.SyncGroupRequest, out *coordinator.Result) {
	c := g.classic
	assignments := make(map[string][]byte, len(c.members))
	for _, x := range c.members {
		assignments[x.id] = []byte{}
	}
	for i := range req.Assignments {
		if a := &req.Assignments[i]; assignments[a.MemberId] != nil {
			assignments[a.MemberId] = append([]byte{}, a.Assignment...)
		}
	}
	v := c.value(assignments)
	v.CurrentStateTimestamp = now.UnixMilli()
	out.Record(&logrecord.GroupMetadataKey{Group: g.id}, v, 3)
	out.Written = append(out.Written, func(now time.Time, next *coordinator.Result) { // the replay has made it Stable
		for _, x := range c.members {
			if x.syncing != coordinator.NoTicket {
				next.Reply(x.syncing, c.syncResponse(x))
				x.syncing = coordinator.NoTicket
				m.heardOf(now, g, x)
			}
		}
		g.history.add(Event{Cause: Balanced}.at(now, c.generation))
	})
	out.Failed = append(out.Failed, func(now time.Time, code errcode.Code, next *coordinator.Result) {
		m.refuseSyncs(c, code, next)
		m.rebalance(now, g, Event{Cause: WriteFailed, Reason: code.Name()}, next)
	})
}

// refuseSyncs takes back who waits for an assignment, and the assignments.
func (m *Machine) refuseSyncs(c *classicGroup, code errcode.Code, out *coordinator.Result) {
	if c.state != CompletingRebalance {
		return
	}
	for _, x := range c.members {
		x.assignment = nil
		refuseSync(x.syncing, code, out)
		x.syncing = coordinator.NoTicket
	}
}

func (c *classicGroup) syncResponse(x *classicMember) *message.SyncGroupResponse {
	name, kind := c.protocol, c.protocolType
	return &message.SyncGroupResponse{ProtocolName: &name, ProtocolType: &kind, Assignment: bytes.Clone(x.assignment)}
}
