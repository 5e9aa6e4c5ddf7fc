package storage

import (
	"iter"
	"log/slog"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
)

// Log is the log of one partition. Appends, truncation and clean-up are done
// one after the other by whoever calls; reads go on meanwhile and never wait
// for the disk writes of others. All methods may be called from any goroutine.
type Log struct{}

// LogOptions says how OpenLog opens a log outside a Manager.
type LogOptions struct {
	FS        vfs.FS
	Dir       string // folder of this log, e.g. DIR/__cluster_metadata-0; made if need be
	Partition TopicPartition
	TopicID   wire.UUID // written to partition.metadata of a new log; checked against an old one
	Config    LogConfig
	// Clean says that the log was closed cleanly; otherwise everything from
	// RecoveryPoint on is scanned.
	Clean          bool
	RecoveryPoint  int64
	LogStartOffset int64
	Logger         *slog.Logger
	// ProducerIDExpirationMs is producer.id.expiration.ms; 0 is a day.
	ProducerIDExpirationMs int64
}

// OpenLog opens or makes the log of one partition and recovers it if need be.
func OpenLog(opts LogOptions, now time.Time) (*Log, error) { panic("x") }

func (l *Log) Partition() TopicPartition { panic("x") }
func (l *Log) TopicID() wire.UUID        { panic("x") }
func (l *Log) Dir() string               { panic("x") }
func (l *Log) Config() LogConfig         { panic("x") }
func (l *Log) SetConfig(cfg LogConfig)   { panic("x") }

// AppendAsLeader checks, stamps and appends record batches. The bytes are changed in place (offset, epoch,
// time) and not kept. Per-record errors are in *Error.
func (l *Log) AppendAsLeader(batches []byte, leaderEpoch int32, origin Origin, now time.Time) (AppendInfo, error) {
	panic("x")
}

// AppendAsFollower appends batches that have offsets already.
func (l *Log) AppendAsFollower(batches []byte, now time.Time) (AppendInfo, error) { panic("x") }

// AppendEndTxnMarker appends a commit or abort marker.
func (l *Log) AppendEndTxnMarker(m EndTxnMarker, leaderEpoch int32, now time.Time) (AppendInfo, error) {
	panic("x")
}

// EndTxnMarker is what WriteTxnMarkers asks for.
type EndTxnMarker struct {
	ProducerID       int64
	ProducerEpoch    int16
	Commit           bool
	CoordinatorEpoch int32
}

// ValidateProduce does the checks of a produce request that come before the log's: at least one batch, magic 2,
// exactly one batch, zstd only from version 7.
func ValidateProduce(batches []byte, version int16) error { panic("x") }

// Read returns batches from the one that holds offset from.
func (l *Log) Read(from int64, maxBytes int, bound Bound, minOne bool) (FetchData, error) { panic("x") }

func (l *Log) LogStartOffset() int64   { panic("x") }
func (l *Log) LogEndOffset() int64     { panic("x") }
func (l *Log) HighWatermark() int64    { panic("x") }
func (l *Log) LastStableOffset() int64 { panic("x") }

// Offsets returns all four at one moment.
func (l *Log) Offsets() (logStart, stable, highWatermark, logEnd int64) { panic("x") }

// SetHighWatermark moves the high watermark within [log start, log end]; returns whether HW or LSO moved.
func (l *Log) SetHighWatermark(offset int64) (moved bool) { panic("x") }

func (l *Log) LatestEpoch() int32                 { panic("x") } // -1 none
func (l *Log) EpochForOffset(offset int64) int32  { panic("x") } // -1 unknown
func (l *Log) EndOffsetForEpoch(e int32) EpochEnd { panic("x") }

// AssignEpochStart notes that epoch begins at the log end: on becoming leader.
func (l *Log) AssignEpochStart(epoch int32) error { panic("x") }

// OffsetForTimestamp finds the first record with a timestamp at or after ts below bound.
func (l *Log) OffsetForTimestamp(ts int64, bound Bound) (TimestampOffset, error) { panic("x") }

// MaxTimestampOffset finds the first record with the largest timestamp.
func (l *Log) MaxTimestampOffset() (TimestampOffset, error) { panic("x") }

// DeleteRecordsTo moves the log start; -1 is the high watermark; returns the new log start.
func (l *Log) DeleteRecordsTo(offset int64) (int64, error) { panic("x") }

func (l *Log) TruncateTo(offset int64, now time.Time) error              { panic("x") }
func (l *Log) TruncateFullyAndStartAt(offset int64, now time.Time) error { panic("x") }

func (l *Log) ActiveProducers() []ActiveProducer { panic("x") }
func (l *Log) Size() int64                       { panic("x") }
func (l *Log) Segments() int                     { panic("x") }

// Flush makes everything up to the present log end durable.
func (l *Log) Flush(now time.Time) error { panic("x") }

// Roll begins a new segment if the active one holds anything.
func (l *Log) Roll(now time.Time) error { panic("x") }

// DeleteOldSegments applies retention; returns the number of deleted segments.
func (l *Log) DeleteOldSegments(now time.Time) (int, error) { panic("x") }

// Close flushes and leaves a folder as Kafka leaves it after a clean stop.
func (l *Log) Close(now time.Time) error { panic("x") }

// ManagerOptions says where a broker keeps its logs.
type ManagerOptions struct {
	FS        vfs.FS
	Dirs      []string // log.dirs
	ClusterID string   // checked against, or written to, meta.properties
	NodeID    int32
	// NewUUID makes directory ids and unique folder names.
	NewUUID func() wire.UUID
	// Jitter draws from [0, n) for segment.jitter.ms; nil means none.
	Jitter func(n int64) int64
	Logger *slog.Logger

	ProducerIDExpirationMs int64 // producer.id.expiration.ms
	RetentionCheckMs       int64 // log.retention.check.interval.ms, 300000
	FlushSchedulerMs       int64 // log.flush.scheduler.interval.ms
	RecoveryCheckpointMs   int64 // log.flush.offset.checkpoint.interval.ms, 60000
	StartCheckpointMs      int64 // log.flush.start.offset.checkpoint.interval.ms, 60000
	HighWatermarkCheckMs   int64 // replica.high.watermark.checkpoint.interval.ms, 5000
	ProducerCheckMs        int64 // producer.id.expiration.check.interval.ms, 600000

	// OnDirFailure is told once about each log dir that had a disk error.
	OnDirFailure func(dir string, err error)
}

// Manager owns the log dirs and all logs in them but the metadata log.
type Manager struct{}

// NewManager locks the log dirs and reads or writes their meta.properties; logs are not opened yet.
func NewManager(opts ManagerOptions, now time.Time) (*Manager, error) { panic("x") }

// LoadLogs opens all logs; config gives each topic's. After an unclean stop logs are recovered.
func (m *Manager) LoadLogs(config func(topic string) LogConfig, now time.Time) error { panic("x") }

func (m *Manager) DirectoryID(dir string) wire.UUID { panic("x") }
func (m *Manager) Dirs() []string                   { panic("x") }
func (m *Manager) ClusterID() string                { panic("x") }

// PreviousBrokerEpoch is the epoch in the clean shutdown file; -1 after an unclean stop.
func (m *Manager) PreviousBrokerEpoch() int64 { panic("x") }

// Create makes a log (or returns the one there is; INCONSISTENT_TOPIC_ID if its id is another).
func (m *Manager) Create(p TopicPartition, topicID wire.UUID, cfg LogConfig, now time.Time) (*Log, error) {
	panic("x")
}
func (m *Manager) Log(p TopicPartition) (*Log, bool) { panic("x") }
func (m *Manager) Logs() iter.Seq[*Log]              { panic("x") } // sorted by topic, partition

// Delete takes a log out of use at once; its files go after file.delete.delay.ms (Tick).
func (m *Manager) Delete(p TopicPartition, now time.Time) error { panic("x") }

// Tick does what is due: retention, flush.ms, removal of deleted files, checkpoints, producer expiry. It
// works on the disk and may take long: call it from a goroutine that nobody waits for.
func (m *Manager) Tick(now time.Time) { panic("x") }

// Deadline is when Tick has something to do.
func (m *Manager) Deadline() time.Time { panic("x") }

// Checkpoint writes all checkpoint files now.
func (m *Manager) Checkpoint(now time.Time) error { panic("x") }

// Close closes all logs and leaves the folders as Kafka after a clean stop.
func (m *Manager) Close(brokerEpoch int64, now time.Time) error { panic("x") }
