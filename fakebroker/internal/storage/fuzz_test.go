package storage

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func FuzzOffsetIndex(f *testing.F) {
	f.Add(AppendOffsetIndex(nil, []OffsetEntry{{4, 100}, {9, 250}}), int64(300), int64(9))
	f.Add(make([]byte, 80), int64(300), int64(9))
	f.Add([]byte("short"), int64(300), int64(9))
	f.Fuzz(func(t *testing.T, b []byte, logSize, target int64) {
		entries, err := ParseOffsetIndex(b, logSize)
		if err != nil {
			require.ErrorIs(t, err, errCorruptIndex)
			return
		}
		written := AppendOffsetIndex(nil, entries)
		require.True(t, bytes.HasPrefix(b, written))
		require.Empty(t, bytes.Trim(b[len(written):], "\x00"))
		// A lookup is never above the true position: every entry with a larger
		// offset lies behind it.
		pos := floorOffset(entries, target)
		require.True(t, pos == 0 || pos < logSize)
		for _, e := range entries {
			if int64(e.RelativeOffset) > target {
				require.Greater(t, int64(e.Position), pos-1)
			}
		}
		require.LessOrEqual(t, floorPosition(entries, target), max(target, 0))
	})
}

func FuzzTimeIndex(f *testing.F) {
	f.Add(AppendTimeIndex(nil, []TimeEntry{{1000, 4}, {2000, 9}}), int64(1500))
	f.Add(make([]byte, 120), int64(0))
	f.Fuzz(func(t *testing.T, b []byte, ts int64) {
		entries, err := ParseTimeIndex(b)
		if err != nil {
			require.ErrorIs(t, err, errCorruptIndex)
			return
		}
		written := AppendTimeIndex(nil, entries)
		require.True(t, bytes.HasPrefix(b, written))
		require.Empty(t, bytes.Trim(b[len(written):], "\x00"))
		at := floorTimestamp(entries, ts)
		for _, e := range entries {
			if e.Timestamp > ts {
				require.GreaterOrEqual(t, int64(e.RelativeOffset), at)
			}
		}
	})
}

func FuzzTxnIndex(f *testing.F) {
	f.Add(AppendTxnIndex(nil, []TxnEntry{{1, 0, 5, 6}, {2, 3, 9, 10}}), int64(0), int64(4), int64(8))
	f.Fuzz(func(t *testing.T, b []byte, base, from, to int64) {
		entries, err := ParseTxnIndex(b, base)
		if err != nil {
			require.ErrorIs(t, err, errCorruptIndex)
			return
		}
		require.Equal(t, b, append([]byte{}, AppendTxnIndex(nil, entries)...))
		found, _ := collectAborted(nil, entries, from, to)
		require.LessOrEqual(t, len(found), len(entries))
	})
}

func FuzzProducerSnapshot(f *testing.F) {
	f.Add(AppendProducerSnapshot(nil, []ProducerSnapshotEntry{{7, 1, 4, 9, 2, 1000, 3, -1}, {8, 0, -1, -1, 0, 5, 1, 2}}))
	f.Add(AppendProducerSnapshot(nil, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := ParseProducerSnapshot(b)
		if err != nil {
			require.ErrorIs(t, err, ErrCorruptSnapshot)
			return
		}
		require.Equal(t, b, AppendProducerSnapshot(nil, entries))
		s := newProducerState(orders, 0)
		s.restore(entries, 100, 0, 1<<62)
		s.snapshot()
		s.producers()
		s.firstUnstable()
	})
}

func FuzzEpochCheckpoint(f *testing.F) {
	f.Add([]byte("0\n2\n0 0\n3 57\n"))
	f.Add([]byte("0\n0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := ParseEpochCheckpoint(b)
		if err != nil {
			require.ErrorIs(t, err, ErrCorruptCheckpoint)
			return
		}
		again, err := ParseEpochCheckpoint(AppendEpochCheckpoint(nil, entries))
		require.NoError(t, err)
		require.Equal(t, len(entries), len(again))
		c := epochCache{entries: entries}
		for _, e := range entries {
			require.Equal(t, e.Epoch, c.at(e.StartOffset))
		}
	})
}

func FuzzOffsetCheckpoint(f *testing.F) {
	f.Add([]byte("0\n2\norders 0 120\norders 1 98\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		offsets, err := ParseOffsetCheckpoint(b)
		if err != nil {
			require.ErrorIs(t, err, ErrCorruptCheckpoint)
			return
		}
		again, err := ParseOffsetCheckpoint(AppendOffsetCheckpoint(nil, offsets))
		require.NoError(t, err)
		require.Equal(t, len(offsets), len(again))
	})
}

func FuzzPartitionMetadata(f *testing.F) {
	f.Add(AppendPartitionMetadata(nil, testUUID(7)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if id, err := ParsePartitionMetadata(b); err == nil {
			again, err := ParsePartitionMetadata(AppendPartitionMetadata(nil, id))
			require.NoError(t, err)
			require.Equal(t, id, again)
		}
	})
}

func FuzzMetaProperties(f *testing.F) {
	f.Add(AppendMetaProperties(nil, MetaProperties{NodeID: 3, ClusterID: "c", DirectoryID: testUUID(7)}, time.UnixMilli(0)))
	f.Add([]byte("version=0\nbroker.id=1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParseMetaProperties(b)
		if err != nil {
			return
		}
		require.GreaterOrEqual(t, p.NodeID, unknownNodeID)
		parseCleanShutdown(b)
	})
}

// Any bytes in the last segment and its indexes: what is recovered is the
// longest valid prefix, and doing it again changes nothing.
func FuzzLogRecovery(f *testing.F) {
	files := sampleLog(f)
	last := "logs/orders-0/" + offsetName(6)
	whole := []byte(files[last+logSuffix])
	f.Add(whole, []byte{}, []byte{}, []byte{})
	f.Add(whole[:len(whole)-7], make([]byte, 16), make([]byte, 24), []byte("x"))
	f.Add(append(bytes.Clone(whole), whole...), []byte{0, 0, 0, 1, 0, 0, 0, 9}, []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, log, index, times, snapshot []byte) {
		planted := make(map[string]string)
		for name, content := range files {
			planted[name] = content
		}
		planted[last+logSuffix], planted[last+indexSuffix], planted[last+timeIndexSuffix] = string(log), string(index), string(times)
		planted[last+snapshotSuffix] = string(snapshot)
		want, next := validPrefix(log, 6)
		fs := plant(t, planted)
		l := openTest(t, fs, sampleConfig())
		require.Equal(t, next, l.LogEndOffset())
		require.Equal(t, int64(len(want)), l.active().size.Load())
		once := tree(t, fs, "logs")
		again := openTest(t, fs, sampleConfig())
		require.Equal(t, next, again.LogEndOffset())
		require.Equal(t, once, tree(t, fs, "logs"))
	})
}
