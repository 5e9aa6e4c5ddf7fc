package producer

import (
	"fmt"
	"math"
	"slices"
)

// Format names an encoding that needs no Go type to be known beforehand, for programs whose encodings are configured.
type Format string

// The formats, each with Kafka's serializer of the same bytes.
const (
	FormatBytes   Format = "bytes"   // []byte; ByteArraySerializer, BytesSerializer, ByteBufferSerializer
	FormatString  Format = "string"  // string; StringSerializer
	FormatInt16   Format = "int16"   // int16; ShortSerializer
	FormatInt32   Format = "int32"   // int32, or an int that fits; IntegerSerializer
	FormatInt64   Format = "int64"   // int64 or int; LongSerializer
	FormatFloat32 Format = "float32" // float32; FloatSerializer
	FormatFloat64 Format = "float64" // float64; DoubleSerializer
	FormatBool    Format = "bool"    // bool; BooleanSerializer
	FormatUUID    Format = "uuid"    // wire.UUID; UUIDSerializer
	FormatJSON    Format = "json"    // anything; no serializer of Kafka's
	FormatVoid    Format = "void"    // everything becomes null; VoidSerializer
)

// Formats lists them.
func Formats() []Format {
	return []Format{FormatBytes, FormatString, FormatInt16, FormatInt32, FormatInt64, FormatFloat32, FormatFloat64, FormatBool,
		FormatUUID, FormatJSON, FormatVoid}
}

func (f Format) valid() bool { return slices.Contains(Formats(), f) }

// Encoder encodes values of the format's Go type. nil is null.
func (f Format) Encoder() (Encoder[any], error) {
	switch f {
	case FormatBytes:
		return dynamic(Bytes), nil
	case FormatString:
		return dynamic(String), nil
	case FormatInt16:
		return dynamic(Int16), nil
	case FormatInt32:
		return dynamic(Int32), nil
	case FormatInt64:
		return dynamic(Int64), nil
	case FormatFloat32:
		return dynamic(Float32), nil
	case FormatFloat64:
		return dynamic(Float64), nil
	case FormatBool:
		return dynamic(Bool), nil
	case FormatUUID:
		return dynamic(UUID), nil
	case FormatJSON:
		return JSON[any], nil
	case FormatVoid:
		return Null[any], nil
	}
	return nil, fmt.Errorf("format %q is not one of %v", f, Formats())
}

// dynamic makes an encoder of any out of one for T.
func dynamic[T any](encode Encoder[T]) Encoder[any] {
	return func(dst []byte, v any) ([]byte, bool, error) {
		switch x := v.(type) {
		case nil:
			return dst, true, nil
		case T:
			return encode(dst, x)
		case int:
			if t, ok := any(int64(x)).(T); ok {
				return encode(dst, t)
			}
			if t, ok := any(int32(x)).(T); ok && x >= math.MinInt32 && x <= math.MaxInt32 {
				return encode(dst, t)
			}
		}
		var want T
		return dst, false, fmt.Errorf("a %T is given where a %T is expected", v, want)
	}
}

// Any encodes as Config.KeyFormat and Config.ValueFormat say, which is what key.serializer and value.serializer set.
func Any(p *Producer, topic string) (*Typed[any, any], error) {
	key, err := p.cfg.KeyFormat.Encoder()
	if err != nil {
		return nil, fmt.Errorf("producer: key.serializer: %w", err)
	}
	value, err := p.cfg.ValueFormat.Encoder()
	if err != nil {
		return nil, fmt.Errorf("producer: value.serializer: %w", err)
	}
	return NewTyped(p, topic, key, value), nil
}
