package server

import (
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// From these versions on a request says that its client knows more of transactions (KIP-890):
//
//	            TRANSACTION_ABORTABLE   adds the partition itself, with a new epoch for each transaction
//	Produce               11                       12
//	TxnOffsetCommit        4                        5
const (
	produceAbortable, produceAdds = 11, 12
	offsetsAbortable, offsetsAdd  = 4, 5
)

// verifiesTransactions says whether leaders ask before they append the first batch of a transaction. It may change at any
// time. Where they have to add the partition they ask anyway.
func (b *Broker) verifiesTransactions() bool {
	return b.Config().Bool("transaction.partition.verification.enable")
}

// verifying is a produce request with transactional batches on its way to the logs:
//
//	logs: StartVerification ──► coordinator: verifyTxn ──► logs: AppendTransactional, with the guards
//	  │ already open: no guard, no question                  │ what was refused is not appended
type verifying struct {
	required bool
	refused  errcode.Code // the whole request; NONE when partitions have results of their own
	results  map[partitionAt]verified
}

// partitionAt is a partition by its place in the request.
type partitionAt struct{ topic, partition int }

// verified is what came of one partition: a guard (0 for none), or why not.
type verified struct {
	guard   uint64
	code    errcode.Code
	message string
}

// at returns the result of a partition. A request without transactional batches is a nil verifying.
func (v *verifying) at(topic, partition int) verified {
	if v == nil {
		return verified{}
	}
	if v.refused != errcode.None {
		return verified{code: v.refused}
	}
	return v.results[partitionAt{topic, partition}]
}

// isTransactional looks at the attributes of a batch, which may be damaged.
func isTransactional(batch []byte) bool {
	const magicAt, attributesAt, transactional = 16, 22, 1 << 4
	return len(batch) > attributesAt && batch[magicAt] == 2 && batch[attributesAt]&transactional != 0
}

func hasTransactional(req *message.ProduceRequest) bool {
	for i := range req.TopicData {
		for j := range req.TopicData[i].PartitionData {
			if isTransactional(req.TopicData[i].PartitionData[j].Records) {
				return true
			}
		}
	}
	return false
}

// produceTransactional handles a request with transactional batches. If the coordinator has to be asked, a goroutine of its
// own waits for the answer and appends; it ends when the request does, and before the logs are closed.
func (b *Broker) produceTransactional(r *Request, req *message.ProduceRequest) {
	if req.TransactionalId == nil {
		b.produce(r, req, &verifying{refused: errcode.TransactionalIdAuthorizationFailed})
		return
	}
	q, code := b.toVerify(r, req)
	if code != errcode.None {
		b.produce(r, req, &verifying{refused: code})
		return
	}
	v := &verifying{required: b.verifiesTransactions(), results: make(map[partitionAt]verified, len(q.batches))}
	if !v.required && !q.adds() || !q.start(v) {
		b.produce(r, req, v)
		return
	}
	b.background.Add(1)
	go func() {
		defer b.background.Done()
		q.verify(v)
		b.produce(r, req, v)
	}()
}

// A question is what a request's transactional batches have to have verified.
type question struct {
	b             *Broker
	transactionID string
	version       int16 // of the Produce request
	producerID    int64
	epoch         int16
	batches       []transactionalBatch
}

type transactionalBatch struct {
	at       partitionAt
	topic    *topic
	index    int32
	sequence int32
}

// toVerify collects the transactional batches of a request, of those partitions that it may write to at all. They must be
// of one producer.
func (b *Broker) toVerify(r *Request, req *message.ProduceRequest) (*question, errcode.Code) {
	q := &question{b: b, transactionID: *req.TransactionalId, version: r.Version}
	for i := range req.TopicData {
		t, unknown := b.produceTopic(r, &req.TopicData[i])
		if unknown != errcode.None || r.outcome.For(t.name) != errcode.None {
			continue
		}
		for j := range req.TopicData[i].PartitionData {
			pd := &req.TopicData[i].PartitionData[j]
			if t.partition(pd.Index) == nil || !isTransactional(pd.Records) || storage.ValidateProduce(pd.Records, r.Version) != nil {
				continue
			}
			h, err := record.ParseHeader(pd.Records)
			if err != nil || !h.HasProducer() {
				continue
			}
			if len(q.batches) > 0 && (h.ProducerID != q.producerID || h.ProducerEpoch != q.epoch) {
				return nil, errcode.InvalidProducerIdMapping
			}
			q.producerID, q.epoch = h.ProducerID, h.ProducerEpoch
			q.batches = append(q.batches, transactionalBatch{at: partitionAt{i, j}, topic: t, index: pd.Index, sequence: h.BaseSequence})
		}
	}
	return q, errcode.None
}

func (q *question) adds() bool { return q.version >= produceAdds }

// start asks the logs for guards and reports whether there is something to ask the coordinator.
func (q *question) start(v *verifying) (ask bool) {
	now := time.Now()
	for i := range q.batches {
		t := &q.batches[i]
		p, code := q.b.leads(t.topic, t.index)
		if code != errcode.None {
			v.results[t.at] = verified{code: code}
			continue
		}
		guard, err := p.log.StartVerification(q.producerID, q.epoch, t.sequence, q.adds(), now)
		if err != nil {
			v.results[t.at] = verified{code: storage.CodeOf(err)}
			continue
		}
		v.results[t.at] = verified{guard: guard}
		ask = ask || guard != 0
	}
	return ask
}

// verify asks the coordinator. While it says that the last transaction is still being ended it is asked again for a
// moment, sooner than the producer would: the next transaction follows at once as a rule.
func (q *question) verify(v *verifying) {
	c := q.b.Config()
	backoff := time.Duration(c.Int("add.partitions.to.txn.retry.backoff.ms")) * time.Millisecond
	deadline := time.Now().Add(time.Duration(min(c.Int("add.partitions.to.txn.retry.backoff.max.ms"), c.Int("request.timeout.ms"))) * time.Millisecond)
	for {
		concurrent := q.ask(v)
		if !concurrent || !q.adds() || !time.Now().Before(deadline) {
			break
		}
		timer := time.NewTimer(backoff)
		select {
		case <-q.b.stop:
			timer.Stop()
			return
		case <-timer.C:
		}
		if !q.start(v) {
			break
		}
	}
	for at, result := range v.results {
		if result.code != errcode.None {
			v.results[at] = q.told(result)
		}
	}
}

// ask asks once; concurrent means that the last transaction has not been ended yet.
func (q *question) ask(v *verifying) (concurrent bool) {
	var topics []message.AddPartitionsToTxnTopic
	for i := range q.batches {
		t := &q.batches[i]
		if v.results[t.at].guard == 0 {
			continue
		}
		n := slices.IndexFunc(topics, func(a message.AddPartitionsToTxnTopic) bool { return a.Name == t.topic.name })
		if n < 0 {
			n = len(topics)
			topics = append(topics, message.AddPartitionsToTxnTopic{Name: t.topic.name})
		}
		topics[n].Partitions = append(topics[n].Partitions, t.index)
	}
	answer := make(chan map[string]map[int32]errcode.Code, 1)
	q.b.verifyTxn(q.transactionID, q.producerID, q.epoch, topics, !q.adds(), func(codes map[string]map[int32]errcode.Code) { answer <- codes })
	codes := <-answer
	for i := range q.batches {
		t := &q.batches[i]
		result := v.results[t.at]
		if result.guard == 0 {
			continue
		}
		if code := codes[t.topic.name][t.index]; code != errcode.None {
			concurrent = concurrent || code == errcode.ConcurrentTransactions
			v.results[t.at] = verified{code: code}
		}
	}
	return concurrent
}

// told puts a coordinator's refusal into words that the producer of this version knows, as Apache Kafka's ReplicaManager
// does: NOT_ENOUGH_REPLICAS makes every producer try again, and not look for another leader.
func (q *question) told(v verified) verified {
	switch code := v.code; code {
	case errcode.TransactionAbortable:
		if q.version < produceAbortable {
			return verified{code: errcode.InvalidTxnState, message: notInTransaction}
		}
	case errcode.InvalidTxnState:
		v.message = notInTransaction
	case errcode.ConcurrentTransactions:
		if !q.adds() {
			return unableToVerify(code)
		}
	case errcode.NetworkException, errcode.CoordinatorLoadInProgress, errcode.CoordinatorNotAvailable, errcode.NotCoordinator:
		return unableToVerify(code)
	}
	return v
}

const notInTransaction = "Partition was not added to the transaction"

func unableToVerify(code errcode.Code) verified {
	return verified{code: errcode.NotEnoughReplicas,
		message: "Unable to verify the partition has been added to the transaction. Underlying error: " + code.Name()}
}
