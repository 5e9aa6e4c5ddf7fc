package compress

import "github.com/pierrec/lz4/v4"

type lz4Encoder struct {
	fast lz4.Compressor
}

func newLz4Encoder(level int) encoder { return new(lz4Encoder) }

func (e *lz4Encoder) append(dst, src []byte) []byte { return dst }

func (d *Decompressor) appendLz4(dst, src []byte, room int, tooLarge error, legacy bool) ([]byte, error) {
	return dst, tooLarge
}
