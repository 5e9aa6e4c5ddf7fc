package storage

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/record"
)

// A history is one log under producers of transactions, stops and crashes.
type history struct {
	*testing.T
	rnd     *rand.Rand
	fs      *vfs.MemFS
	cfg     LogConfig
	l       *Log
	flushed int64 // recovery point that the checkpoint file would have
	what    string
}

// TestTransactionsAreTheSameAfterAnyStop lets producers begin and end transactions by both protocols, stops the log in
// every way in between, and holds what is derived from it (producers, indexes, last stable offset, aborted transactions,
// snapshots) against a plain pass over its batches from zero.
func TestTransactionsAreTheSameAfterAnyStop(t *testing.T) {
	stops := 0
	for seed := range uint64(40) {
		h := &history{T: t, rnd: rand.New(rand.NewPCG(seed, 5)), fs: vfs.NewCrash(), cfg: DefaultLogConfig()}
		h.cfg.SegmentBytes, h.cfg.IndexIntervalBytes = 700, 150
		h.l = openTest(t, h.fs, h.cfg)
		for step := range 60 {
			h.what = fmt.Sprintf("seed %d step %d", seed, step)
			switch n := h.rnd.IntN(20); {
			case n < 9:
				h.write(h.rnd.Int64N(4), true)
			case n < 14:
				h.end(h.rnd.Int64N(4))
			case n < 15:
				h.write(h.rnd.Int64N(4), false)
			case n < 16:
				appendOK(t, h.l, batchOf("plain"))
			case n < 17:
				require.NoError(t, h.l.Flush(t0))
				h.flushed = h.l.RecoveryPoint()
			default:
				h.stop(n)
				h.check()
				stops++
			}
			h.l.SetHighWatermark(h.l.LogEndOffset())
		}
		h.check()
	}
	t.Logf("%d stops", stops)
}

// known returns what the log says of a producer.
func (h *history) known(id int64) ActiveProducer {
	for _, p := range h.l.ActiveProducers() {
		if p.ProducerID == id {
			return p
		}
	}
	return ActiveProducer{ProducerID: id, LastSequence: -1, TxnStartOffset: -1}
}

// write appends one or two records in the producer's transaction, or outside of one unless one is open.
func (h *history) write(id int64, txn bool) {
	p := h.known(id)
	if !txn && p.TxnStartOffset >= 0 {
		return
	}
	b := produced{values: make([]string, 1+h.rnd.IntN(2)), id: id + 1, epoch: p.ProducerEpoch, seq: p.LastSequence + 1, txn: txn}.bytes()
	if !txn {
		appendOK(h, h.l, b)
		return
	}
	guard, err := h.l.StartVerification(id, p.ProducerEpoch, p.LastSequence+1, h.rnd.IntN(2) == 0 && p.LastSequence < 0, t0)
	require.NoError(h, err, h.what)
	_, err = h.l.AppendTransactional(b, 0, FromClient, Verification{Required: true, Guard: guard}, t0)
	require.NoError(h, err, h.what)
}

// end ends the producer's transaction, or none, by one of the protocols.
func (h *history) end(id int64) {
	p := h.known(id)
	m := EndTxnMarker{ProducerID: id, ProducerEpoch: p.ProducerEpoch, Commit: h.rnd.IntN(2) == 0, CoordinatorEpoch: max(p.CoordinatorEpoch, 0) + int32(h.rnd.IntN(2))}
	if h.rnd.IntN(2) == 0 {
		m.TransactionVersion, m.ProducerEpoch = 2, p.ProducerEpoch+1
	}
	_, err := h.l.AppendEndTxnMarker(m, 0, t0)
	require.NoError(h, err, h.what)
}

// stop closes the log, kills its process or cuts the power, and opens it again.
func (h *history) stop(how int) {
	clean := func(*LogOptions) {}
	switch how {
	case 17:
		require.NoError(h, h.l.Close(t0), h.what)
		clean = cleanly
	case 18: // the process is gone: what was written is there
	case 19:
		h.fs = h.fs.Crash(h.rnd)
	}
	h.l = openTest(h, h.fs, h.cfg, clean, func(o *LogOptions) { o.RecoveryPoint = h.flushed })
	h.l.SetHighWatermark(h.l.LogEndOffset())
	h.flushed = min(h.flushed, h.l.LogEndOffset())
}

// plain is a pass over all batches, up to an offset.
func (h *history) plain(end int64) (s *producerState, aborted []TxnEntry) {
	s = newProducerState(orders, 0)
	for rest := readBatches(h, h.l, 0, 1<<20, BoundLogEnd); len(rest) > 0; {
		batch, next, err := record.Next(rest)
		require.NoError(h, err)
		rest = next
		b, err := record.ParseHeader(batch)
		require.NoError(h, err)
		if b.BaseOffset >= end {
			break
		}
		if !b.Control() {
			s.update(&b)
			continue
		}
		m, err := readMarker(batch)
		require.NoError(h, err)
		if done, ok := s.updateMarker(&b, m, b.MaxTimestamp); ok && done.aborted {
			aborted = append(aborted, TxnEntry{done.producer, done.first, done.last, s.stableAfter(done)})
		}
	}
	return s, aborted
}

func (h *history) check() {
	h.Helper()
	end := h.l.LogEndOffset()
	s, aborted := h.plain(end)
	require.Equal(h, s.producers(), h.l.ActiveProducers(), h.what)
	var indexed []TxnEntry
	for _, segment := range h.l.segments {
		x, err := segment.index()
		require.NoError(h, err)
		_, _, txns := x.view()
		indexed = append(indexed, txns...)
	}
	require.Equal(h, aborted, indexed, h.what)
	stable := end
	if len(s.open) > 0 {
		stable = s.open[0].first
	}
	require.Equal(h, stable, h.l.LastStableOffset(), h.what)
	for range 10 {
		from := h.rnd.Int64N(end + 1)
		d, err := h.l.Read(from, 1+h.rnd.IntN(600), BoundStable, true)
		require.NoError(h, err, h.what)
		d.Records.Release()
		require.LessOrEqual(h, d.NextOffset, max(stable, from), h.what)
		if d.Records.Len == 0 {
			continue
		}
		want := []AbortedTxn{}
		for _, a := range aborted {
			if a.LastOffset >= from && a.FirstOffset < d.NextOffset {
				want = append(want, AbortedTxn{a.ProducerID, a.FirstOffset})
			}
		}
		require.Equal(h, want, d.Aborted, "%s: [%d, %d)", h.what, from, d.NextOffset)
	}
	h.checkSnapshots()
}

func (h *history) checkSnapshots() {
	offsets, err := snapshots(h.fs, h.l.Dir())
	require.NoError(h, err)
	for _, offset := range offsets {
		b, err := vfs.ReadFile(h.fs, filepath.Join(h.l.Dir(), offsetName(offset)+snapshotSuffix))
		require.NoError(h, err)
		have, err := ParseProducerSnapshot(b)
		require.NoError(h, err, h.what)
		s, _ := h.plain(offset)
		slices.SortFunc(have, func(a, b ProducerSnapshotEntry) int { return cmp.Compare(a.ProducerID, b.ProducerID) })
		require.Equal(h, s.snapshot(), have, "%s: snapshot at %d", h.what, offset)
	}
}
