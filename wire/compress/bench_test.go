package compress_test

import (
	"fmt"
	"testing"

	"github.com/ottla-kafka/ottla/wire/compress"
)

func BenchmarkCompress(b *testing.B) {
	for _, c := range codecs[1:] {
		for _, size := range []int{16 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%dKiB", c, size>>10), func(b *testing.B) {
				src := text(size)
				e := compressor(b, c, compress.DefaultLevel)
				dst := make([]byte, 0, e.Bound(size))
				b.ReportAllocs()
				b.SetBytes(int64(size))
				n := 0
				for b.Loop() {
					n = len(e.Append(dst, src))
				}
				b.ReportMetric(float64(size)/float64(n), "ratio")
			})
		}
	}
}

func BenchmarkDecompress(b *testing.B) {
	d := compress.NewDecompressor()
	for _, c := range codecs[1:] {
		for _, size := range []int{16 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%dKiB", c, size>>10), func(b *testing.B) {
				src := compressor(b, c, compress.DefaultLevel).Append(nil, text(size))
				b.ReportAllocs()
				b.SetBytes(int64(size))
				for b.Loop() {
					if _, err := d.Append(nil, c, src, 0); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
