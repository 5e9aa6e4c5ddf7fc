package storage

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

func idempotent(seq int32, n int) []byte {
	return produced{values: make([]string, n), id: 8, seq: seq}.bytes()
}

func TestAnyOfTheLastFiveBatchesIsRecognisedWithItsOffset(t *testing.T) {
	l := openTest(t, vfs.NewMem(), DefaultLogConfig())
	for i := range int32(7) {
		appendOK(t, l, idempotent(2*i, 2))
	}
	for i := int32(2); i < 7; i++ {
		info := appendOK(t, l, idempotent(2*i, 2))
		require.True(t, info.Duplicate)
		require.EqualValues(t, 2*i, info.FirstOffset)
		require.EqualValues(t, 2*i+1, info.LastOffset)
		require.Equal(t, t0.UnixMilli()+1, info.LogAppendTime)
	}
	for _, seq := range []int32{0, 2, 15, 13} { // older than five, a gap, half a repetition
		info, err := l.AppendAsLeader(idempotent(seq, 2), 0, FromClient, t0)
		require.ErrorIs(t, err, errcode.OutOfOrderSequenceNumber, seq)
		require.Zero(t, info.LogStartOffset)
	}
	require.EqualValues(t, 14, l.LogEndOffset())
}

func TestSequencesOfAnEpoch(t *testing.T) {
	l := openTest(t, vfs.NewMem(), DefaultLogConfig())
	send := func(epoch int16, seq int32) error {
		_, err := l.AppendAsLeader(produced{values: []string{"a"}, id: 8, epoch: epoch, seq: seq}.bytes(), 0, FromClient, t0)
		return err
	}
	require.NoError(t, send(3, 41), "an unknown producer may begin anywhere")
	require.ErrorIs(t, send(4, 1), errcode.OutOfOrderSequenceNumber)
	require.NoError(t, send(4, 0))
	require.NoError(t, send(4, 1))
	require.ErrorIs(t, send(3, 42), errcode.InvalidProducerEpoch)
	require.NoError(t, send(5, 0), "a new epoch begins at zero")
}

func TestSequencesWrapAround(t *testing.T) {
	l := openTest(t, vfs.NewMem(), DefaultLogConfig())
	appendOK(t, l, idempotent(math.MaxInt32-1, 4)) // max-1, max, 0, 1
	appendOK(t, l, idempotent(2, 1))
	require.True(t, appendOK(t, l, idempotent(math.MaxInt32-1, 4)).Duplicate)
	require.EqualValues(t, 2, l.ActiveProducers()[0].LastSequence)
}

func TestProducerStateSurvivesRestartInAnyWay(t *testing.T) {
	for _, clean := range []bool{true, false} {
		for _, snapshots := range []bool{true, false} {
			fs := vfs.NewMem()
			cfg := DefaultLogConfig()
			cfg.SegmentBytes = 600
			l := openTest(t, fs, cfg)
			for i := range int32(9) {
				appendOK(t, l, idempotent(2*i, 2))
			}
			before := l.ActiveProducers()
			if clean {
				require.NoError(t, l.Close(t0))
			}
			if !snapshots {
				if clean {
					continue // without snapshots a clean log counts as one without producers
				}
				require.NoError(t, l.removeSnapshots(func(int64) bool { return true }))
			}
			again := openTest(t, fs, cfg, func(o *LogOptions) { o.Clean = clean })
			require.Equal(t, before, again.ActiveProducers())
			require.True(t, appendOK(t, again, idempotent(16, 2)).Duplicate)
			appendOK(t, again, idempotent(18, 2))
		}
	}
}

func TestCorruptOrStaleSnapshotIsNotTrusted(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"flipped": func(b []byte) []byte { return flip(b, 20) },
		"cut":     func(b []byte) []byte { return b[:30] },
		"empty":   func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			l := openTest(t, fs, DefaultLogConfig())
			appendOK(t, l, idempotent(0, 2))
			appendOK(t, l, idempotent(2, 2))
			before := l.ActiveProducers()
			require.NoError(t, l.Close(t0))
			file := segmentFile("logs/orders-0", 4, snapshotSuffix)
			require.NoError(t, vfs.WriteFile(fs, file, damage(must(vfs.ReadFile(fs, file)))))
			require.NoError(t, vfs.WriteFile(fs, segmentFile("logs/orders-0", 99, snapshotSuffix), AppendProducerSnapshot(nil, nil)))
			again := openTest(t, fs, DefaultLogConfig(), cleanly)
			require.Equal(t, before, again.ActiveProducers())
		})
	}
}

func TestSilentProducersExpireButNotWithinATransaction(t *testing.T) {
	l := openTest(t, vfs.NewMem(), DefaultLogConfig())
	appendOK(t, l, produced{values: []string{"a"}, id: 1}.bytes())
	appendOK(t, l, produced{values: []string{"a"}, id: 2, txn: true}.bytes())
	require.NoError(t, l.tick(t0.Add(24*time.Hour-time.Millisecond), false, true, false))
	require.Len(t, l.ActiveProducers(), 2)
	require.NoError(t, l.tick(t0.Add(24*time.Hour), false, true, false))
	require.Len(t, l.ActiveProducers(), 1)
	require.EqualValues(t, 1, l.ActiveProducers()[0].ProducerID)
}

func TestTransactionsMoveTheLastStableOffset(t *testing.T) {
	l := openTest(t, vfs.NewMem(), DefaultLogConfig())
	send := func(id int64, seq int32) {
		appendOK(t, l, produced{values: []string{"a"}, id: id, seq: seq, txn: true}.bytes())
	}
	end := func(id int64, commit bool) {
		_, err := l.AppendEndTxnMarker(EndTxnMarker{ProducerID: id - 1, Commit: commit}, 0, t0)
		require.NoError(t, err)
	}
	lso := func() int64 { return l.LastStableOffset() }

	appendOK(t, l, batchOf("a")) // 0
	send(1, 0)                   // 1
	send(2, 0)                   // 2
	require.Zero(t, lso(), "the high watermark bounds it")
	require.True(t, l.SetHighWatermark(3))
	require.EqualValues(t, 1, lso())
	end(1, false) // 3
	require.EqualValues(t, 1, lso(), "the marker is not below the high watermark")
	require.True(t, l.SetHighWatermark(4))
	require.EqualValues(t, 2, lso())
	end(2, true) // 4
	require.True(t, l.SetHighWatermark(5))
	require.EqualValues(t, 5, lso())
	require.False(t, l.SetHighWatermark(5))

	_, err := l.AppendAsLeader(produced{values: []string{"a"}, id: 1, seq: 0}.bytes(), 0, FromClient, t0)
	require.NoError(t, err, "between transactions a producer may write without")
	send(2, 1)
	_, err = l.AppendAsLeader(produced{values: []string{"a"}, id: 2, seq: 2}.bytes(), 0, FromClient, t0)
	require.ErrorIs(t, err, errcode.InvalidTxnState)
}

func TestMarkersOfOldEpochsAreFenced(t *testing.T) {
	l := openTest(t, vfs.NewMem(), DefaultLogConfig())
	mark := func(epoch int16, coordinator int32) error {
		_, err := l.AppendEndTxnMarker(EndTxnMarker{ProducerID: 7, ProducerEpoch: epoch, CoordinatorEpoch: coordinator}, 0, t0)
		return err
	}
	require.NoError(t, mark(2, 5))
	require.ErrorIs(t, mark(1, 5), errcode.InvalidProducerEpoch)
	require.ErrorIs(t, mark(2, 4), errcode.TransactionCoordinatorFenced)
	require.NoError(t, mark(2, 6))
	_, err := l.AppendAsLeader(produced{values: []string{"a"}, id: 8, epoch: 2, seq: 3}.bytes(), 0, FromClient, t0)
	require.ErrorIs(t, err, errcode.OutOfOrderSequenceNumber, "after a marker an epoch begins at zero")
}

func TestAbortedTransactionsGoWithTheRangeThatIsReturned(t *testing.T) {
	cfg := DefaultLogConfig()
	cfg.SegmentBytes = 300
	l := openTest(t, vfs.NewMem(), cfg)
	for i := range int32(6) { // 0 data, 1 marker; 2 data, 3 marker ...
		appendOK(t, l, produced{values: []string{"a"}, id: 1, seq: i, epoch: 0, txn: true}.bytes())
		_, err := l.AppendEndTxnMarker(EndTxnMarker{Commit: i%2 == 1}, 0, t0)
		require.NoError(t, err)
	}
	l.SetHighWatermark(l.LogEndOffset())
	require.Greater(t, len(l.Segments()), 2)
	d, err := l.Read(0, 1, BoundStable, true)
	require.NoError(t, err)
	require.Equal(t, []AbortedTxn{{0, 0}}, d.Aborted)
	d, err = l.Read(1, 1, BoundStable, true)
	require.NoError(t, err)
	require.Equal(t, []AbortedTxn{{0, 0}}, d.Aborted, "the marker itself still belongs to it")
	d, err = l.Read(2, 1, BoundStable, true)
	require.NoError(t, err)
	require.Equal(t, []AbortedTxn{}, d.Aborted)
	d, err = l.Read(0, 1, BoundHighWatermark, true)
	require.NoError(t, err)
	require.Nil(t, d.Aborted)
}
