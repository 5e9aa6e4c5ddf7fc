package wire

import "fmt"

// BeginTag writes the number of a tagged field and returns the place where its size will go, for EndTag.
func (w *Writer) BeginTag(id uint32) int {
	w.buf = AppendUvarint(w.buf, id)
	return len(w.buf)
}

// EndTag puts the size in front of what was written since BeginTag. The size is known only now and takes 1 to 5 bytes,
// so the content moves up by that much; tagged fields are few and short, and this needs no second buffer.
func (w *Writer) EndTag(start int) {
	size := len(w.buf) - start
	n := UvarintSize(uint32(size))
	var room [5]byte
	w.buf = append(w.buf, room[:n]...)
	copy(w.buf[start+n:], w.buf[start:start+size])
	AppendUvarint(w.buf[:start], uint32(size))
}

// TagCount writes how many tagged fields follow: known of the definition, and the unknown ones.
func (w *Writer) TagCount(known int, unknown Tags) { w.Uvarint(uint32(known + len(unknown))) }

// TagsBefore writes the unknown tags below id, the known tag that comes next, and returns those left over. Kafka
// merges the two kinds by ascending number; a tag of both kinds, or one out of order, is an error.
func (w *Writer) TagsBefore(unknown Tags, id uint32) Tags {
	for i := range unknown {
		if unknown[i].ID >= id {
			if unknown[i].ID == id {
				w.fail("UnknownTags", ErrTagOrder, fmt.Sprintf("tag %d is a known field", id))
			}
			return unknown[i:]
		}
		w.tag(unknown, i)
	}
	return nil
}

// Tags writes unknown tags, the last part of a struct.
func (w *Writer) Tags(unknown Tags) {
	for i := range unknown {
		w.tag(unknown, i)
	}
}

func (w *Writer) tag(unknown Tags, i int) {
	t := &unknown[i]
	if i > 0 && unknown[i-1].ID >= t.ID {
		w.fail("UnknownTags", ErrTagOrder, fmt.Sprintf("tag %d behind tag %d", t.ID, unknown[i-1].ID))
	}
	w.buf = AppendUvarint(w.buf, t.ID)
	w.buf = AppendUvarint(w.buf, uint32(len(t.Data)))
	w.buf = append(w.buf, t.Data...)
}

// NoTags is called in versions that cannot carry tagged fields: unknown ones are an error then, as in Kafka.
func (w *Writer) NoTags(unknown Tags) {
	if len(unknown) > 0 {
		w.fail("UnknownTags", ErrUnsupportedVersion, "this version does not have tagged fields")
	}
}
