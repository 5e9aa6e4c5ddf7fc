package interop

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// committing is a commit, in the transaction, of offsets for partitions 0 and up of a topic, by nobody in the group.
func (p *txnProducer) committing(version int16, group, topic string, offsets ...int64) *message.TxnOffsetCommitRequest {
	req := message.NewTxnOffsetCommitRequest()
	req.TransactionalId, req.GroupId, req.ProducerId, req.ProducerEpoch = p.id, group, p.producer, p.epoch
	t := message.TxnOffsetCommitRequestTopic{Name: topic}
	if version >= 6 {
		t.Name, t.TopicId = "", p.g.topicIDs[topic]
	}
	for i, offset := range offsets {
		t.Partitions = append(t.Partitions, message.TxnOffsetCommitRequestPartition{PartitionIndex: int32(i), CommittedOffset: offset,
			CommittedLeaderEpoch: -1, CommittedMetadata: new(fmt.Sprint("text ", offset))})
	}
	req.Topics = []message.TxnOffsetCommitRequestTopic{t}
	return req
}

func (p *txnProducer) addingOffsets(group string) *message.AddOffsetsToTxnRequest {
	return &message.AddOffsetsToTxnRequest{TransactionalId: p.id, ProducerId: p.producer, ProducerEpoch: p.epoch, GroupId: group}
}

// committed notes what a group has for the first partitions of a topic, for those that want stable offsets and for others.
func (g *txnTalk) committed(label, group, topic string) {
	g.t.Helper()
	for _, stable := range []bool{false, true} {
		for _, v := range []int16{7, 9, 10} {
			req := g.fetching(v, group, topic, 0, 1)
			req.RequireStable = stable
			g.ask(fmt.Sprint(label, ", stable ", stable), v, req)
		}
		if stable {
			req := g.fetching(8, group, topic)
			req.RequireStable = true
			g.ask(label+", all", 8, req)
		}
	}
}

// transactionOffsets takes offsets through commits and aborts in every version.
func transactionOffsets(g *txnTalk) {
	g.known("cf-txo", 2)
	for _, v := range versions(wire.KeyTxnOffsetCommit) {
		group := fmt.Sprint("cf-txo-", v)
		p := g.starts(group)
		add := at(wire.KeyAddOffsetsToTxn, v)
		if v < 5 {
			g.ask("add", add, p.addingOffsets(group))
		}
		g.describes("added", p.id)
		g.ask("commit", v, p.committing(v, group, "cf-txo", 10, 20))
		g.describes("in it", p.id)
		g.ask("commit one again", v, p.committing(v, group, "cf-txo", 11))
		g.committed("pending", group, "cf-txo")
		p.ends(min(v, 5), true)
		g.awaitStable(group, "cf-txo")
		g.committed("committed", group, "cf-txo")
		if v < 5 {
			g.ask("add", add, p.addingOffsets(group))
		}
		g.ask("to be aborted", v, p.committing(v, group, "cf-txo", 70, 80))
		g.committed("pending", group, "cf-txo")
		plain := g.groupTalk.committing(8, group, "", -1, "cf-txo", 30)
		g.ask("a plain commit meanwhile", 8, plain)
		g.committed("pending", group, "cf-txo")
		p.ends(min(v, 5), false)
		g.awaitStable(group, "cf-txo")
		g.committed("aborted", group, "cf-txo")
		if v < 5 {
			g.ask("add", add, p.addingOffsets(group))
		}
		g.ask("in a third", v, p.committing(v, group, "cf-txo", 40))
		g.ask("a plain commit meanwhile", 8, g.groupTalk.committing(8, group, "", -1, "cf-txo", 50, 60))
		p.ends(min(v, 5), true)
		g.awaitStable(group, "cf-txo")
		g.committed("the later one counts", group, "cf-txo")
		g.ask("the group", 5, &message.DescribeGroupsRequest{Groups: []string{group}})
	}
}

// awaitStable waits until a group has no pending offsets for a topic: its coordinator has seen the marker.
func (g *txnTalk) awaitStable(group, topic string) {
	g.t.Helper()
	g.until(func() bool {
		req := g.fetching(9, group, topic, 0, 1)
		req.RequireStable = true
		resp := g.quiet(9, req).(*message.OffsetFetchResponse).Groups[0]
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode != 0 {
					return false
				}
			}
		}
		return resp.ErrorCode == 0
	})
}

func wrongTransactionOffsets(g *txnTalk) {
	g.known("cf-txo-wrong", 2)
	for _, v := range versions(wire.KeyAddOffsetsToTxn) {
		p := g.starts(fmt.Sprint("cf-txo-adds-", v))
		try := func(label string, change func(p *txnProducer)) {
			other := *p
			change(&other)
			g.ask(label, v, other.addingOffsets("cf-txo-adds"))
		}
		try("an unknown id", func(p *txnProducer) { p.id = "cf-nobody" })
		try("no id", func(p *txnProducer) { p.id = "" })
		try("another producer", func(p *txnProducer) { p.producer += 500000 })
		try("the epoch to come", func(p *txnProducer) { p.epoch++ })
		g.ask("no group", v, p.addingOffsets(""))
		g.describes("after all that", p.id)
		p.restarts(4, -1, -1)
		try("the epoch before", func(p *txnProducer) { p.epoch-- })
		g.describes("after that", p.id)
	}
	for _, v := range versions(wire.KeyTxnOffsetCommit) {
		group := fmt.Sprint("cf-txo-wrong-", v)
		p := g.starts(group)
		g.ask("nothing was added", v, p.committing(v, group, "cf-txo-wrong", 1))
		g.describes("after it", p.id)
		g.committed("after it", group, "cf-txo-wrong")
		if v < 5 {
			p.ends(3, false)
		} else {
			p.ends(5, false)
		}
		g.awaitStable(group, "cf-txo-wrong")
		g.ask("added", at(wire.KeyAddOffsetsToTxn, v), p.addingOffsets(group))
		try := func(label string, change func(p *txnProducer)) {
			other := *p
			change(&other)
			g.ask(label, v, other.committing(v, group, "cf-txo-wrong", 2))
			g.committed("after it", group, "cf-txo-wrong")
		}
		try("an unknown id", func(p *txnProducer) { p.id = "cf-nobody" })
		try("no id", func(p *txnProducer) { p.id = "" })
		try("another producer", func(p *txnProducer) { p.producer += 500000 })
		try("the epoch to come", func(p *txnProducer) { p.epoch++ })
		try("no epoch", func(p *txnProducer) { p.epoch = -1 })
		g.ask("another group", v, p.committing(v, group+"-other", "cf-txo-wrong", 3))
		g.ask("no group", v, p.committing(v, "", "cf-txo-wrong", 3))
		g.ask("an absent topic", v, p.committing(v, group, "cf-nowhere", 3))
		g.ask("an absent partition", v, p.committing(v, group, "cf-txo-wrong", 3, 4, 5))
		g.ask("no topics", v, func() *message.TxnOffsetCommitRequest {
			req := p.committing(v, group, "cf-txo-wrong")
			req.Topics = nil
			return req
		}())
		long := p.committing(v, group, "cf-txo-wrong", 6, 7)
		long.Topics[0].Partitions[0].CommittedMetadata = new(strings.Repeat("m", 5000))
		long.Topics[0].Partitions[1].CommittedMetadata = nil
		g.ask("metadata too long", v, long)
		if v >= 2 {
			epochs := p.committing(v, group, "cf-txo-wrong", -1, 1<<40)
			epochs.Topics[0].Partitions[1].CommittedLeaderEpoch = 7
			g.ask("offsets of any size", v, epochs)
		}
		g.committed("after all that", group, "cf-txo-wrong")
		g.describes("after all that", p.id)
		p.ends(3, true)
		g.awaitStable(group, "cf-txo-wrong")
		g.committed("at the end", group, "cf-txo-wrong")
	}
}

// memberTransactionOffsets are commits with the member's name on them, right and wrong, for both group protocols.
func memberTransactionOffsets(g *txnTalk) {
	g.known("cf-txo-member", 2)
	for _, v := range versions(wire.KeyTxnOffsetCommit)[3:] {
		group := fmt.Sprint("cf-txo-classic-", v)
		member, generation := g.joined(group, "range")
		p := g.starts(group)
		g.ask("added", at(wire.KeyAddOffsetsToTxn, v), p.addingOffsets(group))
		try := func(label, member string, generation int32, instance *string) {
			req := p.committing(v, group, "cf-txo-member", int64(10+generation))
			req.MemberId, req.GenerationIdOrMemberEpoch, req.GroupInstanceId = member, generation, instance
			g.ask(label, v, req)
		}
		all := func(member string, generation int32) {
			try("the member", member, generation, nil)
			try("the next generation", member, generation+1, nil)
			try("the generation before", member, generation-1, nil)
			try("no generation", member, -1, nil)
			try("a stranger", "cf-stranger", generation, nil)
			try("a stranger without a generation", "cf-stranger", -1, nil)
			try("nobody", "", generation, nil)
			try("nobody without a generation", "", -1, nil)
			try("an instance", member, generation, new("nobody"))
			try("an instance alone", "", -1, new("nobody"))
		}
		all(member, generation)
		p.ends(3, true)
		g.awaitStable(group, "cf-txo-member")
		g.committed("classic", group, "cf-txo-member")
		g.quiet(5, leaving(5, group, member))
		g.ask("added again", at(wire.KeyAddOffsetsToTxn, v), p.addingOffsets(group))
		try("who has left", member, generation, nil)
		try("nobody", "", -1, nil)
		p.ends(3, false)

		group = fmt.Sprint("cf-txo-consumer-", v)
		p.restarts(4, -1, -1)
		epoch := g.settle(group, "cf-a", g.quiet(1, consuming(group, "cf-a", 0, "cf-txo-member")).(*message.ConsumerGroupHeartbeatResponse).MemberEpoch, 1).MemberEpoch
		g.ask("added", at(wire.KeyAddOffsetsToTxn, v), p.addingOffsets(group))
		all("cf-a", epoch)
		p.ends(3, true)
		g.awaitStable(group, "cf-txo-member")
		g.committed("consumer", group, "cf-txo-member")
		g.quiet(1, consuming(group, "cf-a", -1))
		g.ask("added again", at(wire.KeyAddOffsetsToTxn, v), p.addingOffsets(group))
		try("who has left", "cf-a", epoch, nil)
		try("nobody", "", -1, nil)
		p.ends(3, false)
	}
}

// pendingGroups are groups and offsets that are deleted while offsets are pending.
func pendingGroups(g *txnTalk) {
	g.known("cf-txo-gone", 2)
	for i, commit := range []bool{true, false} {
		group := fmt.Sprint("cf-txo-gone-", i)
		p := g.starts(group)
		g.ask("add", 3, p.addingOffsets(group))
		g.ask("commit", 3, p.committing(3, group, "cf-txo-gone", 5, 6))
		g.ask("the group", 5, &message.DescribeGroupsRequest{Groups: []string{group}})
		g.ask("delete its offsets", 0, &message.OffsetDeleteRequest{GroupId: group, Topics: []message.OffsetDeleteRequestTopic{{Name: "cf-txo-gone",
			Partitions: []message.OffsetDeleteRequestPartition{{PartitionIndex: 0}, {PartitionIndex: 1}}}}})
		g.committed("offsets were deleted", group, "cf-txo-gone")
		g.ask("commit", 3, p.committing(3, group, "cf-txo-gone", 7, 8))
		g.ask("delete the group", 2, &message.DeleteGroupsRequest{GroupsNames: []string{group}})
		g.committed("the group was deleted", group, "cf-txo-gone")
		p.ends(3, commit)
		g.awaitStable(group, "cf-txo-gone")
		g.committed("at the end", group, "cf-txo-gone")
		g.ask("the group", 5, &message.DescribeGroupsRequest{Groups: []string{group}})
		require.NotContains(g.t, g.state(p.id).TransactionState, "Prepare")
	}
}
