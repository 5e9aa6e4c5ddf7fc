package image

import (
	"testing"

	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// FuzzMetadataRecord: whatever stands in a metadata log is applied or refused; an image that came of it can be written to
// a checkpoint and read back.
func FuzzMetadataRecord(f *testing.F) {
	base, _ := apply(f, Empty(), topicRecord(1), partitionRecord(1, 0), configRecord("topic-1", "retention.ms", "5"),
		(&Broker{ID: 1, Epoch: 1}).Record(MetadataVersionLatest))
	for r := range base.Records() {
		b, err := r.AppendValue(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for key := range int16(30) {
		if rec := logrecord.NewMetadataRecord(key); rec != nil {
			_, version := rec.Versions()
			if b, err := (Record{rec, version}).AppendValue(nil); err == nil {
				f.Add(b)
			}
		}
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		r, err := ParseRecord(value)
		if err != nil {
			return
		}
		d := NewDelta(base)
		if d.Apply(10, 1, r) != nil {
			return
		}
		img := d.Image()
		want, err := img.Hash()
		if err != nil {
			t.Skip(err) // a level of metadata.version that cannot hold what other records said
		}
		again := NewDelta(Empty())
		for rec := range img.Records() {
			if err := again.Apply(10, 1, rec); err != nil {
				t.Fatalf("checkpoint of %T does not load: %v", r.Record, err)
			}
		}
		if got, _ := again.Image().Hash(); got != want {
			t.Fatalf("%T: image %x comes back as %x", r.Record, want, got)
		}
	})
}
