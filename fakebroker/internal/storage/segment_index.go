package storage

import (
	"errors"
	"sync"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/record"
)

// segmentIndex is the three indexes of a segment in memory. The writer of the
// log adds to it, anybody looks things up. What is added goes to the files on
// flush, roll and close, not on append: recovery rebuilds the indexes of all
// segments that were not flushed anyway.
type segmentIndex struct {
	mu      sync.Mutex // guards the slices, for memory work only
	offsets []OffsetEntry
	times   []TimeEntry
	txns    []TxnEntry

	// The largest timestamp so far and the last offset of its batch: newer
	// than the last time entry until that is written.
	maxTimestamp int64
	maxOffset    int64

	saved savedEntries // by the flusher only
}

// savedEntries counts the entries that the files hold; negative means that
// the file has to be written anew.
type savedEntries struct{ offsets, times, txns int }

func newSegmentIndex(base int64) *segmentIndex {
	return &segmentIndex{maxTimestamp: noTimestamp, maxOffset: base}
}

// addBatch notes a batch that lies at pos. sinceIndex counts the bytes since
// the last entry, over calls.
func (x *segmentIndex) addBatch(base int64, h *record.BatchHeader, pos int64, sinceIndex *int, interval int32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if h.MaxTimestamp > x.maxTimestamp {
		x.maxTimestamp, x.maxOffset = h.MaxTimestamp, h.LastOffset()
	}
	if *sinceIndex > int(interval) {
		x.offsets = append(x.offsets, OffsetEntry{RelativeOffset: int32(h.LastOffset() - base), Position: int32(pos)})
		x.addTime(base)
		*sinceIndex = 0
	}
	*sinceIndex += h.Size()
}

// addTime writes down the largest timestamp if it is a new one. mu is held.
func (x *segmentIndex) addTime(base int64) {
	last := TimeEntry{Timestamp: noTimestamp, RelativeOffset: -1}
	if n := len(x.times); n > 0 {
		last = x.times[n-1]
	}
	e := TimeEntry{Timestamp: x.maxTimestamp, RelativeOffset: int32(x.maxOffset - base)}
	if e.Timestamp > last.Timestamp && e.RelativeOffset > last.RelativeOffset {
		x.times = append(x.times, e)
	}
}

// complete writes down the largest timestamp: no batch will follow.
func (x *segmentIndex) complete(base int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.addTime(base)
}

func (x *segmentIndex) addTxn(e TxnEntry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.txns = append(x.txns, e)
}

// truncate drops what lies at or behind an offset. The slices are cut so that
// later entries go to new memory: a reader may still search the old ones.
func (x *segmentIndex) truncate(base, offset int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := len(x.offsets)
	for i > 0 && base+int64(x.offsets[i-1].RelativeOffset) >= offset {
		i--
	}
	x.offsets = x.offsets[:i:i]
	j := len(x.times)
	for j > 0 && base+int64(x.times[j-1].RelativeOffset) >= offset {
		j--
	}
	x.times = x.times[:j:j]
	k := len(x.txns)
	for k > 0 && x.txns[k-1].LastOffset >= offset {
		k--
	}
	x.txns = x.txns[:k:k]
	x.maxTimestamp, x.maxOffset = noTimestamp, base
	if j > 0 {
		x.maxTimestamp, x.maxOffset = x.times[j-1].Timestamp, base+int64(x.times[j-1].RelativeOffset)
	}
	x.saved = savedEntries{-1, -1, -1}
}

// full tells whether a file of maxBytes would have no room for another entry.
func (x *segmentIndex) full(maxBytes int32) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.offsets) >= int(maxBytes)/offsetEntrySize || len(x.times) >= int(maxBytes)/timeEntrySize-1
}

// view returns the entries as they are; they do not change.
func (x *segmentIndex) view() ([]OffsetEntry, []TimeEntry, []TxnEntry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.offsets, x.times, x.txns
}

func (x *segmentIndex) largest() (timestamp, offset int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.maxTimestamp, x.maxOffset
}

// loadSegmentIndex reads the index files of a segment. A missing or corrupt
// offset or time index is an errCorruptIndex: the caller rebuilds all three.
func loadSegmentIndex(fs vfs.FS, dir string, base, logSize int64) (*segmentIndex, error) {
	x := newSegmentIndex(base)
	b, err := readIndexFile(fs, segmentFile(dir, base, indexSuffix))
	if err != nil {
		return nil, err
	}
	if x.offsets, err = ParseOffsetIndex(b, logSize); err != nil {
		return nil, err
	}
	x.saved.offsets = savedCount(len(b), len(x.offsets), offsetEntrySize)
	if b, err = readIndexFile(fs, segmentFile(dir, base, timeIndexSuffix)); err != nil {
		return nil, err
	}
	if x.times, err = ParseTimeIndex(b); err != nil {
		return nil, err
	}
	x.saved.times = savedCount(len(b), len(x.times), timeEntrySize)
	if b, err = vfs.ReadFile(fs, segmentFile(dir, base, txnIndexSuffix)); err != nil && !errors.Is(err, vfs.ErrNotExist) {
		return nil, err
	}
	if x.txns, err = ParseTxnIndex(b, base); err != nil {
		return nil, err
	}
	x.saved.txns = len(x.txns)
	if n := len(x.times); n > 0 {
		x.maxTimestamp, x.maxOffset = x.times[n-1].Timestamp, base+int64(x.times[n-1].RelativeOffset)
	}
	return x, nil
}

func readIndexFile(fs vfs.FS, name string) ([]byte, error) {
	b, err := vfs.ReadFile(fs, name)
	if errors.Is(err, vfs.ErrNotExist) {
		return nil, errors.Join(errCorruptIndex, err)
	}
	return b, err
}

// savedCount says how many entries a file of size bytes holds usefully:
// behind Kafka's trailing zeros nothing can be appended.
func savedCount(size, entries, entrySize int) int {
	if size != entries*entrySize {
		return -1
	}
	return entries
}

// save brings the index files up to date, durably if asked. Only the flusher
// calls it.
func (x *segmentIndex) save(fs vfs.FS, dir string, base int64, durable bool) error {
	offsets, times, txns := x.view()
	if err := saveEntries(fs, segmentFile(dir, base, indexSuffix), offsets, &x.saved.offsets, offsetEntrySize, AppendOffsetIndex, durable); err != nil {
		return err
	}
	if err := saveEntries(fs, segmentFile(dir, base, timeIndexSuffix), times, &x.saved.times, timeEntrySize, AppendTimeIndex, durable); err != nil {
		return err
	}
	name := segmentFile(dir, base, txnIndexSuffix)
	if len(txns) == 0 {
		if x.saved.txns < 0 {
			if err := fs.Remove(name); err != nil && !errors.Is(err, vfs.ErrNotExist) {
				return err
			}
			x.saved.txns = 0
		}
		return nil
	}
	return saveEntries(fs, name, txns, &x.saved.txns, txnEntrySize, AppendTxnIndex, durable)
}

// saveEntries appends the entries that a file lacks. An index that is to have
// no entries still has to have a file.
func saveEntries[E any](fs vfs.FS, name string, entries []E, saved *int, size int, encode func([]byte, []E) []byte, durable bool) error {
	if *saved == len(entries) && len(entries) > 0 {
		return nil
	}
	f, err := fs.Open(name, vfs.Create)
	if err != nil {
		return err
	}
	keep := max(*saved, 0)
	if f.Size() != int64(keep*size) {
		err = f.Truncate(0) // not what we left there: write all of it
		keep = 0
	}
	*saved = -1
	if err == nil && keep < len(entries) {
		_, err = f.Append(encode(nil, entries[keep:]))
	}
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		*saved = len(entries)
	}
	return err
}
