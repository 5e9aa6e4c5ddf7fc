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
	open map[int64][]replayed // what transactions wrote whose end has not been read, by producer id
}

// replayed is a record on its way into a machine.
type replayed struct {
	offset     int64
	key, value logrecord.Record
}

// encode makes one batch. It is valid until the next call.
func (e *batches) encode(records []Record, now time.Time) ([]byte, error) {
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
	e.buf = e.b.Seal(record.NoProducer())
	return e.buf, nil
}

// decode hands the records of a batch to f. What a transaction wrote waits for its marker: committed it goes to f then,
// aborted it never does, and without a marker at the end of the log it is nothing yet. Types that this version does not
// know are passed over, as Apache Kafka does after a downgrade.
func (e *batches) decode(batch []byte, f func(offset int64, key, value logrecord.Record) error) (skipped int, err error) {
	h, err := record.ParseHeader(batch)
	if err != nil {
		return 0, err
	}
	if h.Control() {
		return 0, e.endTransaction(batch, f)
	}
	if h.Transactional() {
		if e.open == nil {
			e.open = make(map[int64][]replayed)
		}
		// The batch lies in a buffer of the log's reader, and these records stay.
		return e.records(append([]byte(nil), batch...), func(offset int64, key, value logrecord.Record) error {
			e.open[h.ProducerID] = append(e.open[h.ProducerID], replayed{offset, key, value})
			return nil
		})
	}
	return e.records(batch, f)
}

func (e *batches) endTransaction(batch []byte, f func(offset int64, key, value logrecord.Record) error) error {
	h, kind, _, err := record.ReadControl(batch)
	if err != nil {
		return err
	}
	written := e.open[h.ProducerID]
	delete(e.open, h.ProducerID)
	if kind != record.ControlCommit {
		return nil
	}
	for _, r := range written {
		if err := f(r.offset, r.key, r.value); err != nil {
			return fmt.Errorf("offset %d: %w", r.offset, err)
		}
	}
	return nil
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
