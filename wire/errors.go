package wire

import (
	"errors"
	"fmt"
)

// What errors.Is finds in the errors of this package and of the generated ones.
var (
	// ErrMalformed: the bytes are not what the version of the message says. The sender is at fault or the stream is
	// out of step; a connection that sees it is closed.
	ErrMalformed = errors.New("malformed bytes")
	// ErrTruncated: the bytes end inside the message. It is an ErrMalformed too.
	ErrTruncated = errors.New("bytes end early")
	// ErrUnsupportedVersion: the message has no such version, or the version cannot carry a field that is set.
	ErrUnsupportedVersion = errors.New("unsupported version")
	// ErrTooLong: a string, bytes field or array is longer than its length field can say.
	ErrTooLong = errors.New("too long to be written")
	// ErrNull: a field is null that may not be in this version.
	ErrNull = errors.New("null is not allowed")
	// ErrTagOrder: unknown tagged fields to be written are not in ascending order or repeat a known tag.
	ErrTagOrder = errors.New("tagged fields out of order")
)

// DecodeError says where and why reading a message stopped.
type DecodeError struct {
	Message string // name of the message; "" when a primitive was read on its own
	Version int16
	Offset  int    // of the first byte that could not be used, from the start of the reader's input
	Size    int    // of the reader's input
	What    string // what was wrong, with its numbers
	Err     error  // ErrMalformed or ErrTruncated
}

// Error says what, where in the message, and why.
func (e *DecodeError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("wire: %s at byte %d of %d: %s", e.Err, e.Offset, e.Size, e.What)
	}
	return fmt.Sprintf("wire: %s version %d: %s at byte %d of %d: %s", e.Message, e.Version, e.Err, e.Offset, e.Size, e.What)
}

// Unwrap gives ErrMalformed, and ErrTruncated where the bytes end early.
func (e *DecodeError) Unwrap() []error {
	if e.Err == ErrTruncated {
		return []error{ErrTruncated, ErrMalformed}
	}
	return []error{e.Err}
}

// EncodeError says which field of a message could not be written, and why.
type EncodeError struct {
	Message string
	Version int16
	Field   string // "Struct.Field", or "" when the whole message is meant
	What    string // more about it, with numbers; may be ""
	Err     error  // one of the errors above
}

// Error names message, version and field.
func (e *EncodeError) Error() string {
	text := fmt.Sprintf("wire: %s version %d: ", e.Message, e.Version)
	if e.Field != "" {
		text += e.Field + ": "
	}
	text += e.Err.Error()
	if e.What != "" {
		text += ": " + e.What
	}
	return text
}

// Unwrap gives the kind of error.
func (e *EncodeError) Unwrap() error { return e.Err }

// VersionError makes the error of a message that is asked for a version outside min..max. Generated code calls it.
func VersionError(message string, version, min, max int16) error {
	return &EncodeError{Message: message, Version: version, Err: ErrUnsupportedVersion,
		What: fmt.Sprintf("versions %d to %d exist", min, max)}
}
