package storage

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/record"
)

// producerState is what a partition knows about the producers that write to
// it: their epochs, last sequences and transactions. It is a pure machine:
//
//	check   refuses a batch, or recognises it as a repetition; changes nothing
//	update  takes a batch that is in the log (append, and replay on recovery)
//
// The last stable offset comes from two lists of transactions: open ones, and
// ended ones whose marker is not below the high watermark yet, which a reader
// of committed data may not see past either (semantics, trap 1).
type producerState struct {
	partition TopicPartition
	bugs      bug.Set                  // to be made on purpose
	entries   map[int64]*producerEntry // made when the first producer comes
	open      []txnSpan                // by first offset
	ended     []txnSpan                // by first offset

	verifying map[int64]*verification // by producer id; not in snapshots
	guards    uint64                  // the last guard that was given out; never goes back

	written  int64 // bytes of all batches since the log was opened, see stableBytes
	mapEnd   int64 // all batches below have been taken
	lastSnap int64 // offset of the newest snapshot
}

// txnSpan is a transaction in this partition; last is its marker's offset,
// noOffset while it is open. before is what was written when it began.
type txnSpan struct {
	producer    int64
	first, last int64
	before      int64
}

// completedTxn is the result of an end marker.
type completedTxn struct {
	txnSpan
	aborted bool
}

func newProducerState(p TopicPartition, bugs bug.Set) *producerState {
	return &producerState{partition: p, bugs: bugs}
}

// check tells whether a data batch may be appended. A batch that was appended
// before is returned as duplicate instead. Sequences are checked for clients
// only: coordinators write without, and a follower takes what the leader took.
func (s *producerState) check(h *record.BatchHeader, origin Origin, with Verification) (duplicate *batchMark, err error) {
	if !h.HasProducer() {
		return nil, nil
	}
	e := s.entries[h.ProducerID]
	if e != nil && origin == FromClient {
		if m, ok := e.duplicate(h); ok && !s.forgetsDuplicate(e, m) {
			if s.bugs.Has(bug.DuplicateAppended) {
				return nil, nil
			}
			return &m, nil
		}
	}
	if s.bugs.Has(bug.OldEpochAccepted) && e != nil && h.ProducerEpoch < e.epoch {
		return nil, nil
	}
	if h.Transactional() {
		if err := s.checkVerified(h, with); err != nil {
			return nil, err
		}
	}
	if e != nil {
		if err := e.checkEpoch(h, s.partition); err != nil {
			return nil, err
		}
	}
	if origin == FromClient && !s.bugs.Has(bug.SequenceUnchecked) {
		if err := s.checkFirst(h); err != nil {
			return nil, err
		}
		if e != nil {
			if err := e.checkSequence(h, s.partition); err != nil {
				return nil, err
			}
		}
	}
	if e != nil && e.txnFirst != noOffset && !h.Transactional() {
		return nil, refuse(errcode.InvalidTxnState, "producer %d has an open transaction in partition %s since offset %d, the batch is outside of it",
			h.ProducerID, s.partition, e.txnFirst)
	}
	return nil, nil
}

// checkMarker tells whether an end marker may be appended. From transaction version 2 on it must have a higher epoch than
// the transaction it ends; with the same one it can only be a repetition, when nothing is open or there is no higher.
func (s *producerState) checkMarker(h *record.BatchHeader, coordinatorEpoch int32, transactionVersion int8) error {
	e := s.entries[h.ProducerID]
	if e == nil {
		unknown := newProducerEntry(h.ProducerID)
		return unknown.checkEpoch(h, s.partition)
	}
	if err := e.checkEpoch(h, s.partition); err != nil {
		return err
	}
	if transactionVersion >= 2 && h.ProducerEpoch == e.epoch && e.txnFirst != noOffset && e.epoch != math.MaxInt16 {
		return refuse(errcode.InvalidProducerEpoch, "marker for producer %d in partition %s has epoch %d, that of the transaction it is to end, instead of a higher one",
			h.ProducerID, s.partition, h.ProducerEpoch)
	}
	if coordinatorEpoch < e.coordinatorEpoch {
		return refuse(errcode.TransactionCoordinatorFenced, "marker for producer %d in partition %s has coordinator epoch %d, but %d is known",
			h.ProducerID, s.partition, coordinatorEpoch, e.coordinatorEpoch)
	}
	return nil
}

func (s *producerState) entry(id int64) *producerEntry {
	if e := s.entries[id]; e != nil {
		return e
	}
	if s.entries == nil {
		s.entries = make(map[int64]*producerEntry)
	}
	e := newProducerEntry(id)
	s.entries[id] = &e
	return &e
}

// update takes a batch that has been appended at its offsets.
func (s *producerState) update(h *record.BatchHeader) {
	if h.HasProducer() {
		e := s.entry(h.ProducerID)
		e.setEpoch(h.ProducerEpoch)
		e.push(batchMark{lastSeq: h.LastSequence(), lastOff: h.LastOffset(), delta: h.LastOffsetDelta, timestamp: h.MaxTimestamp})
		e.lastTimestamp = h.MaxTimestamp
		s.verified(h)
		if h.Transactional() && e.txnFirst == noOffset {
			e.txnFirst = h.BaseOffset
			s.open = insertSpan(s.open, txnSpan{producer: h.ProducerID, first: h.BaseOffset, last: noOffset, before: s.written})
		}
	}
	s.mapEnd = h.NextOffset()
}

// updateMarker takes an end marker that has been appended; ok is false when
// the producer had no transaction open here.
func (s *producerState) updateMarker(h *record.BatchHeader, m record.EndTxn, timestamp int64) (done completedTxn, ok bool) {
	e := s.entry(h.ProducerID)
	e.setEpoch(h.ProducerEpoch)
	e.coordinatorEpoch = m.CoordinatorEpoch
	e.lastTimestamp = timestamp
	s.mapEnd = h.NextOffset()
	s.verified(h)
	if e.txnFirst == noOffset {
		return completedTxn{}, false
	}
	e.txnFirst = noOffset
	i := slices.IndexFunc(s.open, func(t txnSpan) bool { return t.producer == h.ProducerID })
	span := s.open[i]
	span.last = h.BaseOffset
	s.open = slices.Delete(s.open, i, i+1)
	if s.bugs.Has(bug.MarkerClosesAll) {
		s.closeAll()
	}
	s.ended = insertSpan(s.ended, span)
	return completedTxn{txnSpan: span, aborted: !m.Commit}, true
}

func insertSpan(spans []txnSpan, t txnSpan) []txnSpan {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].first > t.first })
	return slices.Insert(spans, i, t)
}

// stableAfter is the last stable offset right after a transaction has ended,
// as far as open transactions decide: it goes into the transaction index.
func (s *producerState) stableAfter(t completedTxn) int64 {
	if len(s.open) > 0 {
		return s.open[0].first
	}
	return t.last + 1
}

// firstUnstable returns the first offset that a reader of committed data may
// not see; noOffset if there is none below the high watermark.
func (s *producerState) firstUnstable() int64 {
	first := noOffset
	if len(s.open) > 0 {
		first = s.open[0].first
	}
	if len(s.ended) > 0 && (first == noOffset || s.ended[0].first < first) {
		first = s.ended[0].first
	}
	return first
}

// stableBytes counts what readers of committed data may see of what was written
// since the log was opened. Only differences mean something.
func (s *producerState) stableBytes() int64 {
	switch {
	case len(s.ended) > 0 && (len(s.open) == 0 || s.ended[0].first < s.open[0].first):
		return s.ended[0].before
	case len(s.open) > 0:
		return s.open[0].before
	}
	return s.written
}

// highWatermark forgets ended transactions whose marker is below it.
func (s *producerState) highWatermark(hw int64) {
	if len(s.ended) > 0 {
		s.ended = slices.DeleteFunc(s.ended, func(t txnSpan) bool { return t.last < hw })
	}
}

// logStart forgets ended transactions that the log no longer holds.
func (s *producerState) logStart(start int64) {
	if len(s.ended) > 0 {
		s.ended = slices.DeleteFunc(s.ended, func(t txnSpan) bool { return t.last < start })
	}
	s.mapEnd = max(s.mapEnd, start)
}

// expire forgets producers that have been silent for too long, but none with
// an open transaction (trap 15). Times are record times, as in Kafka.
func (s *producerState) expire(now, expirationMs int64) {
	for id, e := range s.entries {
		if e.expired(now, expirationMs) {
			delete(s.entries, id)
		}
	}
	for id, v := range s.verifying {
		if now-v.since >= expirationMs {
			delete(s.verifying, id)
		}
	}
}

func (e *producerEntry) expired(now, expirationMs int64) bool {
	return e.txnFirst == noOffset && now-e.lastTimestamp >= expirationMs
}

// snapshot returns the state in the form of a snapshot file, by producer id.
func (s *producerState) snapshot() []ProducerSnapshotEntry {
	out := make([]ProducerSnapshotEntry, 0, len(s.entries))
	for id, e := range s.entries {
		last, _ := e.last()
		out = append(out, ProducerSnapshotEntry{
			ProducerID: id, ProducerEpoch: e.epoch,
			LastSequence: last.lastSeq, LastOffset: last.lastOff, OffsetDelta: last.delta,
			Timestamp: e.lastTimestamp, CoordinatorEpoch: e.coordinatorEpoch, CurrentTxnFirstOffset: e.txnFirst,
		})
	}
	slices.SortFunc(out, func(a, b ProducerSnapshotEntry) int { return cmp.Compare(a.ProducerID, b.ProducerID) })
	if s.bugs.Has(bug.SnapshotWithoutOpenTransaction) {
		for i := range out {
			out[i].CurrentTxnFirstOffset = noOffset
		}
	}
	return out
}

// restore replaces the state by that of a snapshot taken at offset.
func (s *producerState) restore(entries []ProducerSnapshotEntry, offset, now, expirationMs int64) {
	s.reset(offset)
	s.lastSnap = offset
	for i := range entries {
		p := &entries[i]
		e := newProducerEntry(p.ProducerID)
		e.epoch, e.lastTimestamp = p.ProducerEpoch, p.Timestamp
		e.coordinatorEpoch, e.txnFirst = p.CoordinatorEpoch, p.CurrentTxnFirstOffset
		if p.LastOffset >= 0 {
			e.push(batchMark{lastSeq: p.LastSequence, lastOff: p.LastOffset, delta: p.OffsetDelta, timestamp: p.Timestamp})
		}
		if e.expired(now, expirationMs) {
			continue
		}
		*s.entry(p.ProducerID) = e
		if e.txnFirst != noOffset {
			s.open = insertSpan(s.open, txnSpan{producer: e.id, first: e.txnFirst, last: noOffset, before: s.written})
		}
	}
}

// reset forgets everything; the next batch to take is at offset.
func (s *producerState) reset(offset int64) {
	*s = producerState{partition: s.partition, bugs: s.bugs, written: s.written, mapEnd: offset, lastSnap: s.lastSnap, guards: s.guards}
}

// producers lists the state for DescribeProducers, by producer id.
func (s *producerState) producers() []ActiveProducer {
	out := make([]ActiveProducer, 0, len(s.entries))
	for id, e := range s.entries {
		last, _ := e.last()
		out = append(out, ActiveProducer{
			ProducerID: id, ProducerEpoch: e.epoch, LastSequence: last.lastSeq, LastTimestamp: e.lastTimestamp,
			CoordinatorEpoch: e.coordinatorEpoch, TxnStartOffset: e.txnFirst,
		})
	}
	slices.SortFunc(out, func(a, b ActiveProducer) int { return cmp.Compare(a.ProducerID, b.ProducerID) })
	return out
}
