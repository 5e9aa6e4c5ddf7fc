package group

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/message"
)

// CommitInTransaction asks to commit offsets in a producer's transaction, which whoever asks has verified with its
// coordinator: Guard is what the log gave out for that. The answer is a *message.TxnOffsetCommitResponse.
type CommitInTransaction struct {
	Request *message.TxnOffsetCommitRequest
	Guard   uint64
}

// txnErrors848 is the version of TxnOffsetCommit that knows the errors of consumer groups, and topic ids.
const txnErrors848 = 6

func (m *Machine) commitInTransaction(now time.Time, r coordinator.Request, c CommitInTransaction, out *coordinator.Result) {
	q := c.Request
	req := &offsetCommit{
		OffsetCommitRequest: &message.OffsetCommitRequest{GroupId: q.GroupId, GenerationIdOrMemberEpoch: q.GenerationIdOrMemberEpoch,
			MemberId: q.MemberId, GroupInstanceId: q.GroupInstanceId, RetentionTimeMs: -1},
		version: r.Version, byID: r.Version >= txnErrors848,
		txn: &coordinator.TxnBatch{ProducerID: q.ProducerId, ProducerEpoch: q.ProducerEpoch, Guard: c.Guard},
	}
	for i := range q.Topics {
		t := message.OffsetCommitRequestTopic{Name: q.Topics[i].Name, TopicId: q.Topics[i].TopicId}
		for _, p := range q.Topics[i].Partitions {
			t.Partitions = append(t.Partitions, message.OffsetCommitRequestPartition{PartitionIndex: p.PartitionIndex,
				CommittedOffset: p.CommittedOffset, CommittedLeaderEpoch: p.CommittedLeaderEpoch, CommittedMetadata: p.CommittedMetadata})
		}
		req.Topics = append(req.Topics, t)
	}
	committed := m.commit(now, req, out)
	resp := message.NewTxnOffsetCommitResponse()
	for i := range committed.Topics {
		t := message.TxnOffsetCommitResponseTopic{Name: committed.Topics[i].Name, TopicId: committed.Topics[i].TopicId}
		for _, p := range committed.Topics[i].Partitions {
			t.Partitions = append(t.Partitions, message.TxnOffsetCommitResponsePartition{PartitionIndex: p.PartitionIndex, ErrorCode: p.ErrorCode})
		}
		resp.Topics = append(resp.Topics, t)
	}
	out.Reply(r.Ticket, resp)
}
