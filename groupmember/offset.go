package groupmember

import "github.com/ottla-kafka/ottla/wire"

// Offset is a committed position: the offset of the next record to process, with the leader epoch of the record
// before it where that is known, and a text. The zero value is offset 0 without an epoch.
type Offset struct {
	// At is the offset.
	At int64
	// Metadata is any text; admins see it. At most offset.metadata.max.bytes (4096).
	Metadata string

	epoch int32     // one more than the epoch, so that zero means unknown
	topic wire.UUID // zero: whatever topic has the name when the commit is called
}

// OffsetAt is an offset without an epoch.
func OffsetAt(offset int64) Offset { return Offset{At: offset} }

// WithEpoch is the same offset with a leader epoch; a negative one means unknown.
func (o Offset) WithEpoch(epoch int32) Offset {
	o.epoch = max(epoch, -1) + 1
	return o
}

// WithTopicID is the same offset in the topic of that id. A commit for a topic that was deleted and created again since
// then fails with UNKNOWN_TOPIC_ID instead of skipping records of the new one. A zero id takes the topic that has the name
// at the time of the call of Commit or CommitAsync.
func (o Offset) WithTopicID(id wire.UUID) Offset {
	o.topic = id
	return o
}

// Epoch is the leader epoch, -1 when unknown.
func (o Offset) Epoch() int32 { return o.epoch - 1 }
