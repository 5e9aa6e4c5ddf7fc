package interop

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// consuming is a heartbeat of the consumer protocol: one that joins (epoch 0) or brings news says everything.
func consuming(group, member string, epoch int32, topics ...string) *message.ConsumerGroupHeartbeatRequest {
	req := message.NewConsumerGroupHeartbeatRequest()
	req.GroupId, req.MemberId, req.MemberEpoch = group, member, epoch
	if len(topics) > 0 {
		req.SubscribedTopicNames, req.RebalanceTimeoutMs = topics, 300000
		req.TopicPartitions = []message.ConsumerGroupHeartbeatRequestTopicPartitions{}
	}
	return req
}

// owning adds what the member says that it owns.
func (g *groupTalk) owning(req *message.ConsumerGroupHeartbeatRequest, topic string, partitions ...int32) *message.ConsumerGroupHeartbeatRequest {
	req.TopicPartitions = []message.ConsumerGroupHeartbeatRequestTopicPartitions{}
	if len(partitions) > 0 {
		req.TopicPartitions = append(req.TopicPartitions, message.ConsumerGroupHeartbeatRequestTopicPartitions{TopicId: g.topicIDs[topic], Partitions: partitions})
	}
	return req
}

func describing(group string) *message.ConsumerGroupDescribeRequest {
	return &message.ConsumerGroupDescribeRequest{GroupIds: []string{group}}
}

// settle sends heartbeats without a line until the coordinator has given a member this epoch, and returns the last answer: how
// many it takes depends on when the coordinator makes the assignment.
func (g *groupTalk) settle(group, member string, epoch, wanted int32) *message.ConsumerGroupHeartbeatResponse {
	g.t.Helper()
	var resp *message.ConsumerGroupHeartbeatResponse
	g.until(func() bool {
		resp = g.quiet(1, consuming(group, member, epoch)).(*message.ConsumerGroupHeartbeatResponse)
		epoch = resp.MemberEpoch
		return resp.ErrorCode != 0 || epoch >= wanted
	})
	return resp
}

// known makes a topic and waits until the group coordinator knows of it, which in Apache Kafka takes a while longer than with
// everybody else: until a member of a group that is for that alone is given its partitions.
func (g *groupTalk) known(topic string, partitions int32) {
	g.t.Helper()
	g.create(topic, partitions)
	g.seen(topic, partitions)
}

// seen waits for that with a topic that is there already; an older one of the name does not count.
func (g *groupTalk) seen(topic string, partitions int32) {
	g.t.Helper()
	looked := 0
	eventually(g.t, "the group coordinator knows "+topic, func() bool {
		looked++
		group := fmt.Sprint("cf-look-", topic, "-", looked)
		resp := g.quiet(1, consuming(group, "cf-look", 0, topic)).(*message.ConsumerGroupHeartbeatResponse)
		g.quiet(1, consuming(group, "cf-look", -1))
		g.quiet(2, &message.DeleteGroupsRequest{GroupsNames: []string{group}})
		if resp.Assignment == nil || len(resp.Assignment.TopicPartitions) != 1 {
			return false
		}
		given := resp.Assignment.TopicPartitions[0]
		id, known := g.topicIDs[topic]
		return len(given.Partitions) == int(partitions) && (!known || given.TopicId == id)
	})
}

func consumerVersions(g *groupTalk) {
	g.known("cf-groups", 3)
	for _, v := range versions(wire.KeyConsumerGroupHeartbeat) {
		group := fmt.Sprint("cf-consumer-", v)
		member := ""
		if v >= 1 {
			member = "cf-me"
		}
		resp := g.ask("joins", v, consuming(group, member, 0, "cf-groups")).(*message.ConsumerGroupHeartbeatResponse)
		member = *resp.MemberId
		epoch := resp.MemberEpoch
		g.ask("describe", v, describing(group))
		g.ask("owns", v, g.owning(consuming(group, member, epoch), "cf-groups", 0, 1, 2))
		g.ask("nothing new", v, consuming(group, member, epoch))
		g.ask("everything again", v, g.owning(consuming(group, member, epoch, "cf-groups"), "cf-groups", 0, 1, 2))
		g.ask("joins again", v, consuming(group, member, 0, "cf-groups"))
		g.ask("an epoch ahead", v, consuming(group, member, epoch+5))
		g.ask("an epoch behind", v, consuming(group, member, epoch-1))
		g.ask("a stranger", v, consuming(group, "cf-stranger", epoch))
		g.ask("describe", v, describing(group))
		g.ask("another topic", v, consuming(group, member, epoch, "cf-groups", "cf-absent"))
		g.ask("leaves", v, consuming(group, member, -1))
		g.ask("leaves again", v, consuming(group, member, -1))
		g.ask("describe the empty", v, describing(group))
	}
}

func heartbeatErrors(g *groupTalk) {
	g.known("cf-groups", 3)
	for _, v := range versions(wire.KeyConsumerGroupHeartbeat) {
		group := fmt.Sprint("cf-wrong-", v)
		try := func(label string, change func(*message.ConsumerGroupHeartbeatRequest)) {
			req := consuming(group, "cf-me", 0, "cf-groups")
			change(req)
			g.ask(label, v, req)
		}
		try("no group", func(r *message.ConsumerGroupHeartbeatRequest) { r.GroupId = "" })
		try("a blank group", func(r *message.ConsumerGroupHeartbeatRequest) { r.GroupId = "   " })
		try("epoch -3", func(r *message.ConsumerGroupHeartbeatRequest) { r.MemberEpoch = -3 })
		try("leaving for a while without an instance", func(r *message.ConsumerGroupHeartbeatRequest) { r.MemberEpoch = -2 })
		try("no rebalance timeout", func(r *message.ConsumerGroupHeartbeatRequest) { r.RebalanceTimeoutMs = -1 })
		try("no topics", func(r *message.ConsumerGroupHeartbeatRequest) { r.SubscribedTopicNames = nil })
		try("owning before joining", func(r *message.ConsumerGroupHeartbeatRequest) { g.owning(r, "cf-groups", 1) })
		try("no word of what it owns", func(r *message.ConsumerGroupHeartbeatRequest) { r.TopicPartitions = nil })
		try("an empty instance", func(r *message.ConsumerGroupHeartbeatRequest) { r.InstanceId = new("") })
		try("an empty rack", func(r *message.ConsumerGroupHeartbeatRequest) { r.RackId = new("") })
		try("an assignor that nobody has", func(r *message.ConsumerGroupHeartbeatRequest) { r.ServerAssignor = new("mine") })
		try("an empty assignor", func(r *message.ConsumerGroupHeartbeatRequest) { r.ServerAssignor = new("") })
		try("a member of no such group", func(r *message.ConsumerGroupHeartbeatRequest) { r.MemberEpoch = 4 })
		try("leaving no such group", func(r *message.ConsumerGroupHeartbeatRequest) { r.MemberEpoch = -1 })
		if v >= 1 {
			try("no member", func(r *message.ConsumerGroupHeartbeatRequest) { r.MemberId = "" })
			try("an expression that is none", func(r *message.ConsumerGroupHeartbeatRequest) { r.SubscribedTopicRegex = new("a(b") })
			try("names and an expression", func(r *message.ConsumerGroupHeartbeatRequest) {
				r.GroupId, r.SubscribedTopicRegex = group+"-both", new("cf-nothing-like-this")
			})
		}
		try("no topics at all", func(r *message.ConsumerGroupHeartbeatRequest) { r.SubscribedTopicNames = []string{} })
		g.ask("what is left of it", v, describing(group))
	}
}

// handingOver has a second member, for which the first gives partitions up.
func handingOver(g *groupTalk) {
	g.known("cf-hand", 4)
	group := "cf-hand"
	first := g.ask("first", 1, consuming(group, "cf-a", 0, "cf-hand")).(*message.ConsumerGroupHeartbeatResponse)
	g.ask("first owns", 1, g.owning(consuming(group, "cf-a", first.MemberEpoch), "cf-hand", 0, 1, 2, 3))
	second := g.ask("second waits", 1, consuming(group, "cf-b", 0, "cf-hand")).(*message.ConsumerGroupHeartbeatResponse)
	g.ask("describe", 1, describing(group))
	told := g.ask("first hears of it", 1, consuming(group, "cf-a", first.MemberEpoch)).(*message.ConsumerGroupHeartbeatResponse)
	g.ask("first has not given up yet", 1, consuming(group, "cf-a", told.MemberEpoch))
	g.ask("second still waits", 1, consuming(group, "cf-b", second.MemberEpoch))
	require.NotNil(g.t, told.Assignment)
	kept := told.Assignment.TopicPartitions[0].Partitions
	gave := g.ask("first has given up", 1, g.owning(consuming(group, "cf-a", told.MemberEpoch), "cf-hand", kept...)).(*message.ConsumerGroupHeartbeatResponse)
	g.ask("second has it", 1, consuming(group, "cf-b", second.MemberEpoch))
	g.ask("describe", 1, describing(group))
	g.ask("second goes", 1, consuming(group, "cf-b", -1))
	g.ask("first has all", 1, consuming(group, "cf-a", gave.MemberEpoch))
	g.ask("describe", 1, describing(group))
}

func staticConsumers(g *groupTalk) {
	g.known("cf-static", 2)
	static := func(member string, epoch int32, topics ...string) *message.ConsumerGroupHeartbeatRequest {
		req := consuming("cf-still", member, epoch, topics...)
		req.InstanceId = new("one")
		return req
	}
	first := g.ask("first", 1, static("cf-a", 0, "cf-static")).(*message.ConsumerGroupHeartbeatResponse)
	g.ask("another of its name", 1, static("cf-b", 0, "cf-static"))
	g.ask("away for a while", 1, static("cf-a", -2))
	g.ask("describe", 1, describing("cf-still"))
	g.ask("back as another", 1, static("cf-b", 0, "cf-static"))
	g.ask("its old self", 1, static("cf-a", first.MemberEpoch))
	g.ask("a stranger under its name", 1, static("cf-c", first.MemberEpoch))
	g.ask("describe", 1, describing("cf-still"))
	other := static("cf-d", 0, "cf-static")
	other.InstanceId = new("two")
	g.quiet(1, other)
	g.ask("for good", 1, static("cf-b", -1))
	g.ask("describe", 1, describing("cf-still"))
}

func subscribingByExpression(g *groupTalk) {
	g.known("cf-rx-one", 1)
	g.known("cf-rx-two", 1)
	req := consuming("cf-rx", "cf-a", 0, "x")
	req.SubscribedTopicNames, req.SubscribedTopicRegex = nil, new("cf-rx-(one|two)")
	first := g.quiet(1, req).(*message.ConsumerGroupHeartbeatResponse) // Apache Kafka looks for topics meanwhile
	epoch := first.MemberEpoch
	g.until(func() bool {
		resp := g.quiet(1, consuming("cf-rx", "cf-a", epoch)).(*message.ConsumerGroupHeartbeatResponse)
		epoch = resp.MemberEpoch
		d := g.quiet(1, describing("cf-rx")).(*message.ConsumerGroupDescribeResponse)
		return len(d.Groups[0].Members) == 1 && len(d.Groups[0].Members[0].Assignment.TopicPartitions) == 2
	})
	d := g.quiet(1, describing("cf-rx")).(*message.ConsumerGroupDescribeResponse).Groups[0].Members[0]
	g.transcript = append(g.transcript, fmt.Sprint("described: ", deref(d.SubscribedTopicRegex), d.SubscribedTopicNames, targets(d.Assignment)))
	none := consuming("cf-rx-none", "cf-a", 0, "x")
	none.SubscribedTopicNames, none.SubscribedTopicRegex = nil, new("cf-nothing-like-this")
	g.ask("nothing matches", 1, none)
}

func serverAssignors(g *groupTalk) {
	g.known("cf-assign", 5)
	g.known("cf-assign-more", 2)
	for _, name := range []string{"uniform", "range"} {
		group := "cf-assign-" + name
		epochs := make([]int32, 3)
		beat := func(i int, req *message.ConsumerGroupHeartbeatRequest) {
			epochs[i] = g.quiet(1, req).(*message.ConsumerGroupHeartbeatResponse).MemberEpoch
		}
		member := func(i int) string { return fmt.Sprint("cf-", i) }
		for i := range epochs {
			req := consuming(group, member(i), 0, "cf-assign", "cf-assign-more")
			req.ServerAssignor = &name
			beat(i, req)
		}
		var d message.ConsumerGroupDescribeResponseDescribedGroup
		g.until(func() bool { // the target is made with a heartbeat some time after the last has joined
			for i := range epochs {
				beat(i, consuming(group, member(i), epochs[i]))
			}
			d = g.quiet(1, describing(group)).(*message.ConsumerGroupDescribeResponse).Groups[0]
			return d.AssignmentEpoch == d.GroupEpoch
		})
		for _, m := range d.Members { // uniform has ties: who has how much is told, range's who has which
			count := 0
			for _, tp := range m.TargetAssignment.TopicPartitions {
				count += len(tp.Partitions)
			}
			if name == "uniform" {
				require.InDelta(g.t, 7.0/3, count, 1, m.MemberId)
			} else {
				g.transcript = append(g.transcript, fmt.Sprint(m.MemberId, " ", targets(m.TargetAssignment)))
			}
		}
	}
	slices.Sort(g.transcript)
}

// targets lists an assignment by topic.
func targets(a message.ConsumerGroupDescribeResponseAssignment) (list []string) {
	for _, tp := range a.TopicPartitions {
		list = append(list, fmt.Sprint(tp.TopicName, tp.Partitions))
	}
	slices.Sort(list)
	return list
}

// assignment is a member's part as Kafka's consumers write it.
func assignment(topic string, partitions ...int32) []byte {
	a := message.ConsumerProtocolAssignment{AssignedPartitions: []message.ConsumerProtocolAssignmentTopicPartition{{Topic: topic, Partitions: partitions}}}
	b, err := a.AppendTo(binary.BigEndian.AppendUint16(nil, 1), 1)
	if err != nil {
		panic(err)
	}
	return b
}

// protocolsInTurn has members of both protocols come to the same group.
func protocolsInTurn(g *groupTalk) {
	g.known("cf-groups", 2)
	id, gen := g.joined("cf-malformed", "range") // its share is no assignment as consumers have it
	g.ask("consumer joins a malformed group", 1, consuming("cf-malformed", "cf-a", 0, "cf-groups"))
	g.ask("it goes on", 4, beat("cf-malformed", id, gen))
	g.ask("consumer leaves a classic group", 1, consuming("cf-malformed", "cf-a", -1))
	g.ask("consumer beats in a classic group", 1, consuming("cf-malformed", "cf-a", 3))
	connect := join("cf-connecting", "", "range")
	connect.ProtocolType = "connect"
	g.quiet(3, connect)
	g.ask("consumer joins another type", 1, consuming("cf-connecting", "cf-a", 0, "cf-groups"))

	id, gen = g.joined("cf-up", "range")
	g.quiet(3, join("cf-up", id, "range"))
	gen++
	g.quiet(3, syncing("cf-up", id, gen, id, string(assignment("cf-groups", 0, 1))))
	g.ask("consumer joins a classic member", 1, consuming("cf-up", "cf-a", 0, "cf-groups"))
	g.ask("classic member lives", 4, beat("cf-up", id, gen))
	g.ask("classic describe", 6, &message.DescribeGroupsRequest{Groups: []string{"cf-up"}})
	g.ask("classic member leaves", 5, leaving(5, "cf-up", id))
	g.ask("consumer member leaves", 1, consuming("cf-up", "cf-a", -1))

	g.quiet(1, consuming("cf-down", "cf-a", 0, "cf-groups"))
	g.ask("a classic member with another protocol type", 9, func() *message.JoinGroupRequest {
		r := join("cf-down", "", "range")
		r.ProtocolType = "connect"
		return r
	}())
	g.ask("classic heartbeat", 4, beat("cf-down", "cf-a", 1))
	g.ask("classic sync", 5, syncing("cf-down", "cf-a", 1))
	g.ask("classic leave", 5, leaving(5, "cf-down", "cf-a", "cf-stranger"))
	g.ask("classic describe", 6, &message.DescribeGroupsRequest{Groups: []string{"cf-down"}})
	g.ask("is empty", 1, describing("cf-down"))
	resp := g.ask("empty, it takes a classic member", 3, join("cf-down", "", "range")).(*message.JoinGroupResponse)
	g.ask("its part", 3, syncing("cf-down", resp.MemberId, resp.GenerationId, resp.MemberId, "all"))
	g.ask("it is classic", 6, &message.DescribeGroupsRequest{Groups: []string{"cf-down"}})
	g.ask("it is no consumer group", 1, describing("cf-down"))
	g.quiet(5, leaving(5, "cf-down", resp.MemberId))
	g.ask("empty, it takes a consumer", 1, consuming("cf-down", "cf-a", 0, "cf-groups"))
}

// consumerOffsets commits and fetches with member ids and epochs.
func consumerOffsets(g *groupTalk) {
	g.known("cf-epochs", 2)
	resp := g.quiet(1, consuming("cf-epochs", "cf-a", 0, "cf-epochs")).(*message.ConsumerGroupHeartbeatResponse)
	for _, v := range versions(wire.KeyOffsetCommit) {
		g.ask("its own", v, g.committing(v, "cf-epochs", "cf-a", resp.MemberEpoch, "cf-epochs", int64(v)))
		g.ask("an epoch ahead", v, g.committing(v, "cf-epochs", "cf-a", resp.MemberEpoch+1, "cf-epochs", 100))
		g.ask("an epoch behind", v, g.committing(v, "cf-epochs", "cf-a", resp.MemberEpoch-1, "cf-epochs", 100))
		g.ask("a stranger", v, g.committing(v, "cf-epochs", "cf-stranger", resp.MemberEpoch, "cf-epochs", 100))
		g.ask("nobody", v, g.committing(v, "cf-epochs", "", -1, "cf-epochs", 100))
	}
	for w := int16(8); w <= 10; w++ {
		for _, who := range []struct {
			label  string
			member *string
			epoch  int32
		}{
			{"nobody", nil, -1}, {"itself", new("cf-a"), resp.MemberEpoch}, {"an epoch behind", new("cf-a"), resp.MemberEpoch - 1},
			{"an epoch ahead", new("cf-a"), resp.MemberEpoch + 1}, {"a stranger", new("cf-stranger"), resp.MemberEpoch},
			{"no epoch", new("cf-a"), -1}, {"no id", new(""), resp.MemberEpoch},
		} {
			req := g.fetching(w, "cf-epochs", "cf-epochs", 0, 1)
			if w >= 9 {
				req.Groups[0].MemberId, req.Groups[0].MemberEpoch = who.member, who.epoch
			}
			g.ask(who.label, w, req)
		}
	}
	g.ask("forget what it reads", 0, deleting("cf-epochs", "cf-epochs", 0))
	g.ask("forget the absent", 0, deleting("cf-epochs", "cf-absent", 0))
}
