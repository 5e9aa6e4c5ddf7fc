package group

import (
	"maps"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// leaveByHeartbeat takes a member out (epoch -1), or notes that a static member is away for a while (epoch -2): then what
// it has stays its own until its session ends.
func (m *Machine) leaveByHeartbeat(now time.Time, r coordinator.Request, req *message.ConsumerGroupHeartbeatRequest, out *coordinator.Result) *refusal {
	g := m.groups[req.GroupId]
	switch {
	case g == nil:
		return refuse(errcode.GroupIdNotFound, "Group %s not found.", req.GroupId)
	case g.consumer == nil:
		return refuse(errcode.GroupIdNotFound, "Group %s is not a consumer group.", req.GroupId)
	}
	c := g.consumer
	x := c.members[req.MemberId]
	if req.InstanceId != nil {
		current, ok := c.static[*req.InstanceId]
		switch {
		case !ok:
			return refuse(errcode.UnknownMemberId, "Instance id %s is unknown.", *req.InstanceId)
		case current != req.MemberId:
			return refuse(errcode.FencedInstanceId, "Static member %s with instance id %s was fenced by member %s.", req.MemberId, *req.InstanceId, current)
		}
	}
	if x == nil {
		return refuse(errcode.UnknownMemberId, "Member %s is not a member of group %s.", req.MemberId, req.GroupId)
	}
	resp := message.NewConsumerGroupHeartbeatResponse()
	resp.MemberId, resp.MemberEpoch = &req.MemberId, req.MemberEpoch
	if req.MemberEpoch == staticLeaveEpoch {
		away := *x
		away.epoch, away.revoking = staticLeaveEpoch, nil
		if away.state == memberUnrevoked {
			away.state = memberStable
		}
		recordCurrent(g.id, &away, out)
		out.Written = append(out.Written, func(time.Time, *coordinator.Result) { m.timers.stop(timerKey{revokeTimer, g.id, x.id}) })
	} else {
		m.removeConsumers(now, g, []*consumerMember{x}, leaving(x.id, x.instance, nil), out)
	}
	out.Reply(r.Ticket, resp)
	return nil
}

func tombstoneMember(id string, x *consumerMember, c *consumerGroup, out *coordinator.Result) {
	out.Tombstone(&logrecord.ConsumerGroupCurrentMemberAssignmentKey{GroupId: id, MemberId: x.id})
	if c.target[x.id] != nil {
		out.Tombstone(&logrecord.ConsumerGroupTargetAssignmentMemberKey{GroupId: id, MemberId: x.id})
	}
	out.Tombstone(&logrecord.ConsumerGroupMemberMetadataKey{GroupId: id, MemberId: x.id})
}

func tombstoneRegex(id, regex string, out *coordinator.Result) {
	out.Tombstone(&logrecord.ConsumerGroupRegularExpressionKey{GroupId: id, RegularExpression: regex})
}

// removeConsumers takes members out: a new epoch without them, or, when only classic members stay, a classic group.
func (m *Machine) removeConsumers(now time.Time, g *group, gone []*consumerMember, why Event, out *coordinator.Result) {
	c := g.consumer
	ids := make(map[string]bool, len(gone))
	for _, x := range gone {
		ids[x.id] = true
		out.Written = append(out.Written, func(time.Time, *coordinator.Result) {
			for kind := timerKind(0); kind < timerKindCount; kind++ {
				m.timers.stop(timerKey{kind, g.id, x.id})
			}
		})
	}
	if m.downgrade(now, g, ids, why, out) {
		return
	}
	ch := m.changeOf(g.id, c)
	ch.gone = ids
	for _, x := range gone {
		tombstoneMember(g.id, x, c, out)
	}
	left := ch.members()
	for _, regex := range slices.Sorted(maps.Keys(c.regexes)) {
		if !slices.ContainsFunc(left, func(x *consumerMember) bool { return x.regex == regex }) {
			tombstoneRegex(g.id, regex, out)
		}
	}
	ch.rehash()
	ch.bump(out)
	if len(left) == 0 {
		recordTargetEpoch(g.id, ch.epoch, 0, out)
	}
	epoch := c.epoch
	out.Written = append(out.Written, func(now time.Time, _ *coordinator.Result) { g.history.add(why.at(now, epoch)) })
}

// consumerTimer takes a timer of a consumer group.
func (m *Machine) consumerTimer(now time.Time, g *group, key timerKey, out *coordinator.Result) {
	x := g.consumer.members[key.member]
	if key.kind == regexTimer {
		m.resolveRegexes(now, g, out)
		return
	}
	if x == nil {
		return
	}
	why := Event{Member: x.id, Instance: deref(x.instance)}
	switch key.kind {
	case sessionTimer:
		why.Cause = SessionTimeout
	case revokeTimer, rejoinTimer:
		why.Cause = RebalanceTimeout
	case conversionSync:
		why.Cause = SyncTimeout
	default:
		return
	}
	m.removeConsumers(now, g, []*consumerMember{x}, why, out)
}
