package storage

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// ManagerOptions says where a broker keeps its logs. Intervals are
// milliseconds; 0 takes Kafka's default.
type ManagerOptions struct {
	FS   vfs.FS
	Dirs []string // log.dirs; made if need be
	// ClusterID is written to meta.properties of a new log dir, or checked
	// against an old one. Empty takes what the log dirs say, or a new random id.
	ClusterID string
	NodeID    int32
	// NewUUID makes random ids: directory ids, names of folders to be removed.
	NewUUID func() wire.UUID
	// Jitter draws from [0, n) for segment.jitter.ms; nil means none.
	Jitter func(n int64) int64
	Logger *slog.Logger // nil: silent
	// Bugs are the mistakes to be made on purpose; see package bug.
	Bugs bug.Set

	ProducerIDExpirationMs int64 // producer.id.expiration.ms
	RetentionCheckMs       int64 // log.retention.check.interval.ms
	ProducerCheckMs        int64 // producer.id.expiration.check.interval.ms
	RecoveryCheckpointMs   int64 // log.flush.offset.checkpoint.interval.ms
	StartCheckpointMs      int64 // log.flush.start.offset.checkpoint.interval.ms
	HighWatermarkCheckMs   int64 // replica.high.watermark.checkpoint.interval.ms
	FlushCheckMs           int64 // how often flush.ms and finished segments are looked at

	// OnDirFailure is told once about each log dir that had a disk error. All
	// logs in it answer KafkaStorageError from then on.
	OnDirFailure func(dir string, err error)
}

// Manager owns the log dirs of a broker and all logs in them but that of the
// metadata topic, which belongs to the quorum (OpenLog). All methods may be
// called from any goroutine.
//
//	NewManager   locks the log dirs, reads or writes meta.properties
//	LoadLogs     opens the logs that are there
//	Create, Log, Logs, Delete   while serving
//	Tick         timed work, by one goroutine
//	Close        clean stop
type Manager struct {
	opts   ManagerOptions
	codecs *codecs

	mu     sync.Mutex // guards what follows, for memory work only
	dirs   []*logDir
	logs   map[TopicPartition]*Log
	order  []*Log                           // logs by topic and partition; nil when that has to be found out again
	making map[TopicPartition]chan struct{} // being created or deleted
	doomed []doomedDir
	closed bool

	schedule schedule
}

// logDir is one of log.dirs.
type logDir struct {
	path          string
	id            wire.UUID
	lock          io.Closer
	clean         bool  // .kafka_cleanshutdown was there
	previousEpoch int64 // what it said
	failed        error
	count         int // logs in it

	// written is what each checkpoint file holds, so that it is not written
	// again for nothing. It belongs to whoever holds schedule.busy.
	written map[string]string
}

// doomedDir is the renamed folder of a deleted log.
type doomedDir struct {
	due  int64 // ms
	path string
}

// NewManager takes possession of the log dirs. It fails if one is in use, or
// belongs to another cluster or node. Logs are not opened yet.
func NewManager(opts ManagerOptions, now time.Time) (*Manager, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Manager{
		opts: opts, codecs: newCodecs(),
		logs: make(map[TopicPartition]*Log), making: make(map[TopicPartition]chan struct{}),
	}
	m.schedule = newSchedule(&opts, now)
	if err := m.adoptClusterID(); err != nil {
		return nil, err
	}
	for _, path := range opts.Dirs {
		d, err := m.openDir(path, now)
		if err != nil {
			m.unlock()
			return nil, fmt.Errorf("log.dirs: %s: %w", path, err)
		}
		m.dirs = append(m.dirs, d)
	}
	return m, nil
}

// adoptClusterID takes the cluster id of the first log dir that has one.
func (m *Manager) adoptClusterID() error {
	for _, path := range m.opts.Dirs {
		if m.opts.ClusterID != "" {
			return nil
		}
		p, err := ReadMetaProperties(m.opts.FS, path)
		if err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return fmt.Errorf("log.dirs: %s: %w", path, err)
		}
		m.opts.ClusterID = p.ClusterID
	}
	if m.opts.ClusterID == "" {
		m.opts.ClusterID = m.newDirectoryID().String()
	}
	return nil
}

func (m *Manager) openDir(path string, now time.Time) (*logDir, error) {
	fs := m.opts.FS
	if _, err := fs.Stat(path); errors.Is(err, vfs.ErrNotExist) {
		if err := fs.MkdirAll(path); err != nil {
			return nil, err
		}
		if err := fs.SyncDir(filepath.Dir(path)); err != nil {
			return nil, err
		}
	}
	lock, err := fs.Lock(filepath.Join(path, LockFile))
	if err != nil {
		return nil, err
	}
	d := &logDir{path: path, lock: lock, previousEpoch: unknownBrokerEpoch, written: make(map[string]string)}
	if err := m.identify(d, now); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	// The file says that nothing was written after a clean stop. From now on
	// something may be.
	name := filepath.Join(path, CleanShutdownFile)
	b, err := vfs.ReadFile(fs, name)
	if err == nil {
		d.clean, d.previousEpoch = true, parseCleanShutdown(b)
	} else if !errors.Is(err, vfs.ErrNotExist) {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

// identify reads meta.properties, or writes it for a new log dir.
func (m *Manager) identify(d *logDir, now time.Time) error {
	name := filepath.Join(d.path, MetaPropertiesFile)
	b, err := vfs.ReadFile(m.opts.FS, name)
	if errors.Is(err, vfs.ErrNotExist) {
		d.id = m.newDirectoryID()
		p := MetaProperties{NodeID: m.opts.NodeID, ClusterID: m.opts.ClusterID, DirectoryID: d.id}
		return vfs.WriteFileAtomic(m.opts.FS, name, AppendMetaProperties(nil, p, now), true)
	}
	if err != nil {
		return err
	}
	p, err := ParseMetaProperties(b)
	if err != nil {
		return err
	}
	if p.ClusterID != m.opts.ClusterID || p.NodeID != m.opts.NodeID {
		return fmt.Errorf("%s says cluster.id=%s node.id=%d, but this broker is cluster.id=%s node.id=%d: use the log dir's own broker, or an empty log dir",
			MetaPropertiesFile, p.ClusterID, p.NodeID, m.opts.ClusterID, m.opts.NodeID)
	}
	if d.id = p.DirectoryID; d.id.IsZero() { // written before KIP-858
		d.id, p.DirectoryID = m.newDirectoryID(), d.id
		p.DirectoryID = d.id
		return vfs.WriteFileAtomic(m.opts.FS, name, AppendMetaProperties(nil, p, now), true)
	}
	return nil
}

// newDirectoryID draws an id that is not reserved and, as it goes on command
// lines, does not begin with a minus.
func (m *Manager) newDirectoryID() wire.UUID {
	for {
		id := m.opts.NewUUID()
		if id.String()[0] != '-' && [15]byte(id[:15]) != ([15]byte{}) {
			return id
		}
	}
}

func (m *Manager) unlock() {
	for _, d := range m.dirs {
		_ = d.lock.Close()
	}
}

// ReadMetaProperties returns what the meta.properties of a log dir says, for a
// broker that has to learn its cluster id before it makes a Manager; the error
// is vfs.ErrNotExist for a log dir that is new.
func ReadMetaProperties(fs vfs.FS, dir string) (MetaProperties, error) {
	b, err := vfs.ReadFile(fs, filepath.Join(dir, MetaPropertiesFile))
	if err != nil {
		return MetaProperties{}, err
	}
	return ParseMetaProperties(b)
}

// DirectoryID returns the id of a log dir (KIP-858); zero if it is none of ours.
func (m *Manager) DirectoryID(dir string) wire.UUID {
	for _, d := range m.dirs {
		if d.path == dir {
			return d.id
		}
	}
	return wire.UUID{}
}

// Dirs returns the log dirs, in the order of log.dirs.
func (m *Manager) Dirs() []string {
	paths := make([]string, len(m.dirs))
	for i, d := range m.dirs {
		paths[i] = d.path
	}
	return paths
}

// ClusterID returns the cluster that the log dirs belong to.
func (m *Manager) ClusterID() string { return m.opts.ClusterID }

// PreviousBrokerEpoch returns the broker epoch of the last run if it ended
// cleanly in all log dirs, else -1 (BrokerRegistrationRequest, KIP-966).
func (m *Manager) PreviousBrokerEpoch() int64 {
	epoch := int64(unknownBrokerEpoch)
	for i, d := range m.dirs {
		if !d.clean || i > 0 && d.previousEpoch != epoch {
			return unknownBrokerEpoch
		}
		epoch = d.previousEpoch
	}
	return epoch
}

// Log returns the log of a partition.
func (m *Manager) Log(p TopicPartition) (*Log, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.logs[p]
	return l, ok
}

// Logs returns all logs of this moment, by topic and partition.
func (m *Manager) Logs() iter.Seq[*Log] { return slices.Values(m.sorted()) }

func (m *Manager) sorted() []*Log {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.order == nil {
		m.order = slices.SortedFunc(maps.Values(m.logs), func(a, b *Log) int { return comparePartitions(a.partition, b.partition) })
	}
	return m.order
}

// Create makes the log of a partition, in the log dir that has the fewest, or
// returns the one that is there. A log of another topic id is
// InconsistentTopicId: the broker deletes it first.
func (m *Manager) Create(p TopicPartition, topicID wire.UUID, cfg LogConfig, now time.Time) (*Log, error) {
	release, err := m.reserve(p)
	if err != nil {
		return nil, err
	}
	defer release()
	if l, ok := m.Log(p); ok {
		if have := l.TopicID(); !topicID.IsZero() && !have.IsZero() && have != topicID {
			return nil, refuse(errcode.InconsistentTopicId, "the log of %s belongs to topic id %s, not %s", p, have, topicID)
		}
		return l, nil
	}
	d, err := m.leastUsed()
	if err != nil {
		return nil, err
	}
	l, err := OpenLog(m.logOptions(filepath.Join(d.path, p.String()), p, topicID, cfg), now)
	if err != nil {
		m.fail(d.path, err)
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.logs[p], m.order = l, nil
	d.count++
	return l, nil
}

func (m *Manager) logOptions(dir string, p TopicPartition, id wire.UUID, cfg LogConfig) LogOptions {
	return LogOptions{
		FS: m.opts.FS, Dir: dir, Partition: p, TopicID: id, Config: cfg,
		ProducerIDExpirationMs: m.opts.ProducerIDExpirationMs, Jitter: m.opts.Jitter,
		Logger: m.opts.Logger, OnFailure: m.fail, Bugs: m.opts.Bugs, codecs: m.codecs,
	}
}

// reserve keeps others from creating or deleting the same log meanwhile; it
// waits for one who is about to.
func (m *Manager) reserve(p TopicPartition) (release func(), err error) {
	for {
		m.mu.Lock()
		busy := m.making[p]
		if m.closed {
			m.mu.Unlock()
			return nil, refuse(errcode.KafkaStorageError, "the log manager is closed")
		}
		if busy == nil {
			done := make(chan struct{})
			m.making[p] = done
			m.mu.Unlock()
			return func() {
				m.mu.Lock()
				delete(m.making, p)
				m.mu.Unlock()
				close(done)
			}, nil
		}
		m.mu.Unlock()
		<-busy
	}
}

func (m *Manager) leastUsed() (*logDir, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	usable := slices.DeleteFunc(slices.Clone(m.dirs), func(d *logDir) bool { return d.failed != nil })
	if len(usable) == 0 {
		return nil, refuse(errcode.KafkaStorageError, "no log dir is usable")
	}
	return slices.MinFunc(usable, func(a, b *logDir) int { return cmp.Compare(a.count, b.count) }), nil
}

// fail gives a log dir up: all its logs end.
func (m *Manager) fail(dir string, err error) {
	m.mu.Lock()
	var first bool
	var logs []*Log
	for _, d := range m.dirs {
		if d.path == dir && d.failed == nil {
			d.failed, first = err, true
		}
	}
	if first {
		logs = slices.Collect(maps.Values(m.logs))
	}
	m.mu.Unlock()
	if !first {
		return
	}
	m.opts.Logger.Error("log dir has failed", "dir", dir, "err", err)
	for _, l := range logs {
		if l.LogDir() == dir {
			l.finish(&Error{Code: errcode.KafkaStorageError, Message: "log dir " + dir + " has failed", Err: err})
		}
	}
	if m.opts.OnDirFailure != nil {
		m.opts.OnDirFailure(dir, err)
	}
}

// Delete takes a log out of use: at once nobody can read or write it, and its
// folder has another name. Its files are removed file.delete.delay.ms later,
// by Tick.
func (m *Manager) Delete(p TopicPartition, now time.Time) error {
	release, err := m.reserve(p)
	if err != nil {
		return err
	}
	defer release()
	l, ok := m.Log(p)
	if !ok {
		return refuse(errcode.UnknownTopicOrPartition, "there is no log of %s", p)
	}
	m.mu.Lock()
	delete(m.logs, p)
	m.order = nil
	for _, d := range m.dirs {
		if d.path == l.LogDir() {
			d.count--
		}
	}
	m.mu.Unlock()
	path, err := l.retire(m.opts.NewUUID())
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doomed = append(m.doomed, doomedDir{due: millis(now) + l.Config().FileDeleteDelayMs, path: path})
	return nil
}

// retire ends the log and renames its folder.
func (l *Log) retire(unique wire.UUID) (path string, err error) {
	path = filepath.Join(l.LogDir(), deleteDirName(l.partition, unique))
	err = l.exclusive(func() error {
		l.finish(errDeleted(l.partition))
		if err := l.fs.Rename(l.dir, path); err != nil {
			return &Error{Code: errcode.KafkaStorageError, Message: "delete of " + l.partition.String(), Err: err}
		}
		l.mu.Lock()
		l.dir = path
		l.mu.Unlock()
		return nil
	})
	l.releaseFiles()
	return path, err
}
