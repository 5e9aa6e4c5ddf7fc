package record

import (
	"errors"
	"fmt"
)

// The kinds of failure that the functions of this package report. Test with errors.Is; the error itself says what was
// wrong, where, and with which numbers. None of them ever carries bytes of a key, a value or a header.
var (
	// ErrPartial says that the bytes end inside a batch. At the end of a fetch response or of a file that is being
	// written this is normal: the rest has not come (or was cut off by the broker's size limit), nothing is damaged.
	ErrPartial = errors.New("record: incomplete batch")
	// ErrCorrupt says that a batch as a whole is damaged: impossible size or magic, or a checksum that does not match.
	// Kafka answers it with CORRUPT_MESSAGE (code 2).
	ErrCorrupt = errors.New("record: corrupt batch")
	// ErrInvalid says that the checksum is right but the content breaks the format's rules (bad length, wrong count,
	// bytes left over). Kafka answers it with INVALID_RECORD (code 87).
	ErrInvalid = errors.New("record: invalid record")
	// ErrTimestamp says that a record's timestamp is outside the bounds that the caller of CheckRecords gave. Kafka
	// answers it with INVALID_TIMESTAMP (code 32).
	ErrTimestamp = errors.New("record: timestamp out of range")
	// ErrUnsupported says that the batch is sound but may not exist in this format: zstd in magic 0 or 1, unknown codec.
	ErrUnsupported = errors.New("record: not supported by the format")
)

// RecordError is a failure inside a batch together with the place where it happened.
type RecordError struct {
	// Offset is the base offset of the batch, as it stands in its header.
	Offset int64
	// Index counts the records of the batch from 0; -1 means the batch itself.
	Index int32
	// Err is the failure; errors.Is finds ErrInvalid, ErrTimestamp, compress.ErrTooLarge and so on in it.
	Err error
}

// Error describes the failure and the place.
func (e *RecordError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("batch at offset %d: %v", e.Offset, e.Err)
	}
	return fmt.Sprintf("batch at offset %d, record %d: %v", e.Offset, e.Index, e.Err)
}

// Unwrap returns the failure.
func (e *RecordError) Unwrap() error { return e.Err }

func corruptf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

func unsupportedf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}

func timestampError(ms int64, c Checks) error {
	return fmt.Errorf("%w: %d is outside %d..%d", ErrTimestamp, ms, c.MinTimestamp, c.MaxTimestamp)
}
