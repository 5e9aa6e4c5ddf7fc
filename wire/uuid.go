package wire

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
)

// UUID is a topic id, directory id or incarnation id: sixteen bytes, as on the wire.
type UUID [16]byte

// Ids with a meaning of their own (KIP-516, KIP-858); the zero UUID says "none".
var (
	MetadataTopicID = UUID{15: 1} // of __cluster_metadata
	DirUnassigned   = UUID{}      // the replica has not been placed in a directory yet
	DirLost         = UUID{15: 1} // the directory is offline, and which one it was is not known
	DirMigrating    = UUID{15: 2} // the replica is in some directory, from before directories had ids
)

// IsReserved reports whether u is one of the two ids that are no topic of a user: the zero id and MetadataTopicID.
func (u UUID) IsReserved() bool { return u == UUID{} || u == MetadataTopicID }

// RandomUUID makes an id of random bytes from r, crypto/rand.Reader or a seeded source: a version 4 UUID whose text does
// not start with a dash, which command lines would take for an option.
func RandomUUID(r io.Reader) (UUID, error) {
	for {
		var u UUID
		if _, err := io.ReadFull(r, u[:]); err != nil {
			return UUID{}, err
		}
		u[6] = u[6]&0x0f | 0x40
		u[8] = u[8]&0x3f | 0x80
		if u.String()[0] != '-' {
			return u, nil
		}
	}
}

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
