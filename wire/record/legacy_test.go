package record_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/record"
)

// legacyMessage writes a message of magic 0 or 1, which only tests need to do.
func legacyMessage(magic, attributes byte, offset int64, key, value []byte) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(offset))
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, magic, attributes)
	if magic == 1 {
		b = binary.BigEndian.AppendUint64(b, 1_700_000_000_000)
	}
	for _, p := range [][]byte{key, value} {
		if p == nil {
			b = append(b, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[12:], crc32.ChecksumIEEE(b[16:]))
	return b
}

func compressed(t *testing.T, magic byte, codec compress.Codec, offset int64, inner ...[]byte) []byte {
	c, err := compress.NewCompressor(codec, compress.DefaultLevel)
	require.NoError(t, err)
	return legacyMessage(magic, byte(codec), offset, nil, c.Append(nil, bytes.Join(inner, nil)))
}

func TestRelativeOffsetsOfMagic1(t *testing.T) {
	d := compress.NewDecompressor()
	for _, codec := range []compress.Codec{compress.Gzip, compress.Snappy, compress.Lz4} {
		// Compaction may leave gaps inside; the wrapper has the offset of the last.
		msg := compressed(t, 1, codec, 107, legacyMessage(1, 0, 2, nil, []byte("a")), legacyMessage(1, 0, 7, nil, []byte("b")))
		it, err := record.Open(msg, record.ReadOptions{Decompressor: d})
		require.NoError(t, err)
		h := it.Header()
		require.Equal(t, []int64{102, 107, 2}, []int64{h.BaseOffset, h.LastOffset(), int64(h.Count)})
		var offsets []int64
		for r := range it.All() {
			offsets = append(offsets, r.Offset)
		}
		require.NoError(t, it.Err())
		require.Equal(t, []int64{102, 107}, offsets)
	}
}

func TestMessagesInsideAreChecked(t *testing.T) {
	d := compress.NewDecompressor()
	sound := legacyMessage(1, 0, 0, nil, []byte("a"))
	damaged := bytes.Clone(sound)
	damaged[len(damaged)-1] ^= 1
	for name, msg := range map[string][]byte{
		"no messages":        compressed(t, 1, compress.Gzip, 3),
		"other magic":        compressed(t, 1, compress.Gzip, 3, legacyMessage(0, 0, 0, nil, nil)),
		"compressed again":   compressed(t, 1, compress.Gzip, 3, compressed(t, 1, compress.Gzip, 3, sound)),
		"inner checksum":     compressed(t, 1, compress.Gzip, 3, damaged),
		"inner cut":          compressed(t, 1, compress.Gzip, 3, sound[:len(sound)-1]),
		"null value":         legacyMessage(1, byte(compress.Gzip), 3, nil, nil),
		"bytes behind value": withTail(sound),
	} {
		it, err := record.Open(msg, record.ReadOptions{Decompressor: d})
		if err == nil {
			_, ok := it.Next()
			require.False(t, ok, name)
			err = it.Err()
		}
		require.Error(t, err, name)
		_, ok := it.Next()
		require.False(t, ok, name)
	}
}

func withTail(msg []byte) []byte {
	b := append(bytes.Clone(msg), 0)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[12:], crc32.ChecksumIEEE(b[16:]))
	return b
}
