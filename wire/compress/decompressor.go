package compress

import "sync"

// Decompressor decompresses all codecs, bounded. It belongs to a client or a cluster, which may use it from many
// goroutines; decoders and scratch buffers inside are reused and die with it. It starts no goroutine.
type Decompressor struct {
	gzip    sync.Pool // *gzipDecoder
	zstd    sync.Pool // *zstd.Decoder
	scratch sync.Pool // *Buffer
}

// NewDecompressor returns a Decompressor.
func NewDecompressor() *Decompressor { return new(Decompressor) }

// Append appends what src, compressed with codec, decompresses to, and returns the longer dst. More than limit bytes
// (0: ClientLimit), or too many for so small a src (see MaxRatio), end in ErrTooLarge before they are allocated; anything
// wrong with src ends in ErrCorrupt. On an error dst comes back as it was.
func (d *Decompressor) Append(dst []byte, codec Codec, src []byte, limit int) ([]byte, error) {
	return d.append(dst, codec, src, limit, false)
}

// AppendLegacyLz4 is Append for lz4 in messages of magic 0, whose frame header has a wrong checksum: Kafka before 0.10
// computed it over the frame's magic number too, and everyone has to go on ignoring it (KIP-57).
func (d *Decompressor) AppendLegacyLz4(dst, src []byte, limit int) ([]byte, error) {
	return d.append(dst, Lz4, src, limit, true)
}

func (d *Decompressor) append(dst []byte, codec Codec, src []byte, limit int, legacy bool) ([]byte, error) {
	b := newBound(codec, src, limit)
	switch codec {
	case None:
		if len(src) > b.room {
			return dst, b.exceeded()
		}
		return append(dst, src...), nil
	case Gzip:
		return d.appendGzip(dst, src, b)
	case Snappy:
		return appendSnappy(dst, src, b)
	case Lz4:
		return d.appendLz4(dst, src, b, legacy)
	case Zstd:
		return d.appendZstd(dst, src, b)
	default:
		return dst, corruptf(codec, "unknown codec")
	}
}

// Buffer is scratch memory of a Decompressor, see Borrow.
type Buffer struct{ B []byte }

// keepScratch is the capacity up to which a scratch buffer is kept for the next user.
const keepScratch = 4 << 20

// Borrow returns an empty buffer for bytes that are only looked at, not kept. Give it back with Return.
func (d *Decompressor) Borrow() *Buffer {
	if b, ok := d.scratch.Get().(*Buffer); ok {
		b.B = b.B[:0]
		return b
	}
	return &Buffer{B: make([]byte, 0, 144<<10)}
}

// Return gives a borrowed buffer back. Nothing may point into it any more.
func (d *Decompressor) Return(b *Buffer) {
	if cap(b.B) <= keepScratch {
		d.scratch.Put(b)
	}
}
