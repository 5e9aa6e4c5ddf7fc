package storage

import "sort"

// noEpoch stands for an unknown leader epoch, on the wire too.
const noEpoch = -1

// epochCache maps leader epochs to the offsets at which they began: epochs
// and offsets rise strictly (reliability invariant P8). It is a value over an
// immutable slice: a change makes a new slice, so a copy stays as it was.
type epochCache struct{ entries []EpochEntry }

// assign notes that epoch begins at start. Entries that contradict it, left
// over from a truncated tail, are dropped. It reports whether anything changed.
func (c *epochCache) assign(epoch int32, start int64) bool {
	if epoch < 0 || start < 0 {
		return false
	}
	if n := len(c.entries); n > 0 && c.entries[n-1].Epoch == epoch && c.entries[n-1].StartOffset <= start {
		return false
	}
	keep := len(c.entries)
	for keep > 0 && (c.entries[keep-1].Epoch >= epoch || c.entries[keep-1].StartOffset >= start) {
		keep--
	}
	c.entries = append(c.entries[:keep:keep], EpochEntry{Epoch: epoch, StartOffset: start})
	return true
}

func (c *epochCache) latest() int32 {
	if n := len(c.entries); n > 0 {
		return c.entries[n-1].Epoch
	}
	return noEpoch
}

// at returns the epoch under which the record at offset was appended.
func (c *epochCache) at(offset int64) int32 {
	i := sort.Search(len(c.entries), func(i int) bool { return c.entries[i].StartOffset > offset })
	if i == 0 {
		return noEpoch
	}
	return c.entries[i-1].Epoch
}

// endOf answers OffsetForLeaderEpoch: the current epoch ends at the log end,
// a future one is unknown, one in a gap gives the largest below it and the
// start of the next above it, one older than all gives itself and the start
// of the first (KAFKA-7415, KIP-279).
func (c *epochCache) endOf(epoch int32, logEnd int64) EpochEnd {
	unknown := EpochEnd{Epoch: noEpoch, EndOffset: -1}
	if epoch < 0 {
		return unknown
	}
	if epoch == c.latest() {
		return EpochEnd{Epoch: epoch, EndOffset: logEnd}
	}
	i := sort.Search(len(c.entries), func(i int) bool { return c.entries[i].Epoch > epoch })
	switch {
	case i == len(c.entries):
		return unknown
	case i == 0:
		return EpochEnd{Epoch: epoch, EndOffset: c.entries[0].StartOffset}
	default:
		return EpochEnd{Epoch: c.entries[i-1].Epoch, EndOffset: c.entries[i].StartOffset}
	}
}

// truncateEnd drops epochs that begin at or behind the new log end.
func (c *epochCache) truncateEnd(end int64) bool {
	keep := sort.Search(len(c.entries), func(i int) bool { return c.entries[i].StartOffset >= end })
	if keep == len(c.entries) {
		return false
	}
	c.entries = c.entries[:keep:keep]
	return true
}

// truncateStart drops epochs that ended before the new log start; the one
// that the log now begins with begins there.
func (c *epochCache) truncateStart(start int64) bool {
	i := sort.Search(len(c.entries), func(i int) bool { return c.entries[i].StartOffset > start })
	if i == 0 || i == 1 && c.entries[0].StartOffset == start {
		return false
	}
	kept := append([]EpochEntry(nil), c.entries[i-1:]...)
	kept[0].StartOffset = start
	c.entries = kept
	return true
}
