package storage

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/record"
)

// load brings a log with segments to life. After an unclean stop everything
// from the recovery point on is in doubt, because it was never flushed:
//
//  1. scan each such segment batch by batch; the first one that is not whole,
//     fails its checksum, or goes back in offsets ends the log: cut it off
//     there and drop all later segments;
//  2. rebuild the indexes of the scanned segments on the way;
//  3. drop leader epochs at or behind the log end, and below the log start;
//  4. producer state: newest good snapshot at or below the log end, then
//     replay of what follows it.
//
// All of it depends only on what the files hold, and leaves them so that doing
// it again changes nothing (invariant P9).
func (l *Log) load(opts LogOptions, now time.Time) error {
	if err := l.loadEpochs(); err != nil {
		return err
	}
	if !opts.Clean {
		if err := l.recover(opts.RecoveryPoint); err != nil {
			return err
		}
	}
	end, err := l.active().nextOffset()
	if errors.Is(err, errBadBatch) {
		// Marked as clean, and yet broken: do not trust any of it.
		opts.Clean = false
		if err = l.recover(0); err == nil {
			end, err = l.active().nextOffset()
		}
	}
	if err != nil {
		return err
	}
	l.end = end
	l.start = max(opts.LogStartOffset, l.segments[0].base)
	if l.start > l.end {
		// The records from the log start on were lost: nothing that is left
		// may be seen again.
		return l.restartAt(l.start, now)
	}
	l.highWatermark = l.start
	l.recoveryPoint = min(opts.RecoveryPoint, l.end)
	if opts.Clean {
		l.recoveryPoint = l.end
	}
	cutEnd, cutStart := l.epochs.truncateEnd(l.end), l.epochs.truncateStart(l.start)
	l.epochsDirty = l.epochsDirty || cutEnd || cutStart
	return l.loadProducers(opts.Clean, now)
}

func (l *Log) loadEpochs() error {
	b, err := vfs.ReadFile(l.fs, filepath.Join(l.dir, epochCheckpointFile))
	if errors.Is(err, vfs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	entries, err := ParseEpochCheckpoint(b)
	if err != nil {
		// The batches have their epochs too; those of the scanned segments
		// come back, older ones are unknown until the log start passes them.
		l.logger.Warn("leader epochs are unreadable", "partition", l.partition.String(), "err", err)
		l.epochsDirty = true
		return nil
	}
	l.epochs.entries = entries
	return nil
}

// recover scans the segments that reach the recovery point. Producer snapshots
// taken after the beginning of the first one go: what they say was not flushed
// either, and the replay that stands in for them also brings back the
// transaction indexes.
func (l *Log) recover(recoveryPoint int64) error {
	first := l.find(recoveryPoint)
	base := l.segments[first].base
	if err := l.removeSnapshots(func(offset int64) bool { return offset > base }); err != nil {
		return err
	}
	for i := first; i < len(l.segments); i++ {
		s := l.segments[i]
		cut, err := l.recoverSegment(s)
		if err != nil {
			return err
		}
		if cut == 0 {
			continue
		}
		l.logger.Warn("log was cut", "partition", l.partition.String(), "segment", s.base, "bytes", cut, "later segments", len(l.segments)-i-1)
		for j := len(l.segments) - 1; j > i; j-- {
			if err := l.removeSegment(l.segments[j]); err != nil {
				return err
			}
		}
		l.segments = l.segments[: i+1 : i+1]
	}
	return nil
}

// recoverSegment finds the longest valid prefix of a segment, cuts the file
// there and rebuilds the indexes; returns the number of bytes cut. The entries
// of the transaction index come back with the producer state.
func (l *Log) recoverSegment(s *segment) (int64, error) {
	x := newSegmentIndex(s.base)
	x.saved = savedEntries{-1, -1, -1}
	size := s.size.Load()
	r := batchReader{f: s.log.file, end: size, check: true}
	interval := l.config.Load().IndexIntervalBytes
	s.sinceIndex = 0
	floor := s.base
	for {
		pos := r.pos
		h, batch, err := r.next()
		if err == io.EOF {
			break
		}
		if err == nil && h.Control() && h.HasProducer() && h.Count > 0 {
			if _, e := readMarker(batch); e != nil {
				err = fmt.Errorf("%w at position %d: %w", errBadBatch, pos, e) // sound, and yet no marker
			}
		}
		if err == nil && (h.BaseOffset < floor || !fitsRelative(s.base, h.LastOffset())) {
			err = fmt.Errorf("%w at position %d: offsets %d to %d where %d or more is expected", errBadBatch, pos, h.BaseOffset, h.LastOffset(), floor)
		}
		if errors.Is(err, errBadBatch) {
			l.logger.Warn("first bad byte", "partition", l.partition.String(), "segment", s.base, "err", err)
			r.pos = pos
			break
		}
		if err != nil {
			return 0, err
		}
		s.note(x, &h, pos, interval)
		if l.epochs.latest() < h.PartitionLeaderEpoch && l.epochs.assign(h.PartitionLeaderEpoch, h.BaseOffset) {
			l.epochsDirty = true
		}
		floor = h.NextOffset()
	}
	x.complete(s.base)
	s.idx.Store(x)
	if r.pos == size {
		return 0, nil
	}
	if err := s.log.file.Truncate(r.pos); err != nil {
		return 0, err
	}
	s.size.Store(r.pos)
	return size - r.pos, nil
}

// loadProducers brings the producer state to the log end.
func (l *Log) loadProducers(clean bool, now time.Time) error {
	offsets, err := snapshots(l.fs, l.dir)
	if err != nil {
		return err
	}
	if len(offsets) == 0 && clean {
		// A clean log without snapshots is one without producers: Kafka writes
		// none for an empty log, and old versions wrote none at all.
		l.producers.reset(l.end)
		l.producers.lastSnap = l.end
		return nil
	}
	if err := l.reloadProducers(l.end, now); err != nil {
		return err
	}
	if l.bugs.Has(bug.ProducersLostOnRestart) {
		l.producers.reset(l.end)
	}
	return l.takeSnapshot()
}

// reloadProducers rebuilds the producer state at the log end from the newest
// good snapshot, dropping those behind the log end and those that no segment
// begins with (except the newest), and replays what follows.
func (l *Log) reloadProducers(end int64, now time.Time) error {
	offsets, err := snapshots(l.fs, l.dir)
	if err != nil {
		return err
	}
	from := l.start
	l.resetProducers(from, now, nil)
	for _, offset := range slices.Backward(offsets) {
		if offset > end {
			err = l.removeNames([]string{offsetName(offset) + snapshotSuffix})
		} else {
			var ok bool
			if ok, err = l.restoreSnapshot(offset, now); ok {
				from = max(from, offset)
				break
			}
		}
		if err != nil {
			return err
		}
	}
	l.producers.logStart(l.start)
	if err := l.removeStraySnapshots(offsets, end); err != nil {
		return err
	}
	return l.replay(from, end)
}

func (l *Log) resetProducers(offset int64, now time.Time, entries []ProducerSnapshotEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.producers.lastSnap = offset
	l.producers.reset(offset)
	if entries != nil {
		l.producers.restore(entries, offset, millis(now), l.expirationMs)
	}
}

// restoreSnapshot loads one snapshot; a corrupt one is removed.
func (l *Log) restoreSnapshot(offset int64, now time.Time) (bool, error) {
	b, err := vfs.ReadFile(l.fs, segmentFile(l.dir, offset, snapshotSuffix))
	if err != nil {
		return false, err
	}
	entries, err := ParseProducerSnapshot(b)
	if err != nil {
		l.logger.Warn("producer snapshot is unusable", "partition", l.partition.String(), "offset", offset, "err", err)
		return false, l.removeNames([]string{offsetName(offset) + snapshotSuffix})
	}
	l.resetProducers(offset, now, entries)
	return true, nil
}

// removeStraySnapshots keeps the snapshots at the beginning of a segment and
// the newest one.
func (l *Log) removeStraySnapshots(offsets []int64, end int64) error {
	bases := make(map[int64]bool, len(l.segments))
	for _, s := range l.segments {
		bases[s.base] = true
	}
	newest := l.producers.lastSnap
	for _, offset := range offsets {
		if offset <= end && offset != newest && !bases[offset] {
			if err := l.removeNames([]string{offsetName(offset) + snapshotSuffix}); err != nil {
				return err
			}
		}
	}
	return nil
}

// replay takes the batches of [from, end) into the producer state, leaving a
// snapshot at the beginning of each segment. Aborted transactions that a
// rebuilt index lacks are added to it.
func (l *Log) replay(from, end int64) error {
	for i := l.find(from); i < len(l.segments) && from < end; i++ {
		s := l.segments[i]
		x, err := s.index()
		if err != nil {
			return err
		}
		if s.base > from {
			l.producers.mapEnd = max(l.producers.mapEnd, s.base)
			if err := l.takeSnapshot(); err != nil {
				return err
			}
		}
		var h record.BatchHeader
		pos, err := s.position(from, s.size.Load(), &h)
		if err == io.EOF {
			continue
		}
		if err != nil {
			return err
		}
		if err := l.replaySegment(s, x, pos); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.producers.mapEnd = max(l.producers.mapEnd, end)
	l.noteUnstable()
	return nil
}

func (l *Log) replaySegment(s *segment, x *segmentIndex, pos int64) error {
	r := batchReader{f: s.log.file, pos: pos, end: s.size.Load(), controlOnly: true}
	for {
		h, batch, err := r.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !h.HasProducer() {
			continue
		}
		if !h.Control() {
			l.mu.Lock()
			l.producers.update(&h)
			l.mu.Unlock()
			continue
		}
		m, err := readMarker(batch)
		if err != nil {
			if h.Count == 0 {
				continue // compaction took the marker and left the batch
			}
			return fmt.Errorf("marker at offset %d: %w", h.BaseOffset, err)
		}
		l.mu.Lock()
		l.replayMarker(x, &h, m)
		l.mu.Unlock()
	}
}

func (l *Log) replayMarker(x *segmentIndex, h *record.BatchHeader, m record.EndTxn) {
	done, ok := l.producers.updateMarker(h, m, h.MaxTimestamp)
	if !ok || !done.aborted || l.bugs.Has(bug.AbortedIndexNotRebuilt) {
		return
	}
	_, _, txns := x.view()
	if n := len(txns); n > 0 && txns[n-1].LastOffset >= done.last {
		return // the index was not rebuilt
	}
	x.addTxn(TxnEntry{ProducerID: done.producer, FirstOffset: done.first, LastOffset: done.last, LastStableOffset: l.producers.stableAfter(done)})
}
