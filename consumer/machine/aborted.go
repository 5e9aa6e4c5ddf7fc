package machine

import "slices"

// Aborted is one entry of a fetch answer's list: records of that producer from FirstOffset on belong to a
// transaction that was aborted, up to the producer's next abort marker.
type Aborted struct {
	ProducerID  int64
	FirstOffset int64
}

// AbortedFilter tells which batches of one answer a read_committed reader leaves out. Batches must be shown to
// it in order of offset, control batches too. The zero value leaves out nothing.
type AbortedFilter struct {
	pending []Aborted // by FirstOffset; entries whose first batch has not come yet
	active  []int64   // producers whose batches are left out now; few, so a slice
}

// NewAbortedFilter takes the list as it came; it is sorted here, brokers have been seen to send it unsorted.
func NewAbortedFilter(list []Aborted) AbortedFilter {
	if !slices.IsSortedFunc(list, byFirstOffset) {
		list = slices.Clone(list)
		slices.SortStableFunc(list, byFirstOffset)
	}
	return AbortedFilter{pending: list}
}

func byFirstOffset(a, b Aborted) int {
	switch {
	case a.FirstOffset < b.FirstOffset:
		return -1
	case a.FirstOffset > b.FirstOffset:
		return 1
	}
	return 0
}

// Batch tells whether to leave out a data batch of that producer ending at lastOffset. transactional is the
// batch's own attribute: a producer's batches outside a transaction are never left out.
func (f *AbortedFilter) Batch(producerID, lastOffset int64, transactional bool) (skip bool) {
	f.advance(lastOffset)
	return transactional && slices.Contains(f.active, producerID)
}

// Marker takes note of a transaction marker. Only an abort marker ends what is left out of its producer; a
// commit marker of the same producer cannot come while one is open and is ignored.
func (f *AbortedFilter) Marker(producerID, offset int64, abort bool) {
	f.advance(offset)
	if !abort {
		return
	}
	if i := slices.Index(f.active, producerID); i >= 0 {
		f.active = slices.Delete(f.active, i, i+1)
	}
}

// advance opens the transactions that begin at or below lastOffset.
func (f *AbortedFilter) advance(lastOffset int64) {
	for len(f.pending) > 0 && f.pending[0].FirstOffset <= lastOffset {
		if id := f.pending[0].ProducerID; !slices.Contains(f.active, id) {
			f.active = append(f.active, id)
		}
		f.pending = f.pending[1:]
	}
}
