package storage

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
)

// DeleteOldSegments deletes whole segments that are no longer to be kept:
// those below the log start offset, and, with cleanup.policy delete, those
// beyond retention.bytes and older than retention.ms. Nothing at or above the
// high watermark is deleted. If all go, a new empty segment takes over. The
// files are renamed at once and removed file.delete.delay.ms later, by Tick.
// Returns the number of segments deleted.
func (l *Log) DeleteOldSegments(now time.Time) (int, error) {
	deleted := 0
	err := l.exclusive(func() error {
		n, err := l.deletable(now)
		if err != nil {
			return l.fail("retention", err)
		}
		if n == 0 {
			return nil
		}
		if err := l.deleteFirst(n, now); err != nil {
			return l.fail("retention", err)
		}
		deleted = n
		return nil
	})
	return deleted, err
}

// deletable counts the segments, from the oldest, that may go.
func (l *Log) deletable(now time.Time) (int, error) {
	cfg := l.config.Load()
	p := l.view()
	surplus := int64(-1)
	if cfg.CleanupDelete && cfg.RetentionBytes >= 0 {
		surplus = -cfg.RetentionBytes
		for _, s := range p.segments {
			surplus += s.size.Load()
		}
	}
	n := 0
	for i, s := range p.segments {
		size := s.size.Load()
		if p.highWatermark < p.after(i) || i == len(p.segments)-1 && size == 0 {
			break
		}
		below := p.after(i) <= p.start && i < len(p.segments)-1
		over := surplus >= 0 && surplus-size >= 0
		old := false
		if !below && !over && cfg.CleanupDelete && cfg.RetentionMs >= 0 {
			largest, err := s.largestTimestamp()
			if err != nil {
				return 0, err
			}
			old = millis(now)-largest > cfg.RetentionMs
		}
		if !below && !over && !old {
			break
		}
		surplus -= size
		n++
	}
	return n, nil
}

func (l *Log) deleteFirst(n int, now time.Time) error {
	if n == len(l.segments) {
		if err := l.roll(l.end, now); err != nil {
			return err
		}
	}
	gone := l.segments[:n]
	kept := slices.Clone(l.segments[n:])
	l.mu.Lock()
	l.segments = kept
	l.raiseStart(kept[0].base)
	l.mu.Unlock()
	var names []string
	for _, s := range gone {
		if err := s.rename(deletedSuffix); err != nil {
			return err
		}
		for _, kind := range segmentSuffixes {
			names = append(names, segmentFile(l.dir, s.base, kind)+deletedSuffix)
		}
		snapshot := segmentFile(l.dir, s.base, snapshotSuffix)
		if err := l.fs.Rename(snapshot, snapshot+deletedSuffix); err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return err
		}
		names = append(names, snapshot+deletedSuffix)
		s.log.release()
		l.logger.Info("segment deleted", "partition", l.partition.String(), "base", s.base, "bytes", s.size.Load())
	}
	l.doomed = append(l.doomed, doomedFiles{due: millis(now) + l.config.Load().FileDeleteDelayMs, names: names})
	l.dooms.Store(int64(len(l.doomed)))
	return nil
}

// removeDoomed removes the files whose delay is over, or all. Removing a file
// that is gone is no error. The writing slot is held.
func (l *Log) removeDoomed(now time.Time, all bool) error {
	for len(l.doomed) > 0 && (all || l.doomed[0].due <= millis(now)) {
		for _, name := range l.doomed[0].names {
			if err := l.fs.Remove(name); err != nil && !errors.Is(err, vfs.ErrNotExist) {
				return err
			}
		}
		l.doomed = l.doomed[1:]
		l.dooms.Store(int64(len(l.doomed)))
	}
	return nil
}

// restless tells whether tick would have anything to do besides retention and
// expiry. Most of a broker's logs are idle most of the time.
func (l *Log) restless() bool {
	if l.dooms.Load() > 0 {
		return true
	}
	flushes := l.config.Load().FlushMs < math.MaxInt64
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recoveryPoint < l.active().base || flushes && l.recoveryPoint < l.end
}

// tick does the timed work of one log: see Manager.Tick.
func (l *Log) tick(now time.Time, retention, expire, flush bool) error {
	if retention {
		if _, err := l.DeleteOldSegments(now); err != nil {
			return err
		}
	}
	err := l.write(func() error {
		if expire {
			l.mu.Lock()
			l.producers.expire(millis(now), l.expirationMs)
			l.mu.Unlock()
		}
		if err := l.removeDoomed(now, false); err != nil {
			return l.fail("delete", err)
		}
		return nil
	})
	if err != nil || !flush {
		return err
	}
	return l.flushIfDue(now)
}

// flushIfDue flushes finished segments always, and the active one after flush.ms.
func (l *Log) flushIfDue(now time.Time) error {
	l.flushing <- struct{}{}
	defer func() { <-l.flushing }()
	due := millis(now)-l.lastFlush >= l.config.Load().FlushMs
	if err := l.flush(now, !due); err != nil {
		return err
	}
	if due {
		l.lastFlush = millis(now)
	}
	return nil
}
