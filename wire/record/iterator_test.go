package record_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/record"
)

func threeRecords(t testing.TB, codec compress.Codec) []byte {
	b := record.NewBuilder(nil)
	b.Append(1_700_000_000_000, []byte("k1"), []byte("v1"), nil)
	b.Append(1_700_000_000_001, nil, []byte("value two"), []record.Header{{Key: "h", Value: []byte("x")}, {Key: "h"}})
	b.Append(1_700_000_000_002, []byte("k3"), nil, nil)
	c, err := compress.NewCompressor(codec, compress.DefaultLevel)
	require.NoError(t, err)
	return b.SealCompressed(nil, record.NoProducer(), c)
}

// patched returns a copy with one change and a checksum that is right again.
func patched(batch []byte, change func([]byte)) []byte {
	b := bytes.Clone(batch)
	change(b)
	binary.BigEndian.PutUint32(b[17:], record.Checksum(b))
	return b
}

// A batch whose checksum does not match is never delivered: each single flipped bit behind the leader epoch is noticed by
// Validate and by Open, in every format and codec.
func TestWrongChecksumIsNeverDelivered(t *testing.T) {
	d := compress.NewDecompressor()
	batches := [][]byte{legacyMessage(0, 0, 5, []byte("k"), []byte("v")), legacyMessage(1, 0, 5, nil, []byte("v"))}
	for _, codec := range []compress.Codec{compress.None, compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd} {
		batches = append(batches, threeRecords(t, codec))
	}
	for _, sound := range batches {
		require.NoError(t, record.Validate(sound))
		for bit := range len(sound) * 8 {
			if at := bit / 8; at < 8 || sound[16] == 2 && at >= 12 && at < 16 {
				continue // base offset and leader epoch are outside the checksum
			}
			b := bytes.Clone(sound)
			b[bit/8] ^= 1 << (bit % 8)
			require.ErrorIs(t, record.Validate(b), record.ErrCorrupt, "bit %d", bit)
			it, err := record.Open(b, record.ReadOptions{Decompressor: d})
			require.ErrorIs(t, err, record.ErrCorrupt, "bit %d", bit)
			_, ok := it.Next()
			require.False(t, ok)
		}
	}
}

func TestCountsAndSizesAreChecked(t *testing.T) {
	sound := threeRecords(t, compress.None)
	count := func(n int32) []byte {
		return patched(sound, func(b []byte) { binary.BigEndian.PutUint32(b[57:], uint32(n)) })
	}
	for _, n := range []int32{-1, -1 << 31, 4, 1 << 20, 1<<31 - 1, 2, 1} {
		it, err := record.Open(count(n), record.ReadOptions{})
		for r, ok := it.Next(); ok; r, ok = it.Next() {
			_ = r
		}
		if err == nil {
			err = it.Err()
		}
		require.ErrorIs(t, err, record.ErrInvalid, "count %d", n)
	}
	it, err := record.Open(count(0), record.ReadOptions{})
	require.NoError(t, err)
	require.Zero(t, it.Left())
	require.NoError(t, it.Err())
}

// Any change of a single byte of the records ends in records or in an error with a place, and in nothing else.
func TestDamagedRecordsAreBounded(t *testing.T) {
	sound := threeRecords(t, compress.None)
	for at := record.HeaderSize; at < len(sound); at++ {
		for v := range 256 {
			b := patched(sound, func(b []byte) { b[at] = byte(v) })
			it, err := record.Open(b, record.ReadOptions{})
			require.NoError(t, err)
			n := 0
			for r := range it.All() {
				n++
				require.LessOrEqual(t, r.Headers.Len(), 20)
			}
			if it.Err() == nil {
				require.Equal(t, 3, n)
			} else {
				require.ErrorIs(t, it.Err(), record.ErrInvalid)
				require.Zero(t, it.Left())
			}
		}
	}
}

func TestErrorSaysWhere(t *testing.T) {
	b := threeRecords(t, compress.None)
	record.PatchBase(b, 4711, 0)
	second := record.HeaderSize + 1 + int(b[record.HeaderSize]>>1)
	b = patched(b, func(b []byte) { b[second+4] = 0x7e }) // the second record's key length becomes 63
	it, err := record.Open(b, record.ReadOptions{})
	require.NoError(t, err)
	_, ok := it.Next()
	require.True(t, ok)
	_, ok = it.Next()
	require.False(t, ok)
	require.ErrorContains(t, it.Err(), "batch at offset 4711, record 1: ")
	require.ErrorContains(t, it.Err(), "key length 63")
	require.NotContains(t, it.Err().Error(), "value two")
}

func TestHeadersAreDecodedOnDemand(t *testing.T) {
	it, err := record.Open(threeRecords(t, compress.None), record.ReadOptions{})
	require.NoError(t, err)
	r, _ := it.Next()
	require.Zero(t, r.Headers.Len())
	_, ok := r.Headers.Last("h")
	require.False(t, ok)
	r, _ = it.Next()
	require.Equal(t, []record.Header{{Key: "h", Value: []byte("x")}, {Key: "h"}}, r.Headers.AppendTo(nil))
	v, ok := r.Headers.Last("h")
	require.True(t, ok)
	require.Nil(t, v, "the last one counts, and it is null")
	for range r.Headers.All() {
		break
	}
}

func TestDecompressionGoesBehindTheBuffer(t *testing.T) {
	d := compress.NewDecompressor()
	for _, codec := range []compress.Codec{compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd} {
		batch := threeRecords(t, codec)
		buf := append(make([]byte, 0, 1<<20), "kept"...)
		it, err := record.Open(batch, record.ReadOptions{Decompressor: d, Buffer: buf})
		require.NoError(t, err)
		require.Same(t, &buf[0], &it.Decompressed()[0], "%s", codec)
		r, _ := it.Next()
		require.Equal(t, "v1", string(r.Value))
		require.Equal(t, "kept", string(buf))
		_, err = record.Open(batch, record.ReadOptions{Decompressor: d, Limit: 10})
		require.ErrorIs(t, err, compress.ErrTooLarge)
		_, err = record.Open(batch, record.ReadOptions{})
		require.ErrorIs(t, err, record.ErrUnsupported)
	}
}

func TestNextCutsWholeBatchesOnly(t *testing.T) {
	one := threeRecords(t, compress.None)
	log := append(bytes.Clone(one), one...)
	rnd := rand.New(rand.NewPCG(5, 5))
	for range 300 {
		cut := rnd.IntN(len(log) + 1)
		n, rest := 0, log[:cut]
		for {
			batch, more, err := record.Next(rest)
			if err != nil {
				require.ErrorIs(t, err, record.ErrPartial)
				require.Equal(t, rest, more)
				break
			}
			require.Equal(t, one, batch)
			rest = more
			n++
		}
		require.Equal(t, cut/len(one), n)
	}
}

func TestPeekNeedsSeventeenBytes(t *testing.T) {
	one := threeRecords(t, compress.None)
	size, magic, err := record.Peek(one[:record.PeekSize])
	require.NoError(t, err)
	require.Equal(t, []any{len(one), int8(2)}, []any{size, magic})
	_, _, err = record.Peek(one[:record.PeekSize-1])
	require.ErrorIs(t, err, record.ErrPartial)
	_, err = record.ParseHeader(one[:record.HeaderSize-1])
	require.ErrorIs(t, err, record.ErrPartial)
	_, err = record.ParseHeader(legacyMessage(1, 0, 5, make([]byte, 30), make([]byte, 30)))
	require.ErrorIs(t, err, record.ErrCorrupt)
}

func TestHeaderPutAndParse(t *testing.T) {
	h := record.BatchHeader{BaseOffset: 1, Length: 49, PartitionLeaderEpoch: 2, Magic: 2, CRC: 3, Attributes: 0x7c,
		LastOffsetDelta: 4, BaseTimestamp: -5, MaxTimestamp: 6, ProducerID: 7, ProducerEpoch: 8, BaseSequence: 9, Count: 10}
	b := make([]byte, record.HeaderSize)
	h.Put(b)
	got, err := record.ParseHeader(b)
	require.NoError(t, err)
	require.Equal(t, h, got)
	require.True(t, got.Control() && got.LogAppendTime() && got.Transactional() && got.HasProducer())
	require.Equal(t, record.HeaderSize, got.Size())
	ms, ok := got.DeleteHorizon()
	require.True(t, ok)
	require.Equal(t, int64(-5), ms)
}
