package transactions

import (
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// offsetLabel is the index of a label that is no record but the offset of a transaction.
const offsetLabel = 100

// number is an offset that says whose it is.
func (l label) number() int64 { return int64(l.agent)<<16 | int64(l.txn)<<8 }

func labelOfOffset(n int64) label { return label{int8(n >> 16), int8(n >> 8), offsetLabel} }

// offsets is the group's coordinator on broker 1, as far as transactions go.
type offsets struct {
	w      *world
	broker int32
	ended  map[int64]int   // markers, by producer
	epochs map[int64]int16 // newest, by producer
	coord  int32
}

func newOffsets(w *world) *offsets {
	return &offsets{w: w, broker: 1, ended: map[int64]int{}, epochs: map[int64]int16{}}
}

func (o *offsets) commit(to int32, req *message.TxnOffsetCommitRequest, version int16, reply func(message.Response)) {
	w := o.w
	by := transaction.Producer{ID: req.ProducerId, Epoch: req.ProducerEpoch}
	guard := o.ended[by.ID]
	answer := func(code errcode.Code) {
		resp := message.NewTxnOffsetCommitResponse()
		for i := range req.Topics {
			t := message.TxnOffsetCommitResponseTopic{Name: req.Topics[i].Name}
			for _, p := range req.Topics[i].Partitions {
				t.Partitions = append(t.Partitions, message.TxnOffsetCommitResponsePartition{PartitionIndex: p.PartitionIndex, ErrorCode: int16(code)})
			}
			resp.Topics = append(resp.Topics, t)
		}
		reply(resp)
	}
	if to != o.broker {
		answer(errcode.NotCoordinator)
		return
	}
	w.verify(transaction.TopicPartition{Topic: "__consumer_offsets"}, by, version >= 5, func(code errcode.Code) {
		switch {
		case code == errcode.CoordinatorNotAvailable, code == errcode.NotCoordinator, code == errcode.CoordinatorLoadInProgress:
			code = errcode.CoordinatorNotAvailable
		case code == errcode.ProducerFenced:
			code = errcode.InvalidProducerEpoch
		case code != errcode.None:
		case by.Epoch < o.epochs[by.ID]:
			code = errcode.InvalidProducerEpoch
		case guard != o.ended[by.ID] && !(version >= 5 && o.epochs[by.ID] == by.Epoch): // as the log drops guards
			code = errcode.InvalidTxnState
		default:
			o.epochs[by.ID] = by.Epoch
			of := labelOfOffset(req.Topics[0].Partitions[0].CommittedOffset)
			w.Note("offset of %+v of %v", of, by)
			w.ledger.appended(offsetsPart, by, -1, of)
		}
		answer(code)
	})
}

func (o *offsets) mark(m *transaction.Markers) errcode.Code {
	switch {
	case !o.w.up[o.broker]:
		return errcode.NotLeaderOrFollower
	case m.Producer.Epoch < o.epochs[m.Producer.ID]:
		return errcode.InvalidProducerEpoch
	case m.Version >= 2 && m.Producer.Epoch == o.epochs[m.Producer.ID] && len(o.w.ledger.open[offsetsPart][m.Producer.ID]) > 0:
		return errcode.InvalidProducerEpoch
	case m.CoordinatorEpoch < o.coord:
		return errcode.TransactionCoordinatorFenced
	}
	o.coord = m.CoordinatorEpoch
	o.ended[m.Producer.ID]++
	o.epochs[m.Producer.ID] = m.Producer.Epoch
	o.w.Note("offsets: end of %v commit %t", m.Producer, m.Commit)
	o.w.ledger.marked(offsetsPart, m)
	return errcode.None
}
