package group

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// heartbeat answers Heartbeat: it keeps the session alive and tells a member to join again while a rebalance waits for it.
func (m *Machine) heartbeat(now time.Time, r coordinator.Request, req *message.HeartbeatRequest, out *coordinator.Result) {
	g := m.groups[req.GroupId]
	var code errcode.Code
	switch {
	case req.GroupId == "":
		code = errcode.InvalidGroupId
	case g == nil:
		code = errcode.UnknownMemberId
	case g.consumer != nil:
		code = m.heartbeatConsumer(now, g, req)
	default:
		code = m.heartbeatClassic(now, g, req)
	}
	out.Reply(r.Ticket, &message.HeartbeatResponse{ErrorCode: int16(code)})
}

func (m *Machine) heartbeatClassic(now time.Time, g *group, req *message.HeartbeatRequest) errcode.Code {
	c := g.classic
	if code := c.validate(req.MemberId, req.GroupInstanceId); code != errcode.None {
		return code
	}
	if req.GenerationId != c.generation {
		return errcode.IllegalGeneration
	}
	switch c.state {
	case PreparingRebalance:
		m.heardOf(now, g, c.member(req.MemberId))
		return errcode.RebalanceInProgress
	case CompletingRebalance, Stable:
		m.heardOf(now, g, c.member(req.MemberId))
		return errcode.None
	}
	return errcode.UnknownMemberId
}
