package storage

import (
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/wire/errcode"
)

// Error is a refusal by a log: the code to answer with and why, in words for
// the log file and, for some requests, the client.
type Error struct {
	Code    errcode.Code
	Message string
	// Records names the records of the batch that were at fault (produce
	// answers, KIP-467). The whole batch is refused, not only these.
	Records []RecordError
	Err     error // the cause, if there is one: a disk error, a codec's error
}

// RecordError names one record of a refused batch.
type RecordError struct {
	BatchIndex int32 // position of the record in its batch
	Message    string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code.Name(), e.Message, e.Err)
	}
	return e.Code.Name() + ": " + e.Message
}

// Unwrap gives the code and the cause to errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.Err != nil {
		return []error{e.Code, e.Err}
	}
	return []error{e.Code}
}

// CodeOf returns the code to answer with for an error of this package:
// errcode.None for nil, KafkaStorageError for what is no Error (a disk error).
func CodeOf(err error) errcode.Code {
	if err == nil {
		return errcode.None
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return errcode.KafkaStorageError
}

func refuse(code errcode.Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// errClosed is what a log answers after Close.
func errClosed(p TopicPartition) error {
	return refuse(errcode.KafkaStorageError, "the log of %s is closed", p)
}

// errDeleted is what a log answers after it was deleted.
func errDeleted(p TopicPartition) error {
	return refuse(errcode.UnknownTopicOrPartition, "the log of %s has been deleted", p)
}
