package storage

import (
	"errors"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// DeleteRecordsTo moves the log start offset up, at most to the high
// watermark; -1 means up to there. It may come to lie inside a batch. Whole
// segments below it are deleted by the next DeleteOldSegments. Returns the
// log start offset, which a smaller offset does not change.
func (l *Log) DeleteRecordsTo(offset int64) (int64, error) {
	var start int64
	err := l.write(func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if offset == -1 {
			offset = l.highWatermark
		}
		if offset < 0 || offset > l.highWatermark {
			return refuse(errcode.OffsetOutOfRange, "records of %s cannot be deleted up to offset %d, the high watermark is %d", l.partition, offset, l.highWatermark)
		}
		l.raiseStart(offset)
		start = l.start
		return nil
	})
	return start, err
}

// RaiseLogStart adopts the leader's log start offset on a follower, which may
// be above the follower's high watermark but not above its log end.
func (l *Log) RaiseLogStart(offset int64) error {
	return l.write(func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.raiseStart(min(offset, l.end))
		return nil
	})
}

// raiseStart moves the log start up and drops what only the records below it
// needed. mu and the writing slot are held.
func (l *Log) raiseStart(offset int64) {
	if offset <= l.start {
		return
	}
	l.start = offset
	l.highWatermark = max(l.highWatermark, offset)
	if l.epochs.truncateStart(offset) {
		l.epochsDirty = true
	}
	l.producers.logStart(offset)
	l.noteUnstable()
}

// TruncateTo drops all batches that reach offset; the log end becomes offset.
// A follower does this to agree with its leader. An offset at or behind the
// log end changes nothing.
func (l *Log) TruncateTo(offset int64, now time.Time) error {
	return l.exclusive(func() error {
		switch {
		case offset >= l.end:
			return nil
		case offset < l.segments[0].base:
			return l.restartAt(offset, now)
		}
		if err := l.truncate(offset, now); err != nil {
			return l.fail("truncate", err)
		}
		return nil
	})
}

func (l *Log) truncate(offset int64, now time.Time) error {
	kept := l.find(offset) + 1
	dropped := l.segments[kept:]
	last := l.segments[kept-1]
	segments := l.segments[:kept:kept]
	// Readers must not see an offset whose bytes are about to go.
	l.publish(l.segments, offset, l.active().size.Load())
	if _, err := last.truncateTo(offset, now); err != nil {
		return err
	}
	for i := len(dropped) - 1; i >= 0; i-- { // the last first: a crash leaves no gap
		if err := l.removeSegment(dropped[i]); err != nil {
			return err
		}
	}
	l.publish(segments, offset, last.size.Load())
	l.mu.Lock()
	if l.epochs.truncateEnd(offset) {
		l.epochsDirty = true
	}
	l.start = min(l.start, offset)
	l.recoveryPoint = min(l.recoveryPoint, offset)
	l.mu.Unlock()
	return l.reloadProducers(offset, now)
}

// TruncateFullyAndStartAt drops everything; the log begins and ends at offset.
func (l *Log) TruncateFullyAndStartAt(offset int64, now time.Time) error {
	return l.exclusive(func() error { return l.restartAt(offset, now) })
}

func (l *Log) restartAt(offset int64, now time.Time) error {
	old := l.segments
	for i := len(old) - 1; i >= 0; i-- {
		if err := l.removeSegment(old[i]); err != nil {
			return l.fail("truncate", err)
		}
	}
	s, err := createSegment(l.fs, l.dir, offset, now)
	if err != nil {
		return l.fail("truncate", err)
	}
	if err := l.removeSnapshots(func(int64) bool { return true }); err != nil {
		return l.fail("truncate", err)
	}
	l.mu.Lock()
	l.segments, l.start, l.end = []*segment{s}, offset, offset
	l.highWatermark, l.recoveryPoint = offset, min(l.recoveryPoint, offset)
	l.epochs, l.epochsDirty = epochCache{}, true
	l.producers.reset(offset)
	l.producers.lastSnap = offset
	l.noteUnstable()
	l.mu.Unlock()
	return nil
}

// removeSegment deletes the files of a segment at once. Its log stays open for
// answers that are being sent.
func (l *Log) removeSegment(s *segment) error {
	for _, kind := range segmentSuffixes {
		if err := l.fs.Remove(segmentFile(l.dir, s.base, kind)); err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return err
		}
	}
	s.log.release()
	return nil
}

// snapshots lists the offsets of the producer snapshots, rising.
func snapshots(fs vfs.FS, dir string) ([]int64, error) {
	infos, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	var offsets []int64
	for _, info := range infos {
		if offset, suffix, ok := parseFileName(info.Name); ok && suffix == snapshotSuffix {
			offsets = append(offsets, offset)
		}
	}
	slices.Sort(offsets)
	return offsets, nil
}

func (l *Log) removeSnapshots(which func(offset int64) bool) error {
	offsets, err := snapshots(l.fs, l.dir)
	if err != nil {
		return err
	}
	for _, offset := range offsets {
		if !which(offset) {
			continue
		}
		if err := l.fs.Remove(segmentFile(l.dir, offset, snapshotSuffix)); err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return err
		}
	}
	return nil
}
