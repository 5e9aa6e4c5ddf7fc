package storage

import (
	"encoding/binary"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/wire/hash"
)

// What does not fit into a line of the mistakes that tests have a log make; see package bug.

// mistakenLimit is the offset that a reader may not reach.
func (l *Log) mistakenLimit(p *published, bound Bound) int64 {
	limit := p.limit(bound)
	switch {
	case bound != BoundStable:
	case l.bugs.Has(bug.StableOffsetIgnored):
		limit = p.highWatermark
	case l.bugs.Has(bug.StableOffsetTooFar):
		limit = min(limit+1, p.highWatermark)
	}
	return limit
}

// mistakenAborted is what a reader from an offset is told of the aborted transactions in what it gets.
func (l *Log) mistakenAborted(list []AbortedTxn, from int64) []AbortedTxn {
	switch {
	case l.bugs == 0 || len(list) == 0:
		return list
	case l.bugs.Has(bug.AbortedListEmpty):
		return nil
	case l.bugs.Has(bug.AbortedListCutShort) && len(list) > 1:
		return list[:len(list)-1]
	}
	var told []AbortedTxn
	for _, t := range list {
		if l.bugs.Has(bug.AbortedListFromFetchOffset) && t.FirstOffset < from {
			continue
		}
		if l.bugs.Has(bug.AbortedListFirstTooHigh) {
			t.FirstOffset++
		}
		told = append(told, t)
	}
	return told
}

// forgetsDuplicate reports whether a batch that came again is too old to be known.
func (s *producerState) forgetsDuplicate(e *producerEntry, m batchMark) bool {
	last, _ := e.last()
	return s.bugs.Has(bug.DuplicateWindowOfOne) && m != last
}

// makeData takes the control attribute off a batch.
func makeData(batch []byte) {
	const crcAt, attributesAt, control = 17, 21, 1 << 5
	attributes := binary.BigEndian.Uint16(batch[attributesAt:]) &^ control
	binary.BigEndian.PutUint16(batch[attributesAt:], attributes)
	binary.BigEndian.PutUint32(batch[crcAt:], hash.CRC32C(batch[attributesAt:]))
}

// closeAll ends every open transaction, as far as readers are concerned.
func (s *producerState) closeAll() {
	for _, t := range s.open {
		s.entries[t.producer].txnFirst = noOffset
	}
	s.open = nil
}
