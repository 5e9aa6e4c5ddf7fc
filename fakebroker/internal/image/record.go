package image

import (
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// Record is a metadata record together with the version it is written in. The version is part of what the controller
// decides: it depends on the finalised metadata.version and on which fields are set.
type Record struct {
	logrecord.Record
	Version int16
}

// AppendValue appends the record as it stands in the metadata log: uvarint frame version 1, uvarint type, uvarint
// version, message.
func (r Record) AppendValue(dst []byte) ([]byte, error) {
	return logrecord.AppendFramed(dst, r.Record, r.Version)
}

// ParseRecord reads the value of a metadata log record. Types and versions that Apache Kafka 4.4 does not have are errors, as are
// bytes behind the message: skipping what is not understood would make two nodes differ.
func ParseRecord(value []byte) (Record, error) {
	rec, version, err := logrecord.ReadFramed(value)
	return Record{Record: rec, Version: version}, err
}
