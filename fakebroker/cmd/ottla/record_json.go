package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/producer"
)

// A record is one line of JSON, the same for consume and produce:
//
//	{"topic":"orders","partition":0,"offset":7,"timestamp":1700000000000,"key":"k","value":"v","headers":[{"key":"a","value":"b"}]}
//
// Nothing is lost on the way: null is null, and bytes that are not UTF-8 stand in base64 under a key that says so
// (key_base64, value_base64). topic and offset say where the record was; produce goes by the topic of its command line.
type recordJSON struct {
	Topic         string `json:"topic,omitempty"`
	Partition     *int32 `json:"partition,omitempty"`
	Offset        *int64 `json:"offset,omitempty"`
	Timestamp     *int64 `json:"timestamp,omitempty"` // milliseconds since 1970
	LogAppendTime bool   `json:"log_append_time,omitempty"`
	bytesJSON
	Headers []headerJSON `json:"headers,omitempty"`
}

type headerJSON struct {
	bytesJSON
}

// bytesJSON are a key and a value, each under one of two names.
type bytesJSON struct {
	Key         json.RawMessage `json:"key,omitempty"` // a string or null
	KeyBase64   []byte          `json:"key_base64,omitempty"`
	Value       json.RawMessage `json:"value,omitempty"`
	ValueBase64 []byte          `json:"value_base64,omitempty"`
}

// textOrBytes puts bytes under one of the names.
func textOrBytes(b []byte) (text json.RawMessage, base64 []byte) {
	switch {
	case b == nil:
		return json.RawMessage("null"), nil
	case utf8.Valid(b):
		return jsonOf(string(b)), nil
	}
	return nil, b
}

// bytesOf takes them out again. What is not there is null.
func bytesOf(text json.RawMessage, base64 []byte) ([]byte, error) {
	if base64 != nil || len(text) == 0 {
		return base64, nil
	}
	var s *string
	if err := json.Unmarshal(text, &s); err != nil || s == nil {
		return nil, err
	}
	return []byte(*s), nil
}

// pair is both of them.
func (b *bytesJSON) pair() (key, value []byte, err error) {
	key, err1 := bytesOf(b.Key, b.KeyBase64)
	value, err2 := bytesOf(b.Value, b.ValueBase64)
	return key, value, errors.Join(err1, err2)
}

// recordToJSON is a record as a line, without its end.
func recordToJSON(r *consumer.Record) []byte {
	out := recordJSON{Topic: r.Topic, Partition: &r.Partition, Offset: &r.Offset, LogAppendTime: r.TimestampType == consumer.LogAppendTime}
	if r.TimestampType != consumer.NoTimestamp {
		out.Timestamp = &r.TimestampMs
	}
	out.Key, out.KeyBase64 = textOrBytes(r.Key)
	out.Value, out.ValueBase64 = textOrBytes(r.Value)
	for name, value := range r.Headers.All() {
		var h headerJSON
		h.Key, h.KeyBase64 = textOrBytes([]byte(name))
		h.Value, h.ValueBase64 = textOrBytes(value)
		out.Headers = append(out.Headers, h)
	}
	return jsonOf(out)
}

// recordFromJSON reads a line.
func recordFromJSON(line []byte) (rec producer.Record, err error) {
	var in recordJSON
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields() // a misspelt "value" would become a tombstone
	if err := d.Decode(&in); err != nil {
		return rec, fmt.Errorf("this is no record in JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return rec, errors.New("there is more than one JSON value: want one record a line")
	}
	if rec.Key, rec.Value, err = in.pair(); err != nil {
		return rec, fmt.Errorf("key or value: %w", err)
	}
	if in.Timestamp != nil {
		rec.Timestamp = time.UnixMilli(*in.Timestamp)
	}
	for _, h := range in.Headers {
		name, value, err := h.pair()
		if err != nil {
			return rec, fmt.Errorf("headers: %w", err)
		}
		rec.Headers = append(rec.Headers, producer.Header{Key: string(name), Value: value})
	}
	if in.Partition != nil {
		rec = rec.To(*in.Partition)
	}
	return rec, nil
}
