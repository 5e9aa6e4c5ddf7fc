package coordinator

import (
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/record"
)

// batches writes and reads the batches of one coordinator's log. It belongs to one goroutine.
type batches struct {
	log  logrecord.Log
	b    *record.Builder
	buf  []byte // of the batch
	text []byte // of keys and values
	d    compress.Decompressor
}

// encode makes one batch, of a producer's transaction if txn says so. It is valid until the next call.
func (e *batches) encode(records []Record, txn *TxnBatch, now time.Time) ([]byte, error) {
	if e.b == nil {
		e.b = record.NewBuilder(nil)
	}
	e.b.Reset(e.buf[:0])
	for i := range records {
		r := &records[i]
		text, err := logrecord.AppendKey(e.text[:0], r.Key)
		if err != nil {
			return nil, fmt.Errorf("key of a %T: %w", r.Key, err)
		}
		n := len(text)
		var value []byte
		if r.Value != nil {
			if text, err = logrecord.AppendValue(text, r.Value, r.Version); err != nil {
				return nil, fmt.Errorf("value of a %T: %w", r.Key, err)
			}
			value = text[n:]
		}
		e.text = text
		e.b.Append(now.UnixMilli(), text[:n], value, nil)
	}
	stamp := record.NoProducer()
	if txn != nil {
		// Sequences begin anew in each batch, as in Apache Kafka: nobody checks them.
		stamp = record.Stamp{ProducerID: txn.ProducerID, ProducerEpoch: txn.ProducerEpoch, Transactional: true}
	}
	e.buf = e.b.Seal(stamp)
	return e.buf, nil
}

// decode replays a batch into a machine. Types that this version does not know are passed over, as Apache Kafka does after
// a downgrade.
func (e *batches) decode(batch []byte, m Shard) (skipped int, err error) {
	h, err := record.ParseHeader(batch)
	if err != nil {
		return 0, err
	}
	if !h.Control() && !h.Transactional() {
		return e.records(batch, m.Replay)
	}
	t, ok := m.(TxnShard)
	if !ok && h.Control() { // somebody named this partition when he wrote markers
		return 0, nil
	}
	if !ok {
		return 0, fmt.Errorf("offset %d: the log of a %T has a transaction of producer %d", h.BaseOffset, m, h.ProducerID)
	}
	if !h.Control() {
		return e.records(batch, func(offset int64, key, value logrecord.Record) error {
			return t.ReplayTxn(offset, h.ProducerID, key, value)
		})
	}
	h, kind, _, err := record.ReadControl(batch)
	if err != nil || kind != record.ControlCommit && kind != record.ControlAbort {
		return 0, err
	}
	return 0, t.EndTxn(h.BaseOffset, h.ProducerID, kind == record.ControlCommit)
}

// records reads the records of one batch.
func (e *batches) records(batch []byte, f func(offset int64, key, value logrecord.Record) error) (skipped int, err error) {
	it, err := record.Open(batch, record.ReadOptions{Decompressor: &e.d})
	if err != nil {
		return 0, err
	}
	for r := range it.All() {
		key, err := logrecord.ReadKey(e.log, r.Key)
		if errors.Is(err, logrecord.ErrUnknownType) {
			skipped++
			continue
		}
		if err != nil {
			return skipped, fmt.Errorf("offset %d: %w", r.Offset, err)
		}
		value, _, err := logrecord.ReadValue(e.log, key.APIKey(), r.Value)
		if err != nil {
			return skipped, fmt.Errorf("offset %d: %w", r.Offset, err)
		}
		if err := f(r.Offset, key, value); err != nil {
			return skipped, fmt.Errorf("offset %d: %w", r.Offset, err)
		}
	}
	return skipped, it.Err()
}
