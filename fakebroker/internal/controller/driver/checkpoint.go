package driver

import (
	"iter"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/raft"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// checkpointIfDue writes the image to a checkpoint when enough was written since the last one
// (metadata.log.max.record.bytes.between.snapshots) or the last one is old (metadata.log.max.snapshot.interval.ms, 0 =
// never) and something was written at all. It takes a moment per million partitions, during which requests wait.
func (d *Driver) checkpointIfDue(now time.Time) {
	if d.written == 0 || d.broken != nil {
		return
	}
	limit := d.o.Config.Int("metadata.log.max.record.bytes.between.snapshots")
	due := d.checkpointDue()
	if d.written < limit && (due.IsZero() || now.Before(due)) {
		return
	}
	if err := d.checkpoint(now); err != nil {
		// The log holds everything: try again after the next interval rather than at every record.
		d.o.Logger.Error("metadata checkpoint failed", "err", err)
		d.checkpointed(now)
	}
}

func (d *Driver) checkpoint(now time.Time) error {
	offset, epoch := d.loader.Image().Offset()
	next, stop := iter.Pull(d.loader.Image().Records())
	defer stop()
	var buf []byte
	err := d.quorum.WriteCheckpoint(now, raft.CheckpointID{Offset: offset + 1, Epoch: epoch}, d.lastTimestamp, func() ([]byte, bool, error) {
		rec, ok := next()
		if !ok {
			return nil, false, nil
		}
		var err error
		buf, err = rec.AppendValue(buf[:0])
		return buf, true, err
	})
	if err == nil {
		d.checkpointed(now)
	}
	return err
}

func (d *Driver) checkpointed(now time.Time) { d.written, d.checkpointAt = 0, now }

// checkpointDue is when the next checkpoint is due by time; zero for never.
func (d *Driver) checkpointDue() time.Time {
	interval := ms(d.o.Config.Int("metadata.log.max.snapshot.interval.ms"))
	if interval <= 0 || d.written == 0 {
		return time.Time{}
	}
	return d.checkpointAt.Add(interval)
}

// noOpDue is when a NoOp record is due; zero for never. Followers need it to keep their lag small, and there are none:
// so only a broker that was told to writes it.
func (d *Driver) noOpDue() time.Time {
	if _, set := d.o.Config.Static()["metadata.max.idle.interval.ms"]; !set {
		return time.Time{}
	}
	interval := ms(d.o.Config.Int("metadata.max.idle.interval.ms"))
	if interval <= 0 {
		return time.Time{}
	}
	return d.idleSince.Add(interval)
}

// deadline is when tick has something to do; zero for never.
func (d *Driver) deadline() (next time.Time) {
	if d.broken != nil {
		return next
	}
	for _, t := range []time.Time{d.checkpointDue(), d.noOpDue()} {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	return next
}

func (d *Driver) tick(now time.Time) {
	if t := d.noOpDue(); !t.IsZero() && !now.Before(t) && d.broken == nil {
		delta, err := d.append(now, []image.Record{{Record: &logrecord.NoOpRecord{}}})
		if err == nil {
			d.tell(delta)
		}
	}
	d.checkpointIfDue(now)
}
