package group

import (
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// leave answers LeaveGroup: one member up to version 2, several after it, which an administrator may name by their
// instance ids alone.
func (m *Machine) leave(now time.Time, r coordinator.Request, req *message.LeaveGroupRequest, out *coordinator.Result) {
	members := req.Members
	if r.Version < 3 {
		members = []message.MemberIdentity{{MemberId: req.MemberId}}
	}
	resp := &message.LeaveGroupResponse{Members: make([]message.MemberResponse, len(members))}
	g := m.groups[req.GroupId]
	for i := range members {
		resp.Members[i] = message.MemberResponse{MemberId: members[i].MemberId, GroupInstanceId: members[i].GroupInstanceId, ErrorCode: int16(errcode.UnknownMemberId)}
	}
	switch {
	case req.GroupId == "":
		resp.ErrorCode, resp.Members = int16(errcode.InvalidGroupId), nil
	case g != nil && g.consumer != nil:
		m.leaveConsumer(now, g, members, resp, out)
	case g != nil:
		m.leaveClassic(now, g, members, resp, out)
	}
	if r.Version < 3 && len(resp.Members) > 0 {
		resp.ErrorCode, resp.Members = resp.Members[0].ErrorCode, nil
	}
	out.Reply(r.Ticket, resp)
}

func (m *Machine) leaveClassic(now time.Time, g *group, members []message.MemberIdentity, resp *message.LeaveGroupResponse, out *coordinator.Result) {
	c := g.classic
	var why *Event
	for i := range members {
		id, instance := members[i].MemberId, members[i].GroupInstanceId
		if id == "" && instance != nil {
			id = c.static[*instance]
			instance = nil
		}
		if c.pending[id] {
			m.forgetPending(g, id)
			resp.Members[i].ErrorCode = 0
			m.maybeEndJoin(now, g, out)
			continue
		}
		code := c.validate(id, instance)
		if resp.Members[i].ErrorCode = int16(code); code != errcode.None {
			continue
		}
		x := c.member(id)
		m.takeOut(g, x, errcode.UnknownMemberId, out)
		e := leaving(x.id, x.instance, members[i].Reason)
		if why != nil {
			g.history.add(why.at(now, c.generation))
		}
		why = &e
	}
	if why != nil {
		m.afterLeaving(now, g, *why, out)
	}
}

// leaving is the event of a member that leaves. Clients that take themselves out because the application has not polled
// say so in the reason (KIP-800).
func leaving(id string, instance, reason *string) Event {
	e := Event{Cause: MemberLeft, Member: id, Instance: deref(instance), Reason: deref(reason)}
	if strings.Contains(strings.ToLower(e.Reason), "poll") {
		e.Cause = PollIntervalExceeded
	}
	return e
}
