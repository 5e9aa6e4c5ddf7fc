package fetch

import (
	"fmt"

	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/wire/record"
)

// cursor goes through the batches of one chunk.
type cursor struct {
	rest      []byte
	filter    machine.AbortedFilter
	committed bool // leave out aborted transactions
	options   record.ReadOptions
	behind    int64 // offset after the last batch that was passed, -1 none
	opened    int64 // the same for the batch that is open
}

func newCursor(chunk *machine.Chunk, o *Options) cursor {
	c := cursor{rest: chunk.Records, committed: o.ReadCommitted, behind: -1, opened: -1}
	c.options = record.ReadOptions{Decompressor: o.Decompressor, Limit: o.MaxDecompressed, SkipCRC: !o.CheckCRC}
	if c.committed {
		c.filter = machine.NewAbortedFilter(chunk.Aborted)
	}
	return c
}

// next opens the next batch that holds records for the application into it. ok is false at the end of the
// chunk. After an error, behind says where the damaged batch starts.
func (c *cursor) next(it *record.Iterator, from int64) (ok bool, err error) {
	c.behind = max(c.behind, c.opened)
	for len(c.rest) > 0 {
		batch, rest, err := record.Next(c.rest)
		if err != nil {
			return false, fmt.Errorf("%w: %w", machine.ErrCorrupt, err)
		}
		h, modern := header(batch)
		if modern {
			skip, err := c.skip(batch, h, from)
			if err != nil {
				return false, err
			}
			if skip {
				c.rest, c.behind = rest, h.NextOffset()
				continue
			}
			c.opened = h.NextOffset()
		}
		if err := it.Reset(batch, c.options); err != nil {
			return false, wrap(err)
		}
		c.rest = rest
		return true, nil
	}
	return false, nil
}

// skip tells whether a batch holds nothing for the application.
func (c *cursor) skip(batch []byte, h record.BatchHeader, from int64) (bool, error) {
	switch {
	case h.Control():
		return true, c.marker(batch, h)
	case c.committed && c.filter.Batch(h.ProducerID, h.LastOffset(), h.Transactional()), h.Count == 0:
		return true, c.check(batch)
	}
	return h.NextOffset() <= from, nil // an answer may begin below what was asked for
}

// header is the header of a batch, if it is of magic 2.
func header(batch []byte) (record.BatchHeader, bool) {
	h, err := record.ParseHeader(batch)
	return h, err == nil
}

// check applies check.crcs to a batch that is not read: what it says of itself decides about others.
func (c *cursor) check(batch []byte) error {
	if c.options.SkipCRC {
		return nil
	}
	return wrap(record.Validate(batch))
}

// marker takes note of a control batch. Those of KRaft's own log say nothing to a reader.
func (c *cursor) marker(batch []byte, h record.BatchHeader) error {
	if err := c.check(batch); err != nil {
		return err
	}
	if !c.committed || h.Count == 0 {
		return nil
	}
	_, t, _, err := record.ReadControl(batch)
	if err != nil {
		return wrap(err)
	}
	c.filter.Marker(h.ProducerID, h.LastOffset(), t == record.ControlAbort)
	return nil
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", machine.ErrCorrupt, err)
}
