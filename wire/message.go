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

// Add appends an element with defaults to an array of a message and returns a pointer to it, good until the array grows
// again:
//
//	topic := wire.Add(&req.Topics)
//	topic.Name = "orders"
func Add[T any, P interface {
	*T
	SetDefaults()
}](array *[]T) P {
	*array = append(*array, *new(T))
	p := P(&(*array)[len(*array)-1])
	p.SetDefaults()
	return p
}
