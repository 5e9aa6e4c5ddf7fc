package group

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// offsetCommit is OffsetCommit, or TxnOffsetCommit in the same form.
type offsetCommit struct {
	*message.OffsetCommitRequest
	version int16
	byID    bool                  // topics are named by id
	txn     *coordinator.TxnBatch // nil for OffsetCommit
}

// commitOffsets answers OffsetCommit.
func (m *Machine) commitOffsets(now time.Time, r coordinator.Request, req *message.OffsetCommitRequest, out *coordinator.Result) {
	out.Reply(r.Ticket, m.commit(now, &offsetCommit{OffsetCommitRequest: req, version: r.Version, byID: r.Version >= 10}, out))
}

// commit proposes offsets. First each topic and partition is looked up; what is not there does not reach the group. Then
// the group decides about the rest as a whole: may this member commit? Last each metadata string is measured.
//
// Topics that are refused come first in the answer, as in Apache Kafka's.
func (m *Machine) commit(now time.Time, req *offsetCommit, out *coordinator.Result) *message.OffsetCommitResponse {
	var refused, taken []message.OffsetCommitResponseTopic
	var commits []commit
	for i := range req.Topics {
		t := &req.Topics[i]
		known := m.topic(t.Name, t.TopicId)
		answer := message.OffsetCommitResponseTopic{Name: t.Name, TopicId: t.TopicId}
		var bad []message.OffsetCommitResponsePartition
		for j := range t.Partitions {
			p := &t.Partitions[j]
			switch {
			case known == nil && req.byID:
				bad = append(bad, message.OffsetCommitResponsePartition{PartitionIndex: p.PartitionIndex, ErrorCode: int16(errcode.UnknownTopicId)})
			case !m.hasPartition(known, p.PartitionIndex):
				bad = append(bad, message.OffsetCommitResponsePartition{PartitionIndex: p.PartitionIndex, ErrorCode: int16(errcode.UnknownTopicOrPartition)})
			default:
				answer.Partitions = append(answer.Partitions, message.OffsetCommitResponsePartition{PartitionIndex: p.PartitionIndex})
				commits = append(commits, commit{topic: known, partition: p})
			}
		}
		switch {
		case len(answer.Partitions) > 0:
			answer.Partitions = append(bad, answer.Partitions...)
			taken = append(taken, answer)
		case len(bad) > 0: // a topic without partitions is not in the answer
			answer.Partitions = bad
			refused = append(refused, answer)
		}
	}
	resp := &message.OffsetCommitResponse{Topics: append(refused, taken...)}
	if len(commits) > 0 {
		m.commitKnown(now, req, commits, resp, out)
	}
	return resp
}

// commit is one partition of a request whose topic is known.
type commit struct {
	topic     *image.Topic
	partition *message.OffsetCommitRequestPartition
}

func (m *Machine) commitKnown(now time.Time, req *offsetCommit, commits []commit, resp *message.OffsetCommitResponse, out *coordinator.Result) {
	codes := make(map[commitKey]errcode.Code)
	code := m.mayCommit(now, req, commits)
	out.Txn = req.txn
	for _, c := range commits {
		p := c.partition
		metadata := ""
		if p.CommittedMetadata != nil {
			metadata = *p.CommittedMetadata
		}
		result := code
		if result == errcode.None && len(metadata) > m.set.maxMetadata {
			result = errcode.OffsetMetadataTooLarge
		}
		if codes[commitKey{c.topic.ID, p.PartitionIndex}] = result; result != errcode.None {
			continue
		}
		v := logrecord.NewOffsetCommitValue()
		v.Offset, v.LeaderEpoch, v.Metadata = p.CommittedOffset, p.CommittedLeaderEpoch, metadata
		v.CommitTimestamp, v.TopicId = now.UnixMilli(), c.topic.ID
		version := int16(4)
		if req.RetentionTimeMs >= 0 && req.version >= 2 && req.version <= 4 {
			// Only version 1 of the record can say when an offset expires.
			v.ExpireTimestamp, v.TopicId, v.LeaderEpoch, version = now.UnixMilli()+req.RetentionTimeMs, wire.UUID{}, -1, 1
		}
		out.Record(&logrecord.OffsetCommitKey{Group: req.GroupId, Topic: c.topic.Name, Partition: p.PartitionIndex}, v, version)
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		known := m.topic(t.Name, t.TopicId)
		for j := range t.Partitions {
			if p := &t.Partitions[j]; p.ErrorCode == 0 && known != nil {
				p.ErrorCode = int16(codes[commitKey{known.ID, p.PartitionIndex}])
			}
		}
	}
}

type commitKey struct {
	topic     wire.UUID
	partition int32
}

// mayCommit says whether a member may commit. Whoever commits has been heard of, but not whose transaction does.
func (m *Machine) mayCommit(now time.Time, req *offsetCommit, commits []commit) errcode.Code {
	g := m.groups[req.GroupId]
	if req.txn != nil && m.o.Bugs.Has(bug.GenerationUnchecked) {
		return errcode.None
	}
	if g == nil {
		switch {
		case req.GenerationIdOrMemberEpoch < 0:
			return errcode.None // a group that only stores offsets; its first record makes it
		case req.txn == nil && req.version >= 9, req.txn != nil && req.version >= txnErrors848:
			return errcode.GroupIdNotFound
		}
		return errcode.IllegalGeneration
	}
	if g.consumer != nil {
		code := m.mayCommitConsumer(g, req, commits)
		if req.txn != nil && code == errcode.StaleMemberEpoch && req.version < txnErrors848 {
			return errcode.IllegalGeneration
		}
		return code
	}
	c := g.classic
	code := c.mayCommit(req.MemberId, req.GroupInstanceId, req.GenerationIdOrMemberEpoch, req.txn != nil)
	if member := c.member(req.MemberId); code == errcode.None && member != nil && req.txn == nil {
		m.heardOf(now, g, member)
	}
	return code
}

// mayCommit are the rules of a classic group. A rebalance stops commits only from the moment on when the new generation
// has its id (CompletingRebalance); before, members commit what they are about to give up. Those of a transaction it does
// not stop at all, and they may come without a member (before KIP-447 they had none).
func (c *classicGroup) mayCommit(member string, instance *string, generation int32, txn bool) errcode.Code {
	if generation < 0 && c.state == Empty {
		return errcode.None // from an admin client, or a consumer without group management
	}
	switch {
	case generation >= 0 || member != "" || instance != nil:
		if code := c.validate(member, instance); code != errcode.None {
			return code
		}
		if generation != c.generation {
			return errcode.IllegalGeneration
		}
	case c.state != Empty && !txn:
		return errcode.UnknownMemberId
	}
	if c.state == CompletingRebalance && !txn {
		return errcode.RebalanceInProgress
	}
	return errcode.None
}
