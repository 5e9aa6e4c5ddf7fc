// Package errcode is Kafka's error table: the numbers that responses carry, with their names, what they mean and
// whether trying again can help.
//
// A Code is an error, so that callers can write errors.Is(err, errcode.TopicAlreadyExists). The code None is "no error":
// use Code.Err to turn a response's field into an error, since a Code of 0 in an error variable is not nil.
package errcode

import "strconv"

// Code is an error code of Kafka's protocol.
type Code int16

// FromCode makes a Code of a response's number. Numbers that this module does not know are kept: a newer broker may send
// them, and they behave like UnknownServerError.
func FromCode(n int16) Code { return Code(n) }

func (c Code) entry() *entry {
	if c < UnknownServerError || int(c)+1 >= len(entries) {
		return nil
	}
	return &entries[c+1]
}

// Known reports whether the code is in the table.
func (c Code) Known() bool { return c.entry() != nil }

// Name is Kafka's name, such as "NOT_LEADER_OR_FOLLOWER", or "UNKNOWN_ERROR_CODE_N" for a number outside the table.
func (c Code) Name() string {
	if e := c.entry(); e != nil {
		return e.name
	}
	return "UNKNOWN_ERROR_CODE_" + strconv.Itoa(int(c))
}

// Text says in a clause what the code means.
func (c Code) Text() string {
	if e := c.entry(); e != nil {
		return e.text
	}
	return "an error code that this version of the module does not know"
}

// String is Name and number: "NOT_LEADER_OR_FOLLOWER (6)".
func (c Code) String() string { return c.Name() + " (" + strconv.Itoa(int(c)) + ")" }

// Error is String and Text.
func (c Code) Error() string { return c.String() + ": " + c.Text() }

// Err is nil for None and c otherwise.
func (c Code) Err() error {
	if c == None {
		return nil
	}
	return c
}

// Retriable reports whether Kafka's clients try again on their own: the cause passes, or a refresh of metadata or
// coordinator helps.
func (c Code) Retriable() bool {
	e := c.entry()
	return e != nil && e.retriable
}

// InvalidMetadata reports whether the client's picture of leaders is out of date, so that metadata is to be refreshed
// before trying again. Such codes are retriable too.
func (c Code) InvalidMetadata() bool {
	e := c.entry()
	return e != nil && e.metadata
}
