package compress

import (
	"errors"

	"github.com/klauspost/compress/zstd"
)

// zstdWindow is the largest window that is read: what a frame may demand without any option of its own.
const zstdWindow = 8 << 20

type zstdEncoder struct{ e *zstd.Encoder }

func newZstdEncoder(level int) encoder {
	e, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)),
		zstd.WithEncoderConcurrency(1), // no goroutines
		zstd.WithEncoderCRC(false),     // the batch has its CRC-32C; zstd-jni writes none either
		zstd.WithZeroFrames(true),
		zstd.WithWindowSize(1<<20),
		zstd.WithLowerEncoderMem(true),
	)
	if err != nil {
		panic(err) // options are constants
	}
	return zstdEncoder{e}
}

func (z zstdEncoder) append(dst, src []byte) []byte { return z.e.EncodeAll(src, dst) }

type zstdDecoder struct {
	d     *zstd.Decoder
	limit int
}

func newZstdDecoder(limit int) *zstdDecoder {
	d, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1), // no goroutines
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(zstdWindow),
		zstd.WithDecoderMaxMemory(uint64(limit)),
	)
	if err != nil {
		panic(err) // options are constants
	}
	return &zstdDecoder{d, limit}
}

func (d *Decompressor) appendZstd(dst, src []byte, room int, tooLarge error) ([]byte, error) {
	z, ok := d.zstd.Get().(*zstdDecoder)
	if !ok || z.limit != room {
		z = newZstdDecoder(room)
	}
	defer d.zstd.Put(z)
	out, err := z.d.DecodeAll(src, dst)
	switch {
	case err == nil && len(out)-len(dst) > room:
		return dst, tooLarge
	case err == nil:
		return out, nil
	case errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded):
		return dst, tooLarge
	default:
		return dst, corruptf(Zstd, "%v", err)
	}
}
