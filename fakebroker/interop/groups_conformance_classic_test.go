package interop

import (
	"fmt"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// at is a version of one request that was there when another had a version: the same, or the last.
func at(k wire.Key, v int16) int16 {
	_, last, _ := wire.Versions(k)
	return min(v, last)
}

// classicVersions takes a member through its life: it joins, gets its part, lives and leaves.
func classicVersions(g *groupTalk) {
	g.create("cf-groups", 2)
	for _, v := range versions(wire.KeyJoinGroup) {
		group := fmt.Sprint("cf-classic-", v)
		resp := g.ask("first", v, join(group, "", "range", "roundrobin")).(*message.JoinGroupResponse)
		if v >= 4 {
			resp = g.ask("with its id", v, join(group, resp.MemberId, "range", "roundrobin")).(*message.JoinGroupResponse)
		}
		id, gen := resp.MemberId, resp.GenerationId
		describe := func(label string) {
			g.ask(label, at(wire.KeyDescribeGroups, v), &message.DescribeGroupsRequest{Groups: []string{group}})
		}
		describe("completing")
		g.ask("too early", at(wire.KeyHeartbeat, v), beat(group, id, gen))
		g.ask("share", at(wire.KeySyncGroup, v), syncing(group, id, gen, id, "part"))
		g.ask("share again", at(wire.KeySyncGroup, v), syncing(group, id, gen))
		g.ask("lives", at(wire.KeyHeartbeat, v), beat(group, id, gen))
		describe("stable")
		g.ask("join again", v, join(group, id, "range", "roundrobin"))
		g.ask("old generation", at(wire.KeyHeartbeat, v), beat(group, id, gen))
		g.ask("old generation's share", at(wire.KeySyncGroup, v), syncing(group, id, gen))
		g.ask("share of the next", at(wire.KeySyncGroup, v), syncing(group, id, gen+1, id, "part 2", "cf-nobody", "nothing"))
		g.ask("leaves", at(wire.KeyLeaveGroup, v), leaving(at(wire.KeyLeaveGroup, v), group, id))
		g.ask("leaves again", at(wire.KeyLeaveGroup, v), leaving(at(wire.KeyLeaveGroup, v), group, id))
		g.ask("after its end", at(wire.KeyHeartbeat, v), beat(group, id, gen+1))
		describe("empty")
	}
}

func joinErrors(g *groupTalk) {
	for _, v := range versions(wire.KeyJoinGroup) {
		group := fmt.Sprint("cf-errors-", v)
		try := func(label string, change func(*message.JoinGroupRequest)) {
			req := join(group, "", "range")
			change(req)
			g.ask(label, v, req)
		}
		try("no group", func(r *message.JoinGroupRequest) { r.GroupId = "" })
		try("a short session", func(r *message.JoinGroupRequest) { r.SessionTimeoutMs = 10 })
		try("a long session", func(r *message.JoinGroupRequest) { r.SessionTimeoutMs = 1 << 30 })
		try("a member nobody knows", func(r *message.JoinGroupRequest) { r.MemberId = "cf-stranger" })
		try("no protocols", func(r *message.JoinGroupRequest) { r.Protocols = nil })
		try("no protocol type", func(r *message.JoinGroupRequest) { r.ProtocolType = "" })
		g.ask("what is left of it", at(wire.KeyDescribeGroups, v), &message.DescribeGroupsRequest{Groups: []string{group}})
	}
	for _, v := range versions(wire.KeySyncGroup) {
		g.ask("no group", v, syncing("", "cf-stranger", 1))
		g.ask("a group nobody knows", v, syncing("cf-nowhere", "cf-stranger", 1))
	}
	for _, v := range versions(wire.KeyHeartbeat) {
		g.ask("no group", v, beat("", "cf-stranger", 1))
		g.ask("a group nobody knows", v, beat("cf-nowhere", "cf-stranger", 1))
	}
	for _, v := range versions(wire.KeyLeaveGroup) {
		g.ask("no group", v, leaving(v, "", "cf-stranger"))
		g.ask("a group nobody knows", v, leaving(v, "cf-nowhere", "cf-stranger"))
	}
	id, gen := g.joined("cf-errors", "range")
	for _, v := range versions(wire.KeySyncGroup) {
		g.ask("a stranger", v, syncing("cf-errors", "cf-stranger", gen))
		g.ask("the next generation", v, syncing("cf-errors", id, gen+1))
		if v >= 5 {
			req := syncing("cf-errors", id, gen)
			req.ProtocolType = new("connect")
			g.ask("another type", v, req)
			req.ProtocolType, req.ProtocolName = new("consumer"), new("roundrobin")
			g.ask("another protocol", v, req)
			req.ProtocolName = new("range")
			g.ask("the right ones", v, req)
		}
	}
	for _, v := range versions(wire.KeyHeartbeat) {
		g.ask("a stranger", v, beat("cf-errors", "cf-stranger", gen))
		g.ask("no member", v, beat("cf-errors", "", gen))
		g.ask("the next generation", v, beat("cf-errors", id, gen+1))
		g.ask("no generation", v, beat("cf-errors", id, -1))
	}
}

// twoMembers has a rebalance in every version: the second joins, the first hears of it and joins again, the leader gives both
// their parts, the second leaves.
func twoMembers(g *groupTalk) {
	for _, v := range versions(wire.KeyJoinGroup) {
		group := fmt.Sprint("cf-two-", v)
		first, gen := g.joined(group, "range", "roundrobin")
		second := ""
		if v >= 4 {
			second = g.ask("second", v, join(group, "", "range", "roundrobin")).(*message.JoinGroupResponse).MemberId
		}
		waits := g.later("second is in", v, join(group, second, "range", "roundrobin"))
		g.rebalancing(group, first, gen)
		g.ask("first hears of it", at(wire.KeyHeartbeat, v), beat(group, first, gen))
		g.ask("not now", at(wire.KeySyncGroup, v), syncing(group, first, gen))
		g.ask("preparing", at(wire.KeyDescribeGroups, v), &message.DescribeGroupsRequest{Groups: []string{group}})
		g.ask("first is in", v, join(group, first, "range", "roundrobin"))
		second = waits().(*message.JoinGroupResponse).MemberId
		part := g.later("second's part", at(wire.KeySyncGroup, v), syncing(group, second, gen+1))
		g.ask("leader's part", at(wire.KeySyncGroup, v), syncing(group, first, gen+1, first, "one", second, "two"))
		part()
		g.ask("both", at(wire.KeyDescribeGroups, v), &message.DescribeGroupsRequest{Groups: []string{group}})
		g.ask("second joins as it is", v, join(group, second, "range", "roundrobin"))
		g.ask("second goes", at(wire.KeyLeaveGroup, v), leaving(at(wire.KeyLeaveGroup, v), group, second))
		g.ask("first hears of that", at(wire.KeyHeartbeat, v), beat(group, first, gen+1))
		g.ask("first is alone", v, join(group, first, "range", "roundrobin"))
		g.ask("first's part", at(wire.KeySyncGroup, v), syncing(group, first, gen+2, first, "all"))
		g.ask("first goes", at(wire.KeyLeaveGroup, v), leaving(at(wire.KeyLeaveGroup, v), group, first))
	}
}

// sharedProtocols is about what a group that has members lets others speak, and what it settles on.
func sharedProtocols(g *groupTalk) {
	for _, v := range []int16{3, 5, 9} {
		group := fmt.Sprint("cf-protocols-", v)
		first, gen := g.joined(group, "range", "sticky", "roundrobin")
		other := join(group, "", "mine")
		g.ask("nothing in common", v, other)
		other = join(group, "", "range")
		other.ProtocolType = "connect"
		g.ask("another type", v, other)
		second := ""
		if v >= 4 {
			g.quiet(v, join(group, "", "x")) // refused, see above
			second = g.quiet(v, join(group, "", "roundrobin", "sticky")).(*message.JoinGroupResponse).MemberId
		}
		waits := g.later("second", v, join(group, second, "roundrobin", "sticky"))
		g.rebalancing(group, first, gen)
		g.ask("first", v, join(group, first, "range", "sticky", "roundrobin"))
		second = waits().(*message.JoinGroupResponse).MemberId
		g.ask("describe", 5, &message.DescribeGroupsRequest{Groups: []string{group}})
		g.ask("both go", 5, leaving(5, group, first, second))
		g.ask("describe the empty", 5, &message.DescribeGroupsRequest{Groups: []string{group}})
		connect := join(group, "", "range")
		connect.ProtocolType = "connect"
		g.ask("another type for the empty group", v, connect)
	}
}

func staticMembers(g *groupTalk) {
	for _, v := range versions(wire.KeyJoinGroup)[5:] {
		group := fmt.Sprint("cf-static-", v)
		static := func(member, instance string) *message.JoinGroupRequest {
			req := join(group, member, "range")
			req.GroupInstanceId = &instance
			return req
		}
		resp := g.ask("first", v, static("", "one")).(*message.JoinGroupResponse)
		old, gen := resp.MemberId, resp.GenerationId
		share := syncing(group, old, gen, old, "part")
		share.GroupInstanceId = new("one")
		g.ask("share", at(wire.KeySyncGroup, v), share)
		resp = g.ask("comes back", v, static("", "one")).(*message.JoinGroupResponse)
		now := resp.MemberId
		g.ask("its old self joins", v, static(old, "one"))
		g.ask("a stranger's id", v, static("cf-stranger", "one"))
		lives := beat(group, old, resp.GenerationId)
		lives.GroupInstanceId = new("one")
		g.ask("its old self", at(wire.KeyHeartbeat, v), lives)
		lives.MemberId = now
		g.ask("its new self", at(wire.KeyHeartbeat, v), lives)
		lives.GroupInstanceId = new("two")
		g.ask("another instance", at(wire.KeyHeartbeat, v), lives)
		again := syncing(group, old, resp.GenerationId)
		again.GroupInstanceId = new("one")
		g.ask("old self's share", at(wire.KeySyncGroup, v), again)
		again.MemberId = now
		g.ask("new self's share", at(wire.KeySyncGroup, v), again)
		changed := static(now, "one")
		changed.Protocols[0].Metadata = subscription("cf-groups", "cf-more")
		g.ask("it changes its mind", v, changed)
		g.ask("describe", at(wire.KeyDescribeGroups, v), &message.DescribeGroupsRequest{Groups: []string{group}})
		leave := leaving(5, group, old)
		leave.Members[0].GroupInstanceId = new("one")
		g.ask("old self leaves", 5, leave)
		leave.Members[0].MemberId = ""
		g.ask("the instance leaves", 5, leave)
		g.ask("describe the empty", at(wire.KeyDescribeGroups, v), &message.DescribeGroupsRequest{Groups: []string{group}})
	}
}

// leavingForOthers removes members as admins do.
func leavingForOthers(g *groupTalk) {
	for _, v := range versions(wire.KeyLeaveGroup)[3:] {
		group := fmt.Sprint("cf-leave-", v)
		id, _ := g.joined(group, "range")
		req := leaving(v, group, "cf-stranger", id, id)
		req.Members = append(req.Members, message.MemberIdentity{GroupInstanceId: new("nobody")}, message.MemberIdentity{MemberId: id, GroupInstanceId: new("nobody")})
		if v >= 5 {
			req.Members[1].Reason = new("because")
		}
		g.ask("some", v, req)
		g.ask("none", v, &message.LeaveGroupRequest{GroupId: group, Members: []message.MemberIdentity{}})
	}
}

// rebalancing waits, by heartbeats without a line, until a member would hear of a rebalance.
func (g *groupTalk) rebalancing(group, member string, generation int32) {
	g.t.Helper()
	g.until(func() bool {
		return g.quiet(3, beat(group, member, generation)).(*message.HeartbeatResponse).ErrorCode == 27
	})
}
