package record

import "iter"

// Header is one header of a record: a name, which may occur more than once, and a value, nil for null.
type Header struct {
	Key   string
	Value []byte
}

// Headers are the headers of a record that was read, still encoded: they are decoded when someone looks, so that records
// without them cost nothing. The zero value is "no headers". The bytes alias the batch (or the buffer it was
// decompressed into). The iterator has checked them, so no method can fail.
type Headers struct {
	raw   []byte // key length, key, value length, value; Count times
	count int32
}

// Len returns the number of headers.
func (h Headers) Len() int { return int(h.count) }

// All yields name and value of each header in order. Names are copied; values alias the batch.
func (h Headers) All() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		i := 0
		for range h.count {
			var key, value []byte
			key, value, i = nextHeader(h.raw, i)
			if i < 0 || !yield(string(key), value) {
				return
			}
		}
	}
}

// Last returns the value of the last header of that name, which is the one that counts by Kafka's convention
// (Headers.lastHeader), without decoding into a slice.
func (h Headers) Last(name string) (value []byte, ok bool) {
	i := 0
	for range h.count {
		var k, v []byte
		if k, v, i = nextHeader(h.raw, i); i < 0 {
			break
		}
		if string(k) == name {
			value, ok = v, true
		}
	}
	return value, ok
}

// AppendTo decodes all headers into dst, for example to hand them to a Builder again.
func (h Headers) AppendTo(dst []Header) []Header {
	for k, v := range h.All() {
		dst = append(dst, Header{Key: k, Value: v})
	}
	return dst
}

// nextHeader decodes the header at raw[i:] and returns the index behind it, -1 if it is malformed.
func nextHeader(raw []byte, i int) (key, value []byte, next int) {
	n, i := readVarint(raw, i)
	if i < 0 || n < 0 || int(n) > len(raw)-i {
		return nil, nil, -1
	}
	key = raw[i : i+int(n) : i+int(n)]
	i += int(n)
	n, i = readVarint(raw, i)
	if i < 0 || int(n) > len(raw)-i {
		return nil, nil, -1
	}
	if n < 0 { // Kafka takes every negative length for null
		return key, nil, i
	}
	return key, raw[i : i+int(n) : i+int(n)], i + int(n)
}
