package producer

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/ottla-kafka/ottla/wire"
)

// Encoder turns a value into the bytes of a key or a value of a record. It appends to dst, which may be reused
// after the record was submitted. null makes it a null key, or a tombstone.
type Encoder[T any] func(dst []byte, v T) (b []byte, null bool, err error)

// String encodes as UTF-8 bytes (org.apache.kafka.common.serialization.StringSerializer).
func String(dst []byte, v string) ([]byte, bool, error) { return append(dst, v...), false, nil }

// Bytes encodes as is; nil is null (ByteArraySerializer).
func Bytes(dst []byte, v []byte) ([]byte, bool, error) { return append(dst, v...), v == nil, nil }

// Int32 encodes big endian (IntegerSerializer).
func Int32(dst []byte, v int32) ([]byte, bool, error) {
	return binary.BigEndian.AppendUint32(dst, uint32(v)), false, nil
}

// Int64 encodes big endian (LongSerializer).
func Int64(dst []byte, v int64) ([]byte, bool, error) {
	return binary.BigEndian.AppendUint64(dst, uint64(v)), false, nil
}

// Int16 encodes big endian (ShortSerializer).
func Int16(dst []byte, v int16) ([]byte, bool, error) {
	return binary.BigEndian.AppendUint16(dst, uint16(v)), false, nil
}

// Float32 encodes IEEE 754, big endian (FloatSerializer).
func Float32(dst []byte, v float32) ([]byte, bool, error) {
	return binary.BigEndian.AppendUint32(dst, math.Float32bits(v)), false, nil
}

// Float64 encodes IEEE 754, big endian (DoubleSerializer).
func Float64(dst []byte, v float64) ([]byte, bool, error) {
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(v)), false, nil
}

// Bool encodes as one byte, 0 or 1 (BooleanSerializer).
func Bool(dst []byte, v bool) ([]byte, bool, error) {
	if v {
		return append(dst, 1), false, nil
	}
	return append(dst, 0), false, nil
}

// UUID encodes the 36 characters that java.util.UUID prints (UUIDSerializer).
func UUID(dst []byte, v wire.UUID) ([]byte, bool, error) {
	return fmt.Appendf(dst, "%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:]), false, nil
}

// Null encodes every value as null (VoidSerializer).
func Null[T any](dst []byte, _ T) ([]byte, bool, error) { return dst, true, nil }

// JSON encodes with encoding/json; a nil pointer, map, slice or interface is a tombstone.
func JSON[T any](dst []byte, v T) ([]byte, bool, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return dst, false, err
	}
	if string(b) == "null" {
		return dst, true, nil
	}
	return append(dst, b...), false, nil
}

// Sender is what takes records: a Producer, or a transaction of package txn.
type Sender interface {
	Send(ctx context.Context, r Record) (Ack, error)
	Submit(ctx context.Context, r Record, done func(Ack, error)) error
}

// Typed sends keys and values of Go types to one topic. It is a thin edge over a Sender, which it does not own;
// any number may share one.
type Typed[K, V any] struct {
	p     Sender
	topic string
	key   Encoder[K]
	value Encoder[V]
}

// NewTyped makes a Typed for a topic. Nothing is kept in it: making one for each transaction costs an allocation.
func NewTyped[K, V any](p Sender, topic string, key Encoder[K], value Encoder[V]) *Typed[K, V] {
	return &Typed[K, V]{p: p, topic: topic, key: key, value: value}
}

// Send is Producer.Send of the encoded key and value.
func (t *Typed[K, V]) Send(ctx context.Context, key K, value V, headers ...Header) (Ack, error) {
	r, err := t.Record(key, value, headers...)
	if err != nil {
		return Ack{Topic: t.topic, Partition: -1, Offset: -1}, err
	}
	return t.p.Send(ctx, r)
}

// Submit is Producer.Submit of the encoded key and value.
func (t *Typed[K, V]) Submit(ctx context.Context, key K, value V, done func(Ack, error), headers ...Header) error {
	r, err := t.Record(key, value, headers...)
	if err != nil {
		return err
	}
	return t.p.Submit(ctx, r, done)
}

// Record encodes key and value, for what Send and Submit do not cover: a partition, a timestamp.
func (t *Typed[K, V]) Record(key K, value V, headers ...Header) (Record, error) {
	r := Record{Topic: t.topic, Headers: headers, Timestamp: time.Time{}}
	k, null, err := t.key(nil, key)
	if err != nil {
		return r, notWritten(fmt.Errorf("encoding the key for %s: %w", t.topic, err))
	}
	if !null {
		r.Key = notNil(k)
	}
	v, null, err := t.value(nil, value)
	if err != nil {
		return r, notWritten(fmt.Errorf("encoding the value for %s: %w", t.topic, err))
	}
	if !null {
		r.Value = notNil(v)
	}
	return r, nil
}

// notNil keeps an empty key or value apart from null.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
