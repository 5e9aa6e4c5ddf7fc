package record_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/record"
)

// sample returns records of all shapes: null, empty and large keys and values, headers, times before 1970.
func sample(rnd *rand.Rand, n int) (rs []record.Record, hs [][]record.Header) {
	blob := func(most int) []byte {
		switch rnd.IntN(4) {
		case 0:
			return nil
		case 1:
			return []byte{}
		}
		b := make([]byte, rnd.IntN(most))
		for i := range b {
			b[i] = byte(rnd.IntN(8))
		}
		return b
	}
	ts := int64(1_700_000_000_000)
	for i := range n {
		switch rnd.IntN(12) {
		case 0:
			ts = -1
		case 1:
			ts = -rnd.Int64N(1 << 40)
		case 2:
			ts = rnd.Int64N(math.MaxInt64)
		default:
			ts = 1_700_000_000_000 + rnd.Int64N(100)
		}
		rs = append(rs, record.Record{Offset: int64(i), Timestamp: ts, Key: blob(70), Value: blob(400)})
		var h []record.Header
		for range rnd.IntN(3) * rnd.IntN(60) {
			h = append(h, record.Header{Key: string(blob(80)), Value: blob(90)})
		}
		hs = append(hs, h)
	}
	return rs, hs
}

func requireRecords(t *testing.T, it record.Iterator, rs []record.Record, hs [][]record.Header) {
	t.Helper()
	for i, want := range rs {
		r, ok := it.Next()
		require.True(t, ok, "record %d: %v", i, it.Err())
		require.Equal(t, want.Timestamp, r.Timestamp)
		require.Equal(t, want.Offset, r.Offset)
		require.Equal(t, want.Key, r.Key)
		require.Equal(t, want.Value, r.Value)
		require.Equal(t, hs[i], r.Headers.AppendTo(nil))
	}
	_, ok := it.Next()
	require.False(t, ok)
	require.NoError(t, it.Err())
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	d := compress.NewDecompressor()
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		rs, hs := sample(rnd, 1+rnd.IntN(40))
		b := record.NewBuilder([]byte("before"))
		for i, r := range rs {
			size := b.Size()
			grown := b.SizeOf(r.Timestamp, r.Key, r.Value, hs[i])
			b.Append(r.Timestamp, r.Key, r.Value, hs[i])
			require.Equal(t, size+grown, b.Size(), "SizeOf")
		}
		stamp := record.Stamp{ProducerID: rnd.Int64(), ProducerEpoch: 3, BaseSequence: math.MaxInt32 - 2, Transactional: true}
		batch := b.Seal(stamp)
		require.Len(t, batch, b.Size())
		require.NoError(t, record.Validate(batch))
		it, err := record.Open(batch, record.ReadOptions{})
		require.NoError(t, err)
		h := it.Header()
		require.Equal(t, stamp.ProducerID, h.ProducerID)
		require.Equal(t, int32(len(rs)), h.Count)
		require.Equal(t, record.AddSequence(math.MaxInt32-2, int32(len(rs)-1)), h.LastSequence())
		require.True(t, h.Transactional())
		require.NoError(t, h.CheckProduced())
		requireRecords(t, it, rs, hs)
		for _, codec := range []compress.Codec{compress.None, compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd} {
			c, err := compress.NewCompressor(codec, compress.DefaultLevel)
			require.NoError(t, err)
			out := b.SealCompressed([]byte("x"), stamp, c)[1:]
			require.NoError(t, record.Validate(out))
			it, err := record.Open(out, record.ReadOptions{Decompressor: d})
			require.NoError(t, err)
			got := it.Header()
			require.Equal(t, codec, got.Codec())
			requireRecords(t, it, rs, hs)
		}
		require.Equal(t, "before", string(b.Release()[:6]))
	}
}

func TestTryAppendKeepsToTheLimit(t *testing.T) {
	b := record.NewBuilder(nil)
	v := make([]byte, 100)
	const limit = 1000
	n := int32(0)
	for b.TryAppend(limit, 5, nil, v, nil) {
		n++
		require.LessOrEqual(t, b.Size(), limit)
	}
	require.Equal(t, n, b.Count())
	require.Greater(t, b.Size()+b.SizeOf(5, nil, v, nil), limit)
	// A refused record leaves no trace.
	it, err := record.Open(b.Seal(record.NoProducer()), record.ReadOptions{})
	require.NoError(t, err)
	require.Equal(t, int(n), it.Left())
	// The first record fixes the base timestamp only if it is taken.
	b.Reset(nil)
	require.False(t, b.TryAppend(80, 5, nil, v, nil))
	require.Equal(t, record.NoTimestamp, b.BaseTimestamp())
	require.True(t, b.TryAppend(limit, 9, nil, v, nil))
	require.Equal(t, int64(9), b.BaseTimestamp())
}

func TestExactFitIsTaken(t *testing.T) {
	b := record.NewBuilder(nil)
	need := b.Size() + b.SizeOf(1, []byte("k"), []byte("v"), nil)
	require.False(t, b.TryAppend(need-1, 1, []byte("k"), []byte("v"), nil))
	require.True(t, b.TryAppend(need, 1, []byte("k"), []byte("v"), nil))
}

func TestAppendWithRoomDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 1<<20)
	b := record.NewBuilder(buf)
	k, v := []byte("key"), make([]byte, 100)
	h := []record.Header{{Key: "a", Value: v[:5]}}
	require.Zero(t, testing.AllocsPerRun(1000, func() { b.Append(7, k, v, h) }))
	batch := b.Seal(record.NoProducer())
	require.Same(t, &buf[:1][0], &batch[0], "moved although there was room")
	require.Zero(t, testing.AllocsPerRun(10, func() {
		it, err := record.Open(batch, record.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for r, ok := it.Next(); ok; r, ok = it.Next() {
			if len(r.Value) != 100 || r.Headers.Len() != 1 {
				t.Fatal("wrong record")
			}
		}
	}))
}

func TestResealChangesTheProducerOnly(t *testing.T) {
	c, err := compress.NewCompressor(compress.Zstd, compress.DefaultLevel)
	require.NoError(t, err)
	b := record.NewBuilder(nil)
	b.Append(10, nil, []byte("v"), nil)
	b.Append(11, nil, []byte("w"), nil)
	old := record.Stamp{ProducerID: 1, ProducerEpoch: 2, BaseSequence: 3, Transactional: true}
	now := record.Stamp{ProducerID: 9, ProducerEpoch: 0, BaseSequence: 0}
	for _, batch := range [][]byte{bytes.Clone(b.Seal(old)), b.SealCompressed(nil, old, c)} {
		record.Reseal(batch, now)
		require.NoError(t, record.Validate(batch))
		h, err := record.ParseHeader(batch)
		require.NoError(t, err)
		require.Equal(t, []any{int64(9), int16(0), int32(0), false}, []any{h.ProducerID, h.ProducerEpoch, h.BaseSequence,
			h.Transactional()})
		requireSameRecords(t, compress.NewDecompressor(), b.Seal(old), batch, "records")
	}
	require.Equal(t, b.Seal(now), b.SealCompressed(nil, now, nil))
}

func TestPatchBaseIsOutsideTheChecksum(t *testing.T) {
	b := record.NewBuilder(nil)
	b.Append(10, nil, []byte("v"), nil)
	batch := b.Seal(record.NoProducer())
	h, err := record.ParseHeader(batch)
	require.NoError(t, err)
	require.Equal(t, []any{int64(0), int32(-1)}, []any{h.BaseOffset, h.PartitionLeaderEpoch})
	record.PatchBase(batch, 1<<40, 77)
	require.NoError(t, record.Validate(batch))
	h, err = record.ParseHeader(batch)
	require.NoError(t, err)
	require.Equal(t, []any{int64(1 << 40), int32(77)}, []any{h.BaseOffset, h.PartitionLeaderEpoch})
}

func TestLogAppendTimeReplacesEveryTimestamp(t *testing.T) {
	b := record.NewBuilder(nil)
	b.Append(10, nil, []byte("v"), nil)
	b.Append(20, nil, []byte("w"), nil)
	batch := b.Seal(record.NoProducer())
	record.PatchTimestamp(batch, true, 500)
	require.NoError(t, record.Validate(batch))
	it, err := record.Open(batch, record.ReadOptions{})
	require.NoError(t, err)
	for r := range it.All() {
		require.Equal(t, int64(500), r.Timestamp)
	}
	record.PatchTimestamp(batch, false, 20)
	it, err = record.Open(batch, record.ReadOptions{})
	require.NoError(t, err)
	r, _ := it.Next()
	require.Equal(t, int64(10), r.Timestamp)
}

// Compressing noise makes it larger; the batch is compressed all the same, as Kafka does.
func TestCompressionThatDoesNotHelpIsKept(t *testing.T) {
	noise := make([]byte, 5000)
	rand.NewChaCha8([32]byte{3}).Read(noise)
	b := record.NewBuilder(nil)
	b.Append(1, nil, noise, nil)
	for _, codec := range []compress.Codec{compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd} {
		c, err := compress.NewCompressor(codec, compress.DefaultLevel)
		require.NoError(t, err)
		out := b.SealCompressed(nil, record.NoProducer(), c)
		require.Greater(t, len(out), b.Size())
		h, err := record.ParseHeader(out)
		require.NoError(t, err)
		require.Equal(t, codec, h.Codec())
	}
}

func TestSequencesWrap(t *testing.T) {
	require.Equal(t, int32(0), record.AddSequence(math.MaxInt32, 1))
	require.Equal(t, int32(4), record.AddSequence(math.MaxInt32-1, 6))
	h := record.BatchHeader{BaseSequence: math.MaxInt32, LastOffsetDelta: 0}
	require.Equal(t, int32(math.MaxInt32), h.LastSequence())
	require.Equal(t, int32(0), h.NextSequence())
	h.BaseSequence = record.NoSequence
	require.Equal(t, record.NoSequence, h.LastSequence())
	require.Equal(t, record.NoSequence, h.NextSequence())
}

func TestAppendAtGoesForward(t *testing.T) {
	b := record.NewBuilder(nil)
	b.AppendAt(5, 0, 1, nil, nil, nil)
	require.Panics(t, func() { b.AppendAt(5, 0, 1, nil, nil, nil) })
}

func TestMoveToGoesOnInAnotherBuffer(t *testing.T) {
	small := append(make([]byte, 0, 100), "ab"...)
	b := record.NewBuilder(small)
	b.Append(1, nil, []byte("one"), nil)
	require.Equal(t, 100-2-b.Size(), b.Room())
	large := append(make([]byte, 0, 4000), "xyz"...)
	old := b.MoveTo(large)
	require.Same(t, &small[0], &old[0])
	b.Append(2, nil, []byte("two"), nil)
	require.Equal(t, 4000-3-b.Size(), b.Room())
	batch := b.Seal(record.NoProducer())
	require.Same(t, &large[:4][3], &batch[0])

	other := record.NewBuilder(nil)
	other.Append(1, nil, []byte("one"), nil)
	other.Append(2, nil, []byte("two"), nil)
	require.Equal(t, other.Seal(record.NoProducer()), batch)
	require.Equal(t, "xyz", string(b.Release()[:3]))
}
