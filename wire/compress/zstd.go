package compress

import "github.com/klauspost/compress/zstd"

const (
	// zstdNear and zstdFar are how far back the encoder looks at ordinary levels (up to 5) and at thorough ones. The
	// library's blocks are no longer than the window, and shorter ones fit their contents better: measured on log lines,
	// 64 KiB costs 3 % less CPU than 1 MiB and compresses 0 to 2 % better, unless a batch repeats itself further back.
	zstdNear = 64 << 10
	zstdFar  = 2 << 20
	// zstdDecodeWindow is the largest window that a frame may ask for: what zstd-jni allows, and what it writes at level
	// 20 and above. It costs nothing here, since a batch is decoded in one piece and serves as its own window.
	zstdDecodeWindow = 128 << 20
	// zstdSlack is how much room behind the result lets the decoder copy without care for the end.
	zstdSlack = 64
)

type zstdEncoder struct{ e *zstd.Encoder }

func newZstdEncoder(level int) encoder {
	window := zstdNear
	if level > 5 {
		window = zstdFar
	}
	e, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)),
		zstd.WithEncoderConcurrency(1), // no goroutines
		zstd.WithEncoderCRC(false),     // the batch has its CRC-32C; zstd-jni writes none either
		zstd.WithZeroFrames(true),
		zstd.WithWindowSize(window),
	)
	if err != nil {
		panic(err) // options are constants
	}
	return zstdEncoder{e}
}

func (z zstdEncoder) append(dst, src []byte) []byte { return z.e.EncodeAll(src, dst) }

func newZstdDecoder() *zstd.Decoder {
	d, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1), // no goroutines
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(zstdDecodeWindow),
		zstd.WithDecoderMaxMemory(1<<31), // the window may not be larger than this; the real limit is the next line
		zstd.WithDecodeAllCapLimit(true), // never beyond the capacity that it is given
	)
	if err != nil {
		panic(err) // options are constants
	}
	return d
}

// appendZstd measures first, which gives a bound on the result, and decodes into memory of that size: the result's own if
// the frame says how large it is, else scratch memory.
func (d *Decompressor) appendZstd(dst, src []byte, b bound) ([]byte, error) {
	x, err := zstdMeasure(src)
	if err != nil {
		return dst, err
	}
	need := min(x.most, b.room)
	if x.content >= 0 {
		if x.content > b.room {
			return dst, b.exceeded()
		}
		need = x.content
	}
	z, ok := d.zstd.Get().(*zstd.Decoder)
	if !ok {
		z = newZstdDecoder()
	}
	defer d.zstd.Put(z)

	if x.content >= 0 || cap(dst)-len(dst) >= need+zstdSlack {
		out := reserve(dst, need+zstdSlack)
		got, err := z.DecodeAll(src, out[len(dst):len(dst):len(dst)+need+zstdSlack])
		if err != nil || len(got) > b.room {
			return dst, zstdError(err, x, b)
		}
		return out[:len(dst)+len(got)], nil
	}
	scratch := d.Borrow()
	defer d.Return(scratch)
	scratch.B = reserve(scratch.B, need+zstdSlack)
	got, err := z.DecodeAll(src, scratch.B[:0:need+zstdSlack])
	if err != nil || len(got) > b.room {
		return dst, zstdError(err, x, b)
	}
	return append(dst, got...), nil
}

// zstdError tells a batch that is too large from one that is damaged. A decoder that ran out of room has no error of its
// own for that, so the measure decides: where the blocks could hold more than there was room for, that is the reason.
func zstdError(err error, x zstdExtent, b bound) error {
	if err == nil || x.content < 0 && x.most > b.room {
		return b.exceeded()
	}
	return corruptf(Zstd, "%v", err)
}
