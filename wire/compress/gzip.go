package compress

import (
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
)

// gzipEncoder keeps one gzip writer; its output goes straight behind dst.
type gzipEncoder struct {
	w   *gzip.Writer
	out appendWriter
}

type appendWriter struct{ b []byte }

func (w *appendWriter) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	return len(p), nil
}

func newGzipEncoder(level int) encoder {
	e := new(gzipEncoder)
	w, err := gzip.NewWriterLevel(&e.out, level)
	if err != nil {
		panic(err) // checkLevel let only 1..9 and -1 through
	}
	e.w = w
	return e
}

func (e *gzipEncoder) append(dst, src []byte) []byte {
	e.out.b = dst
	e.w.Reset(&e.out)
	// The writer cannot fail: appendWriter does not.
	_, _ = e.w.Write(src)
	_ = e.w.Close()
	dst, e.out.b = e.out.b, nil
	return dst
}

type gzipDecoder struct {
	r   gzip.Reader
	src bytes.Reader
}

// appendGzip reads one gzip member and ignores what follows it: Kafka writes one, and a chain of them is a way to hide a
// bomb. The member's checksum is verified.
func (d *Decompressor) appendGzip(dst, src []byte, b bound) ([]byte, error) {
	g, ok := d.gzip.Get().(*gzipDecoder)
	if !ok {
		g = new(gzipDecoder)
	}
	defer d.gzip.Put(g)
	g.src.Reset(src)
	defer g.src.Reset(nil)
	if err := g.r.Reset(&g.src); err != nil {
		return dst, corruptf(Gzip, "header: %v", err)
	}
	g.r.Multistream(false)

	scratch := d.Borrow()
	defer d.Return(scratch)
	for {
		if len(scratch.B) == cap(scratch.B) {
			// Grow only as data arrives, never by what a length field promises.
			scratch.B = append(scratch.B, 0)[:len(scratch.B)]
		}
		n, err := g.r.Read(scratch.B[len(scratch.B):min(cap(scratch.B), b.room+1)])
		scratch.B = scratch.B[:len(scratch.B)+n]
		if len(scratch.B) > b.room {
			return dst, b.exceeded()
		}
		if errors.Is(err, io.EOF) {
			return append(dst, scratch.B...), nil
		}
		if err != nil {
			return dst, corruptf(Gzip, "after %d bytes: %v", len(scratch.B), err)
		}
	}
}
