package wire

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
)

// UUID is a topic id, directory id or incarnation id: sixteen bytes, as on the wire.
type UUID [16]byte

// Reserved ids (KIP-516, KIP-858): the zero id says "none" or "unassigned".
var (
	ZeroUUID = UUID{}
	// OneUUID is the id of the metadata topic, and of lost directories (there its meaning is LOST_DIR).
	OneUUID = UUID{15: 1}
	// PendingDirUUID stands for a directory that is being migrated.
	PendingDirUUID = UUID{15: 2}
)

// String is Kafka's text form: 22 characters of URL-safe base64 without padding.
func (u UUID) String() string { return base64.RawURLEncoding.EncodeToString(u[:]) }

// IsZero reports whether u is the zero id.
func (u UUID) IsZero() bool { return u == UUID{} }

// Compare orders as Kafka does: two signed 64 bit numbers, the first one first.
func (u UUID) Compare(v UUID) int {
	if c := cmp.Compare(int64(binary.BigEndian.Uint64(u[:8])), int64(binary.BigEndian.Uint64(v[:8]))); c != 0 {
		return c
	}
	return cmp.Compare(int64(binary.BigEndian.Uint64(u[8:])), int64(binary.BigEndian.Uint64(v[8:])))
}

// ParseUUID reads the text form. Like Kafka it is lenient about padding and about spare bits of the last character.
func ParseUUID(s string) (UUID, error) {
	if len(s) > 24 {
		return UUID{}, fmt.Errorf("wire: uuid %q has %d characters, 22 of URL-safe base64 are expected", s, len(s))
	}
	text := s
	for len(text) > 0 && text[len(text)-1] == '=' {
		text = text[:len(text)-1]
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return UUID{}, fmt.Errorf("wire: uuid %q: %w", s, err)
	}
	if len(b) != len(UUID{}) {
		return UUID{}, fmt.Errorf("wire: uuid %q holds %d bytes, %d are expected", s, len(b), len(UUID{}))
	}
	return UUID(b), nil
}
