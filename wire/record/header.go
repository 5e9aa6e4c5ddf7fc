package record

import (
	"encoding/binary"
	"math"

	"github.com/ottla-kafka/ottla/wire/compress"
)

// A batch of magic 2 (KIP-98, Kafka 0.11). All integers are big endian.
//
//	 0 int64  base offset            outside the CRC: the broker stamps it without touching the rest
//	 8 int32  length                 bytes that follow this field
//	12 int32  partition leader epoch outside the CRC
//	16 int8   magic                  2
//	17 uint32 CRC-32C                of everything from byte 21 on
//	21 int16  attributes             bits 0-2 codec, 3 LogAppendTime, 4 transactional, 5 control, 6 delete horizon
//	23 int32  last offset delta      last offset = base offset + this, also when compaction removed records
//	27 int64  base timestamp         or the delete horizon, see Attributes bit 6
//	35 int64  max timestamp
//	43 int64  producer id            -1 none
//	51 int16  producer epoch         -1 none
//	53 int32  base sequence          -1 none
//	57 int32  record count
//	61        records                compressed as one piece if the codec says so
const (
	offBaseOffset = 0
	offLength     = 8
	offEpoch      = 12
	offMagic      = 16
	offCRC        = 17
	offAttributes = 21
	offLastDelta  = 23
	offBaseTime   = 27
	offMaxTime    = 35
	offProducerID = 43
	offPEpoch     = 51
	offSequence   = 53
	offCount      = 57

	// HeaderSize is the size in bytes of a magic 2 batch without its records.
	HeaderSize = 61
	// LogOverhead is the size of the base offset and length fields, which the length field does not count.
	LogOverhead = 12
	// MinRecordSize is the size of the smallest possible record: one byte for each of length, attributes, timestamp
	// delta, offset delta, key length, value length and header count.
	MinRecordSize = 7
)

// Bits of the attributes field of a batch.
const (
	AttrCodecMask     = 0x07
	AttrLogAppendTime = 0x08
	AttrTransactional = 0x10
	AttrControl       = 0x20
	AttrDeleteHorizon = 0x40
)

// What the fields of a batch hold when there is nothing to say.
const (
	NoTimestamp     int64 = -1
	NoProducerID    int64 = -1
	NoProducerEpoch int16 = -1
	NoSequence      int32 = -1
	NoLeaderEpoch   int32 = -1
)

// BatchHeader is the fixed part of a magic 2 batch. For magic 0 and 1 ParseEntry fills in what those formats know.
type BatchHeader struct {
	BaseOffset           int64
	Length               int32 // bytes after the length field; the whole batch has LogOverhead more
	PartitionLeaderEpoch int32
	Magic                int8
	CRC                  uint32 // CRC-32C; magic 0 and 1: CRC-32
	Attributes           int16
	LastOffsetDelta      int32
	BaseTimestamp        int64 // ms; the delete horizon if HasDeleteHorizon
	MaxTimestamp         int64 // ms
	ProducerID           int64
	ProducerEpoch        int16
	BaseSequence         int32
	Count                int32 // records in the batch; fewer than offsets after compaction
}

// ParseHeader reads the header of a magic 2 batch, for which b must hold at least HeaderSize bytes (else ErrPartial).
// It checks magic and that the length can hold a header, not the checksum; the records need not be there yet.
func ParseHeader(b []byte) (BatchHeader, error) {
	if len(b) < HeaderSize {
		return BatchHeader{}, ErrPartial
	}
	h := readHeader(b)
	if h.Magic != 2 {
		return h, corruptf("magic %d at offset %d where 2 is expected", h.Magic, h.BaseOffset)
	}
	if h.Length < HeaderSize-LogOverhead {
		return h, corruptf("length %d at offset %d is less than the %d bytes of a header", h.Length, h.BaseOffset,
			HeaderSize-LogOverhead)
	}
	return h, nil
}

// readHeader reads the fields without any check. b holds at least HeaderSize bytes.
func readHeader(b []byte) BatchHeader {
	_ = b[HeaderSize-1]
	return BatchHeader{
		BaseOffset:           int64(binary.BigEndian.Uint64(b[offBaseOffset:])),
		Length:               int32(binary.BigEndian.Uint32(b[offLength:])),
		PartitionLeaderEpoch: int32(binary.BigEndian.Uint32(b[offEpoch:])),
		Magic:                int8(b[offMagic]),
		CRC:                  binary.BigEndian.Uint32(b[offCRC:]),
		Attributes:           int16(binary.BigEndian.Uint16(b[offAttributes:])),
		LastOffsetDelta:      int32(binary.BigEndian.Uint32(b[offLastDelta:])),
		BaseTimestamp:        int64(binary.BigEndian.Uint64(b[offBaseTime:])),
		MaxTimestamp:         int64(binary.BigEndian.Uint64(b[offMaxTime:])),
		ProducerID:           int64(binary.BigEndian.Uint64(b[offProducerID:])),
		ProducerEpoch:        int16(binary.BigEndian.Uint16(b[offPEpoch:])),
		BaseSequence:         int32(binary.BigEndian.Uint32(b[offSequence:])),
		Count:                int32(binary.BigEndian.Uint32(b[offCount:])),
	}
}

// Put writes the header, CRC field included, into the first HeaderSize bytes of b. The checksum is not computed:
// call Checksum afterwards, when the records are in place.
func (h *BatchHeader) Put(b []byte) {
	_ = b[HeaderSize-1]
	binary.BigEndian.PutUint64(b[offBaseOffset:], uint64(h.BaseOffset))
	binary.BigEndian.PutUint32(b[offLength:], uint32(h.Length))
	binary.BigEndian.PutUint32(b[offEpoch:], uint32(h.PartitionLeaderEpoch))
	b[offMagic] = byte(h.Magic)
	binary.BigEndian.PutUint32(b[offCRC:], h.CRC)
	binary.BigEndian.PutUint16(b[offAttributes:], uint16(h.Attributes))
	binary.BigEndian.PutUint32(b[offLastDelta:], uint32(h.LastOffsetDelta))
	binary.BigEndian.PutUint64(b[offBaseTime:], uint64(h.BaseTimestamp))
	binary.BigEndian.PutUint64(b[offMaxTime:], uint64(h.MaxTimestamp))
	binary.BigEndian.PutUint64(b[offProducerID:], uint64(h.ProducerID))
	binary.BigEndian.PutUint16(b[offPEpoch:], uint16(h.ProducerEpoch))
	binary.BigEndian.PutUint32(b[offSequence:], uint32(h.BaseSequence))
	binary.BigEndian.PutUint32(b[offCount:], uint32(h.Count))
}

// Size returns the size of the whole batch in bytes, header included.
func (h *BatchHeader) Size() int { return LogOverhead + int(h.Length) }

// Codec returns how the records are compressed. It may be a value that is not Valid: 5, 6 and 7 mean nothing yet.
func (h *BatchHeader) Codec() compress.Codec { return compress.Codec(h.Attributes & AttrCodecMask) }

// LogAppendTime reports whether the broker stamped all records with MaxTimestamp (message.timestamp.type).
func (h *BatchHeader) LogAppendTime() bool { return h.Attributes&AttrLogAppendTime != 0 }

// Transactional reports whether the batch belongs to a transaction. Markers do too.
func (h *BatchHeader) Transactional() bool { return h.Attributes&AttrTransactional != 0 }

// Control reports whether the batch holds a control record, which no consumer may see.
func (h *BatchHeader) Control() bool { return h.Attributes&AttrControl != 0 }

// HasProducer reports whether the batch comes from an idempotent producer.
func (h *BatchHeader) HasProducer() bool { return h.ProducerID > NoProducerID }

// DeleteHorizon returns the time in ms from which on compaction may drop the batch's tombstones or marker (KIP-534).
func (h *BatchHeader) DeleteHorizon() (ms int64, ok bool) {
	if h.Attributes&AttrDeleteHorizon == 0 {
		return NoTimestamp, false
	}
	return h.BaseTimestamp, true
}

// LastOffset returns the offset of the last record that the batch ever had. The next batch starts behind it.
func (h *BatchHeader) LastOffset() int64 { return h.BaseOffset + int64(h.LastOffsetDelta) }

// NextOffset returns the offset behind the batch, which is where to fetch on.
func (h *BatchHeader) NextOffset() int64 { return h.LastOffset() + 1 }

// LastSequence returns the sequence number of the last record, NoSequence if there is none. Numbers wrap from
// 2147483647 to 0.
func (h *BatchHeader) LastSequence() int32 {
	if h.BaseSequence == NoSequence {
		return NoSequence
	}
	return AddSequence(h.BaseSequence, h.LastOffsetDelta)
}

// NextSequence returns the sequence number that the producer's next batch must have, NoSequence if there is none.
func (h *BatchHeader) NextSequence() int32 {
	if h.BaseSequence == NoSequence {
		return NoSequence
	}
	return AddSequence(h.LastSequence(), 1)
}

// AddSequence returns the sequence number n records after seq: 2147483647 is followed by 0. Both are not negative.
func AddSequence(seq, n int32) int32 { return int32((uint32(seq) + uint32(n)) & math.MaxInt32) }
