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
	Topic         string       `json:"topic,omitempty"`
	Partition     *int32       `json:"partition,omitempty"`
	Offset        *int64       `json:"offset,omitempty"`
	Timestamp     *int64       `json:"timestamp,omitempty"` // milliseconds since 1970
	LogAppendTime bool         `json:"log_append_time,omitempty"`
	Key           *string      `json:"key"`
	KeyBase64     []byte       `json:"key_base64,omitempty"`
	Value         *string      `json:"value"`
	ValueBase64   []byte       `json:"value_base64,omitempty"`
	Headers       []headerJSON `json:"headers,omitempty"`
}

type headerJSON struct {
	Key         string  `json:"key"`
	KeyBase64   []byte  `json:"key_base64,omitempty"`
	Value       *string `json:"value"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
}

// textOrBytes puts bytes into one of two fields.
func textOrBytes(b []byte) (*string, []byte) {
	if b == nil {
		return nil, nil
	}
	if !utf8.Valid(b) {
		return nil, b
	}
	return new(string(b)), nil
}

// bytesOf takes them out again.
func bytesOf(text *string, base64 []byte) []byte {
	if base64 != nil {
		return base64
	}
	if text != nil {
		return []byte(*text)
	}
	return nil
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
		h := headerJSON{Key: name}
		if !utf8.ValidString(name) {
			h.Key, h.KeyBase64 = "", []byte(name)
		}
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
	rec.Key, rec.Value = bytesOf(in.Key, in.KeyBase64), bytesOf(in.Value, in.ValueBase64)
	if in.Timestamp != nil {
		rec.Timestamp = time.UnixMilli(*in.Timestamp)
	}
	for _, h := range in.Headers {
		name := h.Key
		if h.KeyBase64 != nil {
			name = string(h.KeyBase64)
		}
		rec.Headers = append(rec.Headers, producer.Header{Key: name, Value: bytesOf(h.Value, h.ValueBase64)})
	}
	if in.Partition != nil {
		rec = rec.To(*in.Partition)
	}
	return rec, nil
}
