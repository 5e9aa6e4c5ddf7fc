package storage

import (
	"path/filepath"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
)

// Flush makes everything up to the present log end durable: batches, indexes,
// leader epochs, names. Appends go on meanwhile. After an error of the disk
// the log is given up: what a failed fsync leaves behind is unknown.
func (l *Log) Flush(now time.Time) error {
	l.flushing <- struct{}{}
	defer func() { <-l.flushing }()
	return l.flush(now, false)
}

// flush flushes what is above the recovery point; only finished segments if so
// wanted. The flushing slot is held.
func (l *Log) flush(now time.Time, onlyFinished bool) error {
	p := l.view()
	if p.ended != nil {
		return p.ended
	}
	upTo, count := p.end, l.unflushed.Load()
	if onlyFinished {
		upTo, count = p.active().base, 0
	}
	if upTo <= p.recoveryPoint {
		return nil
	}
	for i := p.find(p.recoveryPoint); i < len(p.segments); i++ {
		if onlyFinished && i == len(p.segments)-1 {
			break
		}
		if err := p.segments[i].sync(); err != nil {
			return l.fail("flush", err)
		}
	}
	if err := l.saveEpochs(true); err != nil {
		return l.fail("flush", err)
	}
	if err := l.syncNames(p.dir); err != nil {
		return l.fail("flush", err)
	}
	l.unflushed.Add(-count)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recoveryPoint = max(l.recoveryPoint, min(upTo, l.end))
	return nil
}

// syncNames makes the topic id and the names of all files durable; the first
// time the name of the folder too.
func (l *Log) syncNames(dir string) error {
	if l.unsyncedID && !l.topicID.IsZero() {
		name := filepath.Join(dir, partitionMetadataFile)
		if err := vfs.WriteFileAtomic(l.fs, name, AppendPartitionMetadata(nil, l.topicID), true); err != nil {
			return err
		}
	}
	if l.unsyncedID || l.topicID.IsZero() {
		if err := l.fs.SyncDir(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	l.unsyncedID = false
	return l.fs.SyncDir(dir)
}

// saveEpochs writes leader-epoch-checkpoint if it is out of date. The flushing
// slot is held, so two writers do not meet.
func (l *Log) saveEpochs(durable bool) error {
	l.mu.Lock()
	entries, dirty, dir := l.epochs.entries, l.epochsDirty, l.dir
	l.epochsDirty = false
	l.mu.Unlock()
	if !dirty {
		return nil
	}
	err := vfs.WriteFileAtomic(l.fs, filepath.Join(dir, epochCheckpointFile), AppendEpochCheckpoint(nil, entries), durable)
	if err != nil {
		l.mu.Lock()
		l.epochsDirty = true
		l.mu.Unlock()
	}
	return err
}

// AssignEpochStart notes that a leader epoch begins at the log end: a leader
// calls it when it takes over, before its first append.
func (l *Log) AssignEpochStart(epoch int32) error {
	return l.write(func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.epochs.assign(epoch, l.end) {
			l.epochsDirty = true
		}
		return nil
	})
}

// Close flushes the log and leaves its folder as Apache Kafka leaves one after
// a clean stop: all index files, a producer snapshot at the log end, the
// leader epochs. The log cannot be used afterwards.
func (l *Log) Close(now time.Time) error {
	err := l.exclusive(func() error {
		x, err := l.active().index()
		if err != nil {
			return l.fail("close", err)
		}
		x.complete(l.active().base)
		if err := l.takeSnapshot(); err != nil {
			return l.fail("close", err)
		}
		l.mu.Lock()
		l.epochsDirty = l.epochsDirty || len(l.epochs.entries) == 0
		l.mu.Unlock()
		if err := l.removeDoomed(now, true); err != nil {
			return l.fail("close", err)
		}
		return l.flushAll(now)
	})
	l.finish(errClosed(l.partition))
	l.releaseFiles()
	return err
}

// flushAll is flush, but the files of an empty active segment are made too.
func (l *Log) flushAll(now time.Time) error {
	if err := l.flush(now, false); err != nil {
		return err
	}
	if err := l.active().sync(); err != nil {
		return l.fail("close", err)
	}
	if err := l.saveEpochs(true); err != nil {
		return l.fail("close", err)
	}
	if err := l.syncNames(l.dir); err != nil {
		return l.fail("close", err)
	}
	return nil
}

// releaseFiles gives up the log's own references; answers that still hold a
// region of a file keep it open.
func (l *Log) releaseFiles() {
	l.writing <- struct{}{}
	defer func() { <-l.writing }()
	if l.released {
		return
	}
	l.released = true
	for _, s := range l.segments {
		s.log.release()
	}
}
