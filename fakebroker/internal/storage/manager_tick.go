package storage

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
)

// Kafka's defaults of the intervals of a Manager, in milliseconds.
const (
	defaultRetentionCheckMs     = 300_000
	defaultProducerCheckMs      = 600_000
	defaultRecoveryCheckpointMs = 60_000
	defaultStartCheckpointMs    = 60_000
	defaultHighWatermarkCheckMs = 5_000
	defaultFlushCheckMs         = 1_000
	removalCheckMs              = 1_000
)

// chore is one kind of timed work.
type chore struct {
	every int64 // ms
	next  int64 // ms
}

// due tells whether the chore's time has come and plans the next one.
func (c *chore) due(now int64) bool {
	if now < c.next {
		return false
	}
	c.next = now + c.every
	return true
}

// schedule says when a Manager has to do what. It belongs to whoever holds
// busy: Tick and Close.
type schedule struct {
	busy                                                               chan struct{}
	retention, producers, recovery, starts, watermarks, flush, removal chore
}

func newSchedule(o *ManagerOptions, now time.Time) schedule {
	plan := func(every, otherwise int64) chore {
		if every <= 0 {
			every = otherwise
		}
		return chore{every: every, next: millis(now) + every}
	}
	return schedule{
		busy:       make(chan struct{}, 1),
		retention:  plan(o.RetentionCheckMs, defaultRetentionCheckMs),
		producers:  plan(o.ProducerCheckMs, defaultProducerCheckMs),
		recovery:   plan(o.RecoveryCheckpointMs, defaultRecoveryCheckpointMs),
		starts:     plan(o.StartCheckpointMs, defaultStartCheckpointMs),
		watermarks: plan(o.HighWatermarkCheckMs, defaultHighWatermarkCheckMs),
		flush:      plan(o.FlushCheckMs, defaultFlushCheckMs),
		removal:    plan(removalCheckMs, removalCheckMs),
	}
}

// Tick does what is due at now: retention, flush.ms and finished segments,
// removal of deleted files, expiry of producers, checkpoints. It works on the
// disk and may take long; call it from a goroutine that nobody waits for. A
// second call waits for the first.
func (m *Manager) Tick(now time.Time) {
	m.schedule.busy <- struct{}{}
	defer func() { <-m.schedule.busy }()
	s, ms := &m.schedule, millis(now)
	retention, expire := s.retention.due(ms), s.producers.due(ms)
	flush, removal := s.flush.due(ms), s.removal.due(ms)
	if retention || expire || flush || removal {
		for l := range m.Logs() {
			if !retention && !expire && !l.restless() {
				continue
			}
			// A disk error has ended the log, and its dir, already; a log that
			// was closed or deleted meanwhile is none of our business.
			_ = l.tick(now, retention, expire, flush)
		}
	}
	if removal {
		m.removeDoomed(ms)
	}
	m.checkpoint(s.recovery.due(ms), s.starts.due(ms), s.watermarks.due(ms))
}

// Deadline returns when Tick has something to do next.
func (m *Manager) Deadline() time.Time {
	m.schedule.busy <- struct{}{}
	defer func() { <-m.schedule.busy }()
	s := &m.schedule
	next := min(s.retention.next, s.producers.next, s.recovery.next, s.starts.next, s.watermarks.next, s.flush.next, s.removal.next)
	return time.UnixMilli(next)
}

// removeDoomed removes the folders of deleted logs whose delay is over.
func (m *Manager) removeDoomed(now int64) {
	m.mu.Lock()
	var due, later []doomedDir
	for _, d := range m.doomed {
		if d.due <= now {
			due = append(due, d)
		} else {
			later = append(later, d)
		}
	}
	m.doomed = later
	m.mu.Unlock()
	for _, d := range due {
		if err := m.opts.FS.RemoveAll(d.path); err != nil {
			m.fail(filepath.Dir(d.path), err)
		}
	}
}

// Checkpoint writes all checkpoint files now.
func (m *Manager) Checkpoint() {
	m.schedule.busy <- struct{}{}
	defer func() { <-m.schedule.busy }()
	m.checkpoint(true, true, true)
}

func (m *Manager) checkpoint(recovery, starts, watermarks bool) {
	if !recovery && !starts && !watermarks {
		return
	}
	logs := m.sorted()
	for _, d := range m.dirs {
		if m.dirFailed(d) != nil {
			continue
		}
		var err error
		if recovery {
			err = m.writeCheckpoint(d, logs, RecoveryPointCheckpoint, (*Log).recoveryToCheck)
		}
		if starts {
			err = errors.Join(err, m.writeCheckpoint(d, logs, LogStartCheckpoint, (*Log).startToCheck))
		}
		if watermarks {
			err = errors.Join(err, m.writeCheckpoint(d, logs, HighWatermarkCheckpoint, (*Log).watermarkToCheck))
		}
		if err != nil {
			m.fail(d.path, err)
		}
	}
}

func (m *Manager) dirFailed(d *logDir) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return d.failed
}

func (m *Manager) writeCheckpoint(d *logDir, logs []*Log, name string, offset func(*Log) (int64, bool)) error {
	offsets := make(map[TopicPartition]int64, len(logs))
	for _, l := range logs {
		if l.LogDir() != d.path {
			continue
		}
		if o, ok := offset(l); ok {
			offsets[l.partition] = o
		}
	}
	content := AppendOffsetCheckpoint(nil, offsets)
	if d.written[name] == string(content) {
		return nil
	}
	delete(d.written, name)
	if err := vfs.WriteFileAtomic(m.opts.FS, filepath.Join(d.path, name), content, true); err != nil {
		return err
	}
	d.written[name] = string(content)
	return nil
}

func (l *Log) recoveryToCheck() (int64, bool)  { return l.RecoveryPoint(), true }
func (l *Log) watermarkToCheck() (int64, bool) { return l.HighWatermark(), true }

// startToCheck leaves out what the name of the first segment says already.
func (l *Log) startToCheck() (int64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.start, l.segments[0].base < l.start
}

// Close ends all logs and leaves the log dirs as Apache Kafka leaves them
// after a clean stop of a broker with that epoch (-1 if it has none). A log
// dir with an error gets no clean shutdown file: it will be recovered.
func (m *Manager) Close(brokerEpoch int64, now time.Time) error {
	m.mu.Lock()
	was := m.closed
	m.closed = true
	m.mu.Unlock()
	if was {
		return nil
	}
	m.schedule.busy <- struct{}{}
	defer func() { <-m.schedule.busy }()
	var all error
	bad := make(map[string]error)
	for l := range m.Logs() {
		dir := l.LogDir()
		if err := l.Close(now); err != nil {
			bad[dir] = errors.Join(bad[dir], err)
			all = errors.Join(all, err)
		}
	}
	m.checkpoint(true, true, true)
	for _, d := range m.dirs {
		if bad[d.path] == nil && m.dirFailed(d) == nil {
			all = errors.Join(all, m.markClean(d, brokerEpoch))
		}
	}
	m.unlock()
	return all
}

func (m *Manager) markClean(d *logDir, brokerEpoch int64) error {
	name := filepath.Join(d.path, CleanShutdownFile)
	err := vfs.WriteFileAtomic(m.opts.FS, name, appendCleanShutdown(nil, brokerEpoch), true)
	cleaner := filepath.Join(d.path, CleanerCheckpoint)
	if _, e := m.opts.FS.Stat(cleaner); errors.Is(e, vfs.ErrNotExist) {
		err = errors.Join(err, vfs.WriteFile(m.opts.FS, cleaner, AppendOffsetCheckpoint(nil, nil)))
	}
	return err
}
