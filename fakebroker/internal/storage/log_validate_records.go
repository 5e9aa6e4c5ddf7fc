package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/record"
)

func (v *validator) records(batch []byte, h *record.BatchHeader) (record.Found, error) {
	if v.origin == FromRaft || h.Control() {
		return record.Found{Count: h.Count, MaxTimestamp: h.MaxTimestamp}, nil
	}
	checks := record.Checks{Keys: v.config.CleanupCompact}
	if v.config.MessageTimestampType == CreateTime {
		checks.MinTimestamp, checks.MaxTimestamp = v.timestampBounds()
	}
	found, err := record.CheckRecords(batch, v.readOptions(), checks)
	switch {
	case errors.Is(err, compress.ErrCorrupt):
		return found, v.unreadable(err)
	case err != nil: // also compress.ErrTooLarge, whatever the topic allows
		return found, &Error{Code: errcode.InvalidRecord, Message: "append to " + v.partition.String(), Err: err}
	}
	if err := v.sizes(batch, h); err != nil {
		return found, err
	}
	if h.LogAppendTime() && v.config.MessageTimestampType == LogAppendTime {
		return found, v.stampedByProducer(h)
	}
	if len(found.Errors) > 0 {
		return found, v.recordErrors(batch, found.Errors)
	}
	return found, nil
}

func (v *validator) unreadable(err error) error {
	return &Error{Code: errcode.UnknownServerError, Message: "append to " + v.partition.String(), Err: err}
}

func (v *validator) sizes(batch []byte, h *record.BatchHeader) error {
	limit := int(v.config.MaxDecompressedMessageBytes)
	if h.Codec() == compress.None || limit >= compress.BrokerLimit {
		return nil
	}
	it, err := record.Open(batch, v.readOptions())
	if err != nil {
		return v.unreadable(err)
	}
	for r := range it.All() {
		if n := recordSize(&it, &r); n > limit {
			return refuse(errcode.InvalidRecord, "Invalid record size: %d exceeds the configured maximum record size of %d.", n, limit)
		}
	}
	return nil
}

func recordSize(it *record.Iterator, r *record.Record) int {
	h := it.Header()
	n := 1 + varintSize(r.Timestamp-h.BaseTimestamp) + varintSize(r.Offset-h.BaseOffset) + bytesSize(r.Key, r.Key != nil) + bytesSize(r.Value, r.Value != nil)
	n += varintSize(int64(r.Headers.Len()))
	for k, value := range r.Headers.All() {
		n += varintSize(int64(len(k))) + len(k) + bytesSize(value, value != nil)
	}
	return n
}

func bytesSize(b []byte, present bool) int {
	if !present {
		return varintSize(-1)
	}
	return varintSize(int64(len(b))) + len(b)
}

func varintSize(n int64) int {
	var b [binary.MaxVarintLen64]byte
	return binary.PutVarint(b[:], n)
}

func (v *validator) timestampBounds() (lowest, highest int64) {
	lowest = v.now - v.config.MessageTimestampBeforeMaxMs // no overflow: both are >= 0
	if highest = v.now + v.config.MessageTimestampAfterMaxMs; highest < v.now {
		highest = math.MaxInt64
	}
	return lowest, highest
}

func (v *validator) stampedByProducer(h *record.BatchHeader) error {
	errs := make([]RecordError, 0, min(h.Count, 100))
	for i := range cap(errs) {
		errs = append(errs, RecordError{BatchIndex: int32(i),
			Message: "Invalid timestamp type in message. Producer should not set timestamp type to LogAppendTime."})
	}
	return refuseRecords(errs, true)
}

func (v *validator) recordErrors(batch []byte, found []*record.RecordError) error {
	faulty := v.faulty(batch, found)
	errs := make([]RecordError, len(found))
	anyTime := false
	for i, e := range found {
		errs[i].BatchIndex = e.Index
		r := faulty[e.Index]
		switch {
		case errors.Is(e.Err, record.ErrTimestamp):
			anyTime = true
			errs[i].Message = fmt.Sprintf("Timestamp %d of message with offset %d is out of range. The timestamp should be within [%d, %d]",
				r.Timestamp, r.Offset, v.now-v.config.MessageTimestampBeforeMaxMs, v.now+v.config.MessageTimestampAfterMaxMs)
		case v.config.CleanupCompact && r.Key == nil:
			errs[i].Message = "Compacted topic cannot accept message without key in topic partition " + v.partition.String()
		default:
			errs[i].Message = e.Err.Error()
		}
	}
	return refuseRecords(errs, anyTime)
}

func (v *validator) faulty(batch []byte, found []*record.RecordError) map[int32]record.Record {
	records := make(map[int32]record.Record, len(found))
	it, _ := record.Open(batch, v.readOptions())
	index, next := int32(0), 0
	for r := range it.All() {
		if next < len(found) && found[next].Index == index {
			records[index] = r
			next++
		}
		index++
	}
	return records
}

func refuseRecords(errs []RecordError, anyTime bool) error {
	if anyTime {
		return &Error{Code: errcode.InvalidTimestamp, Message: "One or more records have been rejected due to invalid timestamp", Records: errs}
	}
	shown := make([]string, 0, 3)
	for _, e := range errs[:min(3, len(errs))] {
		shown = append(shown, fmt.Sprintf("RecordError(batchIndex=%d, message='%s')", e.BatchIndex, e.Message))
	}
	return &Error{Code: errcode.InvalidRecord, Records: errs, Message: fmt.Sprintf(
		"One or more records have been rejected due to %d record errors in total, and only showing the first three errors at most: [%s]",
		len(errs), strings.Join(shown, ", "))}
}
