package record

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/ottla-kafka/ottla/wire/compress"
)

// Stamp is what a producer writes into the header of a batch when it is sealed: who sent it, and as what.
// Zero is a valid producer id, so start from NoProducer.
type Stamp struct {
	ProducerID    int64
	ProducerEpoch int16
	BaseSequence  int32
	Transactional bool
	Control       bool
}

// NoProducer returns the stamp of a batch without idempotence: id, epoch and sequence are -1.
func NoProducer() Stamp {
	return Stamp{ProducerID: NoProducerID, ProducerEpoch: NoProducerEpoch, BaseSequence: NoSequence}
}

func (s Stamp) attributes() (a int16) {
	if s.Transactional {
		a |= AttrTransactional
	}
	if s.Control {
		a |= AttrControl
	}
	return a
}

// Builder writes one magic 2 batch. Each record is encoded straight behind the one before it, in one buffer, and nothing
// else is kept: no allocation per record as long as the buffer has room. The zero value is ready after Reset. A Builder
// belongs to one goroutine at a time.
//
//	b.Reset(buf) ; b.TryAppend(...)* ; batch := b.Seal(stamp)          // or SealCompressed
type Builder struct {
	buf      []byte
	start    int // where the batch begins in buf
	baseTime int64
	maxTime  int64
	next     int64 // offset delta of the next record
	count    int32
	attrs    int16
	fixed    bool // baseTime was given by StartAt
}

// NewBuilder returns a Builder that appends a batch to dst, see Reset.
func NewBuilder(dst []byte) *Builder {
	b := new(Builder)
	b.Reset(dst)
	return b
}

// Reset starts a new batch behind the bytes of dst, which stay as they are; the buffer now belongs to the Builder until
// Seal. With cap(dst)-len(dst) as large as the batch gets, nothing is ever copied or allocated.
func (b *Builder) Reset(dst []byte) {
	n := len(dst)
	*b = Builder{buf: append(dst, make([]byte, HeaderSize)...), start: n, maxTime: NoTimestamp, baseTime: NoTimestamp}
}

// Release gives the buffer back without sealing, for pools, and leaves the Builder empty.
func (b *Builder) Release() []byte {
	buf := b.buf
	*b = Builder{}
	return buf
}

// Room returns how many more bytes fit into the buffer without growing it.
func (b *Builder) Room() int { return cap(b.buf) - len(b.buf) }

// MoveTo copies the batch so far behind the bytes of dst, goes on there, and gives the old buffer back, so that a caller
// with a pool of buffers decides where the room comes from. dst should have the capacity for what is still to come.
func (b *Builder) MoveTo(dst []byte) (old []byte) {
	old = b.buf
	n := len(dst)
	b.buf = append(dst, b.buf[b.start:]...)
	b.start = n
	return old
}

// StartAt fixes the base timestamp (ms) before the first record; by default it is the first record's timestamp.
func (b *Builder) StartAt(baseTimestamp int64) { b.baseTime, b.fixed = baseTimestamp, true }

// SetDeleteHorizon marks the batch as compaction does (KIP-534): the base timestamp field holds the horizon (ms), and
// the records' timestamps are counted from it. Call it before the first record.
func (b *Builder) SetDeleteHorizon(ms int64) {
	b.StartAt(ms)
	b.attrs |= AttrDeleteHorizon
}

// EndAt makes the batch end at an offset delta at or beyond its last record's: a compacted batch keeps the range of
// offsets that it had. Call it after the last record.
func (b *Builder) EndAt(lastOffsetDelta int32) { b.next = int64(lastOffsetDelta) + 1 }

// Count returns the number of records appended.
func (b *Builder) Count() int32 { return b.count }

// Size returns the exact size in bytes of the batch as it would be sealed uncompressed now.
func (b *Builder) Size() int { return len(b.buf) - b.start }

// MaxTimestamp returns the largest timestamp (ms) of the records, NoTimestamp if there are none.
func (b *Builder) MaxTimestamp() int64 { return b.maxTime }

// BaseTimestamp returns the timestamp (ms) from which the records' are counted, NoTimestamp if there are no records.
func (b *Builder) BaseTimestamp() int64 { return b.baseTime }

// SizeOf returns by how many bytes Append would lengthen the batch.
func (b *Builder) SizeOf(timestamp int64, key, value []byte, headers []Header) int {
	base := b.baseTime
	if b.count == 0 && !b.fixed {
		base = timestamp
	}
	body := bodySize(timestamp-base, b.next, key, value, headers)
	return uvarintLen(zigzag(int64(body))) + body
}

// Append adds a record at the next offset. The timestamp is in ms; a nil key or value is null, an empty one is not.
// The arguments are copied. Call Size or SizeOf, or use TryAppend, to keep a batch within a limit; a batch beyond 2 GiB
// panics.
func (b *Builder) Append(timestamp int64, key, value []byte, headers []Header) {
	b.append(timestamp, b.next, 0, key, value, headers, math.MaxInt32)
}

// TryAppend is Append unless the batch would then be larger than limit bytes; it returns false and leaves the batch as it
// is in that case. With limit <= the buffer's room there is no allocation.
func (b *Builder) TryAppend(limit int, timestamp int64, key, value []byte, headers []Header) bool {
	return b.append(timestamp, b.next, 0, key, value, headers, limit)
}

// AppendAt is Append with a given offset delta, not below the last one's successor: a log that was compacted has gaps.
// attributes are the record's own, which are unused so far and 0.
func (b *Builder) AppendAt(offsetDelta int32, attributes int8, timestamp int64, key, value []byte, headers []Header) {
	if int64(offsetDelta) < b.next {
		panic(fmt.Sprintf("record: offset delta %d after %d", offsetDelta, b.next-1))
	}
	b.append(timestamp, int64(offsetDelta), attributes, key, value, headers, math.MaxInt32)
}

func (b *Builder) append(timestamp, offsetDelta int64, attrs int8, key, value []byte, headers []Header, limit int) bool {
	base := b.baseTime
	if b.count == 0 && !b.fixed {
		base = timestamp
	}
	timeDelta := zigzag(timestamp - base)
	body := bodySize(timestamp-base, offsetDelta, key, value, headers)
	total := uvarintLen(zigzag(int64(body))) + body
	n := len(b.buf)
	if n-b.start+total > limit {
		if limit == math.MaxInt32 {
			panic("record: batch larger than 2 GiB")
		}
		return false
	}
	if cap(b.buf)-n < total {
		b.buf = grow(b.buf, total)
	}
	b.buf = b.buf[:n+total]
	p := b.buf[n : n+total]

	i := putUvarint(p, 0, zigzag(int64(body)))
	p[i] = byte(attrs)
	i = putUvarint(p, i+1, timeDelta)
	i = putUvarint(p, i, zigzag(offsetDelta))
	i = putBytes(p, i, key)
	i = putBytes(p, i, value)
	if len(headers) == 0 {
		p[i] = 0
	} else {
		putHeaders(p, i, headers)
	}

	if b.count == 0 || timestamp > b.maxTime {
		b.maxTime = timestamp
	}
	b.baseTime = base
	b.count++
	b.next = offsetDelta + 1
	return true
}

// bodySize is the value of a record's length field: everything behind it.
func bodySize(timeDelta, offsetDelta int64, key, value []byte, headers []Header) int {
	n := 1 + varintLen(timeDelta) + varintLen(offsetDelta) + bytesSize(key) + bytesSize(value)
	if len(headers) == 0 {
		return n + 1
	}
	return n + headersSize(headers)
}

func bytesSize(p []byte) int {
	if p == nil {
		return 1
	}
	return uvarintLen(uint64(len(p))<<1) + len(p)
}

func putBytes(dst []byte, i int, p []byte) int {
	if p == nil {
		dst[i] = 1 // zig-zag of -1
		return i + 1
	}
	i = putUvarint(dst, i, uint64(len(p))<<1)
	return i + copy(dst[i:], p)
}

func headersSize(headers []Header) int {
	n := varintLen(int64(len(headers)))
	for i := range headers {
		n += uvarintLen(uint64(len(headers[i].Key))<<1) + len(headers[i].Key) + bytesSize(headers[i].Value)
	}
	return n
}

func putHeaders(dst []byte, i int, headers []Header) {
	i = putUvarint(dst, i, zigzag(int64(len(headers))))
	for h := range headers {
		i = putUvarint(dst, i, uint64(len(headers[h].Key))<<1)
		i += copy(dst[i:], headers[h].Key)
		i = putBytes(dst, i, headers[h].Value)
	}
}

// grow returns buf with room for n more bytes, at least doubled so that appending stays cheap.
func grow(buf []byte, n int) []byte {
	bigger := make([]byte, len(buf), max(2*cap(buf), len(buf)+n, 1024))
	copy(bigger, buf)
	return bigger
}

// Seal writes the header and returns the batch, uncompressed, with base offset 0 and leader epoch -1 as a producer sends
// it (PatchBase sets them). The bytes are the Builder's own buffer: Release hands over the buffer itself. Sealing again
// with another stamp is allowed, as is Reseal on the bytes.
func (b *Builder) Seal(s Stamp) []byte {
	batch := b.buf[b.start:len(b.buf):len(b.buf)]
	b.putHeader(batch, s, compress.None)
	return batch
}

// SealCompressed appends the whole batch to dst, its records compressed by c, and returns the longer dst. The Builder's
// buffer is only read. A batch that compression makes larger is compressed all the same, as Kafka does. If c is nil or
// its codec is None the records are copied as they are.
func (b *Builder) SealCompressed(dst []byte, s Stamp, c *compress.Compressor) []byte {
	n := len(dst)
	codec := compress.None
	if c != nil {
		codec = c.Codec()
	}
	dst = append(dst, b.buf[b.start:b.start+HeaderSize]...)
	if records := b.buf[b.start+HeaderSize:]; codec == compress.None {
		dst = append(dst, records...)
	} else {
		dst = c.Append(dst, records)
	}
	b.putHeader(dst[n:], s, codec)
	return dst
}

func (b *Builder) putHeader(batch []byte, s Stamp, codec compress.Codec) {
	h := BatchHeader{
		Length:               int32(len(batch) - LogOverhead),
		PartitionLeaderEpoch: NoLeaderEpoch,
		Magic:                2,
		Attributes:           b.attrs | int16(codec) | s.attributes(),
		LastOffsetDelta:      int32(b.next - 1),
		BaseTimestamp:        b.baseTime,
		MaxTimestamp:         b.maxTime,
		ProducerID:           s.ProducerID,
		ProducerEpoch:        s.ProducerEpoch,
		BaseSequence:         s.BaseSequence,
		Count:                b.count,
	}
	h.Put(batch)
	binary.BigEndian.PutUint32(batch[offCRC:], Checksum(batch))
}
