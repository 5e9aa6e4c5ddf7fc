package storage

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/record"
)

// gapBatch has two records whose offset deltas are 1 and 5, in a header that counts 0 and 1.
func gapBatch(t *testing.T, codec compress.Codec) []byte {
	b := record.NewBuilder(nil)
	b.AppendAt(1, 0, t0.UnixMilli(), nil, []byte("a"), nil)
	b.AppendAt(5, 0, t0.UnixMilli(), nil, []byte("b"), nil)
	var batch []byte
	if codec == compress.None {
		batch = b.Seal(record.NoProducer())
	} else {
		c, err := compress.NewCompressor(codec, compress.DefaultLevel)
		require.NoError(t, err)
		batch = b.SealCompressed(nil, record.NoProducer(), c)
	}
	h, err := record.ParseHeader(batch)
	require.NoError(t, err)
	h.LastOffsetDelta = 1
	h.Put(batch)
	h.CRC = record.Checksum(batch)
	h.Put(batch)
	return batch
}

func TestGapsInABatchAreTreatedAsApacheKafkaTreatsThem(t *testing.T) {
	for _, c := range []struct {
		source compress.Codec
		target compress.Codec
		kept   bool // compression.type=producer
		code   errcode.Code
		want   []int64
	}{
		{compress.None, compress.None, true, errcode.None, []int64{1, 5}},
		{compress.Lz4, compress.None, true, errcode.UnknownServerError, nil},
		{compress.Lz4, compress.Lz4, false, errcode.UnknownServerError, nil},
		{compress.None, compress.None, false, errcode.None, []int64{1, 5}},
		{compress.Lz4, compress.None, false, errcode.None, []int64{0, 1}},
		{compress.None, compress.Zstd, false, errcode.None, []int64{0, 1}},
	} {
		t.Run(fmt.Sprintf("%v to %v kept %v", c.source, c.target, c.kept), func(t *testing.T) {
			cfg := DefaultLogConfig()
			if !c.kept {
				cfg.CompressionType, cfg.Compression = CompressionFixed, c.target
			}
			l := openTest(t, vfs.NewMem(), cfg)
			_, err := l.AppendAsLeader(gapBatch(t, c.source), 0, FromClient, t0)
			require.Equal(t, c.code, CodeOf(err))
			if err != nil {
				return
			}
			var offsets []int64
			for r := range allRecords(t, readBatches(t, l, 0, 1<<20, BoundLogEnd)) {
				offsets = append(offsets, r.Offset)
			}
			require.Equal(t, c.want, offsets)
			require.EqualValues(t, 2, l.LogEndOffset())
		})
	}
}
