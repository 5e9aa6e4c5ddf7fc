package server

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/group"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleTxnOffsetCommit commits offsets in a transaction: the partition of __consumer_offsets is verified, or added from
// version 5 on, like one that a producer writes to; then the group coordinator decides.
func handleTxnOffsetCommit(b *Broker, r *Request) {
	req := r.Body.(*message.TxnOffsetCommitRequest)
	refuse := func(code errcode.Code) {
		if code == errcode.CoordinatorLoadInProgress && r.Version < 2 {
			code = errcode.CoordinatorNotAvailable // the clients of that time knew no other
		}
		r.Respond(failedTransactionResponse(r, code))
	}
	if !b.knowsPartition(r, req) {
		b.commitInTransaction(r, req, 0, refuse) // nothing of it will be written
		return
	}
	if req.GroupId == "" {
		refuse(errcode.InvalidGroupId)
		return
	}
	b.verifyOffsets(r, req, func(guard uint64, code errcode.Code) {
		if code != errcode.None {
			refuse(coordinator.Code(code))
			return
		}
		b.commitInTransaction(r, req, guard, refuse)
	})
}

// knowsPartition reports whether a partition that the request names exists.
func (b *Broker) knowsPartition(r *Request, req *message.TxnOffsetCommitRequest) bool {
	img := b.Image()
	for i := range req.Topics {
		t := img.Topic(req.Topics[i].Name)
		if r.Version >= 6 {
			t = img.TopicByID(req.Topics[i].TopicId)
		}
		for _, p := range req.Topics[i].Partitions {
			if t != nil && t.Partition(p.PartitionIndex) != nil {
				return true
			}
		}
	}
	return false
}

func (b *Broker) commitInTransaction(r *Request, req *message.TxnOffsetCommitRequest, guard uint64, refuse func(errcode.Code)) {
	b.askGroup(r, req.GroupId, group.CommitInTransaction{Request: req, Guard: guard}, func(response any, code errcode.Code) {
		if code != errcode.None {
			refuse(code)
			return
		}
		r.Respond(response.(*message.TxnOffsetCommitResponse))
	})
}

// verifyOffsets asks the transaction coordinator about the partition of a group's offsets.
func (b *Broker) verifyOffsets(r *Request, req *message.TxnOffsetCommitRequest, done func(guard uint64, code errcode.Code)) {
	adds := r.Version >= offsetsAdd
	if !adds && !b.verifiesTransactions() {
		done(0, errcode.None)
		return
	}
	index := b.groups.partitionOf(req.GroupId)
	p, code := b.leads(b.table.named(offsetsTopic), index)
	if code != errcode.None {
		done(0, errcode.NotLeaderOrFollower)
		return
	}
	guard, err := p.log.StartVerification(req.ProducerId, req.ProducerEpoch, -1, adds, time.Now())
	if err != nil || guard == 0 {
		done(0, storage.CodeOf(err))
		return
	}
	topics := []message.AddPartitionsToTxnTopic{{Name: offsetsTopic, Partitions: []int32{index}}}
	b.verifyTxn(req.TransactionalId, req.ProducerId, req.ProducerEpoch, topics, !adds, func(codes map[string]map[int32]errcode.Code) {
		code := codes[offsetsTopic][index]
		if code == errcode.TransactionAbortable && r.Version < offsetsAbortable {
			code = errcode.InvalidTxnState
		}
		done(guard, code)
	})
}
