package storage

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/record"
)

func TestAppendGivesOffsetsAndEpochWithoutTouchingTheChecksum(t *testing.T) {
	fileSystems(t, func(t *testing.T, fs vfs.FS) {
		l := openTest(t, fs, DefaultLogConfig())
		first := appendOK(t, l, batchOf("a", "b"))
		require.Equal(t, AppendInfo{FirstOffset: 0, LastOffset: 1, LogAppendTime: -1, Records: 2, Bytes: first.Bytes, MaxTimestamp: t0.UnixMilli() + 1}, first)
		second, err := l.AppendAsLeader(batchOf("c"), 7, FromClient, t0)
		require.NoError(t, err)
		require.EqualValues(t, 2, second.FirstOffset)
		require.EqualValues(t, 7, l.LatestEpoch())

		stored := readBatches(t, l, 0, 1<<20, BoundLogEnd)
		require.Equal(t, []string{"a", "b", "c"}, values(t, stored))
		h, err := record.ParseHeader(stored)
		require.NoError(t, err)
		require.EqualValues(t, 0, h.PartitionLeaderEpoch)
		require.Equal(t, []EpochEntry{{0, 0}, {7, 2}}, l.Epochs())
	})
}

func TestAppendOfAThousandRecordsIsOneWrite(t *testing.T) {
	fs := vfs.NewCount(vfs.NewMem())
	l := openTest(t, fs, DefaultLogConfig())
	fs.Reset()
	batch := batchOf(make([]string, 1000)...)
	appendOK(t, l, batch)
	require.Equal(t, vfs.Count{Calls: 1, Bytes: int64(len(batch))}, fs.Count(vfs.OpAppend, ".log"))
	for _, suffix := range []string{".index", ".timeindex", ".snapshot", ""} {
		require.Zero(t, fs.Count(vfs.OpAppend, suffix), suffix)
	}
}

func TestReadersOfMemoryGetStoredBytesWithoutCopy(t *testing.T) {
	l := openTest(t, vfs.NewMem(), DefaultLogConfig())
	appendOK(t, l, batchOf("a"))
	one, err := l.Read(0, 1<<20, BoundLogEnd, true)
	require.NoError(t, err)
	two, err := l.Read(0, 1<<20, BoundLogEnd, true)
	require.NoError(t, err)
	require.Same(t, &one.Records.Mem[0][0], &two.Records.Mem[0][0])
}

func TestBadBatchesAreRefusedWithKafkasCodes(t *testing.T) {
	cfg := DefaultLogConfig()
	cfg.MaxMessageBytes = 2000
	cfg.MessageTimestampAfterMaxMs = 1000
	cfg.MessageTimestampBeforeMaxMs = 1000
	compacted := cfg
	compacted.CleanupCompact = true
	bombs := cfg
	bombs.MaxDecompressedMessageBytes = 4000
	small := cfg
	small.SegmentBytes = 100
	patched := func(f func(b []byte)) []byte {
		b := batchOf("a", "b")
		f(b)
		record.PatchTimestamp(b, false, t0.UnixMilli()+1) // makes the checksum right
		return b
	}
	cases := []struct {
		name     string
		cfg      LogConfig
		batch    []byte
		code     errcode.Code
		logStart int64
		records  int
	}{
		{"flipped bit", cfg, flip(batchOf("a"), 70), errcode.CorruptMessage, -1, 0},
		{"base offset 777", cfg, func() []byte { b := batchOf("a"); record.PatchBase(b, 777, 0); return b }(), errcode.InvalidRecord, 0, 0},
		{"two batches", cfg, joined(batchOf("a"), batchOf("b")), errcode.InvalidRecord, 0, 0},
		{"nothing", cfg, nil, errcode.InvalidRecord, 0, 0},
		{"half a batch", cfg, batchOf("a")[:64], errcode.InvalidRecord, 0, 0},
		{"last offset delta", cfg, patched(func(b []byte) { b[26] = 9 }), errcode.InvalidRecord, 0, 0},
		{"control batch", cfg, patched(func(b []byte) { b[22] |= record.AttrControl }), errcode.InvalidRecord, 0, 0},
		{"producer without sequence", cfg, produced{values: []string{"a"}, id: 4, seq: -1}.bytes(), errcode.InvalidRecord, 0, 0},
		{"codec 7", cfg, patched(func(b []byte) { b[22] |= 7 }), errcode.UnknownServerError, 0, 0},
		{"not compressed at all", cfg, patched(func(b []byte) { b[22] |= 1 }), errcode.UnknownServerError, 0, 0},
		{"too large decompressed", bombs, produced{values: []string{strings.Repeat("x", 5000)}, codec: compress.Lz4}.bytes(), errcode.InvalidRecord, 0, 0},
		{"too large", cfg, batchOf(strings.Repeat("x", 2000)), errcode.MessageTooLarge, -1, 0},
		{"larger than a segment", small, batchOf(strings.Repeat("x", 90)), errcode.RecordListTooLarge, -1, 0},
		{"without key", compacted, produced{values: []string{"a", "b"}, noKey: true}.bytes(), errcode.InvalidRecord, 0, 2},
		{"too old", cfg, produced{values: []string{"a"}, at: t0.Add(-2 * time.Second)}.bytes(), errcode.InvalidTimestamp, 0, 1},
		{"too young", cfg, produced{values: []string{"a", "b"}, at: t0.Add(time.Second)}.bytes(), errcode.InvalidTimestamp, 0, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := openTest(t, vfs.NewMem(), c.cfg)
			info, err := l.AppendAsLeader(c.batch, 0, FromClient, t0)
			require.ErrorIs(t, err, c.code)
			require.Equal(t, c.code, CodeOf(err))
			require.EqualValues(t, -1, info.FirstOffset)
			require.Equal(t, c.logStart, info.LogStartOffset)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Len(t, e.Records, c.records)
			require.Zero(t, l.LogEndOffset())
			require.Zero(t, l.Size())
		})
	}
}

func flip(b []byte, bit int) []byte {
	b[bit] ^= 0x10
	return b
}

func TestRecordErrorsReadAsKafkas(t *testing.T) {
	cfg := DefaultLogConfig()
	cfg.CleanupCompact = true
	l := openTest(t, vfs.NewMem(), cfg)
	_, err := l.AppendAsLeader(produced{values: []string{"a", "b"}, noKey: true}.bytes(), 0, FromClient, t0)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "One or more records have been rejected due to 2 record errors in total, and only showing the first three errors at most: "+
		"[RecordError(batchIndex=0, message='Compacted topic cannot accept message without key in topic partition orders-0'), "+
		"RecordError(batchIndex=1, message='Compacted topic cannot accept message without key in topic partition orders-0')]", e.Message)

	late := produced{values: []string{"a"}, at: t0.Add(2 * time.Hour)}.bytes()
	_, err = l.AppendAsLeader(late, 0, FromClient, t0)
	require.ErrorAs(t, err, &e)
	require.Equal(t, "One or more records have been rejected due to invalid timestamp", e.Message)
	require.Equal(t, []RecordError{{BatchIndex: 0, Message: "Timestamp 1700007200000 of message with offset 0 is out of range. " +
		"The timestamp should be within [-9223370336854775807, 1700003600000]"}}, e.Records)
}

func TestProduceRequestIsJudgedBeforeTheLog(t *testing.T) {
	zstd := produced{values: []string{"a"}, codec: compress.Zstd}.bytes()
	old := batchOf("a")
	old[16] = 1
	require.NoError(t, ValidateProduce(batchOf("a"), 3))
	require.NoError(t, ValidateProduce(zstd, 7))
	require.ErrorIs(t, ValidateProduce(zstd, 6), errcode.UnsupportedCompressionType)
	require.ErrorIs(t, ValidateProduce(old, 3), errcode.InvalidRecord)
	require.ErrorIs(t, ValidateProduce(nil, 13), errcode.InvalidRecord)
	require.ErrorIs(t, ValidateProduce(batchOf("a")[:65], 13), errcode.InvalidRecord)
	require.ErrorIs(t, ValidateProduce(joined(batchOf("a"), batchOf("b")), 13), errcode.InvalidRecord)
}

func TestLogAppendTimeReplacesTheProducersTimes(t *testing.T) {
	cfg := DefaultLogConfig()
	cfg.MessageTimestampType = LogAppendTime
	l := openTest(t, vfs.NewMem(), cfg)
	now := t0.Add(time.Minute)
	info, err := l.AppendAsLeader(batchOf("a", "b"), 0, FromClient, now)
	require.NoError(t, err)
	require.Equal(t, now.UnixMilli(), info.LogAppendTime)
	for r := range allRecords(t, readBatches(t, l, 0, 1<<20, BoundLogEnd)) {
		require.Equal(t, now.UnixMilli(), r.Timestamp)
	}
}

func TestWrongMaxTimestampIsPutRight(t *testing.T) {
	l := openTest(t, vfs.NewMem(), DefaultLogConfig())
	b := batchOf("a", "b")
	record.PatchTimestamp(b, false, t0.UnixMilli()+99)
	info := appendOK(t, l, b)
	require.Equal(t, t0.UnixMilli()+1, info.MaxTimestamp)
	require.Equal(t, []string{"a", "b"}, values(t, readBatches(t, l, 0, 1<<20, BoundLogEnd)))
}

func TestTopicsCodecReplacesTheProducers(t *testing.T) {
	for _, target := range []compress.Codec{compress.None, compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd} {
		for _, source := range []compress.Codec{compress.None, compress.Lz4} {
			t.Run(fmt.Sprint(source, target), func(t *testing.T) {
				cfg := DefaultLogConfig()
				cfg.CompressionType, cfg.Compression = CompressionFixed, target
				l := openTest(t, vfs.NewMem(), cfg)
				b := produced{values: []string{"a", strings.Repeat("b", 300)}, codec: source, id: 8, epoch: 2, seq: 0, txn: true}.bytes()
				appendOK(t, l, b)
				stored := readBatches(t, l, 0, 1<<20, BoundLogEnd)
				h, err := record.ParseHeader(stored)
				require.NoError(t, err)
				require.Equal(t, target, h.Codec())
				require.Equal(t, []any{int64(7), int16(2), int32(0), true}, []any{h.ProducerID, h.ProducerEpoch, h.BaseSequence, h.Transactional()})
				require.Equal(t, []string{"a", strings.Repeat("b", 300)}, values(t, stored))
			})
		}
	}
}

func TestRecordOfACompressedBatchHasALimitOfItsOwn(t *testing.T) {
	cfg := DefaultLogConfig()
	cfg.MaxDecompressedMessageBytes = 1000
	send := func(codec compress.Codec, sizes ...int) error {
		var p produced
		for _, n := range sizes {
			p.values = append(p.values, strings.Repeat("x", n))
		}
		p.codec, p.noKey = codec, true
		_, err := openTest(t, vfs.NewMem(), cfg).AppendAsLeader(p.bytes(), 0, FromClient, t0)
		return err
	}
	// A record has 7 bytes besides a value of this size: the real broker's words.
	require.NoError(t, send(compress.Lz4, 993, 993, 993))
	require.EqualError(t, send(compress.Lz4, 994), "INVALID_RECORD: Invalid record size: 1001 exceeds the configured maximum record size of 1000.")
	require.NoError(t, send(compress.None, 5000))
}

func TestBatchTooLargeAfterRecompressionIsRefused(t *testing.T) {
	cfg := DefaultLogConfig()
	cfg.CompressionType, cfg.Compression, cfg.MaxMessageBytes = CompressionFixed, compress.None, 1000
	l := openTest(t, vfs.NewMem(), cfg)
	b := produced{values: []string{strings.Repeat("b", 3000)}, codec: compress.Lz4}.bytes()
	_, err := l.AppendAsLeader(b, 0, FromClient, t0)
	require.ErrorIs(t, err, errcode.MessageTooLarge)
}

func TestFollowerTakesWhatTheLeaderStored(t *testing.T) {
	leader := openTest(t, vfs.NewMem(), DefaultLogConfig())
	follower := openTest(t, vfs.NewMem(), DefaultLogConfig())
	appendOK(t, leader, produced{values: []string{"a"}, id: 1}.bytes())
	_, err := leader.AppendAsLeader(batchOf("b", "c"), 4, FromClient, t0)
	require.NoError(t, err)
	stored := readBatches(t, leader, 0, 1<<20, BoundLogEnd)
	info, err := follower.AppendAsFollower(append(stored, stored[:30]...), t0) // the cut off rest is no error
	require.NoError(t, err)
	require.EqualValues(t, 2, info.LastOffset)
	require.Equal(t, leader.Epochs(), follower.Epochs())
	require.Equal(t, leader.ActiveProducers(), follower.ActiveProducers())
	_, err = follower.AppendAsFollower(stored, t0)
	require.ErrorIs(t, err, errcode.OffsetOutOfRange)
	_, err = follower.AppendAsFollower(flip(stored, 70), t0)
	require.ErrorIs(t, err, errcode.CorruptMessage)
}

func TestRaftLeaderBringsItsOwnOffsets(t *testing.T) {
	l := openTest(t, vfs.NewMem(), DefaultLogConfig())
	change := record.ControlBatch{LeaderEpoch: 3, Timestamp: t0.UnixMilli(), ProducerID: record.NoProducerID,
		ProducerEpoch: record.NoProducerEpoch, Records: []record.ControlRecord{{Type: record.ControlLeaderChange, Value: []byte{0, 0}}}}.AppendTo(nil)
	data := batchOf("x")
	record.PatchBase(data, 1, 3)
	info, err := l.AppendAsLeader(joined(change, data), 3, FromRaft, t0)
	require.NoError(t, err)
	require.EqualValues(t, 1, info.LastOffset)
	record.PatchBase(data, 7, 3)
	_, err = l.AppendAsLeader(data, 3, FromRaft, t0)
	require.ErrorIs(t, err, errcode.InvalidRecord)
	record.PatchBase(data, 2, 2)
	_, err = l.AppendAsLeader(data, 3, FromRaft, t0)
	require.ErrorIs(t, err, errcode.InvalidRecord)
}

func TestSegmentsRollBySizeTimeIndexAndOffset(t *testing.T) {
	one := len(batchOf("a"))
	t.Run("size", func(t *testing.T) {
		cfg := DefaultLogConfig()
		cfg.SegmentBytes = int32(2 * one)
		l := openTest(t, vfs.NewMem(), cfg)
		for range 5 {
			appendOK(t, l, batchOf("a"))
		}
		require.Equal(t, []int64{0, 2, 4}, l.Segments())
		require.Equal(t, []string{"a", "a", "a", "a", "a"}, values(t, readBatches(t, l, 0, 1<<20, BoundLogEnd)))
	})
	t.Run("time", func(t *testing.T) {
		cfg := DefaultLogConfig()
		cfg.SegmentMs = 1000
		l := openTest(t, vfs.NewMem(), cfg)
		for _, d := range []time.Duration{0, time.Second, time.Second + time.Millisecond, 2 * time.Second} {
			_, err := l.AppendAsLeader(produced{values: []string{"a"}, at: t0.Add(d)}.bytes(), 0, FromClient, t0)
			require.NoError(t, err)
		}
		require.Equal(t, []int64{0, 2}, l.Segments())
	})
	t.Run("index", func(t *testing.T) {
		cfg := DefaultLogConfig()
		cfg.IndexIntervalBytes, cfg.SegmentIndexBytes = 0, 24 // three offset entries, one time entry
		l := openTest(t, vfs.NewMem(), cfg)
		for i := range 5 {
			_, err := l.AppendAsLeader(produced{values: []string{"a"}, at: t0.Add(time.Duration(i))}.bytes(), 0, FromClient, t0)
			require.NoError(t, err)
		}
		require.Equal(t, []int64{0, 2, 4}, l.Segments())
	})
	t.Run("offset", func(t *testing.T) {
		l := openTest(t, vfs.NewMem(), DefaultLogConfig())
		appendOK(t, l, batchOf("a"))
		far := batchOf("b")
		record.PatchBase(far, 1<<31, 0)
		_, err := l.AppendAsFollower(far, t0)
		require.NoError(t, err)
		require.Equal(t, []int64{0, 1 << 31}, l.Segments())
	})
}

func TestDiskErrorEndsTheLog(t *testing.T) {
	fs := vfs.NewFault(vfs.NewMem())
	var failed string
	l := openTest(t, fs, DefaultLogConfig(), func(o *LogOptions) { o.OnFailure = func(dir string, _ error) { failed = dir } })
	appendOK(t, l, batchOf("a"))
	full := errors.New("no space left on device")
	fs.Set(func(op vfs.Op) error {
		if op.Kind == vfs.OpAppend && strings.HasSuffix(op.Name, ".log") {
			return &vfs.Torn{Kept: 10, Err: full}
		}
		return nil
	})
	info, err := l.AppendAsLeader(batchOf("b"), 0, FromClient, t0)
	require.ErrorIs(t, err, errcode.KafkaStorageError)
	require.ErrorIs(t, err, full)
	require.EqualValues(t, -1, info.LogStartOffset)
	require.Equal(t, "logs", failed)
	fs.Set(nil)
	_, err = l.AppendAsLeader(batchOf("c"), 0, FromClient, t0)
	require.ErrorIs(t, err, errcode.KafkaStorageError)
	_, err = l.Read(0, 100, BoundLogEnd, true)
	require.ErrorIs(t, err, errcode.KafkaStorageError)

	again := openTest(t, fs, DefaultLogConfig())
	require.Equal(t, []string{"a"}, values(t, readBatches(t, again, 0, 1<<20, BoundLogEnd)))
}
