package timeline

// Hash functions for the key types in use. They are fixed (no seed), because the order of iteration follows them and
// two nodes that replay the same records must behave the same.

// String hashes with FNV-1a and mixes the result: the trie takes its branches from the low bits, which plain FNV
// spreads badly for names such as topic-1, topic-2.
func String(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := 0; i < len(s); i++ {
		h ^= uint64(s[i])
		h *= 1099511628211
	}
	return mix(h)
}

// UUID hashes topic ids, directory ids and the like. Kafka's random ids are version 4, with fixed bits in the middle.
func UUID[K ~[16]byte](k K) uint64 {
	var hi, lo uint64
	for i := 0; i < 8; i++ {
		hi = hi<<8 | uint64(k[i])
		lo = lo<<8 | uint64(k[8+i])
	}
	return mix(hi ^ mix(lo))
}

// Int32 hashes broker ids, partition numbers and other small numbers.
func Int32[K ~int32](k K) uint64 { return mix(uint64(uint32(k))) }

// mix is the finaliser of splitmix64: every input bit reaches every output bit.
func mix(h uint64) uint64 {
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}
