package storage

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/record"
)

// Verification is what an append of a client or a coordinator knows about its transaction (KIP-890).
//
//	(nothing open) ── StartVerification: guard ──► coordinator: is this partition in the transaction? (or: add it)
//	                                                 │ yes
//	                                                 ▼
//	                       append with the guard ──► transaction open; further batches need no guard
//
// A marker that comes in between drops the guard: the answer of the coordinator was about a transaction that is over, and
// the batch would be left hanging.
type Verification struct {
	// Required refuses the first batch of a transaction without the guard that holds: transaction.partition.verification.enable.
	Required bool
	// Guard is what StartVerification gave out; 0 for none.
	Guard uint64
}

// verification is what is remembered of a producer between StartVerification and the first batch.
type verification struct {
	guard uint64
	since int64 // ms
	epoch int16
	// lowest is the lowest sequence that was seen of the epoch. A higher one may not be first: the lower would come after
	// it and never be in order.
	lowest int32
	// bumps says that the producer gets a new epoch with each transaction (transaction version 2).
	bumps bool
}

// startVerification returns the guard of a producer, new if there is none.
func (s *producerState) startVerification(id int64, sequence int32, epoch int16, bumps bool, now int64) uint64 {
	v := s.verifying[id]
	if v == nil {
		if s.verifying == nil {
			s.verifying = make(map[int64]*verification)
		}
		s.guards++
		v = &verification{guard: s.guards, since: now, epoch: epoch, lowest: sequence, bumps: bumps}
		s.verifying[id] = v
	}
	switch {
	case epoch > v.epoch:
		v.epoch, v.lowest = epoch, sequence
	case epoch == v.epoch:
		v.lowest = min(v.lowest, sequence)
	}
	return v.guard
}

// verified drops the guard that has served, or that a marker has overtaken; but not that of a transaction of the next
// epoch which began before the marker came.
func (s *producerState) verified(h *record.BatchHeader) {
	v := s.verifying[h.ProducerID]
	if v == nil || !h.Transactional() || v.bumps && h.Control() && h.ProducerEpoch == v.epoch {
		return
	}
	delete(s.verifying, h.ProducerID)
}

// ongoing reports whether a transaction of the producer in this epoch is open.
func (s *producerState) ongoing(id int64, epoch int16) bool {
	e := s.entries[id]
	return e != nil && e.txnFirst != noOffset && e.epoch == epoch
}

// checkVerified refuses a batch that would open a transaction nobody has asked the coordinator about.
func (s *producerState) checkVerified(h *record.BatchHeader, with Verification) error {
	if s.ongoing(h.ProducerID, h.ProducerEpoch) {
		return nil
	}
	if e := s.entries[h.ProducerID]; e != nil {
		if err := e.checkEpoch(h, s.partition); err != nil {
			return err
		}
	}
	if v := s.verifying[h.ProducerID]; with.Required && (v == nil || v.guard != with.Guard) {
		return refuse(errcode.InvalidTxnState, "the batch of producer %d epoch %d for partition %s is not part of an open transaction",
			h.ProducerID, h.ProducerEpoch, s.partition)
	}
	return nil
}

// checkFirst refuses a batch that cannot be the first of the transaction that is being verified, in one or outside, as Kafka
// does.
func (s *producerState) checkFirst(h *record.BatchHeader) error {
	v := s.verifying[h.ProducerID]
	if v == nil {
		return nil
	}
	if e := s.entries[h.ProducerID]; v.bumps && h.BaseSequence != 0 && (e == nil || e.n == 0) {
		return refuse(errcode.OutOfOrderSequenceNumber, "producer %d epoch %d begins in partition %s at sequence %d instead of 0",
			h.ProducerID, h.ProducerEpoch, s.partition, h.BaseSequence)
	}
	if h.BaseSequence > v.lowest {
		return refuse(errcode.OutOfOrderSequenceNumber, "producer %d epoch %d in partition %s: sequence %d before %d, which was seen first",
			h.ProducerID, h.ProducerEpoch, s.partition, h.BaseSequence, v.lowest)
	}
	return nil
}

// StartVerification is asked before the first batch of a producer's transaction is appended: it returns the guard that the
// append has to bring once the transaction coordinator has said yes, or 0 when the transaction is open already. sequence
// is the batch's first one, -1 for coordinators; bumps says that the producer gets a new epoch with each transaction. An
// old epoch is InvalidProducerEpoch.
func (l *Log) StartVerification(id int64, epoch int16, sequence int32, bumps bool, now time.Time) (guard uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return 0, l.ended
	}
	if e := l.producers.entries[id]; e != nil {
		if l.bugs.Has(bug.OldEpochAccepted) && epoch < e.epoch {
			return 0, nil
		}
		h := record.BatchHeader{ProducerID: id, ProducerEpoch: epoch}
		if err := e.checkEpoch(&h, l.partition); err != nil {
			return 0, err
		}
	}
	if l.producers.ongoing(id, epoch) {
		return 0, nil
	}
	guard = l.producers.startVerification(id, sequence, epoch, bumps, millis(now))
	l.noteVerifying()
	return guard, nil
}

// noteVerifying tells appends whether there are verifications. mu is held.
func (l *Log) noteVerifying() { l.verifying.Store(int64(len(l.producers.verifying))) }
