package record_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/internal/oracle"
	"github.com/ottla-kafka/ottla/wire/record"
)

// fuzzLimit keeps decompression small: what is looked for are wrong turns, not volume.
const fuzzLimit = 1 << 20

func addOracleSeeds(f *testing.F) {
	for _, name := range []string{"batches/good.jsonl.gz", "batches/bad.jsonl.gz"} {
		oracle.JSONLines(f, name, func(_ int, v struct{ Hex string }) {
			if b := unhex(f, v.Hex); len(b) > 0 && len(b) < 4000 {
				f.Add(b)
			}
		})
	}
}

// FuzzRecordBatchV2 takes the bytes as they are: cutting, validating, reading and checking must agree with each other.
func FuzzRecordBatchV2(f *testing.F) {
	addOracleSeeds(f)
	d := compress.NewDecompressor()
	f.Fuzz(func(t *testing.T, b []byte) {
		for rest := b; ; {
			batch, more, err := record.Next(rest)
			if err != nil {
				if !errors.Is(err, record.ErrPartial) && !errors.Is(err, record.ErrCorrupt) {
					t.Fatalf("unexpected kind of error: %v", err)
				}
				return
			}
			if len(batch)+len(more) != len(rest) {
				t.Fatalf("%d + %d bytes out of %d", len(batch), len(more), len(rest))
			}
			rest = more
			sound := record.Validate(batch) == nil
			it, err := record.Open(batch, record.ReadOptions{Decompressor: d, Limit: fuzzLimit})
			if err == nil && !sound {
				t.Fatal("opened a batch whose checksum is wrong")
			}
			h, _ := record.ParseAny(batch)
			if sound && h.Size() != len(batch) {
				t.Fatalf("size %d of %d bytes", h.Size(), len(batch))
			}
			readOut(t, &it, err)
		}
	})
}

// readOut checks that an iterator delivers exactly its count, or an error and no more than its count.
func readOut(t *testing.T, it *record.Iterator, openErr error) {
	count, n := it.Left(), 0
	if openErr != nil && count != 0 {
		t.Fatal("records left after Open failed")
	}
	for r, ok := it.Next(); ok; r, ok = it.Next() {
		n++
		headers := 0
		for range r.Headers.All() {
			headers++
		}
		if headers != r.Headers.Len() {
			t.Fatalf("%d of %d headers", headers, r.Headers.Len())
		}
	}
	if n > count || it.Err() == nil && n != count {
		t.Fatalf("%d of %d records, error %v", n, count, it.Err())
	}
	if _, ok := it.Next(); ok {
		t.Fatal("a record after the end")
	}
}

// FuzzRecordBatchIter gets past the checksum: the bytes are a batch's attributes, count and records, framed soundly.
// What can be read is written again by a Builder and must then read the same; CheckRecords must agree.
func FuzzRecordBatchIter(f *testing.F) {
	oracle.JSONLines(f, "batches/good.jsonl.gz", func(_ int, v struct{ Hex string }) {
		b := unhex(f, v.Hex)
		if h, err := record.ParseHeader(b); err == nil && h.Size() < 4000 {
			f.Add(h.Attributes, h.Count, b[record.HeaderSize:h.Size()])
		}
	})
	d := compress.NewDecompressor()
	f.Fuzz(func(t *testing.T, attributes int16, count int32, records []byte) {
		batch := append(make([]byte, record.HeaderSize), records...)
		h := record.BatchHeader{Length: int32(len(batch) - record.LogOverhead), Magic: 2, Attributes: attributes, Count: count,
			LastOffsetDelta: count - 1, BaseTimestamp: 1_700_000_000_000, MaxTimestamp: 1_700_000_000_000}
		h.Put(batch)
		binary.BigEndian.PutUint32(batch[17:], record.Checksum(batch))
		o := record.ReadOptions{Decompressor: d, Limit: fuzzLimit}
		it, err := record.Open(batch, o)
		found, checkErr := record.CheckRecords(batch, o, record.Checks{})
		if err == nil {
			copied := it
			readOut(t, &copied, nil)
			err = copied.Err()
		}
		if (err == nil) != (checkErr == nil) {
			t.Fatalf("reading says %v, checking says %v", err, checkErr)
		}
		if err != nil {
			return
		}
		if found.Count != count {
			t.Fatalf("checked %d records of %d", found.Count, count)
		}
		writeAgain(t, it, h)
	})
}

func writeAgain(t *testing.T, it record.Iterator, h record.BatchHeader) {
	if h.LogAppendTime() || it.Left() == 0 {
		return
	}
	b := record.NewBuilder(nil)
	b.StartAt(h.BaseTimestamp)
	last := int64(-1)
	copied := it
	for r := range copied.All() {
		if r.Offset <= last {
			return // deltas that do not rise can be read, as in Kafka, but not written
		}
		last = r.Offset
		b.AppendAt(int32(r.Offset), r.Attributes, r.Timestamp, r.Key, r.Value, r.Headers.AppendTo(nil))
	}
	again, err := record.Open(b.Seal(record.NoProducer()), record.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for r := range it.All() {
		s, ok := again.Next()
		if !ok || s.Offset != r.Offset || s.Timestamp != r.Timestamp || !bytes.Equal(s.Key, r.Key) ||
			!bytes.Equal(s.Value, r.Value) || s.Headers.Len() != r.Headers.Len() {
			t.Fatalf("wrote %+v, read %+v: %v", r, s, again.Err())
		}
	}
}

// FuzzLegacyBatch frames the bytes as a message of magic 0 or 1, or as the content of a compressed one.
func FuzzLegacyBatch(f *testing.F) {
	f.Add(byte(0), byte(0), legacyMessage(0, 0, 1, []byte("k"), []byte("v"))[18:])
	f.Add(byte(1), byte(0), legacyMessage(1, 0, 1, nil, nil)[18:])
	for codec := byte(0); codec < 5; codec++ {
		f.Add(byte(2), codec, append(legacyMessage(0, 0, 1, nil, []byte("a")), legacyMessage(0, 0, 2, []byte("b"), nil)...))
		f.Add(byte(3), codec, append(legacyMessage(1, 0, 0, nil, []byte("a")), legacyMessage(1, 0, 1, []byte("b"), nil)...))
	}
	oracle.JSONLines(f, "batches/good.jsonl.gz", func(_ int, v struct{ Hex string }) {
		if b := unhex(f, v.Hex); len(b) > 18 && b[16] < 2 && len(b) < 4000 {
			f.Add(b[16], b[17], b[18:])
		}
	})
	d := compress.NewDecompressor()
	var writers [5]*compress.Compressor
	for i := range writers {
		writers[i], _ = compress.NewCompressor(compress.Codec(i), compress.DefaultLevel)
	}
	f.Fuzz(func(t *testing.T, kind, attributes byte, content []byte) {
		magic := kind & 1
		var msg []byte
		if codec := int(attributes & 7); kind&2 != 0 && codec < len(writers) {
			msg = legacyMessage(magic, attributes, 1<<40, nil, writers[codec].Append(nil, content))
		} else {
			msg = append([]byte{0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, magic, attributes}, content...)
			binary.BigEndian.PutUint32(msg[8:], uint32(len(msg)-12))
			binary.BigEndian.PutUint32(msg[12:], crc32.ChecksumIEEE(msg[16:]))
		}
		it, err := record.Open(msg, record.ReadOptions{Decompressor: d, Limit: fuzzLimit})
		readOut(t, &it, err)
		// A bit that is wrong behind the checksum means that nothing comes out.
		msg[len(msg)-1] ^= 1
		if _, err := record.Open(msg, record.ReadOptions{Decompressor: d, Limit: fuzzLimit}); err == nil {
			t.Fatal("opened a message whose checksum is wrong")
		}
	})
}

// FuzzControlRecord: keys and markers that can be parsed are written again the same, as far as version 0 goes.
func FuzzControlRecord(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1}, []byte{0, 0, 0, 0, 0, 5})
	f.Add([]byte{0, 0, 0, 6}, []byte{})
	f.Add([]byte{0, 1, 0, 0, 9}, []byte{0, 1, 0, 0, 0, 5, 9})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		version, typ, err := record.ParseControlKey(key)
		if err != nil {
			if _, err := record.ParseEndTxn(key, value); err == nil {
				t.Fatal("a marker under a key that is none")
			}
			return
		}
		if version < 0 || typ != record.ControlUnknown && !bytes.Equal(record.AppendControlKey(nil, typ)[2:], key[2:4]) {
			t.Fatalf("key %x became version %d, type %d", key, version, typ)
		}
		m, err := record.ParseEndTxn(key, value)
		if err != nil {
			return
		}
		if m.Type() != typ || !bytes.Equal(m.AppendValue(nil)[2:], value[2:6]) {
			t.Fatalf("key %x value %x became %+v", key, value, m)
		}
		batch := record.AppendEndTxn(nil, m, 5, 6, 7, 8, 9)
		h, got, err := record.ReadControls(batch)
		if err != nil || len(got) != 1 || got[0].Type != typ || !bytes.Equal(got[0].Value, m.AppendValue(nil)) ||
			!h.Control() || !h.Transactional() {
			t.Fatalf("marker %+v came back as %v: %v", m, got, err)
		}
	})
}
