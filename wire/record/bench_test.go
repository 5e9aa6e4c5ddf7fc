package record_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/record"
)

// filled returns a sealed batch of about size bytes.
func filled(valueSize, size int) []byte {
	b := record.NewBuilder(nil)
	v := []byte(strings.Repeat("0123456789", valueSize/10+1)[:valueSize])
	for i := 0; b.TryAppend(size, 1_700_000_000_000+int64(i), nil, v, nil); i++ {
	}
	return b.Seal(record.NoProducer())
}

func BenchmarkBuilderAppend(b *testing.B) {
	for _, size := range []int{100, 1024} {
		b.Run(fmt.Sprint(size, "B"), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(size))
			v := make([]byte, size)
			buf := make([]byte, 0, 1<<20)
			var w record.Builder
			w.Reset(buf)
			ts := int64(1_700_000_000_000)
			for b.Loop() {
				ts++
				if !w.TryAppend(1<<20, ts, nil, v, nil) {
					w.Reset(buf)
				}
			}
		})
	}
}

func BenchmarkBuilderAppendKeyHeaders(b *testing.B) {
	b.ReportAllocs()
	k, v := make([]byte, 16), make([]byte, 100)
	h := []record.Header{{Key: "trace-id", Value: k}, {Key: "source", Value: []byte("web")}}
	buf := make([]byte, 0, 1<<20)
	var w record.Builder
	w.Reset(buf)
	for b.Loop() {
		if !w.TryAppend(1<<20, 1_700_000_000_000, k, v, h) {
			w.Reset(buf)
		}
	}
}

var sink int

// BenchmarkIterate reports the cost per record.
func BenchmarkIterate(b *testing.B) {
	for _, size := range []int{100, 1024} {
		batch := filled(size, 256<<10)
		h, _ := record.ParseHeader(batch)
		for name, read := range map[string]func(*record.Iterator){
			"Next": func(it *record.Iterator) {
				for r, ok := it.Next(); ok; r, ok = it.Next() {
					sink += len(r.Value)
				}
			},
			"Into": func(it *record.Iterator) {
				var r record.Record
				for it.Into(&r) {
					sink += len(r.Value)
				}
			},
			"All": func(it *record.Iterator) {
				for r := range it.All() {
					sink += len(r.Value)
				}
			},
		} {
			b.Run(fmt.Sprint(name, "/", size, "B"), func(b *testing.B) {
				b.ReportAllocs()
				for n := 0; n < b.N; n += int(h.Count) {
					it, err := record.Open(batch, record.ReadOptions{SkipCRC: true})
					if err != nil {
						b.Fatal(err)
					}
					read(&it)
					if it.Err() != nil {
						b.Fatal(it.Err())
					}
				}
			})
		}
	}
}

// BenchmarkCheckRecords reports the cost per record of a broker's walk.
func BenchmarkCheckRecords(b *testing.B) {
	batch := filled(100, 16<<10)
	h, _ := record.ParseHeader(batch)
	b.ReportAllocs()
	for n := 0; n < b.N; n += int(h.Count) {
		if _, err := record.CheckRecords(batch, record.ReadOptions{SkipCRC: true}, record.Checks{Consecutive: true}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSeal(b *testing.B) {
	for _, size := range []int{16 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size>>10, "KiB"), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(size))
			w := record.NewBuilder(nil)
			for w.TryAppend(size, 1_700_000_000_000, nil, make([]byte, 100), nil) {
			}
			s := record.NoProducer()
			for b.Loop() {
				w.Seal(s)
			}
		})
	}
}

func BenchmarkSealCompressed(b *testing.B) {
	for _, codec := range []compress.Codec{compress.Snappy, compress.Lz4, compress.Zstd} {
		b.Run(codec.String(), func(b *testing.B) {
			b.ReportAllocs()
			c, err := compress.NewCompressor(codec, compress.DefaultLevel)
			if err != nil {
				b.Fatal(err)
			}
			w := record.NewBuilder(nil)
			for i := 0; w.TryAppend(128<<10, 1_700_000_000_000, nil, fmt.Appendf(nil, `{"id":%d,"text":"%x"}`, i, i*i*7919), nil); i++ {
			}
			b.SetBytes(int64(w.Size()))
			out := make([]byte, 0, 256<<10)
			for b.Loop() {
				out = w.SealCompressed(out[:0], record.NoProducer(), c)
			}
		})
	}
}

func BenchmarkValidate(b *testing.B) {
	batch := filled(100, 16<<10)
	b.ReportAllocs()
	b.SetBytes(int64(len(batch)))
	for b.Loop() {
		if record.Validate(batch) != nil {
			b.Fatal("invalid")
		}
	}
}
