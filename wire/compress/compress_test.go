package compress_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	kgzip "github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/compress"
)

var codecs = []compress.Codec{compress.None, compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd}

// text returns n bytes that compress like log lines do.
func text(n int) []byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for b.Len() < n {
		fmt.Fprintf(&b, `{"time":%d,"level":"info","user":"user-%d","path":"/api/v1/items/%x","took_ms":%d}`+"\n",
			1_700_000_000_000+b.Len(), rnd.IntN(5000), rnd.Uint64(), rnd.IntN(900))
	}
	return b.Bytes()[:n]
}

func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

func compressor(t testing.TB, c compress.Codec, level int) *compress.Compressor {
	e, err := compress.NewCompressor(c, level)
	require.NoError(t, err)
	return e
}

func TestWhatIsCompressedComesBack(t *testing.T) {
	d := compress.NewDecompressor()
	for _, c := range codecs {
		e := compressor(t, c, compress.DefaultLevel)
		for _, n := range []int{0, 1, 15, 16, 17, 100, 32 << 10, 32<<10 + 1, 64 << 10, 64<<10 + 1, 300_000, 1<<20 + 1} {
			for name, src := range map[string][]byte{"text": text(n), "noise": noise(n), "zeros": make([]byte, n)} {
				out := e.Append([]byte("head"), src)
				require.Equal(t, "head", string(out[:4]))
				require.LessOrEqual(t, len(out)-4, e.Bound(n), "%s %s %d", c, name, n)
				back, err := d.Append([]byte("tail"), c, out[4:], 0)
				require.NoError(t, err, "%s %s %d", c, name, n)
				require.True(t, bytes.Equal(src, back[4:]), "%s %s %d", c, name, n)
				require.Equal(t, "tail", string(back[:4]))
				fresh, err := d.Append(nil, c, out[4:], 0)
				require.NoError(t, err)
				require.True(t, bytes.Equal(src, fresh))
			}
		}
	}
}

func TestEveryLevelOfKafkasRanges(t *testing.T) {
	d := compress.NewDecompressor()
	src := text(20_000)
	for c, levels := range map[compress.Codec][]int{
		compress.Gzip: {-1, 1, 2, 3, 4, 5, 6, 7, 8, 9},
		compress.Lz4:  {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17},
		compress.Zstd: {-131072, -5, 0, 1, 2, 3, 4, 5, 6, 9, 10, 19, 22},
	} {
		for _, level := range levels {
			out := compressor(t, c, level).Append(nil, src)
			require.Less(t, len(out), len(src)/2, "%s %d", c, level)
			back, err := d.Append(nil, c, out, 0)
			require.NoError(t, err)
			require.Equal(t, src, back)
		}
	}
	for c, levels := range map[compress.Codec][]int{
		compress.Gzip: {-2, 0, 10}, compress.Lz4: {0, 18}, compress.Zstd: {-131073, 23},
	} {
		for _, level := range levels {
			_, err := compress.NewCompressor(c, level)
			require.ErrorContains(t, err, "compression."+c.String()+".level", "%d", level)
		}
	}
}

func TestParseNames(t *testing.T) {
	for _, c := range codecs {
		got, err := compress.Parse(c.String())
		require.NoError(t, err)
		require.Equal(t, c, got)
		require.True(t, c.Valid())
	}
	_, err := compress.Parse("brotli")
	require.ErrorContains(t, err, "none, gzip, snappy, lz4, zstd")
	require.False(t, compress.Codec(5).Valid())
	require.Equal(t, "codec(7)", compress.Codec(7).String())
	_, err = compress.NewCompressor(6, 0)
	require.Error(t, err)
	_, err = compress.NewDecompressor().Append(nil, 5, []byte("x"), 0)
	require.ErrorIs(t, err, compress.ErrCorrupt)
}

// Everything that other libraries' own writers produce is read, not only what Kafka's form is.
func TestForeignForms(t *testing.T) {
	d := compress.NewDecompressor()
	src := text(700_000)
	for _, o := range [][]lz4.Option{
		{},
		{lz4.BlockSizeOption(lz4.Block64Kb), lz4.BlockChecksumOption(true)},
		{lz4.BlockSizeOption(lz4.Block256Kb), lz4.ChecksumOption(true), lz4.SizeOption(uint64(len(src)))},
		{lz4.BlockSizeOption(lz4.Block1Mb), lz4.CompressionLevelOption(lz4.Level5)},
	} {
		var out bytes.Buffer
		w := lz4.NewWriter(&out)
		require.NoError(t, w.Apply(o...))
		_, err := w.Write(src)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		back, err := d.Append(nil, compress.Lz4, out.Bytes(), 0)
		require.NoError(t, err)
		require.True(t, bytes.Equal(src, back))
	}
	// Streamed zstd says neither size nor that it is one segment; frames may follow each other.
	var out bytes.Buffer
	for _, part := range [][]byte{src[:300_000], src[300_000:]} {
		w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
		require.NoError(t, err)
		_, err = w.Write(part[:100])
		require.NoError(t, err)
		require.NoError(t, w.Flush())
		_, err = w.Write(part[100:])
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	back, err := d.Append(nil, compress.Zstd, out.Bytes(), 0)
	require.NoError(t, err)
	require.True(t, bytes.Equal(src, back))
	// Xerial streams may follow each other too.
	e := compressor(t, compress.Snappy, 0)
	back, err = d.Append(nil, compress.Snappy, e.Append(e.Append(nil, src[:50_000]), src[50_000:]), 0)
	require.NoError(t, err)
	require.True(t, bytes.Equal(src, back))
}

// Blocks of an lz4 frame that refer to the block before (the lz4 tool's default) are read.
func TestLinkedLz4Blocks(t *testing.T) {
	src := text(64 << 10)
	block := make([]byte, lz4.CompressBlockBound(len(src)))
	n, err := lz4.CompressBlock(src, block, nil)
	require.NoError(t, err)
	// The second block: 5 literals, then a match of 19 from 64000 bytes back, then 5 literals.
	second := []byte{0x5f, 'a', 'b', 'c', 'd', 'e', 0, 0xfa, 0, 0x50, 'v', 'w', 'x', 'y', 'z'}
	frame := []byte{0x04, 0x22, 0x4d, 0x18, 0x40, 0x40, 0xc0}
	for _, b := range [][]byte{block[:n], second} {
		frame = binary.LittleEndian.AppendUint32(frame, uint32(len(b)))
		frame = append(frame, b...)
	}
	frame = append(frame, 0, 0, 0, 0)
	at := len(src) + 5 - 64000
	want := string(src) + "abcde" + string(src[at:at+19]) + "vwxyz"
	back, err := compress.NewDecompressor().Append(nil, compress.Lz4, frame, 0)
	require.NoError(t, err)
	require.Equal(t, want, string(back))
}

func TestLegacyLz4HeaderChecksum(t *testing.T) {
	d := compress.NewDecompressor()
	out := compressor(t, compress.Lz4, compress.DefaultLevel).Append(nil, []byte("hello hello hello hello hello"))
	out[6]++
	_, err := d.Append(nil, compress.Lz4, out, 0)
	require.ErrorContains(t, err, "header checksum")
	back, err := d.AppendLegacyLz4(nil, out, 0)
	require.NoError(t, err)
	require.Equal(t, "hello hello hello hello hello", string(back))
}

func TestGzipStopsBehindTheFirstMember(t *testing.T) {
	e := compressor(t, compress.Gzip, compress.DefaultLevel)
	back, err := compress.NewDecompressor().Append(nil, compress.Gzip, e.Append(e.Append(nil, []byte("one")), []byte("two")), 0)
	require.NoError(t, err)
	require.Equal(t, "one", string(back))
}

func TestLimitIsExact(t *testing.T) {
	d := compress.NewDecompressor()
	src := text(200_000)
	for _, c := range codecs {
		out := compressor(t, c, compress.DefaultLevel).Append(nil, src)
		for _, dst := range [][]byte{nil, make([]byte, 0, 1<<20), []byte("xyz")} {
			back, err := d.Append(dst, c, out, len(src))
			require.NoError(t, err, c)
			require.Equal(t, len(dst)+len(src), len(back))
			back, err = d.Append(dst, c, out, len(src)-1)
			require.ErrorIs(t, err, compress.ErrTooLarge, c)
			require.Equal(t, len(dst), len(back))
			require.NotErrorIs(t, err, compress.ErrCorrupt)
			var tooLarge *compress.TooLargeError
			require.True(t, errors.As(err, &tooLarge))
			require.Equal(t, len(src)-1, tooLarge.Limit)
			require.Equal(t, len(out), tooLarge.Compressed)
			require.ErrorContains(t, err, "max.decompressed.batch.bytes")
		}
	}
}

// A streamed zstd frame does not say how large it is; the limit must hold all the same.
func TestLimitOfStreamedZstd(t *testing.T) {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	src := text(1 << 20)
	_, err = w.Write(src)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	d := compress.NewDecompressor()
	for _, limit := range []int{1, 100_000, 128 << 10, len(src) - 1} {
		_, err = d.Append(nil, compress.Zstd, out.Bytes(), limit)
		require.ErrorIs(t, err, compress.ErrTooLarge, limit)
	}
	_, err = d.Append(nil, compress.Zstd, out.Bytes(), len(src))
	require.NoError(t, err)
}

// bomb returns a MiB or less that would become far more.
func bomb(t testing.TB, c compress.Codec) []byte {
	var out bytes.Buffer
	zeros := make([]byte, 1<<20)
	switch c {
	case compress.Zstd:
		w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
		require.NoError(t, err)
		for range 20 {
			_, err = w.Write(zeros)
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
	case compress.Gzip:
		w := kgzip.NewWriter(&out)
		for range 20 {
			_, err := w.Write(zeros)
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
	default:
		return compressor(t, c, compress.DefaultLevel).Append(nil, make([]byte, 20<<20))
	}
	return out.Bytes()
}

func TestBombsStopAtTheLimit(t *testing.T) {
	d := compress.NewDecompressor()
	for _, c := range codecs[1:] {
		b := bomb(t, c)
		_, err := d.Append(nil, c, b, 16<<20)
		require.ErrorIs(t, err, compress.ErrTooLarge, c)
		if c == compress.Zstd {
			require.ErrorContains(t, err, "ratio")
		}
		_, err = d.Append(nil, c, b, compress.BrokerLimit)
		if c == compress.Zstd {
			require.ErrorIs(t, err, compress.ErrTooLarge)
		} else {
			require.NoError(t, err, c)
		}
	}
}

// A record of some MiB of equal bytes compresses 10,000 times and is honest.
func TestHonestRepetitionIsNoBomb(t *testing.T) {
	d := compress.NewDecompressor()
	for _, c := range codecs {
		out := compressor(t, c, compress.DefaultLevel).Append(nil, make([]byte, 5<<20))
		back, err := d.Append(nil, c, out, 0)
		require.NoError(t, err, c)
		require.Len(t, back, 5<<20)
	}
}

// Headers that promise gigabytes must not make anyone allocate them.
func TestClaimedSizesAreNotBelieved(t *testing.T) {
	d := compress.NewDecompressor()
	claims := map[string]struct {
		codec compress.Codec
		src   []byte
	}{
		"zstd content size": {compress.Zstd, []byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 3, 0, 0, 0, 0, 0x09, 0, 0, 'x'}},
		"snappy length":     {compress.Snappy, []byte{0xff, 0xff, 0xff, 0x7f, 0}},
		"xerial length -1":  {compress.Snappy, []byte("\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\xff\xff\xff\xff")},
		"xerial length max": {compress.Snappy, []byte("\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\x7f\xff\xff\xffx")},
		"lz4 block size":    {compress.Lz4, []byte{0x04, 0x22, 0x4d, 0x18, 0x60, 0x70, 0x73, 0xff, 0xff, 0xff, 0x7f}},
	}
	for name, c := range claims {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 20 {
			_, err := d.Append(nil, c.codec, c.src, 0)
			require.Error(t, err, name)
		}
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20), name)
	}
}

func TestRoomForTheBoundIsEnough(t *testing.T) {
	for _, c := range codecs {
		e := compressor(t, c, compress.DefaultLevel)
		for _, src := range [][]byte{text(100), noise(100), noise(70_000), text(1<<20 + 5), noise(1<<20 + 5)} {
			room := make([]byte, 0, e.Bound(len(src)))
			out := e.Append(room, src)
			require.Same(t, &room[:1][0], &out[0], "%s %d", c, len(src))
		}
	}
}

// Any cut of a sound stream is refused, never taken for a shorter one.
func TestCutStreamsAreRefused(t *testing.T) {
	d := compress.NewDecompressor()
	src := text(3_000)
	for _, c := range codecs[1:] {
		out := compressor(t, c, compress.DefaultLevel).Append(nil, src)
		for n := range out {
			if c == compress.Snappy && n == 16 {
				continue // a xerial stream of no blocks is a whole one
			}
			_, err := d.Append(nil, c, out[:n], 0)
			require.Error(t, err, "%s cut at %d", c, n)
		}
	}
}

func TestManyGoroutinesShareOne(t *testing.T) {
	d := compress.NewDecompressor()
	for _, c := range codecs {
		e := compressor(t, c, compress.DefaultLevel)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				src := []byte(strings.Repeat(fmt.Sprint("goroutine ", g, " "), 500))
				for range 20 {
					back, err := d.Append(nil, c, e.Append(nil, src), 0)
					if err != nil || !bytes.Equal(back, src) {
						t.Errorf("%s: %v", c, err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
}
