package compress_test

import (
	"bytes"
	stdgzip "compress/gzip"
	"errors"
	"io"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/ottla-kafka/ottla/wire/compress"
)

const fuzzCap = 1 << 20

// fuzzDecompress feeds bytes to a codec. Whatever comes out must be within the cap, the same with and without room behind
// dst, and the same as what a second implementation makes of it.
func fuzzDecompress(f *testing.F, c compress.Codec, second func([]byte) ([]byte, error)) {
	e := compressor(f, c, compress.DefaultLevel)
	for _, src := range [][]byte{nil, []byte("a"), bytes.Repeat([]byte("ottla "), 100), text(2000), noise(300), make([]byte, 70_000)} {
		f.Add(e.Append(nil, src))
	}
	d := compress.NewDecompressor()
	f.Fuzz(func(t *testing.T, src []byte) {
		out, err := d.Append(nil, c, src, fuzzCap)
		if err != nil {
			if len(out) != 0 {
				t.Fatal("bytes in spite of an error")
			}
			if !errors.Is(err, compress.ErrCorrupt) && !errors.Is(err, compress.ErrTooLarge) {
				t.Fatalf("unexpected kind of error: %v", err)
			}
			return
		}
		if len(out) > fuzzCap {
			t.Fatalf("%d bytes, more than %d", len(out), fuzzCap)
		}
		again, err := d.Append(append(make([]byte, 0, 3<<20), "x"...), c, src, fuzzCap)
		if err != nil || !bytes.Equal(again[1:], out) {
			t.Fatalf("with room behind dst it differs: %v", err)
		}
		if other, err := second(src); err == nil && !bytes.Equal(other, out) {
			t.Fatalf("%d bytes, another decoder gives %d", len(out), len(other))
		}
		// What was read can be written and read again.
		back, err := d.Append(nil, c, e.Append(nil, out), fuzzCap)
		if err != nil || !bytes.Equal(back, out) {
			t.Fatalf("compressed again it differs: %v", err)
		}
	})
}

func FuzzDecompressGzip(f *testing.F) {
	fuzzDecompress(f, compress.Gzip, func(src []byte) ([]byte, error) {
		r, err := stdgzip.NewReader(bytes.NewReader(src))
		if err != nil {
			return nil, err
		}
		r.Multistream(false)
		return io.ReadAll(io.LimitReader(r, fuzzCap))
	})
}

func FuzzDecompressSnappy(f *testing.F) {
	f.Add(s2.EncodeSnappy(nil, text(500)))
	fuzzDecompress(f, compress.Snappy, func(src []byte) ([]byte, error) {
		if bytes.HasPrefix(src, []byte("\x82SNAPPY\x00")) {
			return nil, errors.New("the second library knows blocks only")
		}
		return s2.Decode(nil, src)
	})
}

func FuzzDecompressLz4(f *testing.F) {
	fuzzDecompress(f, compress.Lz4, func(src []byte) ([]byte, error) {
		var out bytes.Buffer
		// The second library goes on with the next frame where this one stops, and wants the content checksum right.
		_, err := io.CopyN(&out, lz4.NewReader(bytes.NewReader(src)), fuzzCap)
		if err == io.EOF {
			err = nil
		}
		return out.Bytes(), err
	})
}

func FuzzDecompressZstd(f *testing.F) {
	// The same library, but its streaming half, which decodes through a window of its own.
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(r.Close)
	fuzzDecompress(f, compress.Zstd, func(src []byte) ([]byte, error) {
		if err := r.Reset(bytes.NewReader(src)); err != nil {
			return nil, err
		}
		return io.ReadAll(io.LimitReader(r, fuzzCap+1))
	})
}
