package record

import "math/bits"

// Zig-zag varints as the record format uses them (those of protocol buffers). wire has the same for messages; these here
// are written for the per-record loops.

func zigzag(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }

func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// uvarintLen is the encoded size of u: 7 bits a byte, at least one byte. (9n+64)/64 equals ceil(n/7) for n in 1..64.
func uvarintLen(u uint64) int { return (9*bits.Len64(u|1) + 64) / 64 }

func varintLen(v int64) int { return uvarintLen(zigzag(v)) }

// putUvarint writes u at b[i:], where there must be room, and returns the index behind it.
func putUvarint(b []byte, i int, u uint64) int {
	for u >= 0x80 {
		b[i] = byte(u) | 0x80
		u >>= 7
		i++
	}
	b[i] = byte(u)
	return i + 1
}

// readVarint reads a varint of at most 5 bytes at b[i:] and returns the index behind it, or -1 if b ends first or the
// fifth byte says that there are more. Spare bits of the fifth byte are ignored, as Kafka does.
func readVarint(b []byte, i int) (int32, int) {
	var u uint32
	for shift := uint(0); shift < 35; shift += 7 {
		if uint(i) >= uint(len(b)) {
			return 0, -1
		}
		c := b[i]
		i++
		u |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return int32(u>>1) ^ -int32(u&1), i
		}
	}
	return 0, -1
}

// readVarlong is readVarint for 64 bits and at most 10 bytes.
func readVarlong(b []byte, i int) (int64, int) {
	var u uint64
	for shift := uint(0); shift < 70; shift += 7 {
		if uint(i) >= uint(len(b)) {
			return 0, -1
		}
		c := b[i]
		i++
		u |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return unzigzag(u), i
		}
	}
	return 0, -1
}
