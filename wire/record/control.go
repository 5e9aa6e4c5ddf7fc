package record

import "encoding/binary"

// ControlType says what a control record means: the second field of its key.
type ControlType int16

// Types of control records. The first two end a transaction in a partition; the others belong to KRaft's metadata log.
const (
	ControlUnknown        ControlType = -1 // a type that this version does not know; skipped
	ControlAbort          ControlType = 0
	ControlCommit         ControlType = 1
	ControlLeaderChange   ControlType = 2
	ControlSnapshotHeader ControlType = 3
	ControlSnapshotFooter ControlType = 4
	ControlKRaftVersion   ControlType = 5
	ControlKRaftVoters    ControlType = 6
)

var controlNames = [...]string{"ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER",
	"KRAFT_VERSION", "KRAFT_VOTERS"}

// String returns Kafka's name of the type.
func (t ControlType) String() string {
	if t < 0 || int(t) >= len(controlNames) {
		return "UNKNOWN"
	}
	return controlNames[t]
}

const (
	controlKeySize  = 4 // int16 version, int16 type
	endTxnValueSize = 6 // int16 version, int32 coordinator epoch
)

// ParseControlKey reads the key of a control record: int16 version, int16 type, and whatever later versions append.
// A negative version or a key that is too short wraps ErrInvalid, as in Kafka; a type unknown to this version is
// ControlUnknown.
func ParseControlKey(key []byte) (version int16, t ControlType, err error) {
	if len(key) < controlKeySize {
		return 0, ControlUnknown, invalidf("control record key has %d bytes, less than %d", len(key), controlKeySize)
	}
	version = int16(binary.BigEndian.Uint16(key))
	if version < 0 {
		return version, ControlUnknown, invalidf("control record version %d", version)
	}
	t = ControlType(binary.BigEndian.Uint16(key[2:]))
	if t < 0 || int(t) >= len(controlNames) {
		t = ControlUnknown
	}
	return version, t, nil
}

// AppendControlKey appends the key of a control record, version 0.
func AppendControlKey(dst []byte, t ControlType) []byte {
	return binary.BigEndian.AppendUint16(append(dst, 0, 0), uint16(t))
}

// EndTxn is the marker that ends a transaction in a partition.
type EndTxn struct {
	Commit           bool
	CoordinatorEpoch int32 // of the transaction coordinator that wrote it
}

// Type returns ControlCommit or ControlAbort.
func (m EndTxn) Type() ControlType {
	if m.Commit {
		return ControlCommit
	}
	return ControlAbort
}

// AppendValue appends the value of the marker's record: 6 bytes, version 0.
func (m EndTxn) AppendValue(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(append(dst, 0, 0), uint32(m.CoordinatorEpoch))
}

// ParseEndTxn reads a marker from key and value of its record. Values of later versions are taken as far as they are
// known. A record that is no marker wraps ErrInvalid.
func ParseEndTxn(key, value []byte) (EndTxn, error) {
	_, t, err := ParseControlKey(key)
	if err != nil {
		return EndTxn{}, err
	}
	if t != ControlCommit && t != ControlAbort {
		return EndTxn{}, invalidf("control record of type %s is no transaction marker", t)
	}
	if len(value) < endTxnValueSize {
		return EndTxn{}, invalidf("%s marker has a value of %d bytes, less than %d", t, len(value), endTxnValueSize)
	}
	if v := int16(binary.BigEndian.Uint16(value)); v < 0 {
		return EndTxn{}, invalidf("%s marker has version %d", t, v)
	}
	return EndTxn{Commit: t == ControlCommit, CoordinatorEpoch: int32(binary.BigEndian.Uint32(value[2:]))}, nil
}

// ControlRecord is a control record without its offset.
type ControlRecord struct {
	Type  ControlType
	Value []byte // encoded: EndTxn.AppendValue, or one of KRaft's messages with its version in front
}

// ControlBatch describes a control batch. A marker is alone in its batch; the first batch of a KRaft snapshot holds
// SnapshotHeader, KRaftVersion and KRaftVoters together.
type ControlBatch struct {
	BaseOffset    int64
	LeaderEpoch   int32
	Timestamp     int64 // ms
	ProducerID    int64 // NoProducerID for KRaft's
	ProducerEpoch int16 // NoProducerEpoch for KRaft's
	Transactional bool  // true for markers
	Records       []ControlRecord
}

// AppendTo appends the batch to dst.
func (c ControlBatch) AppendTo(dst []byte) []byte {
	start := len(dst)
	var b Builder
	b.Reset(dst)
	for _, r := range c.Records {
		var key [controlKeySize]byte
		b.Append(c.Timestamp, AppendControlKey(key[:0], r.Type), r.Value, nil)
	}
	batch := b.Seal(Stamp{ProducerID: c.ProducerID, ProducerEpoch: c.ProducerEpoch, BaseSequence: NoSequence,
		Transactional: c.Transactional, Control: true})
	PatchBase(batch, c.BaseOffset, c.LeaderEpoch)
	return b.Release()[:start+len(batch)]
}

// AppendEndTxn appends the batch of a transaction marker as a partition leader writes it.
func AppendEndTxn(dst []byte, m EndTxn, baseOffset int64, leaderEpoch int32, timestamp, producerID int64,
	producerEpoch int16) []byte {
	var value [endTxnValueSize]byte
	return ControlBatch{
		BaseOffset: baseOffset, LeaderEpoch: leaderEpoch, Timestamp: timestamp,
		ProducerID: producerID, ProducerEpoch: producerEpoch, Transactional: true,
		Records: []ControlRecord{{m.Type(), m.AppendValue(value[:0])}},
	}.AppendTo(dst)
}

// ReadControls returns the records of a control batch, in order. The batch is checked as Open does. There are none when
// compaction left an empty batch: no marker any more, not an error. Values alias the batch.
func ReadControls(batch []byte) (BatchHeader, []ControlRecord, error) {
	it, err := Open(batch, ReadOptions{})
	h := it.Header()
	if err != nil {
		return h, nil, err
	}
	if !h.Control() {
		return h, nil, &RecordError{Offset: h.BaseOffset, Index: -1, Err: invalidf("no control batch")}
	}
	var records []ControlRecord
	for r := range it.All() {
		_, t, err := ParseControlKey(r.Key)
		if err != nil {
			return h, nil, &RecordError{Offset: h.BaseOffset, Index: int32(len(records)), Err: err}
		}
		records = append(records, ControlRecord{t, r.Value})
	}
	return h, records, it.Err()
}

// ReadControl is ReadControls for the only or first record, without allocating: what a consumer asks about a marker. An
// empty batch gives ControlUnknown.
func ReadControl(batch []byte) (h BatchHeader, t ControlType, value []byte, err error) {
	it, err := Open(batch, ReadOptions{})
	h = it.Header()
	if err != nil {
		return h, ControlUnknown, nil, err
	}
	if !h.Control() {
		return h, ControlUnknown, nil, &RecordError{Offset: h.BaseOffset, Index: -1, Err: invalidf("no control batch")}
	}
	r, ok := it.Next()
	if !ok {
		return h, ControlUnknown, nil, it.Err()
	}
	_, t, err = ParseControlKey(r.Key)
	return h, t, r.Value, err
}
