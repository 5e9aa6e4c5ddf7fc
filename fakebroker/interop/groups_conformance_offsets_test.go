package interop

import (
	"fmt"
	"strings"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// until asks again until something holds.
func (g *groupTalk) until(holds func() bool) {
	g.t.Helper()
	eventually(g.t, "what the scenario waits for", holds)
}

// committing is a commit of offset 10 and up for partitions 0 and up of a topic.
func (g *groupTalk) committing(version int16, group, member string, generation int32, topic string, offsets ...int64) *message.OffsetCommitRequest {
	req := message.NewOffsetCommitRequest()
	req.GroupId, req.MemberId, req.GenerationIdOrMemberEpoch = group, member, generation
	t := message.OffsetCommitRequestTopic{Name: topic}
	if version >= 10 {
		t = message.OffsetCommitRequestTopic{TopicId: g.topicIDs[topic]}
	}
	for p, offset := range offsets {
		part := message.OffsetCommitRequestPartition{PartitionIndex: int32(p), CommittedOffset: offset, CommittedLeaderEpoch: -1}
		part.CommittedMetadata = new(fmt.Sprint("text ", offset))
		t.Partitions = append(t.Partitions, part)
	}
	req.Topics = []message.OffsetCommitRequestTopic{t}
	return req
}

// fetching asks for committed offsets of partitions of a topic; without any for all that there are.
func (g *groupTalk) fetching(version int16, group, topic string, partitions ...int32) *message.OffsetFetchRequest {
	req := message.NewOffsetFetchRequest()
	if version >= 8 {
		of := message.OffsetFetchRequestGroup{GroupId: group, MemberEpoch: -1}
		if partitions != nil {
			t := message.OffsetFetchRequestTopics{Name: topic, PartitionIndexes: partitions}
			if version >= 10 {
				t.Name, t.TopicId = "", g.topicIDs[topic]
			}
			of.Topics = []message.OffsetFetchRequestTopics{t}
		}
		req.Groups = []message.OffsetFetchRequestGroup{of}
		return req
	}
	req.GroupId = group
	if partitions != nil {
		req.Topics = []message.OffsetFetchRequestTopic{{Name: topic, PartitionIndexes: partitions}}
	} else if version < 2 {
		req.Topics = []message.OffsetFetchRequestTopic{}
	}
	return req
}

func offsetsInVersions(g *groupTalk) {
	g.create("cf-offsets", 3)
	for _, v := range versions(wire.KeyOffsetCommit) {
		group := fmt.Sprint("cf-offsets-", v)
		g.ask("nobody's", v, g.committing(v, group, "", -1, "cf-offsets", 10, 11))
		for _, w := range versions(wire.KeyOffsetFetch) {
			g.ask("some", w, g.fetching(w, group, "cf-offsets", 1, 0, 2, 9))
			g.ask("all", w, g.fetching(w, group, ""))
			if w >= 7 {
				req := g.fetching(w, group, "cf-offsets", 0)
				req.RequireStable = true
				g.ask("stable ones", w, req)
			}
		}
		member := group + "-member"
		id, gen := g.joined(member, "range")
		commit := g.committing(v, member, id, gen, "cf-offsets", 20, 21, 22)
		commit.Topics[0].Partitions[1].CommittedMetadata = nil
		if v >= 6 {
			commit.Topics[0].Partitions[2].CommittedLeaderEpoch = 7
		}
		if v <= 4 {
			commit.RetentionTimeMs = 3600_000
		}
		g.ask("a member's", v, commit)
		g.ask("what it wrote", at(wire.KeyOffsetFetch, v), g.fetching(at(wire.KeyOffsetFetch, v), member, "cf-offsets", 0, 1, 2))
	}
	for w := int16(8); w <= 10; w++ {
		req := g.fetching(w, "cf-offsets-2", "cf-offsets", 0)
		req.Groups = append(req.Groups, g.fetching(w, "cf-offsets-3", "").Groups[0], g.fetching(w, "cf-nowhere", "cf-offsets", 0).Groups[0])
		g.ask("three groups", w, req)
		req = message.NewOffsetFetchRequest()
		req.Groups = []message.OffsetFetchRequestGroup{}
		g.ask("no groups", w, req)
	}
}

func refusedCommits(g *groupTalk) {
	g.create("cf-refusals", 2)
	id, gen := g.joined("cf-refusals", "range")
	for _, v := range versions(wire.KeyOffsetCommit) {
		commit := func(label, group, member string, generation int32, change func(*message.OffsetCommitRequest)) {
			req := g.committing(v, group, member, generation, "cf-refusals", 5)
			if change != nil {
				change(req)
			}
			g.ask(label, v, req)
		}
		part := func(change func(*message.OffsetCommitRequestPartition)) func(*message.OffsetCommitRequest) {
			return func(r *message.OffsetCommitRequest) { change(&r.Topics[0].Partitions[0]) }
		}
		commit("no group", "", "", -1, nil)
		commit("a stranger", "cf-refusals", "cf-stranger", gen, nil)
		commit("nobody while there are members", "cf-refusals", "", -1, nil)
		commit("the next generation", "cf-refusals", id, gen+1, nil)
		commit("no generation", "cf-refusals", id, -1, nil)
		commit("a generation of no group", "cf-nowhere", "cf-stranger", 1, nil)
		commit("a member of no group", "cf-nowhere", "cf-stranger", -1, nil)
		commit("too much text", "cf-refusals", id, gen, part(func(p *message.OffsetCommitRequestPartition) {
			p.CommittedMetadata = new(strings.Repeat("x", 4097))
		}))
		commit("just enough text", "cf-refusals", id, gen, part(func(p *message.OffsetCommitRequestPartition) {
			p.CommittedMetadata = new(strings.Repeat("x", 4096))
		}))
		commit("a negative offset", "cf-refusals", id, gen, part(func(p *message.OffsetCommitRequestPartition) { p.CommittedOffset = -5 }))
		commit("no such partition", "cf-refusals", id, gen, part(func(p *message.OffsetCommitRequestPartition) { p.PartitionIndex = 9 }))
		commit("no topics", "cf-refusals", id, gen, func(r *message.OffsetCommitRequest) { r.Topics = nil })
		commit("no partitions", "cf-refusals", id, gen, func(r *message.OffsetCommitRequest) { r.Topics[0].Partitions = nil })
		if v < 10 {
			commit("one topic of two", "cf-refusals", id, gen, func(r *message.OffsetCommitRequest) {
				r.Topics = append(r.Topics, message.OffsetCommitRequestTopic{Name: "cf-absent", Partitions: r.Topics[0].Partitions})
			})
		} else {
			commit("one topic of two", "cf-refusals", id, gen, func(r *message.OffsetCommitRequest) {
				r.Topics = append(r.Topics, message.OffsetCommitRequestTopic{TopicId: wire.UUID{9}, Partitions: r.Topics[0].Partitions})
			})
		}
		if v >= 7 {
			commit("an instance that it is not", "cf-refusals", id, gen, func(r *message.OffsetCommitRequest) { r.GroupInstanceId = new("one") })
		}
	}
	g.ask("what is there", 9, g.fetching(9, "cf-refusals", ""))
}

func absentOffsets(g *groupTalk) {
	g.create("cf-known", 1)
	for _, w := range versions(wire.KeyOffsetFetch) {
		g.ask("no such group", w, g.fetching(w, "cf-nowhere", "cf-known", 0))
		g.ask("all of no such group", w, g.fetching(w, "cf-nowhere", ""))
		g.ask("no group", w, g.fetching(w, "", "cf-known", 0))
		if w < 10 {
			g.ask("no such topic", w, g.fetching(w, "cf-nowhere", "cf-absent", 0, 1))
		} else {
			req := g.fetching(w, "cf-nowhere", "cf-known", 0, 1)
			req.Groups[0].Topics[0].TopicId = wire.UUID{9}
			g.ask("no such topic", w, req)
		}
		g.ask("no partitions", w, g.fetching(w, "cf-nowhere", "cf-known", []int32{}...))
	}
	for w := int16(9); w <= 10; w++ {
		req := g.fetching(w, "cf-nowhere", "cf-known", 0)
		req.Groups[0].MemberId, req.Groups[0].MemberEpoch = new("cf-stranger"), 3
		g.ask("a member of no such group", w, req)
	}
}

// deleting asks to forget offsets of partitions of a topic.
func deleting(group, topic string, partitions ...int32) *message.OffsetDeleteRequest {
	t := message.OffsetDeleteRequestTopic{Name: topic}
	for _, p := range partitions {
		t.Partitions = append(t.Partitions, message.OffsetDeleteRequestPartition{PartitionIndex: p})
	}
	return &message.OffsetDeleteRequest{GroupId: group, Topics: []message.OffsetDeleteRequestTopic{t}}
}

func deletingOffsets(g *groupTalk) {
	g.create("cf-groups", 2)
	g.create("cf-unread", 2)
	g.ask("no such group", 0, deleting("cf-nowhere", "cf-unread", 0))
	g.ask("no group", 0, deleting("", "cf-unread", 0))
	g.quiet(8, g.committing(8, "cf-forget", "", -1, "cf-unread", 1, 2))
	g.ask("a simple group's", 0, deleting("cf-forget", "cf-unread", 0, 5))
	g.ask("an absent topic's", 0, deleting("cf-forget", "cf-absent", 0))
	g.ask("no topics", 0, &message.OffsetDeleteRequest{GroupId: "cf-forget"})
	g.ask("what is left", 9, g.fetching(9, "cf-forget", ""))
	g.ask("the last", 0, deleting("cf-forget", "cf-unread", 1))
	g.ask("the group then", 5, &message.DescribeGroupsRequest{Groups: []string{"cf-forget"}})

	id, gen := g.joined("cf-reading", "range")
	for _, topic := range []string{"cf-groups", "cf-unread"} {
		g.quiet(8, g.committing(8, "cf-reading", id, gen, topic, 1, 2))
		g.ask("while it has a member: "+topic, 0, deleting("cf-reading", topic, 0))
	}
	connect := join("cf-connect", "", "range")
	connect.ProtocolType = "connect"
	resp := g.quiet(3, connect).(*message.JoinGroupResponse)
	g.quiet(8, g.committing(8, "cf-connect", resp.MemberId, resp.GenerationId, "cf-unread", 1, 2))
	g.ask("another protocol type, with a member", 0, deleting("cf-connect", "cf-unread", 0))
	g.ask("what is left of both", 9, g.fetching(9, "cf-reading", ""))
	g.ask("what is left of both", 9, g.fetching(9, "cf-connect", ""))
}

func listingGroups(g *groupTalk) {
	g.known("cf-groups", 2)
	id, _ := g.joined("cf-list-stable", "range")
	other, _ := g.joined("cf-list-empty", "range")
	g.quiet(5, leaving(5, "cf-list-empty", other))
	g.quiet(8, g.committing(8, "cf-list-simple", "", -1, "cf-groups", 1))
	g.quiet(1, consuming("cf-list-consumer", "cf-list-consumer-member", 0, "cf-groups"))
	mine := func(label string, v int16, req *message.ListGroupsRequest) { // of this scenario alone
		resp := g.exchange(v, req).(*message.ListGroupsResponse)
		kept := resp.Groups[:0]
		for _, group := range resp.Groups {
			if strings.HasPrefix(group.GroupId, "cf-list-") {
				kept = append(kept, group)
			}
		}
		resp.Groups = kept
		g.take(label, v, req, resp)
	}
	for _, v := range versions(wire.KeyListGroups) {
		mine("all", v, message.NewListGroupsRequest())
		if v < 4 {
			continue
		}
		for _, states := range [][]string{{"Stable"}, {"stable", "EMPTY"}, {"Assigning"}, {"Dead"}, {"nonsense"}, {"nonsense", "Empty"}, {"CompletingRebalance"}} {
			mine(fmt.Sprint("states ", states), v, &message.ListGroupsRequest{StatesFilter: states})
			if v >= 5 {
				mine(fmt.Sprint("classic and ", states), v, &message.ListGroupsRequest{StatesFilter: states, TypesFilter: []string{"Classic"}})
			}
		}
		if v >= 5 {
			for _, types := range [][]string{{"classic"}, {"Consumer"}, {"consumer", "CLASSIC"}, {"share"}, {"streams"}, {"nonsense"}, {"unknown"}} {
				mine(fmt.Sprint("types ", types), v, &message.ListGroupsRequest{TypesFilter: types})
			}
		}
	}
	for _, v := range versions(wire.KeyDescribeGroups) {
		for _, with := range []bool{false, true} {
			if with && v < 3 {
				continue
			}
			req := &message.DescribeGroupsRequest{IncludeAuthorizedOperations: with,
				Groups: []string{"cf-list-stable", "cf-list-empty", "cf-list-simple", "cf-list-consumer", "cf-nowhere", ""}}
			g.ask(fmt.Sprint("operations ", with), v, req)
		}
		g.ask("twice", v, &message.DescribeGroupsRequest{Groups: []string{"cf-list-empty", "cf-list-empty"}})
		g.ask("none", v, &message.DescribeGroupsRequest{Groups: []string{}})
	}
	for _, v := range versions(wire.KeyConsumerGroupDescribe) {
		for _, with := range []bool{false, true} {
			g.ask(fmt.Sprint("operations ", with), v, &message.ConsumerGroupDescribeRequest{IncludeAuthorizedOperations: with,
				GroupIds: []string{"cf-list-stable", "cf-list-empty", "cf-list-simple", "cf-list-consumer", "cf-nowhere", ""}})
		}
	}
	g.quiet(5, leaving(5, "cf-list-stable", id))
	g.quiet(1, consuming("cf-list-consumer", "cf-list-consumer-member", -1))
	mine("all are empty", 5, message.NewListGroupsRequest())
}

func deletingGroups(g *groupTalk) {
	g.known("cf-groups", 2)
	for _, v := range versions(wire.KeyDeleteGroups) {
		name := func(kind string) string { return fmt.Sprint("cf-delete-", kind, "-", v) }
		id, _ := g.joined(name("stable"), "range")
		g.quiet(8, g.committing(8, name("simple"), "", -1, "cf-groups", 1))
		other, gen := g.joined(name("empty"), "range")
		g.quiet(8, g.committing(8, name("empty"), other, gen, "cf-groups", 1))
		g.quiet(5, leaving(5, name("empty"), other))
		g.quiet(1, consuming(name("consumer"), name("member"), 0, "cf-groups"))
		all := []string{name("stable"), name("simple"), name("empty"), name("consumer"), "cf-nowhere", ""}
		g.ask("all kinds", v, &message.DeleteGroupsRequest{GroupsNames: all})
		g.ask("again", v, &message.DeleteGroupsRequest{GroupsNames: all})
		g.quiet(5, leaving(5, name("stable"), id))
		g.quiet(1, consuming(name("consumer"), name("member"), -1))
		g.ask("without their members", v, &message.DeleteGroupsRequest{GroupsNames: all})
		g.ask("none", v, &message.DeleteGroupsRequest{GroupsNames: []string{}})
		g.ask("their offsets", 9, g.fetching(9, name("empty"), "cf-groups", 0))
		g.ask("describe", 6, &message.DescribeGroupsRequest{Groups: all[:4]})
	}
}
