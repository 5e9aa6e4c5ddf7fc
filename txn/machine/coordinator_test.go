package machine_test

import (
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/txn/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// coordinator is a model of a transaction coordinator and of the partitions' logs, as far as a session sees them. Markers are
// written some requests after the decision; until then everything is CONCURRENT_TRANSACTIONS.
type coordinator struct {
	w       *world
	known   bool
	epoch   int16
	last    int16 // the epoch before, for a retry of InitProducerId
	state   string
	markers int // requests until they are written

	open    map[client.TopicPartition]bool // partitions of the transaction
	log     []uint64                       // records that no marker has decided about: the transaction each belongs to
	content map[uint64]int                 // committed records of each transaction
}

// busy: the markers of the last transaction are being written.
func (c *coordinator) busy() bool {
	c.markers--
	return c.markers > 0
}

// write appends a record of the session's transaction to a partition.
func (c *coordinator) write(tp client.TopicPartition) {
	if c.w.implicit {
		c.state = "Ongoing"
		c.open[tp] = true
	}
	c.w.check(c.open[tp], "a record for %v, which is not part of the transaction", tp)
	c.log = append(c.log, c.w.serial)
	c.w.records[c.w.serial]++
}

func (c *coordinator) handle(r *machine.Request) message.Response {
	switch req := r.Body.(type) {
	case *message.InitProducerIdRequest:
		return c.init(req)
	case *message.AddPartitionsToTxnRequest:
		code := c.add(req.V3AndBelowProducerEpoch)
		if code == errcode.None {
			for _, t := range req.V3AndBelowTopics {
				for _, p := range t.Partitions {
					c.open[client.TopicPartition{Topic: t.Name, Partition: p}] = true
				}
			}
		}
		return c.refuse(r, code)
	case *message.AddOffsetsToTxnRequest:
		return c.refuse(r, c.add(req.ProducerEpoch))
	case *message.TxnOffsetCommitRequest:
		if c.w.implicit {
			return c.refuse(r, c.add(req.ProducerEpoch))
		}
		if c.state != "Ongoing" { // a broker without verification would take them, and never end them
			return c.refuse(r, errcode.TransactionAbortable)
		}
		return c.refuse(r, errcode.None)
	case *message.EndTxnRequest:
		return c.end(req)
	}
	return &message.DescribeTransactionsResponse{TransactionStates: []message.DescribeTransactionsResponseTransactionState{
		{TransactionalId: id, ProducerId: 7, ProducerEpoch: c.epoch, TransactionState: "Ongoing", TransactionTimeoutMs: 3_600_000}}}
}

func (c *coordinator) init(req *message.InitProducerIdRequest) message.Response {
	resp := message.NewInitProducerIdResponse()
	switch {
	case c.busy():
		resp.ErrorCode = int16(errcode.ConcurrentTransactions)
		return resp
	case c.known && req.ProducerId >= 0 && req.ProducerEpoch != c.epoch && req.ProducerEpoch != c.last:
		resp.ErrorCode = int16(errcode.ProducerFenced)
		return resp
	case c.state == "Ongoing": // also for a retry that comes late
		c.decide(false)
		c.last = -1
		c.epoch++
		resp.ErrorCode = int16(errcode.ConcurrentTransactions)
		return resp
	case c.known && req.ProducerId >= 0 && req.ProducerEpoch == c.last:
		// a retry
	default:
		c.last = -1
		if req.ProducerId >= 0 {
			c.last = c.epoch
		}
		c.known, c.epoch, c.state = true, c.epoch+1, "Empty"
	}
	resp.ProducerId, resp.ProducerEpoch = 7, c.epoch
	return resp
}

func (c *coordinator) add(epoch int16) errcode.Code {
	switch {
	case epoch != c.epoch:
		return errcode.ProducerFenced
	case c.busy():
		return errcode.ConcurrentTransactions
	}
	c.state = "Ongoing"
	return errcode.None
}

func (c *coordinator) end(req *message.EndTxnRequest) message.Response {
	resp := message.NewEndTxnResponse()
	want := "Abort"
	if req.Committed {
		want = "Commit"
	}
	retry := c.w.implicit && req.ProducerEpoch == c.epoch-1 && c.state == want
	switch {
	case req.ProducerEpoch != c.epoch && !retry:
		resp.ErrorCode = int16(errcode.ProducerFenced)
		return resp
	case c.busy():
		resp.ErrorCode = int16(errcode.ConcurrentTransactions)
		return resp
	case c.state == "Ongoing" || c.w.implicit && !retry && !req.Committed: // an abort of nothing is an abort too (KAFKA-18401)
		c.decide(req.Committed)
		if c.w.implicit {
			c.last = c.epoch
			c.epoch++
		}
	case c.state != want:
		resp.ErrorCode = int16(errcode.InvalidTxnState)
		return resp
	}
	if c.w.implicit {
		resp.ProducerId, resp.ProducerEpoch = 7, c.epoch
	}
	return resp
}

// decide ends the transaction: all of its records must be of one transaction of the session.
func (c *coordinator) decide(commit bool) {
	c.state, c.markers = "Abort", c.w.rand.IntN(3)
	if commit {
		c.state = "Commit"
		for _, serial := range c.log {
			c.w.check(c.w.asked[serial], "a record of transaction %d is committed, which was not asked for", serial)
			c.content[serial]++
		}
	}
	c.log = nil
	clear(c.open)
}

// refuse makes the answer with a code.
func (c *coordinator) refuse(r *machine.Request, code errcode.Code) message.Response {
	switch req := r.Body.(type) {
	case *message.InitProducerIdRequest:
		resp := message.NewInitProducerIdResponse()
		resp.ErrorCode = int16(code)
		return resp
	case *message.AddPartitionsToTxnRequest:
		resp := message.NewAddPartitionsToTxnResponse()
		for _, t := range req.V3AndBelowTopics {
			out := message.AddPartitionsToTxnTopicResult{Name: t.Name}
			for _, p := range t.Partitions {
				out.ResultsByPartition = append(out.ResultsByPartition, message.AddPartitionsToTxnPartitionResult{PartitionIndex: p, PartitionErrorCode: int16(code)})
			}
			resp.ResultsByTopicV3AndBelow = append(resp.ResultsByTopicV3AndBelow, out)
		}
		return resp
	case *message.AddOffsetsToTxnRequest:
		resp := message.NewAddOffsetsToTxnResponse()
		resp.ErrorCode = int16(code)
		return resp
	case *message.TxnOffsetCommitRequest:
		resp := message.NewTxnOffsetCommitResponse()
		for _, t := range req.Topics {
			out := message.TxnOffsetCommitResponseTopic{Name: t.Name}
			for _, p := range t.Partitions {
				out.Partitions = append(out.Partitions, message.TxnOffsetCommitResponsePartition{PartitionIndex: p.PartitionIndex, ErrorCode: int16(code)})
			}
			resp.Topics = append(resp.Topics, out)
		}
		return resp
	case *message.EndTxnRequest:
		resp := message.NewEndTxnResponse()
		resp.ErrorCode = int16(code)
		return resp
	}
	return &message.DescribeTransactionsResponse{}
}
