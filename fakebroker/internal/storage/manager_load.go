package storage

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
)

// LoadLogs opens the logs that are in the log dirs, with the configs that
// config gives for their topics, and recovers them if the last run did not end
// cleanly. Which of them belong to no topic any more is for the broker to
// decide, by topic id. Folders of deleted logs are removed later, by Tick.
func (m *Manager) LoadLogs(config func(topic string) LogConfig, now time.Time) error {
	for _, d := range m.dirs {
		if err := m.loadDir(d, config, now); err != nil {
			return fmt.Errorf("log dir %s: %w", d.path, err)
		}
		// Only now: a crash during recovery has to lead to recovery again.
		if d.clean {
			if err := m.opts.FS.Remove(filepath.Join(d.path, CleanShutdownFile)); err != nil {
				return err
			}
			if err := m.opts.FS.SyncDir(d.path); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Manager) loadDir(d *logDir, config func(topic string) LogConfig, now time.Time) error {
	recovery := m.readCheckpoint(d, RecoveryPointCheckpoint)
	starts := m.readCheckpoint(d, LogStartCheckpoint)
	watermarks := m.readCheckpoint(d, HighWatermarkCheckpoint)
	infos, err := m.opts.FS.List(d.path)
	if err != nil {
		return err
	}
	for _, info := range infos {
		if !info.Dir {
			continue
		}
		dir := filepath.Join(d.path, info.Name)
		if strings.HasSuffix(info.Name, deleteDirSuffix) {
			m.doomed = append(m.doomed, doomedDir{due: millis(now), path: dir})
			continue
		}
		p, ok := parseDirName(info.Name)
		if !ok || p.Topic == MetadataTopic {
			continue // also -future and -stray
		}
		opts := m.logOptions(dir, p, wire.UUID{}, config(p.Topic))
		opts.Clean, opts.RecoveryPoint, opts.LogStartOffset = d.clean, recovery[p], starts[p]
		l, err := OpenLog(opts, now)
		if err != nil {
			return err
		}
		l.SetHighWatermark(watermarks[p])
		m.mu.Lock()
		if other := m.logs[p]; other != nil {
			m.mu.Unlock()
			return fmt.Errorf("%s is there twice, also in %s: one of them was left by a move, remove it", p, other.LogDir())
		}
		m.logs[p], m.order = l, nil
		d.count++
		m.mu.Unlock()
	}
	return nil
}

// readCheckpoint reads a checkpoint file. A corrupt one counts as empty: the
// log is scanned from further back, nothing is lost.
func (m *Manager) readCheckpoint(d *logDir, name string) map[TopicPartition]int64 {
	b, err := vfs.ReadFile(m.opts.FS, filepath.Join(d.path, name))
	if err == nil {
		var offsets map[TopicPartition]int64
		if offsets, err = ParseOffsetCheckpoint(b); err == nil {
			return offsets
		}
	}
	if !errors.Is(err, vfs.ErrNotExist) {
		m.opts.Logger.Warn("checkpoint is unreadable", "dir", d.path, "file", name, "err", err)
	}
	return nil
}
