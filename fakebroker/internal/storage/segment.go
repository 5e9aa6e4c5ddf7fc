package storage

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/record"
)

// segment is a stretch of a log: a file of record batches, with its indexes.
// The last segment of a log is the active one, the only one that grows.
//
// Readers use base, log, size and the index; the rest belongs to the writer
// of the log. size is what readers may see: it is set together with the log
// end offset, after the bytes have been written.
type segment struct {
	fs   vfs.FS
	dir  string
	base int64 // no record has a smaller offset
	log  *handle
	size atomic.Int64
	idx  atomic.Pointer[segmentIndex] // nil until somebody needs it

	created    int64 // ms; rolling counts from here if there are no timestamps
	firstTime  int64 // largest timestamp of the first batch, see rollingBase
	knowsFirst bool
	sinceIndex int // bytes since the last index entry
}

// createSegment makes an empty segment. Its .log exists at once, its indexes
// from the first flush on.
func createSegment(fs vfs.FS, dir string, base int64, now time.Time) (*segment, error) {
	f, err := fs.Open(segmentFile(dir, base, logSuffix), vfs.Create)
	if err != nil {
		return nil, err
	}
	if f.Size() > 0 {
		if err := f.Truncate(0); err != nil { // left behind by a crash
			return nil, errors.Join(err, f.Close())
		}
	}
	s := &segment{fs: fs, dir: dir, base: base, log: newHandle(f), created: now.UnixMilli()}
	x := newSegmentIndex(base)
	x.saved = savedEntries{-1, -1, -1}
	s.idx.Store(x)
	return s, nil
}

// openSegment opens a segment that is there. Nothing is read yet.
func openSegment(fs vfs.FS, dir string, base int64, now time.Time) (*segment, error) {
	f, err := fs.Open(segmentFile(dir, base, logSuffix), vfs.ReadWrite)
	if err != nil {
		return nil, err
	}
	s := &segment{fs: fs, dir: dir, base: base, log: newHandle(f), created: now.UnixMilli()}
	s.size.Store(f.Size())
	return s, nil
}

// index returns the indexes, reading them from their files when needed the
// first time. A missing or corrupt one is rebuilt from the log. Two callers
// may do this at once; one result wins.
func (s *segment) index() (*segmentIndex, error) {
	if x := s.idx.Load(); x != nil {
		return x, nil
	}
	x, err := loadSegmentIndex(s.fs, s.dir, s.base, s.size.Load())
	if errors.Is(err, errCorruptIndex) {
		x, err = s.rebuildIndex()
	}
	if err != nil {
		return nil, err
	}
	s.idx.CompareAndSwap(nil, x)
	return s.idx.Load(), nil
}

// rebuildIndex makes offset and time index from the log. The transaction index
// cannot be made from one segment alone; what its file holds is kept.
func (s *segment) rebuildIndex() (*segmentIndex, error) {
	x := newSegmentIndex(s.base)
	x.saved = savedEntries{-1, -1, -1}
	c := newCursor(s.log.file, 0, s.size.Load())
	defer c.release()
	var h record.BatchHeader
	since := 0
	for {
		err := c.peek(&h)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		x.addBatch(s.base, &h, c.pos, &since, DefaultLogConfig().IndexIntervalBytes)
		c.skip(&h)
	}
	x.complete(s.base)
	b, err := vfs.ReadFile(s.fs, segmentFile(s.dir, s.base, txnIndexSuffix))
	if err == nil {
		x.txns, err = ParseTxnIndex(b, s.base)
	}
	if err != nil && !errors.Is(err, vfs.ErrNotExist) && !errors.Is(err, errCorruptIndex) {
		return nil, err
	}
	return x, nil
}

// append writes whole batches whose headers are given, in one write. The new
// size is returned, not published: see Log.publish. After an error the file
// is cut back; if that fails too, size still keeps readers off the rest.
func (s *segment) append(p []byte, headers []record.BatchHeader, interval int32) (size int64, err error) {
	x, err := s.index()
	if err != nil {
		return 0, err
	}
	pos := s.size.Load()
	if _, err := s.log.file.Append(p); err != nil {
		return 0, errors.Join(err, s.log.file.Truncate(pos))
	}
	for i := range headers {
		h := &headers[i]
		s.note(x, h, pos, interval)
		pos += int64(h.Size())
	}
	return pos, nil
}

// note brings the indexes up to date for a batch at pos.
func (s *segment) note(x *segmentIndex, h *record.BatchHeader, pos int64, interval int32) {
	if pos == 0 {
		s.firstTime, s.knowsFirst = h.MaxTimestamp, true
	}
	x.addBatch(s.base, h, pos, &s.sinceIndex, interval)
}

// position returns where the first batch begins whose last offset is at or
// above offset, and its header; io.EOF when there is none before end.
func (s *segment) position(offset, end int64, h *record.BatchHeader) (int64, error) {
	x, err := s.index()
	if err != nil {
		return 0, err
	}
	offsets, _, _ := x.view()
	start := floorOffset(offsets, offset-s.base)
	pos, err := s.scanTo(start, offset, end, h)
	if err != nil && start > 0 && errors.Is(err, errBadBatch) {
		// The index points to where no batch begins: do without.
		pos, err = s.scanTo(0, offset, end, h)
	}
	return pos, err
}

func (s *segment) scanTo(start, offset, end int64, h *record.BatchHeader) (int64, error) {
	c := newCursor(s.log.file, start, end)
	defer c.release()
	for {
		if err := c.peek(h); err != nil {
			return c.pos, err
		}
		if h.LastOffset() >= offset {
			return c.pos, nil
		}
		c.skip(h)
	}
}

// nextOffset returns the offset behind the last batch; base when empty.
func (s *segment) nextOffset() (int64, error) {
	x, err := s.index()
	if err != nil {
		return 0, err
	}
	offsets, _, _ := x.view()
	start := int64(0)
	if n := len(offsets); n > 0 {
		start = int64(offsets[n-1].Position)
	}
	c := newCursor(s.log.file, start, s.size.Load())
	defer c.release()
	next := s.base
	var h record.BatchHeader
	for {
		switch err := c.peek(&h); {
		case err == io.EOF:
			return next, nil
		case err != nil:
			return 0, fmt.Errorf("%s: %w", segmentFile(s.dir, s.base, logSuffix), err)
		}
		next = h.NextOffset()
		c.skip(&h)
	}
}

// truncateTo cuts the segment so that no batch reaches offset. Returns the
// number of bytes cut.
func (s *segment) truncateTo(offset int64, now time.Time) (int64, error) {
	x, err := s.index()
	if err != nil {
		return 0, err
	}
	size := s.size.Load()
	var h record.BatchHeader
	pos, err := s.position(offset, size, &h)
	if err == io.EOF {
		return 0, nil // nothing at or behind offset
	}
	if err != nil {
		return 0, err
	}
	x.truncate(s.base, h.BaseOffset)
	if err := s.log.file.Truncate(pos); err != nil {
		return 0, err
	}
	s.size.Store(pos)
	s.sinceIndex = 0
	if pos == 0 {
		s.created, s.knowsFirst = now.UnixMilli(), false
	}
	return size - pos, s.remember(x)
}

// remember finds the largest timestamp again, which the index knows only up to
// its last entry.
func (s *segment) remember(x *segmentIndex) error {
	offsets, _, _ := x.view()
	start := int64(0)
	if n := len(offsets); n > 0 {
		start = int64(offsets[n-1].Position)
	}
	c := newCursor(s.log.file, start, s.size.Load())
	defer c.release()
	var h record.BatchHeader
	for {
		err := c.peek(&h)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		x.mu.Lock()
		if h.MaxTimestamp > x.maxTimestamp {
			x.maxTimestamp, x.maxOffset = h.MaxTimestamp, h.LastOffset()
		}
		x.mu.Unlock()
		c.skip(&h)
	}
}

// largestTimestamp is what retention goes by: the largest record timestamp,
// or the file's time if the records have none.
func (s *segment) largestTimestamp() (int64, error) {
	if x := s.idx.Load(); x != nil {
		if ts, _ := x.largest(); ts >= 0 {
			return ts, nil
		}
	} else if ts, ok := s.lastTimeEntry(); ok {
		return ts, nil
	}
	info, err := s.fs.Stat(segmentFile(s.dir, s.base, logSuffix))
	if err != nil {
		return 0, err
	}
	return info.ModTime.UnixMilli(), nil
}

// lastTimeEntry reads the last entry of a time index that is not in memory, so
// that retention does not load the indexes of all segments.
func (s *segment) lastTimeEntry() (int64, bool) {
	f, err := s.fs.Open(segmentFile(s.dir, s.base, timeIndexSuffix), vfs.ReadOnly)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	var b [timeEntrySize]byte
	if f.Size() < timeEntrySize || f.Size()%timeEntrySize != 0 {
		return 0, false
	}
	if _, err := f.ReadAt(b[:], f.Size()-timeEntrySize); err != nil {
		return 0, false
	}
	entries, err := ParseTimeIndex(b[:])
	if err != nil || len(entries) == 0 || entries[0] == (TimeEntry{}) {
		return 0, false
	}
	return entries[0].Timestamp, true
}

// rollingBase returns the time from which segment.ms counts: the largest
// timestamp of the first batch, if it has one.
func (s *segment) rollingBase() (int64, bool) {
	if !s.knowsFirst && s.size.Load() > 0 {
		c := newCursor(s.log.file, 0, s.size.Load())
		defer c.release()
		var h record.BatchHeader
		if c.peek(&h) == nil {
			s.firstTime, s.knowsFirst = h.MaxTimestamp, true
		}
	}
	return s.firstTime, s.knowsFirst && s.firstTime >= 0
}

// sync makes the log and the indexes durable.
func (s *segment) sync() error {
	x, err := s.index()
	if err != nil {
		return err
	}
	if err := s.log.file.Sync(); err != nil {
		return err
	}
	return x.save(s.fs, s.dir, s.base, true)
}

// rename gives all files of the segment another suffix, for deletion.
func (s *segment) rename(suffix string) error {
	for _, kind := range segmentSuffixes {
		name := segmentFile(s.dir, s.base, kind)
		if err := s.fs.Rename(name, name+suffix); err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return err
		}
	}
	return nil
}
