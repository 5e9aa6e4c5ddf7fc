package storage

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
)

// rollIfDue begins a new segment if the batches do not belong into the active
// one: no room, too old, index full, or offsets too far from its base.
func (l *Log) rollIfDue(v *validated, cfg *LogConfig, now time.Time) error {
	first, last := v.headers[0].BaseOffset, v.headers[len(v.headers)-1].LastOffset()
	if !l.rollDue(int64(len(v.data)), last, v.maxTimestamp, cfg, now) {
		return nil
	}
	return l.roll(max(first, l.end), now)
}

func (l *Log) rollDue(bytes, lastOffset, maxTimestamp int64, cfg *LogConfig, now time.Time) bool {
	s := l.active()
	size := s.size.Load()
	if size > int64(cfg.SegmentBytes)-bytes || !fitsRelative(s.base, lastOffset) || size+bytes > math.MaxInt32 {
		return size > 0 || !fitsRelative(s.base, lastOffset)
	}
	if x := s.idx.Load(); x != nil && x.full(cfg.SegmentIndexBytes) {
		return true
	}
	if size == 0 {
		return false
	}
	waited := millis(now) - s.created
	if base, ok := s.rollingBase(); ok && maxTimestamp >= 0 {
		waited = maxTimestamp - base
	}
	return waited > cfg.SegmentMs-l.rollJitter
}

// roll closes the active segment and begins one at base. The old one is
// flushed by the next Flush or Tick, not here: an append would wait for it.
func (l *Log) roll(base int64, now time.Time) error {
	old := l.active()
	if base == old.base {
		if old.size.Load() == 0 {
			return nil
		}
		return fmt.Errorf("storage: segment %d of %s cannot be followed by one at the same offset", old.base, l.partition)
	}
	x, err := old.index()
	if err != nil {
		return err
	}
	x.complete(old.base)
	l.producers.mapEnd = max(l.producers.mapEnd, base)
	if err := l.takeSnapshot(); err != nil {
		return err
	}
	s, err := createSegment(l.fs, l.dir, base, now)
	if err != nil {
		return err
	}
	l.drawJitter()
	l.publish(append(slices.Clip(l.segments), s), max(l.end, base), 0)
	return nil
}

// drawJitter decides how much earlier than segment.ms the segment is rolled,
// so that the partitions of a broker do not all roll at once.
func (l *Log) drawJitter() {
	l.rollJitter = 0
	if limit := min(l.config.Load().SegmentJitterMs, l.config.Load().SegmentMs); limit > 0 && l.jitter != nil {
		l.rollJitter = l.jitter(limit)
	}
}

// Roll begins a new segment unless the active one is empty.
func (l *Log) Roll(now time.Time) error {
	return l.write(func() error {
		if l.active().size.Load() == 0 {
			return nil
		}
		if err := l.roll(l.end, now); err != nil {
			return l.fail("roll", err)
		}
		return nil
	})
}

// takeSnapshot writes the producer state at mapEnd, unless the newest snapshot
// has it already. It is not synced: without it recovery reads more of the log.
func (l *Log) takeSnapshot() error {
	p := l.producers
	if p.mapEnd <= p.lastSnap {
		return nil
	}
	name := segmentFile(l.dir, p.mapEnd, snapshotSuffix)
	if err := vfs.WriteFile(l.fs, name, AppendProducerSnapshot(nil, p.snapshot())); err != nil {
		return err
	}
	p.lastSnap = p.mapEnd
	return nil
}
