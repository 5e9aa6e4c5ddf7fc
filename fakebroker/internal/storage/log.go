package storage

import (
	"log/slog"
	"path/filepath"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// Log is the log of one partition.
//
// Appends, truncation, roll and retention are done one after the other by
// whoever calls: they hold the writer's slot, a channel of one element, also
// while they work on the disk, so that inside testing/synctest a slow disk is
// a goroutine that waits, not a held mutex. Flushing has a slot of its own and
// does not hold up appends. Reads take what is published (mu, for memory work
// only) and never wait for somebody's disk call. All methods may be called
// from any goroutine.
type Log struct {
	fs           vfs.FS
	partition    TopicPartition
	topicID      wire.UUID
	logger       *slog.Logger
	codecs       *codecs
	expirationMs int64                       // producer.id.expiration.ms
	jitter       func(n int64) int64         // for segment.jitter.ms
	failed       func(dir string, err error) // told about the first disk error
	bugs         bug.Set                     // to be made on purpose
	config       atomic.Pointer[LogConfig]

	// Slots. Who needs both takes flushing first.
	flushing chan struct{}
	writing  chan struct{}

	mu sync.Mutex // guards the published state
	published

	// Of whoever holds the writing slot; producers and epochs are read by
	// others under mu and therefore changed under mu too.
	producers  *producerState
	rollJitter int64
	doomed     []doomedFiles
	released   bool // the files are closed

	dooms     atomic.Int64 // len(doomed), for those who do not hold the slot
	unflushed atomic.Int64 // records since the last flush, for flush.messages
	verifying atomic.Int64 // transactions that are being verified

	// Of whoever holds the flushing slot.
	lastFlush  int64 // ms, for flush.ms
	unsyncedID bool  // partition.metadata is not durable yet
}

// published is the state that readers see.
type published struct {
	dir           string
	segments      []*segment // by base offset, never empty while open; replaced, not changed
	start         int64      // log start offset
	end           int64      // log end offset
	activeSize    int64      // of the last segment, up to end; set in a view only
	highWatermark int64
	firstUnstable int64 // noOffset if there is none
	recoveryPoint int64 // everything below has been flushed
	epochs        epochCache
	epochsDirty   bool  // the file does not say what epochs says
	ended         error // why the log can no longer be used; nil while it can
}

// doomedFiles are renamed files of deleted segments that wait for
// file.delete.delay.ms.
type doomedFiles struct {
	due   int64 // ms
	names []string
}

// Partition returns the partition whose log this is.
func (l *Log) Partition() TopicPartition { return l.partition }

// TopicID returns the id of the topic; zero if partition.metadata is missing.
func (l *Log) TopicID() wire.UUID { return l.topicID }

// Dir returns the folder of the log.
func (l *Log) Dir() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dir
}

// LogDir returns the log dir that the log's folder is in.
func (l *Log) LogDir() string { return filepath.Dir(l.Dir()) }

// Config returns the configs in force.
func (l *Log) Config() LogConfig { return *l.config.Load() }

// SetConfig replaces the configs. Appends that have begun finish with the old.
func (l *Log) SetConfig(cfg LogConfig) { l.config.Store(&cfg) }

// LogStartOffset returns the offset of the first record that can be read.
func (l *Log) LogStartOffset() int64 { start, _, _, _ := l.Offsets(); return start }

// LogEndOffset returns the offset that the next record will get.
func (l *Log) LogEndOffset() int64 { _, _, _, end := l.Offsets(); return end }

// HighWatermark returns the offset below which all in-sync replicas have everything.
func (l *Log) HighWatermark() int64 { _, _, hw, _ := l.Offsets(); return hw }

// LastStableOffset returns the offset below which every transaction is
// decided, at most the high watermark. It is exclusive: a reader of committed
// data gets what is below it.
func (l *Log) LastStableOffset() int64 { _, stable, _, _ := l.Offsets(); return stable }

// StableBytes counts the bytes that were appended since the log was opened and
// that readers of committed data may see: a delayed fetch waits for it to grow.
func (l *Log) StableBytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.producers.stableBytes()
}

// Offsets returns the four offsets of one moment.
func (l *Log) Offsets() (logStart, lastStable, highWatermark, logEnd int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.start, l.lastStable(), l.highWatermark, l.end
}

func (p *published) lastStable() int64 {
	if p.firstUnstable != noOffset && p.firstUnstable < p.highWatermark {
		return p.firstUnstable
	}
	return p.highWatermark
}

// SetHighWatermark moves the high watermark to offset, within log start and
// log end. It reports whether what readers may see has changed: the high
// watermark or the last stable offset.
func (l *Log) SetHighWatermark(offset int64) (moved bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.setHighWatermark(offset)
}

func (l *Log) setHighWatermark(offset int64) bool {
	offset = min(max(offset, l.start), l.end)
	stable := l.lastStable()
	moved := offset != l.highWatermark
	l.highWatermark = offset
	l.producers.highWatermark(offset)
	l.noteUnstable()
	return moved || stable != l.lastStable()
}

// noteUnstable publishes the first unstable offset. mu is held.
func (l *Log) noteUnstable() {
	l.firstUnstable = l.producers.firstUnstable()
	if l.firstUnstable != noOffset {
		l.firstUnstable = max(l.firstUnstable, l.start)
	}
}

// RecoveryPoint returns the offset below which everything has been flushed.
func (l *Log) RecoveryPoint() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recoveryPoint
}

// LatestEpoch returns the newest leader epoch in the log; -1 if there is none.
func (l *Log) LatestEpoch() int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epochs.latest()
}

// EpochForOffset returns the leader epoch of the record at offset; -1 unknown.
func (l *Log) EpochForOffset(offset int64) int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epochs.at(offset)
}

// EndOffsetForEpoch answers OffsetForLeaderEpoch (trap 6).
func (l *Log) EndOffsetForEpoch(epoch int32) EpochEnd {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epochs.endOf(epoch, l.end)
}

// Epochs returns the leader epochs and their start offsets.
func (l *Log) Epochs() []EpochEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.epochs.entries)
}

// ActiveProducers lists the producers that the log knows, by id.
func (l *Log) ActiveProducers() []ActiveProducer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.producers.producers()
}

// Size returns the bytes of all batches that are stored.
func (l *Log) Size() int64 {
	var n int64
	for _, s := range l.view().segments {
		n += s.size.Load()
	}
	return n
}

// Segments returns the base offsets of the segments.
func (l *Log) Segments() []int64 {
	segments := l.view().segments
	bases := make([]int64, len(segments))
	for i, s := range segments {
		bases[i] = s.base
	}
	return bases
}

// view returns the published state of this moment.
func (l *Log) view() published {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.published
	if len(p.segments) > 0 {
		p.activeSize = p.active().size.Load()
	}
	return p
}

// active returns the segment that is written.
func (p *published) active() *segment { return p.segments[len(p.segments)-1] }

// find returns the index of the segment that would hold offset.
func (p *published) find(offset int64) int {
	i := sort.Search(len(p.segments), func(i int) bool { return p.segments[i].base > offset })
	return max(i-1, 0)
}

// usable returns why the log cannot be used, or nil.
func (l *Log) usable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// write takes the writer's slot and runs f, unless the log has ended.
func (l *Log) write(f func() error) error {
	l.writing <- struct{}{}
	defer func() { <-l.writing }()
	if err := l.usable(); err != nil {
		return err
	}
	return f()
}

// exclusive keeps the flusher out too: for changes of what has been written.
func (l *Log) exclusive(f func() error) error {
	l.flushing <- struct{}{}
	defer func() { <-l.flushing }()
	return l.write(f)
}

// fail ends the log after a disk error: what the disk holds is not known any
// more, so nothing is written until it is opened again (and recovered). The
// whole log dir is given up, as in Kafka.
func (l *Log) fail(op string, err error) error {
	e := &Error{Code: errcode.KafkaStorageError, Message: op + " of " + l.partition.String() + " in " + l.Dir(), Err: err}
	if l.finish(e) {
		l.logger.Error("disk error, the log is given up", "partition", l.partition.String(), "op", op, "err", err)
		if l.failed != nil {
			l.failed(l.LogDir(), err)
		}
	}
	return e
}

// finish sets the reason why the log cannot be used; the first one stays.
func (l *Log) finish(reason error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return false
	}
	l.ended = reason
	return true
}

// publish makes an append, a truncation or a roll visible in one step: the
// segments, the log end, the size of the active segment, and what follows.
func (l *Log) publish(segments []*segment, end, activeSize int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.segments, l.end = segments, end
	l.active().size.Store(activeSize)
	l.highWatermark = min(l.highWatermark, end)
	l.noteUnstable()
}

// millis is the form in which Kafka keeps time.
func millis(t time.Time) int64 { return t.UnixMilli() }
