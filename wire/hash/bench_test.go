package hash_test

import (
	"testing"

	"github.com/ottla-kafka/ottla/wire/hash"
)

var sink uint32

func BenchmarkMurmur2(b *testing.B) {
	key := []byte("customer-0000123")
	b.ReportAllocs()
	for b.Loop() {
		sink += hash.Murmur2(key)
	}
}

func BenchmarkCRC32C(b *testing.B) {
	batch := make([]byte, 16<<10)
	b.SetBytes(int64(len(batch)))
	for b.Loop() {
		sink += hash.CRC32C(batch)
	}
}
