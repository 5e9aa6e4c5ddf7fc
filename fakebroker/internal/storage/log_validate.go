package storage

import (
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/record"
)

// ValidateProduce does the checks of a produce request that come before a log
// is asked (their answers carry no log start offset): there is a batch, of
// magic 2, only one, and zstd only from version 7 on (KIP-110).
func ValidateProduce(records []byte, version int16) error {
	batch, rest, err := record.Next(records)
	if errors.Is(err, record.ErrPartial) {
		return refuse(errcode.InvalidRecord, "produce requests with version %d must have at least one record batch per partition", version)
	}
	if err != nil {
		return &Error{Code: errcode.CorruptMessage, Message: "produce request", Err: err}
	}
	if _, magic, _ := record.Peek(batch); magic != 2 {
		return refuse(errcode.InvalidRecord, "produce requests with version %d are only allowed to contain record batches with magic version 2, not %d", version, magic)
	}
	h, err := record.ParseHeader(batch)
	if err != nil {
		return &Error{Code: errcode.CorruptMessage, Message: "produce request", Err: err}
	}
	if version < 7 && h.Codec() == compress.Zstd {
		return refuse(errcode.UnsupportedCompressionType, "produce requests with version %d are not allowed to use zstd compression", version)
	}
	if _, _, err := record.Next(rest); !errors.Is(err, record.ErrPartial) {
		return refuse(errcode.InvalidRecord, "produce requests with version %d are only allowed to contain exactly one record batch per partition", version)
	}
	return nil
}

// validated is a run of batches that may be appended, but for what only the
// log's state can tell (offsets, producers).
type validated struct {
	data          []byte // whole batches, the caller's bytes or, recompressed, new ones
	headers       []record.BatchHeader
	records       int32
	maxTimestamp  int64
	logAppendTime int64 // ms, noTimestamp with CreateTime
	one           [1]record.BatchHeader
}

// validator checks and stamps batches before they are appended. It knows no
// log: what it does depends on the config and the time only.
type validator struct {
	partition TopicPartition
	config    *LogConfig
	codecs    *codecs
	origin    Origin
	epoch     int32
	now       int64 // ms
}

// run checks all batches of an append. Bytes behind the last whole batch are
// dropped, as Kafka does.
func (v *validator) run(batches []byte) (*validated, error) {
	out := &validated{maxTimestamp: noTimestamp, logAppendTime: noTimestamp}
	out.headers = out.one[:0]
	if v.config.MessageTimestampType == LogAppendTime {
		out.logAppendTime = v.now
	}
	for rest := batches; ; {
		batch, next, err := record.Next(rest)
		if errors.Is(err, record.ErrPartial) {
			break
		}
		if err != nil {
			return nil, &Error{Code: errcode.CorruptMessage, Message: "append to " + v.partition.String(), Err: err}
		}
		rest = next
		if v.origin == FromClient && len(out.headers) == 1 {
			return nil, refuse(errcode.InvalidRecord, "a produce request has one batch per partition, %s got more", v.partition)
		}
		if err := v.batch(batch, out); err != nil {
			return nil, err
		}
	}
	if len(out.headers) == 0 {
		return nil, refuse(errcode.InvalidRecord, "append to %s without a record batch", v.partition)
	}
	if int64(len(out.data)) > int64(v.config.SegmentBytes) {
		return nil, refuse(errcode.RecordListTooLarge, "%d bytes for %s do not fit into a segment: segment.bytes is %d",
			len(out.data), v.partition, v.config.SegmentBytes)
	}
	return out, nil
}

// batch checks one batch, stamps it in place or recompresses it, and adds it.
func (v *validator) batch(batch []byte, out *validated) error {
	h, err := v.header(batch)
	if err != nil {
		return err
	}
	found, err := v.records(batch, &h)
	if err != nil {
		return err
	}
	if batch, err = v.recompress(batch, &h, found.Consecutive); err != nil {
		return err
	}
	v.stamp(batch, &h, found.MaxTimestamp)
	if len(batch) > int(v.config.MaxMessageBytes) && v.origin == FromClient {
		return v.tooLarge(len(batch)) // compression.type may have made it larger
	}
	if h, err = record.ParseHeader(batch); err != nil {
		return err // of a batch that was parsed before
	}
	out.add(batch, h)
	out.records += found.Count
	out.maxTimestamp = max(out.maxTimestamp, h.MaxTimestamp)
	return nil
}

// add appends a batch. The only batch of a produce request stays where it is.
func (o *validated) add(batch []byte, h record.BatchHeader) {
	if len(o.headers) == 0 {
		o.data = batch[:len(batch):len(batch)]
	} else {
		o.data = append(o.data, batch...)
	}
	o.headers = append(o.headers, h)
}

func (v *validator) tooLarge(size int) error {
	return refuse(errcode.MessageTooLarge, "the batch for %s has %d bytes, max.message.bytes is %d", v.partition, size, v.config.MaxMessageBytes)
}

// header does the checks on the batch as a whole, in Kafka's order.
func (v *validator) header(batch []byte) (record.BatchHeader, error) {
	h, err := record.ParseHeader(batch)
	if err != nil || h.Magic != 2 {
		return h, &Error{Code: errcode.CorruptMessage, Message: "append to " + v.partition.String(), Err: errors.Join(err, fmt.Errorf("magic %d", h.Magic))}
	}
	if v.origin == FromClient && h.BaseOffset != 0 {
		return h, refuse(errcode.InvalidRecord, "the base offset of the record batch in the append to %s should be 0, but it is %d", v.partition, h.BaseOffset)
	}
	if v.origin == FromRaft && h.PartitionLeaderEpoch != v.epoch {
		return h, refuse(errcode.InvalidRecord, "append from raft leader did not set the batch epoch correctly, expected %d but the batch has %d", v.epoch, h.PartitionLeaderEpoch)
	}
	if len(batch) > int(v.config.MaxMessageBytes) && v.origin != FromRaft {
		return h, v.tooLarge(len(batch))
	}
	if err := record.Validate(batch); err != nil {
		return h, &Error{Code: errcode.CorruptMessage, Message: "append to " + v.partition.String(), Err: err}
	}
	if v.origin == FromClient {
		if !h.Codec().Valid() {
			return h, v.unreadable(fmt.Errorf("%s in attributes", h.Codec()))
		}
		if err := h.CheckProduced(); err != nil {
			return h, &Error{Code: errcode.InvalidRecord, Message: "append to " + v.partition.String(), Err: err}
		}
	}
	return h, nil
}

// records checks every record of a batch: format, keys and timestamps.
// unreadable refuses records that no codec can unpack. Apache Kafka's codecs throw what it has no code for, so that a
// producer hears UNKNOWN_SERVER_ERROR, with the log start: the same is said here.
// sizes refuses a compressed batch with a record that is larger than
// max.decompressed.message.bytes, which Kafka does not ask of others.
// recordSize returns the size of a record as its length field gives it.
// varintSize returns the length of a zig-zag varint.
func (v *validator) readOptions() record.ReadOptions {
	return record.ReadOptions{
		Decompressor: v.codecs.decompressor,
		Limit:        compress.BrokerLimit,
		SkipCRC:      true,
	}
}

// timestampBounds are message.timestamp.before.max.ms and .after.max.ms around now.
// stamp writes into the batch what the broker decides: its own time, or the
// largest timestamp that is really there. The checksum is computed anew only
// if something changes.
func (v *validator) stamp(batch []byte, h *record.BatchHeader, largest int64) {
	switch {
	case v.origin == FromRaft:
	case v.config.MessageTimestampType == LogAppendTime:
		h.MaxTimestamp = v.now
		record.PatchTimestamp(batch, true, v.now)
	case h.LogAppendTime() || h.MaxTimestamp != largest:
		h.MaxTimestamp = largest
		record.PatchTimestamp(batch, false, largest)
	}
}

// recompress brings the batch into the codec that compression.type demands, and with it offset deltas that leave gaps into
// 0, 1, 2 ... As in Apache Kafka, gaps stay in a plain batch, and in a batch that is in the right codec already they are
// something it has no code for.
func (v *validator) recompress(batch []byte, h *record.BatchHeader, consecutive bool) ([]byte, error) {
	if h.Control() || v.origin == FromRaft {
		return batch, nil
	}
	if v.config.CompressionType == CompressionProducer || h.Codec() == v.config.Compression {
		if h.Codec() != compress.None && !consecutive {
			return nil, v.unreadable(errors.New("offset deltas are not consecutive"))
		}
		return batch, nil
	}
	it, err := record.Open(batch, v.readOptions())
	if err != nil {
		return nil, &Error{Code: errcode.CorruptMessage, Message: "append to " + v.partition.String(), Err: err}
	}
	b := record.NewBuilder(make([]byte, 0, record.HeaderSize+len(batch)))
	var headers []record.Header
	for r := range it.All() {
		headers = r.Headers.AppendTo(headers[:0])
		b.Append(r.Timestamp, r.Key, r.Value, headers)
	}
	if err := it.Err(); err != nil {
		return nil, &Error{Code: errcode.InvalidRecord, Message: "append to " + v.partition.String(), Err: err}
	}
	stamp := record.Stamp{ProducerID: h.ProducerID, ProducerEpoch: h.ProducerEpoch, BaseSequence: h.BaseSequence, Transactional: h.Transactional()}
	if v.config.Compression == compress.None {
		return b.Seal(stamp), nil
	}
	c, err := v.codecs.compressor(v.config.Compression, v.config.CompressionLevel)
	if err != nil {
		return nil, &Error{Code: errcode.InvalidConfig, Message: "compression.type of " + v.partition.Topic, Err: err}
	}
	return b.SealCompressed(nil, stamp, c), nil
}

// stampedByProducer refuses a batch that says it has the broker's time.
// recordErrors turns what CheckRecords found into Kafka's words (KIP-467).
// faulty reads the records that are at fault once more, for what to say about
// them. The batch opened before, so it opens again.
func newValidator(l *Log, origin Origin, epoch int32, now time.Time) *validator {
	return &validator{partition: l.partition, config: l.config.Load(), codecs: l.codecs, origin: origin, epoch: epoch, now: millis(now)}
}
