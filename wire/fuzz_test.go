package wire

import (
	"bytes"
	"testing"
)

func FuzzVarint(f *testing.F) {
	f.Add([]byte{0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Add([]byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		check := func(kind string, read func(*Reader) uint64, write func(uint64) []byte, size func(uint64) int) {
			r := NewReader(b)
			v := read(r)
			if r.Err() != nil {
				if r.Remaining() != 0 || v != 0 {
					t.Fatalf("%s: %d with %d bytes left after %v", kind, v, r.Remaining(), r.Err())
				}
				return
			}
			out := write(v)
			if len(out) != size(v) || len(out) > r.Offset() {
				t.Fatalf("%s: %d takes %d bytes, size says %d, %d were read", kind, v, len(out), size(v), r.Offset())
			}
			if again := read(NewReader(out)); again != v {
				t.Fatalf("%s: %d read again is %d", kind, v, again)
			}
		}
		check("uvarint", func(r *Reader) uint64 { return uint64(r.Uvarint()) },
			func(v uint64) []byte { return AppendUvarint(nil, uint32(v)) }, func(v uint64) int { return UvarintSize(uint32(v)) })
		check("uvarlong", (*Reader).Uvarlong, func(v uint64) []byte { return AppendUvarlong(nil, v) }, UvarlongSize)
		check("varint", func(r *Reader) uint64 { return uint64(uint32(r.Varint())) },
			func(v uint64) []byte { return AppendVarint(nil, int32(uint32(v))) }, func(v uint64) int { return VarintSize(int32(uint32(v))) })
		check("varlong", func(r *Reader) uint64 { return uint64(r.Varlong()) },
			func(v uint64) []byte { return AppendVarlong(nil, int64(v)) }, func(v uint64) int { return VarlongSize(int64(v)) })
	})
}

func FuzzTaggedFields(f *testing.F) {
	f.Add([]byte{0})
	f.Add([]byte{2, 5, 1, 'a', 9, 0})
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(b)
		tags := r.UnknownTags(nil)
		if r.Err() != nil {
			return
		}
		w := NewWriter(nil)
		w.TagCount(0, tags)
		w.Tags(tags)
		out, err := w.Result("tags", 0)
		if err != nil {
			t.Fatalf("tags that were read cannot be written: %v", err)
		}
		if len(out) > r.Offset() {
			t.Fatalf("%d bytes became %d", r.Offset(), len(out))
		}
		again := NewReader(out).UnknownTags(nil)
		if len(again) != len(tags) {
			t.Fatalf("%d tags became %d", len(tags), len(again))
		}
		for i := range tags {
			if tags[i].ID != again[i].ID || !bytes.Equal(tags[i].Data, again[i].Data) {
				t.Fatalf("tag %d: %v became %v", i, tags[i], again[i])
			}
		}
	})
}

func FuzzRequestHeader(f *testing.F) {
	client := "client"
	f.Add(AppendRequestHeader(nil, KeyProduce, 3, 7, &client))
	f.Add(AppendRequestHeader(nil, KeyApiVersions, 4, 7, nil))
	f.Add(AppendRequestHeader(nil, KeyFetch, 18, -1, &client))
	f.Add([]byte{0, 18, 0x7f, 0xff, 0, 0, 0, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(b)
		h, err := ReadRequestHeader(r)
		if err != nil {
			return
		}
		request, response := HeaderVersions(h.Key, h.Version)
		if h.Key == KeyApiVersions && response != 0 {
			t.Fatalf("ApiVersions version %d has response header %d", h.Version, response)
		}
		if request < 2 && h.Tags != nil {
			t.Fatal("tags in an old header")
		}
		out := AppendRequestHeader(nil, h.Key, h.Version, h.CorrelationID, h.ClientID)
		if len(out) == r.Offset() && !bytes.Equal(out, b[:r.Offset()]) { // longer ones have tags or a padded varint
			t.Fatalf("%x became %x", b[:r.Offset()], out)
		}
		again, err := ReadRequestHeader(NewReader(out))
		if err != nil || again.Key != h.Key || again.Version != h.Version || again.CorrelationID != h.CorrelationID {
			t.Fatalf("%+v became %+v: %v", h, again, err)
		}
	})
}
