package wire

import (
	"encoding/binary"
	"math"
)

// MaxString is the longest string in bytes of UTF-8 that Kafka's messages carry, in the compact form too.
const MaxString = math.MaxInt16

// AppendBool appends one byte, 1 or 0.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendInt8 appends one byte.
func AppendInt8(dst []byte, v int8) []byte { return append(dst, byte(v)) }

// AppendInt16 appends two bytes, big end first, as all fixed size numbers of Kafka.
func AppendInt16(dst []byte, v int16) []byte { return binary.BigEndian.AppendUint16(dst, uint16(v)) }

// AppendUint16 appends two bytes.
func AppendUint16(dst []byte, v uint16) []byte { return binary.BigEndian.AppendUint16(dst, v) }

// AppendInt32 appends four bytes.
func AppendInt32(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }

// AppendUint32 appends four bytes.
func AppendUint32(dst []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(dst, v) }

// AppendInt64 appends eight bytes.
func AppendInt64(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }

// AppendFloat64 appends the eight bytes of IEEE 754.
func AppendFloat64(dst []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(v))
}

// AppendUUID appends the sixteen bytes of a UUID.
func AppendUUID(dst []byte, v UUID) []byte { return append(dst, v[:]...) }

// AppendUvarint appends an unsigned varint of 32 bits: seven bits a byte, lowest first, 1 to 5 bytes.
func AppendUvarint(dst []byte, v uint32) []byte {
	for v >= 0x80 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

// AppendUvarlong appends an unsigned varint of 64 bits, 1 to 10 bytes.
func AppendUvarlong(dst []byte, v uint64) []byte { return binary.AppendUvarint(dst, v) }

// AppendVarint appends a zigzag varint of 32 bits, 1 to 5 bytes: small numbers of either sign are short.
func AppendVarint(dst []byte, v int32) []byte {
	return AppendUvarint(dst, uint32(v)<<1^uint32(v>>31))
}

// AppendVarlong appends a zigzag varint of 64 bits, 1 to 10 bytes.
func AppendVarlong(dst []byte, v int64) []byte { return binary.AppendVarint(dst, v) }

// UvarintSize is the number of bytes that AppendUvarint appends.
func UvarintSize(v uint32) int {
	n := 1
	for v >= 0x80 {
		v >>= 7
		n++
	}
	return n
}

// VarintSize is the number of bytes that AppendVarint appends.
func VarintSize(v int32) int { return UvarintSize(uint32(v)<<1 ^ uint32(v>>31)) }

// UvarlongSize is the number of bytes that AppendUvarlong appends.
func UvarlongSize(v uint64) int {
	n := 1
	for v >= 0x80 {
		v >>= 7
		n++
	}
	return n
}

// VarlongSize is the number of bytes that AppendVarlong appends.
func VarlongSize(v int64) int { return UvarlongSize(uint64(v)<<1 ^ uint64(v>>63)) }

// AppendString appends a string with an int16 length. The caller keeps it within MaxString.
func AppendString(dst []byte, s string) []byte {
	return append(AppendInt16(dst, int16(len(s))), s...)
}

// AppendCompactString appends a string with its length + 1 as an unsigned varint.
func AppendCompactString(dst []byte, s string) []byte {
	return append(AppendUvarint(dst, uint32(len(s)+1)), s...)
}

// AppendNullableString appends a string with an int16 length; nil is length -1.
func AppendNullableString(dst []byte, s *string) []byte {
	if s == nil {
		return append(dst, 0xff, 0xff)
	}
	return AppendString(dst, *s)
}

// AppendCompactNullableString appends a string with its length + 1 as an unsigned varint; nil is 0.
func AppendCompactNullableString(dst []byte, s *string) []byte {
	if s == nil {
		return append(dst, 0)
	}
	return AppendCompactString(dst, *s)
}

// AppendBytes appends bytes with an int32 length.
func AppendBytes(dst, b []byte) []byte {
	return append(AppendInt32(dst, int32(len(b))), b...)
}

// AppendCompactBytes appends bytes with their length + 1 as an unsigned varint.
func AppendCompactBytes(dst, b []byte) []byte {
	return append(AppendUvarint(dst, uint32(len(b)+1)), b...)
}

// AppendNullableBytes appends bytes with an int32 length; nil is length -1.
func AppendNullableBytes(dst, b []byte) []byte {
	if b == nil {
		return append(dst, 0xff, 0xff, 0xff, 0xff)
	}
	return AppendBytes(dst, b)
}

// AppendCompactNullableBytes appends bytes with their length + 1 as an unsigned varint; nil is 0.
func AppendCompactNullableBytes(dst, b []byte) []byte {
	if b == nil {
		return append(dst, 0)
	}
	return AppendCompactBytes(dst, b)
}

// AppendArrayLen appends the int32 count of an array; -1 is null.
func AppendArrayLen(dst []byte, n int) []byte { return AppendInt32(dst, int32(n)) }

// AppendCompactArrayLen appends the count + 1 of an array as an unsigned varint; -1 is null.
func AppendCompactArrayLen(dst []byte, n int) []byte { return AppendUvarint(dst, uint32(n+1)) }
