package server

import (
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// failedTransactionResponse is the answer to a request about transactions that failed as a whole; nil for other APIs.
func failedTransactionResponse(r *Request, code errcode.Code) message.Response {
	c := int16(code)
	switch req := r.Body.(type) {
	case *message.AddPartitionsToTxnRequest:
		resp := message.NewAddPartitionsToTxnResponse()
		if r.Version >= 4 {
			resp.ErrorCode = c
			return resp
		}
		resp.ResultsByTopicV3AndBelow = failedPartitionsOfTxn(req.V3AndBelowTopics, c)
		return resp
	case *message.AddOffsetsToTxnRequest:
		return &message.AddOffsetsToTxnResponse{ErrorCode: c}
	case *message.EndTxnRequest:
		resp := message.NewEndTxnResponse()
		resp.ErrorCode = c
		return resp
	case *message.TxnOffsetCommitRequest:
		resp := message.NewTxnOffsetCommitResponse()
		for i := range req.Topics {
			t := message.TxnOffsetCommitResponseTopic{Name: req.Topics[i].Name, TopicId: req.Topics[i].TopicId}
			for j := range req.Topics[i].Partitions {
				p := message.TxnOffsetCommitResponsePartition{PartitionIndex: req.Topics[i].Partitions[j].PartitionIndex, ErrorCode: c}
				t.Partitions = append(t.Partitions, p)
			}
			resp.Topics = append(resp.Topics, t)
		}
		return resp
	case *message.ListTransactionsRequest:
		return &message.ListTransactionsResponse{ErrorCode: c}
	case *message.DescribeTransactionsRequest:
		resp := message.NewDescribeTransactionsResponse()
		for _, id := range req.TransactionalIds {
			resp.TransactionStates = append(resp.TransactionStates, message.DescribeTransactionsResponseTransactionState{TransactionalId: id, ErrorCode: c})
		}
		return resp
	}
	return nil
}

func failedPartitionsOfTxn(topics []message.AddPartitionsToTxnTopic, c int16) []message.AddPartitionsToTxnTopicResult {
	var results []message.AddPartitionsToTxnTopicResult
	for i := range topics {
		t := message.AddPartitionsToTxnTopicResult{Name: topics[i].Name}
		for _, p := range topics[i].Partitions {
			t.ResultsByPartition = append(t.ResultsByPartition, message.AddPartitionsToTxnPartitionResult{PartitionIndex: p, PartitionErrorCode: c})
		}
		results = append(results, t)
	}
	return results
}
