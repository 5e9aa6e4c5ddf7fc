package server

import (
	"errors"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleAddPartitionsToTxn makes partitions part of a transaction. Up to version 3 producers ask, about one transaction;
// from version 4 on brokers do, about several, and may ask only whether the partitions are in it (KIP-890).
func handleAddPartitionsToTxn(b *Broker, r *Request) {
	req := r.Body.(*message.AddPartitionsToTxnRequest)
	resp := message.NewAddPartitionsToTxnResponse()
	if r.Version < 4 {
		t := message.AddPartitionsToTxnTransaction{TransactionalId: req.V3AndBelowTransactionalId, ProducerId: req.V3AndBelowProducerId,
			ProducerEpoch: req.V3AndBelowProducerEpoch, Topics: req.V3AndBelowTopics}
		b.addPartitionsToTxn(&t, r.Version, func(results []message.AddPartitionsToTxnTopicResult) {
			resp.ResultsByTopicV3AndBelow = results
			r.Respond(resp)
		})
		return
	}
	if len(req.Transactions) == 0 {
		b.neverAnswer(r, errors.New("no transactions in AddPartitionsToTxn")) // as in Apache Kafka, which answers after the last one
		return
	}
	resp.ResultsByTransaction = make([]message.AddPartitionsToTxnResult, len(req.Transactions))
	gather(len(req.Transactions), func(i int, done func()) {
		t, out := &req.Transactions[i], &resp.ResultsByTransaction[i]
		out.TransactionalId = t.TransactionalId
		b.addPartitionsToTxn(t, r.Version, func(results []message.AddPartitionsToTxnTopicResult) {
			out.TopicResults = results
			done()
		})
	}, func() { r.Respond(resp) })
}

// addPartitionsToTxn serves one transaction of a request. One bad partition spoils all: it gets its error, the others
// OPERATION_NOT_ATTEMPTED, and the coordinator is not asked.
func (b *Broker) addPartitionsToTxn(t *message.AddPartitionsToTxnTransaction, version int16, done func([]message.AddPartitionsToTxnTopicResult)) {
	parts, codes, bad := b.partitionsToAdd(t.Topics, version)
	if bad {
		done(partitionResults(t.Topics, codes))
		return
	}
	all := func(code errcode.Code) {
		if version < 2 {
			code = oldFenced(code)
		}
		for i := range codes {
			codes[i] = code
		}
		done(partitionResults(t.Topics, codes))
	}
	p := transaction.Producer{ID: t.ProducerId, Epoch: t.ProducerEpoch}
	if t.VerifyOnly {
		body := transaction.VerifyPartitions{ID: t.TransactionalId, Producer: p, Partitions: parts}
		b.askTransactions(body.ID, body, func(answer any, code errcode.Code) {
			if code != errcode.None {
				all(code)
				return
			}
			done(partitionResults(t.Topics, answer.([]errcode.Code)))
		})
		return
	}
	body := transaction.AddPartitions{ID: t.TransactionalId, Producer: p, Partitions: parts}
	if version >= 4 {
		body.Version = 2
	}
	b.askTransactions(body.ID, body, func(_ any, code errcode.Code) { all(code) })
}

// partitionsToAdd lists the partitions of a request with the codes that they get if it is not done; bad says so. Clients
// may not write to internal topics.
func (b *Broker) partitionsToAdd(topics []message.AddPartitionsToTxnTopic, version int16) (parts []transaction.TopicPartition, codes []errcode.Code, bad bool) {
	img := b.Image()
	for i := range topics {
		t := &topics[i]
		for _, index := range t.Partitions {
			p := transaction.TopicPartition{Topic: t.Name, Partition: index}
			code := errcode.OperationNotAttempted
			if version < 4 && image.Internal(t.Name) {
				code, bad = errcode.TopicAuthorizationFailed, true
			} else if _, exists := leaderOf(img, p); !exists {
				code, bad = errcode.UnknownTopicOrPartition, true
			}
			parts, codes = append(parts, p), append(codes, code)
		}
	}
	return parts, codes, bad
}

// partitionResults puts codes, in the order of the request, into the answer's form.
func partitionResults(topics []message.AddPartitionsToTxnTopic, codes []errcode.Code) []message.AddPartitionsToTxnTopicResult {
	results := make([]message.AddPartitionsToTxnTopicResult, len(topics))
	for i := range topics {
		results[i].Name = topics[i].Name
		for _, index := range topics[i].Partitions {
			results[i].ResultsByPartition = append(results[i].ResultsByPartition,
				message.AddPartitionsToTxnPartitionResult{PartitionIndex: index, PartitionErrorCode: int16(codes[0])})
			codes = codes[1:]
		}
	}
	return results
}

// verifyTxn asks the coordinator of a transaction whether partitions are in it, or has them added unless verifyOnly, for a
// leader that is to append to them. done, which must not block, gets the code of each: NONE, or a refusal in a leader's
// terms, which the leader then puts in those of the producer's version. It does for one node what Apache Kafka's
// AddPartitionsToTxnManager does between nodes.
func (b *Broker) verifyTxn(id string, producerID int64, epoch int16, topics []message.AddPartitionsToTxnTopic, verifyOnly bool, done func(map[string]map[int32]errcode.Code)) {
	t := &message.AddPartitionsToTxnTransaction{TransactionalId: id, ProducerId: producerID, ProducerEpoch: epoch, VerifyOnly: verifyOnly, Topics: topics}
	if topic := b.Image().Topic(transactionsTopic); topic == nil {
		done(codesByPartition(failedPartitionsOfTxn(topics, int16(errcode.CoordinatorNotAvailable))))
		return
	}
	b.addPartitionsToTxn(t, 5, func(results []message.AddPartitionsToTxnTopicResult) { done(codesByPartition(results)) })
}

// codesByPartition takes a coordinator's answer into the hands of a leader.
func codesByPartition(results []message.AddPartitionsToTxnTopicResult) map[string]map[int32]errcode.Code {
	codes := make(map[string]map[int32]errcode.Code, len(results))
	for i := range results {
		of := codes[results[i].Name]
		if of == nil {
			of = make(map[int32]errcode.Code, len(results[i].ResultsByPartition))
			codes[results[i].Name] = of
		}
		for _, p := range results[i].ResultsByPartition {
			of[p.PartitionIndex] = leadersWord(errcode.Code(p.PartitionErrorCode))
		}
	}
	return codes
}

// leadersWord is what a leader says where a coordinator says code. A producer that was fenced hears PRODUCER_FENCED from
// the coordinator alone; leaders have one word for every epoch that is too old, whether they know it from their log or
// from the coordinator.
func leadersWord(code errcode.Code) errcode.Code {
	if code == errcode.ProducerFenced {
		return errcode.InvalidProducerEpoch
	}
	return code
}
