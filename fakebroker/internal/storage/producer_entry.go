package storage

import (
	"math"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/record"
)

// keptBatches is how many of a producer's last batches are remembered, which
// is also how many requests an idempotent producer may have in flight.
const keptBatches = 5

const (
	noTimestamp     = int64(-1)
	noOffset        = int64(-1)
	noProducerEpoch = int16(-1)
	noSequence      = int32(-1)
)

// batchMark is what is remembered of one batch, to recognise it when it comes again.
type batchMark struct {
	lastSeq   int32
	lastOff   int64
	delta     int32 // last offset - first offset, and so for sequences
	timestamp int64
}

func (b batchMark) firstSeq() int32    { return record.AddSequence(b.lastSeq, -b.delta) }
func (b batchMark) firstOffset() int64 { return b.lastOff - int64(b.delta) }

// producerEntry is the state of one producer id in one partition.
type producerEntry struct {
	id               int64
	epoch            int16
	marks            [keptBatches]batchMark // the oldest first
	n                int8                   // how many of them are in use
	lastTimestamp    int64
	coordinatorEpoch int32
	txnFirst         int64 // first offset of the open transaction, noOffset if none
}

func newProducerEntry(id int64) producerEntry {
	return producerEntry{id: id, epoch: noProducerEpoch, lastTimestamp: noTimestamp, coordinatorEpoch: -1, txnFirst: noOffset}
}

// last returns the newest batch; false if only markers are known.
func (e *producerEntry) last() (batchMark, bool) {
	if e.n == 0 {
		return batchMark{lastSeq: noSequence, lastOff: noOffset}, false
	}
	return e.marks[e.n-1], true
}

// duplicate finds a remembered batch with exactly the sequences of h.
func (e *producerEntry) duplicate(h *record.BatchHeader) (batchMark, bool) {
	if h.ProducerEpoch != e.epoch {
		return batchMark{}, false
	}
	for _, m := range e.marks[:e.n] {
		if m.firstSeq() == h.BaseSequence && m.lastSeq == h.LastSequence() {
			return m, true
		}
	}
	return batchMark{}, false
}

// setEpoch begins a new epoch: sequences start over, so the batches of the
// old one are forgotten.
func (e *producerEntry) setEpoch(epoch int16) {
	if e.epoch != epoch {
		e.epoch, e.n = epoch, 0
	}
}

func (e *producerEntry) push(m batchMark) {
	if e.n == keptBatches {
		copy(e.marks[:], e.marks[1:])
		e.n--
	}
	e.marks[e.n] = m
	e.n++
}

// checkEpoch refuses a producer that has been fenced.
func (e *producerEntry) checkEpoch(h *record.BatchHeader, p TopicPartition) error {
	if h.ProducerEpoch < e.epoch {
		return refuse(errcode.InvalidProducerEpoch, "producer %d has epoch %d in partition %s, but epoch %d is known",
			h.ProducerID, h.ProducerEpoch, p, e.epoch)
	}
	return nil
}

// checkSequence refuses a batch that does not follow the last one: something
// between them is missing, or it is a repetition too old to be recognised. A
// producer that is not known (any more) may begin anywhere, a new epoch must
// begin at 0.
func (e *producerEntry) checkSequence(h *record.BatchHeader, p TopicPartition) error {
	if e.epoch == noProducerEpoch {
		return nil
	}
	if h.ProducerEpoch != e.epoch {
		if h.BaseSequence != 0 {
			return refuse(errcode.OutOfOrderSequenceNumber, "producer %d begins epoch %d in partition %s at sequence %d instead of 0 (last epoch %d)",
				h.ProducerID, h.ProducerEpoch, p, h.BaseSequence, e.epoch)
		}
		return nil
	}
	last, _ := e.last()
	if !follows(last.lastSeq, h.BaseSequence) {
		return refuse(errcode.OutOfOrderSequenceNumber, "producer %d epoch %d in partition %s: sequence %d after %d",
			h.ProducerID, h.ProducerEpoch, p, h.BaseSequence, last.lastSeq)
	}
	return nil
}

// follows tells whether sequence next comes right after last; they wrap from 2^31-1 to 0.
func follows(last, next int32) bool {
	return int64(next) == int64(last)+1 || next == 0 && last == math.MaxInt32
}
