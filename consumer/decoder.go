package consumer

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/ottla-kafka/ottla/wire"
)

// Decoder turns a key or value into a T. data is nil for null. It must not write to data; a result that points into
// it stays valid.
type Decoder[T any] func(topic string, headers Headers, data []byte) (T, error)

// Bytes hands keys or values out as they are, without copying (ByteArrayDeserializer).
func Bytes(_ string, _ Headers, data []byte) ([]byte, error) { return data, nil }

// String copies UTF-8 text (StringDeserializer); bytes that are no UTF-8 become U+FFFD as in Java. Null is "".
func String(_ string, _ Headers, data []byte) (string, error) {
	if utf8.Valid(data) {
		return string(data), nil
	}
	return string([]rune(string(data))), nil
}

// Int16 decodes two bytes, big endian (ShortDeserializer).
func Int16(_ string, _ Headers, data []byte) (int16, error) {
	if len(data) != 2 {
		return 0, sizeError("a short", 2, data)
	}
	return int16(binary.BigEndian.Uint16(data)), nil
}

// Int32 decodes four bytes, big endian (IntegerDeserializer).
func Int32(_ string, _ Headers, data []byte) (int32, error) {
	if len(data) != 4 {
		return 0, sizeError("an int", 4, data)
	}
	return int32(binary.BigEndian.Uint32(data)), nil
}

// Int64 decodes eight bytes, big endian (LongDeserializer).
func Int64(_ string, _ Headers, data []byte) (int64, error) {
	if len(data) != 8 {
		return 0, sizeError("a long", 8, data)
	}
	return int64(binary.BigEndian.Uint64(data)), nil
}

// Float32 decodes four bytes of IEEE 754 (FloatDeserializer).
func Float32(_ string, _ Headers, data []byte) (float32, error) {
	if len(data) != 4 {
		return 0, sizeError("a float", 4, data)
	}
	return math.Float32frombits(binary.BigEndian.Uint32(data)), nil
}

// Float64 decodes eight bytes of IEEE 754 (DoubleDeserializer).
func Float64(_ string, _ Headers, data []byte) (float64, error) {
	if len(data) != 8 {
		return 0, sizeError("a double", 8, data)
	}
	return math.Float64frombits(binary.BigEndian.Uint64(data)), nil
}

// Bool decodes one byte, 0 or 1 (BooleanDeserializer).
func Bool(_ string, _ Headers, data []byte) (bool, error) {
	if len(data) != 1 || data[0] > 1 {
		return false, sizeError("a boolean", 1, data)
	}
	return data[0] == 1, nil
}

// UUID decodes the text of a java.util.UUID (UUIDDeserializer).
func UUID(_ string, _ Headers, data []byte) (wire.UUID, error) {
	var id wire.UUID
	if len(data) != 36 || data[8] != '-' || data[13] != '-' || data[18] != '-' || data[23] != '-' {
		return id, fmt.Errorf("%d bytes are not the text of a UUID", len(data))
	}
	n := 0
	for _, c := range data {
		if c == '-' {
			continue
		}
		digit, ok := hexDigit(c)
		if !ok || n == 32 {
			return wire.UUID{}, fmt.Errorf("byte %#x in the text of a UUID", c)
		}
		id[n/2] = id[n/2]<<4 | digit
		n++
	}
	if n != 32 {
		return wire.UUID{}, fmt.Errorf("%d hexadecimal digits in the text of a UUID, there are 32", n)
	}
	return id, nil
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// Void accepts null alone (VoidDeserializer).
func Void(_ string, _ Headers, data []byte) (struct{}, error) {
	if data != nil {
		return struct{}{}, fmt.Errorf("%d bytes where null is expected", len(data))
	}
	return struct{}{}, nil
}

func sizeError(what string, want int, data []byte) error {
	if data == nil {
		return fmt.Errorf("null is not %s", what)
	}
	return fmt.Errorf("%d bytes are not %s, which has %d", len(data), what, want)
}

// Format names a decoder in a configuration.
type Format string

// Formats, by the Java class that key.deserializer and value.deserializer name.
const (
	FormatBytes   Format = "bytes"   // ByteArrayDeserializer, ByteBufferDeserializer, BytesDeserializer
	FormatString  Format = "string"  // StringDeserializer
	FormatInt16   Format = "int16"   // ShortDeserializer
	FormatInt32   Format = "int32"   // IntegerDeserializer
	FormatInt64   Format = "int64"   // LongDeserializer
	FormatFloat32 Format = "float32" // FloatDeserializer
	FormatFloat64 Format = "float64" // DoubleDeserializer
	FormatBool    Format = "bool"    // BooleanDeserializer
	FormatUUID    Format = "uuid"    // UUIDDeserializer
	FormatVoid    Format = "void"    // VoidDeserializer
)

// Decoder is the decoder that the format names; the zero Format is FormatBytes. Null decodes to nil, as in Java.
func (f Format) Decoder() (Decoder[any], error) {
	switch f {
	case "", FormatBytes:
		return boxed(Bytes), nil
	case FormatString:
		return boxed(String), nil
	case FormatInt16:
		return boxed(Int16), nil
	case FormatInt32:
		return boxed(Int32), nil
	case FormatInt64:
		return boxed(Int64), nil
	case FormatFloat32:
		return boxed(Float32), nil
	case FormatFloat64:
		return boxed(Float64), nil
	case FormatBool:
		return boxed(Bool), nil
	case FormatUUID:
		return boxed(UUID), nil
	case FormatVoid:
		return boxed(Void), nil
	}
	return nil, fmt.Errorf("%q is not a format: bytes, string, int16, int32, int64, float32, float64, bool, uuid, void", string(f))
}

func boxed[T any](decode Decoder[T]) Decoder[any] {
	return func(topic string, headers Headers, data []byte) (any, error) {
		if data == nil {
			return nil, nil
		}
		return decode(topic, headers, data)
	}
}
