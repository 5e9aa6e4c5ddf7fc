package storage

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// LogOptions says how OpenLog opens a log.
type LogOptions struct {
	FS        vfs.FS
	Dir       string // folder of the log, e.g. DIR/__cluster_metadata-0; made if need be
	Partition TopicPartition
	// TopicID is written to partition.metadata of a log that has none, and
	// checked against one that has; zero skips both.
	TopicID wire.UUID
	Config  LogConfig

	// Clean says that the log was closed cleanly. Otherwise all segments that
	// reach RecoveryPoint or beyond are scanned.
	Clean          bool
	RecoveryPoint  int64
	LogStartOffset int64 // of the checkpoint; the log starts here or later

	ProducerIDExpirationMs int64               // producer.id.expiration.ms; 0 means a day
	Jitter                 func(n int64) int64 // draws from [0, n) for segment.jitter.ms; nil: none
	Logger                 *slog.Logger        // nil: silent
	// OnFailure is told once, from the goroutine that met it, about the disk
	// error that ends the log; dir is the log dir. nil: nobody.
	OnFailure func(dir string, err error)
	// Bugs are the mistakes to be made on purpose; see package bug.
	Bugs bug.Set

	codecs *codecs // shared in a Manager
}

const dayMs = 24 * 60 * 60 * 1000

// OpenLog opens the log in a folder, or makes one, and recovers it if it was
// not closed cleanly: see log_recover.go. Files that are not a log's (KRaft's
// quorum-state and snapshots) are left alone. The high watermark starts at the
// log start offset.
func OpenLog(opts LogOptions, now time.Time) (*Log, error) {
	l := newLog(opts)
	fresh, err := l.open(opts, now)
	if err != nil {
		return nil, fmt.Errorf("open log %s: %w", opts.Dir, err)
	}
	if err := l.checkTopicID(&opts, fresh); err != nil {
		l.releaseFiles()
		return nil, err
	}
	l.drawJitter()
	l.lastFlush = millis(now)
	return l, nil
}

func newLog(opts LogOptions) *Log {
	l := &Log{
		fs: opts.FS, partition: opts.Partition, logger: opts.Logger, codecs: opts.codecs,
		expirationMs: opts.ProducerIDExpirationMs, jitter: opts.Jitter, failed: opts.OnFailure, bugs: opts.Bugs,
		flushing: make(chan struct{}, 1), writing: make(chan struct{}, 1),
		producers: newProducerState(opts.Partition, opts.Bugs),
	}
	l.dir, l.firstUnstable = filepath.Clean(opts.Dir), noOffset
	if l.logger == nil {
		l.logger = slog.New(slog.DiscardHandler)
	}
	if l.codecs == nil {
		l.codecs = newCodecs()
	}
	if l.expirationMs == 0 {
		l.expirationMs = dayMs
	}
	l.SetConfig(opts.Config)
	return l
}

// open finds the segments; fresh says that there was no folder.
func (l *Log) open(opts LogOptions, now time.Time) (fresh bool, err error) {
	infos, err := l.fs.List(l.dir)
	if errors.Is(err, vfs.ErrNotExist) {
		if err := l.fs.MkdirAll(l.dir); err != nil {
			return false, err
		}
		return true, l.begin(opts.LogStartOffset, now)
	}
	if err != nil {
		return false, err
	}
	bases, err := l.tidy(infos, now)
	if err != nil {
		return false, err
	}
	for _, base := range bases {
		s, err := openSegment(l.fs, l.dir, base, now)
		if err != nil {
			return false, err
		}
		l.segments = append(l.segments, s)
	}
	if len(l.segments) == 0 {
		if err := l.removeSnapshots(func(int64) bool { return true }); err != nil {
			return false, err
		}
		return false, l.begin(opts.LogStartOffset, now)
	}
	return false, l.load(opts, now)
}

// begin makes the first segment of an empty log.
func (l *Log) begin(start int64, now time.Time) error {
	s, err := createSegment(l.fs, l.dir, start, now)
	if err != nil {
		return err
	}
	l.segments = []*segment{s}
	l.start, l.end, l.highWatermark, l.recoveryPoint = start, start, start, start
	l.producers.reset(start)
	l.producers.lastSnap = start
	return nil
}

// tidy finishes or undoes what a crash interrupted and returns the base
// offsets of the segments, rising.
//
//	.deleted  was about to be removed: remove
//	.cleaned  half a compaction: remove
//	.swap     a finished compaction: it takes the place of its sources
//	.tmp      half a checkpoint: remove
//	indexes without a log: remove
func (l *Log) tidy(infos []vfs.Info, now time.Time) ([]int64, error) {
	logs := make(map[int64]bool)
	var swaps, stale []string
	for _, info := range infos {
		switch ext := filepath.Ext(info.Name); ext {
		case deletedSuffix, cleanedSuffix, ".tmp":
			stale = append(stale, info.Name)
		case swapSuffix:
			swaps = append(swaps, info.Name)
		case logSuffix:
			if base, suffix, ok := parseFileName(info.Name); ok && suffix == logSuffix {
				logs[base] = true
			}
		}
	}
	if err := l.removeNames(stale); err != nil {
		return nil, err
	}
	if err := l.finishSwaps(swaps, logs, now); err != nil {
		return nil, err
	}
	stale = stale[:0]
	for _, info := range infos {
		base, suffix, ok := parseFileName(info.Name)
		if ok && !logs[base] && (suffix == indexSuffix || suffix == timeIndexSuffix || suffix == txnIndexSuffix) {
			stale = append(stale, info.Name)
		}
	}
	if err := l.removeNames(stale); err != nil {
		return nil, err
	}
	bases := make([]int64, 0, len(logs))
	for base := range logs {
		bases = append(bases, base)
	}
	slices.Sort(bases)
	return bases, nil
}

// finishSwaps renames compacted segments to their names after deleting the
// segments that they were made from: those that begin in their range.
func (l *Log) finishSwaps(names []string, logs map[int64]bool, now time.Time) error {
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		base, suffix, ok := parseFileName(strings.TrimSuffix(name, swapSuffix))
		if !ok || suffix != logSuffix {
			continue
		}
		next, err := l.endOfSwap(name, base)
		if err != nil {
			return err
		}
		for old := range logs {
			if old < base || old >= next {
				continue
			}
			for _, kind := range segmentSuffixes {
				if err := l.removeNames([]string{offsetName(old) + kind}); err != nil {
					return err
				}
			}
			delete(logs, old)
		}
		logs[base] = true
	}
	for _, name := range names {
		from := filepath.Join(l.dir, name)
		if err := l.fs.Rename(from, strings.TrimSuffix(from, swapSuffix)); err != nil {
			return err
		}
	}
	return nil
}

// endOfSwap returns the offset behind the last batch of a .log.swap file.
func (l *Log) endOfSwap(name string, base int64) (int64, error) {
	f, err := l.fs.Open(filepath.Join(l.dir, name), vfs.ReadOnly)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r := batchReader{f: f, end: f.Size()}
	next := base + 1
	for {
		h, _, err := r.next()
		if err == io.EOF || errors.Is(err, errBadBatch) {
			return next, nil
		}
		if err != nil {
			return 0, err
		}
		next = h.NextOffset()
	}
}

func (l *Log) removeNames(names []string) error {
	for _, name := range names {
		if err := l.fs.Remove(filepath.Join(l.dir, name)); err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// checkTopicID writes partition.metadata, which has to be there before the
// first record, or compares it. It is made durable by the first flush, together
// with the first records: a file that a power cut has left unreadable before
// that counts as missing.
func (l *Log) checkTopicID(opts *LogOptions, fresh bool) error {
	want := opts.TopicID
	name := l.dir + string(filepath.Separator) + partitionMetadataFile
	if !fresh {
		b, err := vfs.ReadFile(l.fs, name)
		if err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return err
		}
		if err == nil {
			l.topicID, err = ParsePartitionMetadata(b)
			if err != nil && (opts.Clean || opts.RecoveryPoint > 0) {
				return err
			}
		}
		l.unsyncedID = opts.RecoveryPoint == 0 && !opts.Clean
	}
	switch {
	case want.IsZero() || l.topicID == want:
		return nil
	case !l.topicID.IsZero():
		return refuse(errcode.InconsistentTopicId, "the log of %s in %s belongs to topic id %s, not %s", l.partition, l.dir, l.topicID, want)
	}
	l.topicID, l.unsyncedID = want, true
	return vfs.WriteFile(l.fs, name, AppendPartitionMetadata(nil, want))
}
