package storage

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/record"
)

func TestReadsKeepToBatchesAndBytes(t *testing.T) {
	fileSystems(t, func(t *testing.T, fs vfs.FS) {
		cfg := DefaultLogConfig()
		cfg.SegmentBytes, cfg.IndexIntervalBytes = 5000, 200
		l := openTest(t, fs, cfg)
		fill(t, l, 100)
		whole := readBatches(t, l, 0, 1<<20, BoundLogEnd)
		for _, maxBytes := range []int{0, 1, 100, 333, 1000, 4999, 1 << 30} {
			for from := range int64(300) {
				d, err := l.Read(from, maxBytes, BoundHighWatermark, true)
				require.NoError(t, err)
				b, err := d.Records.AppendTo(nil)
				require.NoError(t, err)
				require.Len(t, b, d.Records.Len)
				var copied strings.Builder
				n, err := d.Records.WriteTo(&copied)
				require.NoError(t, err)
				require.EqualValues(t, len(b), n)
				require.Equal(t, string(b), copied.String())
				d.Records.Release()
				require.Contains(t, string(whole), string(b))
				checkRead(t, &d, b, from, maxBytes)
			}
		}
		require.Equal(t, string(whole), string(readBatches(t, l, 0, 1, BoundLogEnd)))
	})
}

// checkRead holds an answer against the rules: the first batch holds from and is
// whole, only the first may be larger than maxBytes, NextOffset is right behind
// the last whole one; what is cut off is cut off by maxBytes.
func checkRead(t *testing.T, d *FetchData, b []byte, from int64, maxBytes int) {
	first := true
	total := len(b)
	var last record.BatchHeader
	for len(b) > 0 {
		batch, rest, err := record.Next(b)
		if errors.Is(err, record.ErrPartial) {
			require.Equal(t, maxBytes, total)
			break
		}
		require.NoError(t, err)
		h, err := record.ParseHeader(batch)
		require.NoError(t, err)
		if first {
			require.True(t, h.BaseOffset <= from && from <= h.LastOffset())
			require.True(t, total <= maxBytes || total == len(batch))
		}
		first, b, last = false, rest, h
	}
	require.False(t, first, "offset %d, %d bytes", from, maxBytes)
	require.Equal(t, last.NextOffset(), d.NextOffset)
}

func TestReadsStopAtTheirBound(t *testing.T) {
	l := openTest(t, vfs.NewMem(), DefaultLogConfig())
	for range 10 {
		appendOK(t, l, batchOf("a", "b"))
	}
	appendOK(t, l, produced{values: []string{"t"}, id: 1, txn: true}.bytes())
	appendOK(t, l, batchOf("z"))
	end := func(b Bound) int {
		n := 0
		for range allRecords(t, readBatches(t, l, 0, 1<<20, b)) {
			n++
		}
		return n
	}
	require.Equal(t, []int{22, 0, 0}, []int{end(BoundLogEnd), end(BoundHighWatermark), end(BoundStable)})
	l.SetHighWatermark(6)
	require.Equal(t, []int{22, 6, 6}, []int{end(BoundLogEnd), end(BoundHighWatermark), end(BoundStable)})
	l.SetHighWatermark(100)
	require.Equal(t, []int{22, 22, 20}, []int{end(BoundLogEnd), end(BoundHighWatermark), end(BoundStable)})

	d, err := l.Read(22, 100, BoundLogEnd, true)
	require.NoError(t, err)
	require.Zero(t, d.Records.Len)
	require.Equal(t, []int64{22, 0, 22, 20, 22}, []int64{d.NextOffset, d.LogStartOffset, d.HighWatermark, d.LastStableOffset, d.LogEndOffset})
	_, err = l.Read(23, 100, BoundLogEnd, true)
	require.ErrorIs(t, err, errcode.OffsetOutOfRange)
	d, err = l.Read(0, 10, BoundLogEnd, false)
	require.NoError(t, err)
	require.Zero(t, d.Records.Len)
	require.True(t, d.TooLarge)
}

func TestDeletedRecordsAreGoneAlsoInsideABatch(t *testing.T) {
	fs := vfs.NewMem()
	cfg := DefaultLogConfig()
	cfg.SegmentBytes = 300
	l := openTest(t, fs, cfg)
	fill(t, l, 10)
	_, err := l.DeleteRecordsTo(31)
	require.ErrorIs(t, err, errcode.OffsetOutOfRange)
	start, err := l.DeleteRecordsTo(13)
	require.NoError(t, err)
	require.EqualValues(t, 13, start)
	start, err = l.DeleteRecordsTo(5)
	require.NoError(t, err)
	require.EqualValues(t, 13, start)
	_, err = l.Read(12, 100, BoundLogEnd, true)
	require.ErrorIs(t, err, errcode.OffsetOutOfRange)
	d, err := l.Read(13, 1, BoundLogEnd, true)
	require.NoError(t, err)
	require.EqualValues(t, 15, d.NextOffset)
	require.Equal(t, []EpochEntry{{0, 13}}, l.Epochs())
	found, err := l.OffsetForTimestamp(0, BoundLogEnd)
	require.NoError(t, err)
	require.Equal(t, nothingFound, found, "Kafka looks into the first segment only")

	n, err := l.DeleteOldSegments(t0)
	require.NoError(t, err)
	require.Positive(t, n)
	require.LessOrEqual(t, l.Segments()[0], int64(13))
	require.EqualValues(t, 13, l.LogStartOffset())
	found, err = l.OffsetForTimestamp(0, BoundLogEnd)
	require.NoError(t, err)
	require.EqualValues(t, 13, found.Offset)
	start, err = l.DeleteRecordsTo(-1)
	require.NoError(t, err)
	require.EqualValues(t, 30, start)
}

func TestRetentionBySizeAndTime(t *testing.T) {
	one := len(batchOf("a"))
	setup := func(change func(*LogConfig)) *Log {
		cfg := DefaultLogConfig()
		cfg.SegmentBytes, cfg.RetentionMs = int32(one), -1
		change(&cfg)
		l := openTest(t, vfs.NewMem(), cfg)
		for i := range 5 {
			_, err := l.AppendAsLeader(produced{values: []string{"a"}, at: t0.Add(time.Duration(i) * time.Second)}.bytes(), 0, FromClient, t0)
			require.NoError(t, err)
		}
		l.SetHighWatermark(5)
		return l
	}
	retain := func(l *Log, now time.Time) []int64 {
		_, err := l.DeleteOldSegments(now)
		require.NoError(t, err)
		return l.Segments()
	}
	t.Run("size", func(t *testing.T) {
		l := setup(func(c *LogConfig) { c.RetentionBytes = int64(2*one + 1) })
		require.Equal(t, []int64{2, 3, 4}, retain(l, t0))
		require.EqualValues(t, 2, l.LogStartOffset())
	})
	t.Run("time", func(t *testing.T) {
		l := setup(func(c *LogConfig) { c.RetentionMs = 10_000 })
		require.Equal(t, []int64{0, 1, 2, 3, 4}, retain(l, t0.Add(10*time.Second)))
		require.Equal(t, []int64{2, 3, 4}, retain(l, t0.Add(11*time.Second+time.Millisecond)))
		require.Equal(t, []int64{5}, retain(l, t0.Add(time.Hour)), "the active one goes too, a new one begins")
		require.EqualValues(t, 5, l.LogStartOffset())
		require.EqualValues(t, 5, appendOK(t, l, batchOf("b")).FirstOffset)
	})
	t.Run("high watermark", func(t *testing.T) {
		l := setup(func(c *LogConfig) { c.RetentionMs = 0 })
		l.mu.Lock()
		l.highWatermark = 3
		l.mu.Unlock()
		require.Equal(t, []int64{3, 4}, retain(l, t0.Add(time.Hour)))
	})
	t.Run("compacted topics keep all", func(t *testing.T) {
		l := setup(func(c *LogConfig) { c.RetentionMs, c.RetentionBytes, c.CleanupDelete = 0, 0, false })
		require.Len(t, retain(l, t0.Add(time.Hour)), 5)
	})
}

func TestDeletedSegmentsLeaveTheDiskAfterTheDelay(t *testing.T) {
	fs := vfs.NewMem()
	cfg := DefaultLogConfig()
	cfg.SegmentBytes, cfg.RetentionMs = 300, 0
	l := openTest(t, fs, cfg)
	for i := range int32(10) {
		appendOK(t, l, idempotent(i, 1))
	}
	l.SetHighWatermark(10)
	held, err := l.Read(0, 1000, BoundLogEnd, true)
	require.NoError(t, err)
	n, err := l.DeleteOldSegments(t0.Add(time.Hour))
	require.NoError(t, err)
	require.Positive(t, n)
	deleted := func() (n int) {
		for name := range tree(t, fs, "logs") {
			if strings.HasSuffix(name, deletedSuffix) {
				n++
			}
		}
		return n
	}
	require.Positive(t, deleted())
	require.NoError(t, l.tick(t0.Add(time.Hour+59*time.Second), false, false, false))
	require.Positive(t, deleted())
	require.NoError(t, l.tick(t0.Add(time.Hour+time.Minute), false, false, false))
	require.Zero(t, deleted())
	_, err = held.Records.AppendTo(nil)
	require.NoError(t, err)
	held.Records.Release()
	require.Len(t, l.ActiveProducers(), 1, "the state of producers outlives their records")
}

func TestTruncationDropsWholeBatches(t *testing.T) {
	fileSystems(t, func(t *testing.T, fs vfs.FS) {
		cfg := sampleConfig()
		cfg.SegmentBytes = 500
		l := openTest(t, fs, cfg)
		for i := range int32(10) {
			_, err := l.AppendAsLeader(idempotent(2*i, 2), i/4, FromClient, t0)
			require.NoError(t, err)
		}
		l.SetHighWatermark(20)
		require.NoError(t, l.TruncateTo(20, t0))
		require.EqualValues(t, 20, l.LogEndOffset())
		require.NoError(t, l.TruncateTo(9, t0)) // within 8..9
		_, _, hw, end := l.Offsets()
		require.Equal(t, []int64{9, 9}, []int64{hw, end})
		require.Equal(t, []EpochEntry{{0, 0}, {1, 8}}, l.Epochs())
		require.EqualValues(t, 7, l.ActiveProducers()[0].LastSequence)
		require.Len(t, values(t, readBatches(t, l, 0, 1000, BoundLogEnd)), 8)
		info, err := l.AppendAsLeader(idempotent(8, 2), 5, FromClient, t0)
		require.NoError(t, err)
		require.EqualValues(t, 9, info.FirstOffset)

		require.NoError(t, l.Close(t0))
		again := openTest(t, fs, cfg, cleanly)
		require.EqualValues(t, 11, again.LogEndOffset())
		require.NoError(t, again.TruncateFullyAndStartAt(100, t0))
		start, _, hw, end := again.Offsets()
		require.Equal(t, []int64{100, 100, 100}, []int64{start, hw, end})
		require.Empty(t, again.ActiveProducers())
		require.EqualValues(t, -1, again.LatestEpoch())
		require.EqualValues(t, 100, appendOK(t, again, batchOf("a")).FirstOffset)
	})
}

func TestEndOffsetForEpoch(t *testing.T) {
	l := openTest(t, vfs.NewMem(), DefaultLogConfig())
	require.Equal(t, EpochEnd{-1, -1}, l.EndOffsetForEpoch(0))
	for _, e := range []int32{2, 2, 5} {
		_, err := l.AppendAsLeader(batchOf("a"), e, FromClient, t0)
		require.NoError(t, err)
	}
	require.NoError(t, l.AssignEpochStart(7))
	for epoch, want := range map[int32]EpochEnd{
		-1: {-1, -1}, 0: {0, 0}, 2: {2, 2}, 3: {2, 2}, 5: {5, 3}, 6: {5, 3}, 7: {7, 3}, 8: {-1, -1},
	} {
		require.Equal(t, want, l.EndOffsetForEpoch(epoch), epoch)
	}
	require.Equal(t, []int32{2, 2, 5, 7}, []int32{l.EpochForOffset(0), l.EpochForOffset(1), l.EpochForOffset(2), l.EpochForOffset(3)})
}

func TestOffsetsForTimes(t *testing.T) {
	cfg := DefaultLogConfig()
	cfg.IndexIntervalBytes, cfg.SegmentBytes, cfg.MessageTimestampAfterMaxMs = 100, 700, 1<<40
	l := openTest(t, vfs.NewMem(), cfg)
	// Times go up and down: 0, 7, 14 ... mod 50 seconds.
	var times []int64
	for i := range 60 {
		at := t0.Add(time.Duration(i*7%50) * time.Second)
		_, err := l.AppendAsLeader(produced{values: []string{"a", "b"}, at: at}.bytes(), int32(i/20), FromClient, t0)
		require.NoError(t, err)
		times = append(times, at.UnixMilli(), at.UnixMilli()+1)
	}
	l.SetHighWatermark(100)
	for ts := t0.UnixMilli() - 1; ts < t0.UnixMilli()+51_000; ts += 500 {
		want := nothingFound
		for offset, at := range times {
			if at >= ts {
				if offset < 100 {
					want = TimestampOffset{at, int64(offset), int32(offset / 40)}
				}
				break
			}
		}
		got, err := l.OffsetForTimestamp(ts, BoundHighWatermark)
		require.NoError(t, err)
		require.Equal(t, want, got, ts-t0.UnixMilli())
	}
	got, err := l.MaxTimestampOffset()
	require.NoError(t, err)
	require.Equal(t, TimestampOffset{t0.UnixMilli() + 49_001, 15, 0}, got)
}

func TestConfigTakesEffectOnTheNextAppend(t *testing.T) {
	l := openTest(t, vfs.NewMem(), DefaultLogConfig())
	cfg := l.Config()
	cfg.MaxMessageBytes = 10
	l.SetConfig(cfg)
	_, err := l.AppendAsLeader(batchOf("a"), 0, FromClient, t0)
	require.ErrorIs(t, err, errcode.MessageTooLarge)
}

func TestFlushMessagesSyncsBeforeTheAnswer(t *testing.T) {
	fs := vfs.NewCount(vfs.NewMem())
	cfg := DefaultLogConfig()
	cfg.FlushMessages = 3
	l := openTest(t, fs, cfg)
	appendOK(t, l, batchOf("a", "b"))
	require.Zero(t, fs.Count(vfs.OpSync, ".log").Calls)
	appendOK(t, l, batchOf("c"))
	require.Equal(t, 1, fs.Count(vfs.OpSync, ".log").Calls)
	require.EqualValues(t, 3, l.RecoveryPoint())
	appendOK(t, l, batchOf("d", "e"))
	require.Equal(t, 1, fs.Count(vfs.OpSync, ".log").Calls)
}
