package logrecord

import "github.com/ottla-kafka/ottla/wire"

// Record is a metadata record, or the key or the value of a coordinator's record.
type Record interface {
	wire.Message
	APIKey() int16              // number of the record's type within its log
	Versions() (min, max int16) // that exist
}
