package storage

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/record"
)

// validPrefix is what recovery is to find, said in the plainest way: take
// batches while they are whole, their checksums are right and their offsets rise.
func validPrefix(log []byte, base int64) (prefix []byte, next int64) {
	next = base
	at := 0
	for {
		batch, _, err := record.Next(log[at:])
		if err != nil || record.Validate(batch) != nil {
			return log[:at], next
		}
		h, err := record.ParseHeader(batch)
		if err != nil || h.BaseOffset < next || h.LastOffsetDelta < 0 || h.LastOffset()-base > 1<<31-1 {
			return log[:at], next
		}
		if h.Control() && h.HasProducer() && h.Count > 0 {
			if _, err := readMarker(batch); err != nil {
				return log[:at], next
			}
		}
		at += len(batch)
		next = h.NextOffset()
	}
}

// sampleLog writes a log of two segments with idempotent, transactional and
// compressed batches, and returns the files that a killed process leaves.
func sampleLog(tb testing.TB) map[string]string {
	fs := vfs.NewMem()
	cfg := sampleConfig()
	l := openTest(tb, fs, cfg)
	for i := range int32(3) {
		appendOK(tb, l, produced{values: []string{"first", strings.Repeat("x", 20)}, id: 1, seq: 2 * i, codec: 3}.bytes())
	}
	require.NoError(tb, l.Roll(t0))
	for i := range int32(3) {
		appendOK(tb, l, produced{values: []string{"second"}, id: 1, seq: 6 + i}.bytes())
		appendOK(tb, l, produced{values: []string{"txn"}, id: 2, seq: i, txn: true, at: t0.Add(time.Duration(i) * time.Second)}.bytes())
		_, err := l.AppendEndTxnMarker(EndTxnMarker{ProducerID: 1, Commit: i == 1}, 0, t0)
		require.NoError(tb, err)
	}
	return tree(tb, fs, "logs")
}

func sampleConfig() LogConfig {
	cfg := DefaultLogConfig()
	cfg.IndexIntervalBytes = 150
	return cfg
}

func plant(tb testing.TB, files map[string]string) *vfs.MemFS {
	fs := vfs.NewMem()
	require.NoError(tb, fs.MkdirAll("logs/orders-0"))
	for name, content := range files {
		require.NoError(tb, vfs.WriteFile(fs, name, []byte(content)))
	}
	return fs
}

// recoverAndCheck opens a damaged folder and holds it against validPrefix, and
// the result against a second recovery.
func recoverAndCheck(tb testing.TB, files map[string]string, what string) {
	last := "logs/orders-0/" + offsetName(6) + logSuffix
	want, next := validPrefix([]byte(files[last]), 6)
	fs := plant(tb, files)
	l := openTest(tb, fs, sampleConfig())
	require.Equal(tb, next, l.LogEndOffset(), what)
	got, err := vfs.ReadFile(fs, last)
	require.NoError(tb, err)
	require.Equal(tb, string(want), string(got), what)
	checkDerived(tb, l, what)
	once := tree(tb, fs, "logs")
	producers := l.ActiveProducers()

	again := openTest(tb, fs, sampleConfig())
	require.Equal(tb, next, again.LogEndOffset(), what)
	require.Equal(tb, producers, again.ActiveProducers(), what)
	require.Equal(tb, once, tree(tb, fs, "logs"), what)
}

// checkDerived holds what is derived from the log (invariants P8, P9) against
// a plain pass over it.
func checkDerived(tb testing.TB, l *Log, what string) {
	plain := newProducerState(l.partition, 0)
	var epochs epochCache
	for i, s := range l.segments {
		x := newSegmentIndex(s.base)
		since := 0
		b := make([]byte, s.size.Load())
		_, err := s.log.file.ReadAt(b, 0)
		require.True(tb, len(b) == 0 || err == nil)
		for at := 0; at < len(b); {
			batch, _, err := record.Next(b[at:])
			require.NoError(tb, err)
			h, err := record.ParseHeader(batch)
			require.NoError(tb, err)
			x.addBatch(s.base, &h, int64(at), &since, l.Config().IndexIntervalBytes)
			if h.PartitionLeaderEpoch > epochs.latest() { // a flipped bit there goes unnoticed
				epochs.assign(h.PartitionLeaderEpoch, h.BaseOffset)
			}
			if h.Control() {
				m, err := readMarker(batch)
				require.NoError(tb, err)
				if done, ok := plain.updateMarker(&h, m, h.MaxTimestamp); ok && done.aborted {
					x.addTxn(TxnEntry{done.producer, done.first, done.last, plain.stableAfter(done)})
				}
			} else {
				plain.update(&h)
			}
			at += len(batch)
		}
		x.complete(s.base)
		offsets, times, txns := x.view()
		have, err := s.index()
		require.NoError(tb, err)
		haveOffsets, haveTimes, haveTxns := have.view()
		require.Equal(tb, fmt.Sprint(offsets, times, txns), fmt.Sprint(haveOffsets, haveTimes, haveTxns), "%s: segment %d", what, i)
	}
	require.Equal(tb, plain.producers(), l.ActiveProducers(), what)
	require.Equal(tb, fmt.Sprint(epochs.entries), fmt.Sprint(l.Epochs()), what)
}

func TestLogCutAnywhereRecoversToTheLongestValidPrefix(t *testing.T) {
	files := sampleLog(t)
	last := "logs/orders-0/" + offsetName(6) + logSuffix
	whole := files[last]
	for n := range len(whole) + 1 {
		files[last] = whole[:n]
		recoverAndCheck(t, files, fmt.Sprintf("cut at %d of %d", n, len(whole)))
	}
}

func TestLogWithAFlippedBitRecoversToTheLongestValidPrefix(t *testing.T) {
	files := sampleLog(t)
	last := "logs/orders-0/" + offsetName(6) + logSuffix
	whole := files[last]
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range len(whole) {
		damaged := []byte(whole)
		damaged[n] ^= 1 << rnd.IntN(8)
		files[last] = string(damaged)
		recoverAndCheck(t, files, fmt.Sprintf("bit flipped in byte %d", n))
	}
}

func TestBadByteInAnEarlierSegmentDropsTheLaterOnes(t *testing.T) {
	files := sampleLog(t)
	first := "logs/orders-0/" + offsetName(0) + logSuffix
	damaged := []byte(files[first])
	damaged[len(damaged)-1] ^= 1
	files[first] = string(damaged)
	l := openTest(t, plant(t, files), sampleConfig())
	require.EqualValues(t, 4, l.LogEndOffset())
	require.Equal(t, []int64{0}, l.Segments())
	checkDerived(t, l, "")
}

func TestSegmentsBelowTheRecoveryPointAreNotScanned(t *testing.T) {
	files := sampleLog(t)
	first := "logs/orders-0/" + offsetName(0) + logSuffix
	damaged := []byte(files[first])
	damaged[len(damaged)-1] ^= 1
	files[first] = string(damaged)
	l := openTest(t, plant(t, files), sampleConfig(), func(o *LogOptions) { o.RecoveryPoint = 6 })
	require.EqualValues(t, 15, l.LogEndOffset())
}

func TestMissingOrDamagedIndexesAreRebuilt(t *testing.T) {
	fs := vfs.NewMem()
	l := openTest(t, fs, sampleConfig())
	fill(t, l, 40)
	require.NoError(t, l.Close(t0))
	files := tree(t, fs, "logs")
	index, times := "logs/orders-0/"+offsetName(0)+indexSuffix, "logs/orders-0/"+offsetName(0)+timeIndexSuffix
	want := files[index]
	require.Greater(t, len(want), 10*offsetEntrySize)
	for name, damage := range map[string]func(){
		"index missing":     func() { delete(files, index) },
		"time missing":      func() { delete(files, times) },
		"index odd":         func() { files[index] = want[:13] },
		"index zeroed":      func() { files[index] = strings.Repeat("\x00", len(want)) },
		"index backwards":   func() { files[index] = want[8:16] + want[:8] },
		"index of another":  func() { files[index] = want + "\x00\x00\xff\xff\x00\x7f\xff\xff" },
		"index points into": func() { files[index] = want[:7] + "\x01" + want[8:] },
		"empty":             func() { files[index], files[times] = "", "" },
	} {
		t.Run(name, func(t *testing.T) {
			files = tree(t, fs, "logs")
			damage()
			again := openTest(t, plant(t, files), sampleConfig(), cleanly)
			require.EqualValues(t, 120, again.LogEndOffset())
			for from := range int64(120) {
				d, err := again.Read(from, 1, BoundLogEnd, true)
				require.NoError(t, err)
				b, err := d.Records.AppendTo(nil)
				require.NoError(t, err)
				h, err := record.ParseHeader(b)
				require.NoError(t, err)
				require.Equal(t, from/3*3, h.BaseOffset)
			}
		})
	}
}

func TestCleanLogThatIsBrokenIsRecoveredAnyway(t *testing.T) {
	files := sampleLog(t)
	last := "logs/orders-0/" + offsetName(6) + logSuffix
	files[last] = files[last][:len(files[last])-5]
	fs := plant(t, files)
	l := openTest(t, fs, sampleConfig(), cleanly)
	require.EqualValues(t, 14, l.LogEndOffset())
}

func TestUnfinishedCompactionIsFinishedOrForgotten(t *testing.T) {
	files := sampleLog(t)
	dir := "logs/orders-0/"
	files[dir+offsetName(0)+".log.cleaned"] = "half"
	files[dir+offsetName(6)+".log.deleted"] = "gone"
	files[dir+offsetName(77)+indexSuffix] = "12345678" // without a log
	swapped := produced{values: []string{"kept"}}.bytes()
	record.PatchBase(swapped, 5, 0)
	files[dir+offsetName(0)+".log.swap"] = string(swapped)
	fs := plant(t, files)
	l := openTest(t, fs, sampleConfig())
	require.Equal(t, []int64{0, 6}, l.Segments())
	require.Equal(t, "kept", values(t, readBatches(t, l, 0, 1<<20, BoundLogEnd))[0])
	for name := range tree(t, fs, "logs") {
		require.NotContains(t, name, "cleaned")
		require.NotContains(t, name, "swap")
		require.NotContains(t, name, "deleted")
		require.NotContains(t, name, offsetName(77))
	}
}

func TestLogStartBehindTheLogEndStartsOver(t *testing.T) {
	fs := plant(t, sampleLog(t))
	l := openTest(t, fs, sampleConfig(), func(o *LogOptions) { o.LogStartOffset = 100 })
	start, _, hw, end := l.Offsets()
	require.Equal(t, []int64{100, 100, 100}, []int64{start, hw, end})
	require.EqualValues(t, 100, appendOK(t, l, batchOf("a")).FirstOffset)
}

// After a power cut what was flushed is there, and what is there besides is a
// prefix of what was appended.
func TestPowerCutKeepsWhatWasFlushed(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		fs := vfs.NewCrash()
		m := crashManager(t, fs)
		l, err := m.Create(orders, testUUID(1), sampleConfig(), t0)
		require.NoError(t, err)
		flushed := int64(0)
		var all []byte
		for i := range 20 {
			before := l.LogEndOffset()
			appendOK(t, l, produced{values: []string{fmt.Sprint(i), "x"}, id: 3, seq: int32(2 * i)}.bytes())
			all = append(all, readBatches(t, l, before, 1<<20, BoundLogEnd)...)
			switch rnd.IntN(12) {
			case 0:
				require.NoError(t, l.Flush(t0))
				flushed = l.LogEndOffset()
				m.Checkpoint()
			case 1:
				require.NoError(t, l.Roll(t0))
			}
		}
		after := fs.Crash(rnd)
		again, ok := crashManager(t, after).Log(orders)
		if !ok {
			require.Zero(t, flushed, "seed %d", seed)
			continue
		}
		require.GreaterOrEqual(t, again.LogEndOffset(), flushed, "seed %d", seed)
		require.True(t, strings.HasPrefix(string(all), string(readBatches(t, again, 0, 1<<20, BoundLogEnd))), "seed %d", seed)
		checkDerived(t, again, fmt.Sprintf("seed %d", seed))
	}
}

func crashManager(tb testing.TB, fs vfs.FS) *Manager {
	m, err := NewManager(ManagerOptions{FS: fs, Dirs: []string{"data"}, ClusterID: "c", NodeID: 1,
		NewUUID: func() wire.UUID { return testUUID(3) }}, t0)
	require.NoError(tb, err)
	require.NoError(tb, m.LoadLogs(func(string) LogConfig { return sampleConfig() }, t0))
	return m
}
