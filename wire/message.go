package wire

// Message is one generated request, response, header, record or data structure. Messages hold no locks: one goroutine
// owns one message.
type Message interface {
	// AppendTo appends the body in the given version, without header and size, and returns the longer slice. It fails
	// when the version is not one of the message's, when a field is set that the version cannot carry, or when a
	// string is too long; dst's first len(dst) bytes are intact then, what follows them is not.
	AppendTo(dst []byte, version int16) ([]byte, error)
	// ReadFrom reads the body in the given version and sets every field, those that the version lacks to their
	// defaults. Slices that the message holds are reused where their capacity allows. Strings are copied; bytes and
	// records point into the reader's input and stay valid as long as that does. Bytes behind the body stay unread.
	ReadFrom(r *Reader, version int16) error
	// SetDefaults sets every field to its default value of Kafka's definition.
	SetDefaults()
}

// Tag is a tagged field (KIP-482) that the definition of the struct does not know.
type Tag struct {
	ID   uint32
	Data []byte
}

// Tags are the unknown tagged fields of one struct, by ascending ID. They are kept when a struct is read, and written
// again among the known ones, so that passing a message on loses nothing.
type Tags []Tag
