package machine

import (
	"time"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// answered takes the answers of the classic protocol.
func (c *classic) answered(now time.Time, req *Request, resp any, eff *Effects) {
	switch resp := resp.(type) {
	case *message.JoinGroupResponse:
		c.joined(now, req, resp, eff)
	case *message.SyncGroupResponse:
		c.synced(now, req, resp, eff)
	case *message.HeartbeatResponse:
		c.beaten(now, req, errcode.Code(resp.ErrorCode), eff)
	case *message.LeaveGroupResponse:
		c.goodbye(now, errcode.Code(resp.ErrorCode), eff)
	}
}

// joined: all members asked to join, or this one may not.
func (c *classic) joined(now time.Time, req *Request, resp *message.JoinGroupResponse, eff *Effects) {
	c.phase = out
	switch code := errcode.Code(resp.ErrorCode); code {
	case errcode.None:
	case errcode.MemberIdRequired: // the second step follows at once, with the id
		c.generation.MemberID, c.Member.reason = resp.MemberId, "member id given"
		return
	case errcode.UnknownMemberId:
		c.forget(now, "the coordinator does not know the member", eff)
		return
	case errcode.IllegalGeneration:
		c.lose(ErrLost, "illegal generation", eff)
		return
	case errcode.RebalanceInProgress:
		c.retry(now)
		return
	default:
		c.common(now, req, code, nil, eff)
		return
	}
	c.fine()
	c.Member.reason = "all members have joined"
	c.generation.ID, c.generation.MemberID = resp.GenerationId, resp.MemberId
	c.heard(now) // the coordinator's session starts with its answer
	c.nextBeat = now.Add(c.cfg.Heartbeat)
	if c.leaving && resp.Leader != resp.MemberId {
		return // what follows would only bring partitions
	}
	// One that leads distributes even so: until then nobody gets on, and the commit that it may wait for is refused.
	c.assignor = ""
	if resp.ProtocolName != nil {
		c.assignor = *resp.ProtocolName
	}
	if resp.Leader == resp.MemberId {
		c.lead(now, resp, eff)
		return
	}
	c.sync(now, nil, eff)
}

// synced: the assignment is here.
func (c *classic) synced(now time.Time, req *Request, resp *message.SyncGroupResponse, eff *Effects) {
	c.phase = out
	switch code := errcode.Code(resp.ErrorCode); code {
	case errcode.None:
	case errcode.RebalanceInProgress:
		c.Member.reason = "another rebalance began"
		return
	case errcode.UnknownMemberId:
		c.forget(now, "the coordinator does not know the member", eff)
		return
	case errcode.IllegalGeneration:
		c.lose(ErrLost, "illegal generation", eff)
		return
	default:
		c.common(now, req, code, nil, eff)
		return
	}
	target, err := ParseAssignment(resp.Assignment)
	if err != nil {
		c.end(c.refused("SyncGroup", err, ""), ErrLost, eff)
		return
	}
	c.fine()
	c.heard(req.sent)
	if c.leaving {
		return
	}
	c.phase, c.Member.reason = in, "assignment received"
	c.last, c.lastGeneration = target, c.generation.ID
	c.finish(now, eff)
	if gone := without(c.owned, target); len(gone) > 0 {
		c.revoke(gone, eff)
		c.wish = "gave up partitions that others get" // the second step of a cooperative rebalance (KIP-429)
	}
	c.assign(target, eff)
	if c.leader != nil && c.leader.outdated(c.view) {
		c.wish = "topics changed during the rebalance"
	}
}

// beaten: a heartbeat was answered.
func (c *classic) beaten(now time.Time, req *Request, code errcode.Code, eff *Effects) {
	if req.generation != c.generation {
		return // it asked for something that has changed meanwhile
	}
	switch code {
	case errcode.None:
		c.fine()
		c.heard(req.sent)
	case errcode.RebalanceInProgress:
		c.fine()
		c.heard(req.sent)
		if c.phase == in && c.wish == "" {
			c.wish = "the group rebalances"
		}
	case errcode.IllegalGeneration:
		if c.phase != joining { // else the answer to our JoinGroup, with the new generation, is on its way
			c.lose(ErrLost, "illegal generation", eff)
		}
	case errcode.UnknownMemberId:
		c.forget(now, "the coordinator does not know the member", eff)
	default:
		c.common(now, req, code, nil, eff)
	}
}

// forget gives up the member id too.
func (c *classic) forget(now time.Time, reason string, eff *Effects) {
	c.lose(ErrLost, reason, eff)
	c.generation.MemberID = ""
	c.begin(now)
}
