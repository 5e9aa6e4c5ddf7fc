package logrecord

import (
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/wire"
)

// ErrUnknownType is found in the error for a record whose type this module does not know. A coordinator skips such
// records with a warning, since a newer broker may have written them before a downgrade.
var ErrUnknownType = errors.New("unknown record type")

// Log names one of the internal topics that coordinators write; the numbers of record types are its own.
type Log uint8

// The coordinators' logs.
const (
	GroupLog       Log = iota // __consumer_offsets
	TransactionLog            // __transaction_state
	ShareLog                  // __share_group_state
)

// String is the name of the topic.
func (l Log) String() string {
	switch l {
	case GroupLog:
		return "__consumer_offsets"
	case TransactionLog:
		return "__transaction_state"
	case ShareLog:
		return "__share_group_state"
	default:
		return fmt.Sprintf("Log(%d)", uint8(l))
	}
}

// NewKey returns the key of a record type with defaults; nil for an unknown type.
func NewKey(log Log, apiKey int16) Record {
	switch log {
	case GroupLog:
		return newGroupKey(apiKey)
	case TransactionLog:
		return newTransactionKey(apiKey)
	case ShareLog:
		return newShareKey(apiKey)
	default:
		return nil
	}
}

// NewValue returns the value of a record type with defaults; nil for an unknown type.
func NewValue(log Log, apiKey int16) Record {
	switch log {
	case GroupLog:
		return newGroupValue(apiKey)
	case TransactionLog:
		return newTransactionValue(apiKey)
	case ShareLog:
		return newShareValue(apiKey)
	default:
		return nil
	}
}

// keyVersion is the version that all keys of coordinators have. Keys are compared as bytes by the log cleaner, so they
// can never get another one.
const keyVersion = 0

// AppendKey appends the key of a coordinator's record: the int16 of its type, then the body. In the two oldest types of
// group records, 0 and 1, the number counts as a version of the same offset commit key.
func AppendKey(dst []byte, key Record) ([]byte, error) {
	return key.AppendTo(wire.AppendInt16(dst, key.APIKey()), keyVersion)
}

// AppendValue appends the value of a coordinator's record: the int16 of its version, then the body. The value of a
// tombstone is null and is not made here.
func AppendValue(dst []byte, value Record, version int16) ([]byte, error) {
	return value.AppendTo(wire.AppendInt16(dst, version), version)
}

// ReadKey reads the key of a coordinator's record. An unknown type is an error that is ErrUnknownType.
func ReadKey(log Log, b []byte) (Record, error) {
	r := wire.NewReader(b)
	apiKey := r.Int16()
	if err := r.Result("key of "+log.String(), keyVersion); err != nil {
		return nil, err
	}
	key := NewKey(log, apiKey)
	if key == nil {
		return nil, fmt.Errorf("logrecord: record of type %d in %s: %w", apiKey, log, ErrUnknownType)
	}
	if err := key.ReadFrom(r, keyVersion); err != nil {
		return nil, err
	}
	return key, nil
}

// ReadValue reads the value of the record whose key has the given type, and returns it with its version. A tombstone's
// value, nil, gives nil.
func ReadValue(log Log, apiKey int16, b []byte) (Record, int16, error) {
	if b == nil {
		return nil, 0, nil
	}
	r := wire.NewReader(b)
	version := r.Int16()
	if err := r.Result("value in "+log.String(), 0); err != nil {
		return nil, 0, err
	}
	value := NewValue(log, apiKey)
	if value == nil {
		return nil, 0, fmt.Errorf("logrecord: record of type %d in %s: %w", apiKey, log, ErrUnknownType)
	}
	if err := value.ReadFrom(r, version); err != nil {
		return nil, 0, err
	}
	return value, version, nil
}
