package server

import (
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleAddOffsetsToTxn makes the offsets of a group part of a transaction: the partition of __consumer_offsets where they
// are going to be.
func handleAddOffsetsToTxn(b *Broker, r *Request) {
	req := r.Body.(*message.AddOffsetsToTxnRequest)
	body := transaction.AddPartitions{
		ID:         req.TransactionalId,
		Producer:   transaction.Producer{ID: req.ProducerId, Epoch: req.ProducerEpoch},
		Partitions: []transaction.TopicPartition{{Topic: offsetsTopic, Partition: b.groups.partitionOf(req.GroupId)}},
	}
	b.askTransactions(body.ID, body, func(_ any, code errcode.Code) {
		if r.Version < 2 {
			code = oldFenced(code)
		}
		r.Respond(&message.AddOffsetsToTxnResponse{ErrorCode: int16(code)})
	})
}
