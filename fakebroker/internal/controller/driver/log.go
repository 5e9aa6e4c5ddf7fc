package driver

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/wire"
)

// metadataTopicID is the id that every metadata log has.
var metadataTopicID = wire.UUID{15: 1}

// metadataLog is a storage.Log as raft.Log.
type metadataLog struct {
	log *storage.Log
}

// openLog opens the metadata log. It always scans: after a crash there may be half a batch at the end, and the log since
// the last checkpoint is short.
func openLog(o *Options, dir string, now time.Time) (metadataLog, error) {
	cfg := storage.DefaultLogConfig()
	cfg.SegmentBytes = int32(o.Config.Int("metadata.log.segment.bytes"))
	if v := o.Config.Value("internal.metadata.log.segment.bytes"); !v.Null {
		cfg.SegmentBytes = int32(v.Int)
	}
	cfg.SegmentMs = o.Config.Int("metadata.log.segment.ms")
	cfg.MaxMessageBytes = maxBatch
	cfg.RetentionMs, cfg.RetentionBytes = -1, -1 // checkpoints decide what may go
	log, err := storage.OpenLog(storage.LogOptions{
		FS: o.FS, Dir: dir, Partition: storage.TopicPartition{Topic: storage.MetadataTopic}, TopicID: metadataTopicID,
		Config: cfg, Logger: o.Logger,
	}, now)
	return metadataLog{log}, err
}

// maxBatch bounds one batch of the metadata log. Apache Kafka's limit is 8 MiB (internal.metadata.max.batch.size.in.bytes),
// which 10,000 partitions per request stay below; the log itself takes more.
const maxBatch = 64 << 20

func (l metadataLog) Append(batch []byte, epoch int32, now time.Time) error {
	_, err := l.log.AppendAsLeader(batch, epoch, storage.FromRaft, now)
	return err
}

func (l metadataLog) Flush(now time.Time) error { return l.log.Flush(now) }

func (l metadataLog) Read(dst []byte, from int64, maxBytes int) ([]byte, error) {
	data, err := l.log.Read(from, maxBytes, storage.BoundLogEnd, true)
	if err != nil {
		return dst, err
	}
	defer data.Records.Release()
	return data.Records.AppendTo(dst)
}

func (l metadataLog) StartOffset() int64            { return l.log.LogStartOffset() }
func (l metadataLog) EndOffset() int64              { return l.log.LogEndOffset() }
func (l metadataLog) LastEpoch() int32              { return l.log.LatestEpoch() }
func (l metadataLog) SetHighWatermark(offset int64) { l.log.SetHighWatermark(offset) }
func (l metadataLog) Close(now time.Time) error     { return l.log.Close(now) }

func (l metadataLog) DeleteBefore(offset int64) error {
	_, err := l.log.DeleteRecordsTo(offset)
	return err
}
