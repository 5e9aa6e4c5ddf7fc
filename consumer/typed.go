package consumer

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Typed hands out records with decoded keys and values. It is a thin layer on a Consumer, which does everything else
// and stays usable beside it.
type Typed[K, V any] struct {
	*Consumer
	key   Decoder[K]
	value Decoder[V]
}

// TypedRecord is a Record with its key and value decoded. The bytes are still there as Raw.Key and Raw.Value, which
// also tell null from empty.
type TypedRecord[K, V any] struct {
	Raw   Record
	Key   K
	Value V
}

// NewTyped puts decoders on a consumer: NewTyped(c, consumer.String, decodeOrder).
func NewTyped[K, V any](c *Consumer, key Decoder[K], value Decoder[V]) (*Typed[K, V], error) {
	if c == nil || key == nil || value == nil {
		return nil, errors.New("consumer: NewTyped needs a consumer and two decoders")
	}
	return &Typed[K, V]{c, key, value}, nil
}

// Any decodes as Config.KeyFormat and Config.ValueFormat say, which is what key.deserializer and value.deserializer set.
func Any(c *Consumer) (*Typed[any, any], error) {
	key, err := c.cfg.KeyFormat.Decoder()
	if err != nil {
		return nil, fmt.Errorf("consumer: key.deserializer: %w", err)
	}
	value, err := c.cfg.ValueFormat.Decoder()
	if err != nil {
		return nil, fmt.Errorf("consumer: value.deserializer: %w", err)
	}
	return NewTyped(c, key, value)
}

// DecodeError says which record could not be decoded and why. The record counts as handed out: going on with the loop
// goes on behind it.
type DecodeError struct {
	Record Record
	Part   string // "key" or "value"
	Err    error
}

// Error names the record and the part, never its content.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("%s-%d offset %d: decoding the %s: %v", e.Record.Topic, e.Record.Partition, e.Record.Offset, e.Part, e.Err)
}

// Unwrap is the decoder's error.
func (e *DecodeError) Unwrap() error { return e.Err }

// Records yields decoded records; errors are as with Consumer.Records, and a *DecodeError for a record that cannot be
// decoded, with its bytes in Raw.
func (t *Typed[K, V]) Records(ctx context.Context) iter.Seq2[TypedRecord[K, V], error] {
	return func(yield func(TypedRecord[K, V], error) bool) {
		for r, err := range t.Consumer.Records(ctx) {
			if err != nil {
				if !yield(TypedRecord[K, V]{Raw: r}, err) {
					return
				}
				continue
			}
			if !yield(t.Decode(r)) {
				return
			}
		}
	}
}

// Decode decodes one record, for instance of a Batch or of Poll. The error is a *DecodeError.
func (t *Typed[K, V]) Decode(r Record) (TypedRecord[K, V], error) {
	out := TypedRecord[K, V]{Raw: r}
	var err error
	if out.Key, err = t.key(r.Topic, r.Headers, r.Key); err != nil {
		return out, &DecodeError{r, "key", err}
	}
	if out.Value, err = t.value(r.Topic, r.Headers, r.Value); err != nil {
		return out, &DecodeError{r, "value", err}
	}
	return out, nil
}
