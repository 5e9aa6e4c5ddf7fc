package record

import (
	"iter"

	"github.com/ottla-kafka/ottla/wire/compress"
)

// Record is one record of a batch that was read. Key, Value and the headers' values alias the batch's bytes, or the
// buffer into which the batch was decompressed; nil is null.
type Record struct {
	Offset     int64
	Timestamp  int64 // ms; NoTimestamp in magic 0
	Key, Value []byte
	Headers    Headers
	Attributes int8 // the record's own in magic 2: unused so far
}

// ReadOptions say how a batch is opened. The zero value checks the checksum and reads uncompressed batches only.
type ReadOptions struct {
	// Decompressor is needed for compressed batches; without it they end in ErrUnsupported.
	Decompressor *compress.Decompressor
	// Limit is how large the decompressed records may be, in bytes; 0 means compress.ClientLimit.
	Limit int
	// Buffer receives the decompressed records, behind the bytes that it holds. The records alias it, so it may be used
	// again only when they are no longer needed. nil: memory of their own, just large enough.
	Buffer []byte
	// SkipCRC leaves out the checksum (check.crcs=false, or Validate was called before).
	SkipCRC bool
}

// Iterator reads the records of one batch of any magic, one after the other, without allocating. It is a value, made
// by Open or Reset, for one goroutine.
type Iterator struct {
	data   []byte // the records not yet read, decompressed
	pos    int
	left   int32
	count  int32
	header BatchHeader
	stamp  bool // all records have header.MaxTimestamp
	legacy bool
	base   int64 // legacy: added to the offsets inside a compressed message
	inner  bool  // legacy: data is the content of a compressed message
	plain  []byte
	err    error
}

// Open starts reading batch, which must be exactly one batch as cut off by Next. It checks the checksum (unless told not
// to), decompresses, and checks the record count against the bytes there are. The error says what is wrong and wraps
// ErrCorrupt, ErrInvalid, ErrUnsupported, compress.ErrCorrupt or compress.ErrTooLarge.
func Open(batch []byte, o ReadOptions) (Iterator, error) {
	var it Iterator
	err := it.Reset(batch, o)
	return it, err
}

// Reset is Open on an Iterator that exists.
func (it *Iterator) Reset(batch []byte, o ReadOptions) error {
	*it = Iterator{}
	if it.err = it.open(batch, o); it.err != nil {
		it.left = 0
	}
	return it.err
}

func (it *Iterator) open(batch []byte, o ReadOptions) error {
	if o.SkipCRC {
		if size, _, err := Peek(batch); err != nil || size != len(batch) {
			return corruptf("%d bytes are not one batch", len(batch))
		}
	} else if err := Validate(batch); err != nil {
		return err
	}
	if batch[offMagic] < 2 {
		return it.openLegacy(batch, o)
	}
	if len(batch) < HeaderSize {
		return corruptf("%d bytes are less than a header", len(batch))
	}
	it.header = readHeader(batch)
	it.stamp = it.header.LogAppendTime()
	it.count = it.header.Count
	if it.count < 0 {
		return it.fail(-1, "record count %d", it.count)
	}
	if it.count == 0 {
		return nil // what compaction leaves of a batch that only keeps its sequence numbers; Kafka looks no further
	}
	it.data = batch[HeaderSize:]
	if codec := it.header.Codec(); codec != compress.None {
		plain, err := decompress(codec, it.data, it.header.Magic, o)
		if err != nil {
			return &RecordError{Offset: it.header.BaseOffset, Index: -1, Err: err}
		}
		it.plain, it.data = plain, plain[len(o.Buffer):]
	}
	if int(it.count) > len(it.data)/MinRecordSize {
		return it.fail(-1, "record count %d, but %d bytes of records hold %d at most", it.count, len(it.data),
			len(it.data)/MinRecordSize)
	}
	it.left = it.count
	return nil
}

func decompress(codec compress.Codec, src []byte, magic int8, o ReadOptions) ([]byte, error) {
	switch {
	case !codec.Valid():
		return nil, unsupportedf("%s in attributes", codec)
	case codec == compress.Zstd && magic < 2:
		return nil, unsupportedf("zstd in a message of magic %d", magic)
	case o.Decompressor == nil:
		return nil, unsupportedf("%s: opened without a decompressor", codec)
	case codec == compress.Lz4 && magic == 0:
		return o.Decompressor.AppendLegacyLz4(o.Buffer, src, o.Limit)
	default:
		return o.Decompressor.Append(o.Buffer, codec, src, o.Limit)
	}
}

// Header returns the batch's header. For magic 0 and 1 it holds what those formats know; BaseOffset and Count are then
// those of the records inside.
func (it *Iterator) Header() BatchHeader { return it.header }

// Err returns what stopped the iteration early, nil if all records were read or some are left.
func (it *Iterator) Err() error { return it.err }

// Decompressed returns the buffer with the decompressed records (ReadOptions.Buffer made longer), nil for an uncompressed
// batch. Its capacity is what the records keep alive.
func (it *Iterator) Decompressed() []byte { return it.plain }

// Left returns how many records are still to be read.
func (it *Iterator) Left() int { return int(it.left) }

// Next returns the next record; false means that there is none or that Err says why not.
func (it *Iterator) Next() (r Record, ok bool) {
	ok = it.Into(&r)
	return r, ok
}

// All yields the records that are left. Look at Err afterwards.
func (it *Iterator) All() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		var r Record
		for it.Into(&r) && yield(r) {
		}
	}
}

// Into is Next without copying the record: every field of r is overwritten. After false r is not to be used.
//
// A record of magic 2, all numbers zig-zag varints:
//
//	length (of what follows) · attributes (1 byte) · timestamp delta (64 bit) · offset delta
//	· key length, -1 null · key · value length · value · header count · { name length, name, value length, value }*
func (it *Iterator) Into(r *Record) bool {
	if it.left <= 0 {
		return false
	}
	if it.legacy {
		return it.legacyInto(r)
	}
	d, i := it.data, it.pos
	// Nearly every number here fits one byte; each is tried in place before the call. The first index check of d[i]
	// cannot fail for a sound batch: there are records left.
	var length, n int32
	if i < len(d) && d[i] < 0x80 {
		length = int32(d[i]>>1) ^ -int32(d[i]&1)
		i++
	} else if length, i = readVarint(d, i); i < 0 {
		return it.bad("length is not a varint")
	}
	if int(length) > len(d)-i || length < MinRecordSize-1 {
		return it.bad("length %d, %d bytes are left", length, len(d)-i)
	}
	d = d[: i+int(length) : i+int(length)] // no field can reach beyond the record
	r.Attributes = int8(d[i])
	i++

	var delta int64
	if c := d[i]; c < 0x80 {
		delta = int64(c>>1) ^ -int64(c&1)
		i++
	} else if delta, i = readVarlong(d, i); i < 0 {
		return it.bad("timestamp delta is not a varint")
	}
	if it.stamp {
		r.Timestamp = it.header.MaxTimestamp
	} else {
		r.Timestamp = it.header.BaseTimestamp + delta
	}
	if i < len(d) && d[i] < 0x80 {
		n = int32(d[i]>>1) ^ -int32(d[i]&1)
		i++
	} else if n, i = readVarint(d, i); i < 0 {
		return it.bad("offset delta is not a varint")
	}
	r.Offset = it.header.BaseOffset + int64(n)
	if i = it.fieldsInto(r, d, i); i < 0 {
		return false
	}
	it.pos = i
	it.left--
	if it.left == 0 && i != len(it.data) {
		return it.bad("%d bytes behind the last record", len(it.data)-i)
	}
	return true
}

// fieldsInto reads key, value and headers at d[i:], which must fill d exactly. It returns the end, or -1 after bad.
func (it *Iterator) fieldsInto(r *Record, d []byte, i int) int {
	var n int32
	if i < len(d) && d[i] < 0x80 {
		n = int32(d[i]>>1) ^ -int32(d[i]&1)
		i++
	} else if n, i = readVarint(d, i); i < 0 {
		it.bad("key length is not a varint")
		return -1
	}
	if n >= 0 {
		if int(n) > len(d)-i {
			it.bad("key length %d, %d bytes are left", n, len(d)-i)
			return -1
		}
		r.Key = d[i : i+int(n) : i+int(n)]
		i += int(n)
	} else {
		r.Key = nil
	}
	if i < len(d) && d[i] < 0x80 {
		n = int32(d[i]>>1) ^ -int32(d[i]&1)
		i++
	} else if n, i = readVarint(d, i); i < 0 {
		it.bad("value length is not a varint")
		return -1
	}
	if n >= 0 {
		if int(n) > len(d)-i {
			it.bad("value length %d, %d bytes are left", n, len(d)-i)
			return -1
		}
		r.Value = d[i : i+int(n) : i+int(n)]
		i += int(n)
	} else {
		r.Value = nil
	}
	// No headers and nothing behind them is by far the most frequent end of a record.
	if i == len(d)-1 && d[i] == 0 {
		r.Headers = Headers{}
		return len(d)
	}
	if !it.headersInto(r, d, i) {
		return -1
	}
	return len(d)
}

// headersInto checks the headers at d[i:], which must fill d exactly, and leaves them encoded.
func (it *Iterator) headersInto(r *Record, d []byte, i int) bool {
	count, i := readVarint(d, i)
	if i < 0 {
		return it.bad("header count is not a varint")
	}
	// A header takes two bytes at least: both lengths.
	if count < 0 || int(count) > (len(d)-i)/2 {
		return it.bad("header count %d, %d bytes are left", count, len(d)-i)
	}
	raw := d[i:]
	end := 0
	for h := range count {
		if _, _, end = nextHeader(raw, end); end < 0 {
			return it.bad("header %d of %d is malformed", h, count)
		}
	}
	if end != len(raw) {
		return it.bad("%d bytes behind the last field", len(raw)-end)
	}
	r.Headers = Headers{raw: raw, count: count}
	return true
}

// bad ends the iteration at the record being read.
func (it *Iterator) bad(format string, args ...any) bool {
	index := it.count - it.left
	if it.left == 0 {
		index--
	}
	it.left = 0
	it.err = it.fail(index, format, args...)
	return false
}

func (it *Iterator) fail(index int32, format string, args ...any) error {
	return &RecordError{Offset: it.header.BaseOffset, Index: index, Err: invalidf(format, args...)}
}
