package hash

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC32C computes the CRC-32 with Castagnoli's polynomial, in hardware where there is any.
func CRC32C(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Murmur2 computes the 32 bit MurmurHash2 with the seed that Kafka's clients use to place keyed records.
func Murmur2(b []byte) uint32 {
	const (
		seed = 0x9747b28c
		m    = 0x5bd1e995
	)
	h := uint32(seed) ^ uint32(len(b))
	for len(b) >= 4 {
		k := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
		k *= m
		k ^= k >> 24
		h = h*m ^ k*m
		b = b[4:]
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h ^= uint32(b[0])
		h *= m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}

// ToPositive clears the sign bit, which is how Kafka makes a hash non-negative before it takes the remainder
// (Utils.toPositive; not the absolute value).
func ToPositive(h uint32) int32 { return int32(h & 0x7fffffff) }

// Partition returns the partition of n that Kafka's default partitioner gives a key. n must be positive.
func Partition(key []byte, n int32) int32 { return ToPositive(Murmur2(key)) % n }
