package consumer

import (
	"context"
	"iter"

	"github.com/ottla-kafka/ottla/consumer/internal/fetch"
	"github.com/ottla-kafka/ottla/wire/record"
)

// Records yields records for as long as the loop goes on: in order within each partition, partitions taking turns.
// When ctx ends or the consumer is closed it yields the cause once and stops. An error of one partition is yielded
// with the topic and partition in the record; going on with the loop goes on with the others (see FailFast).
//
// Records are decoded one by one as the loop goes; nothing is allocated for them. Breaking out of the loop keeps
// what was fetched: the next loop, Batches or Poll goes on behind the last record handed out.
func (c *Consumer) Records(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		leave, err := c.enter(ctx)
		if err != nil {
			yield(Record{}, err)
			return
		}
		defer leave()
		for {
			g, failed, err := c.next(ctx, true)
			switch {
			case err != nil:
				yield(Record{}, err)
				return
			case failed != nil:
				r := Record{Topic: failed.Topic, Partition: failed.Partition, Offset: -1, TimestampMs: -1, TimestampType: NoTimestamp}
				if !yield(r, c.partitionError(failed)) || c.cfg.FailFast {
					return
				}
			case c.group != nil:
				if !c.yieldHeld(g, yield) {
					return
				}
			case !c.yieldBatch(g, yield):
				return
			}
		}
	}
}

// yieldBatch hands out what is left of a batch. It returns true at its end, and when Next has to be asked before
// the next record.
func (c *Consumer) yieldBatch(g *fetch.Reading, yield func(Record, error) bool) bool {
	out := blank(g)
	var r record.Record
	for g.It.Into(&r) {
		if r.Offset < g.From {
			continue
		}
		g.Took(r.Offset)
		out.Offset, out.TimestampMs, out.Key, out.Value, out.Headers = r.Offset, r.Timestamp, r.Key, r.Value, r.Headers
		if len(c.cfg.Interceptors) == 0 {
			if !yield(out, nil) {
				return false
			}
		} else if !yield(c.intercept(out), nil) {
			return false
		}
		if c.reader.Stopped(g) {
			return true
		}
	}
	return true
}

// yieldHeld is yieldBatch for members of a group: each record is held until the loop comes back for the next one.
func (c *Consumer) yieldHeld(g *fetch.Reading, yield func(Record, error) bool) bool {
	out := blank(g)
	out.claim = c.hold(g)
	keep := c.group.keep.Load()
	if keep {
		g.Keep()
	}
	var r record.Record
	for g.It.Into(&r) {
		if r.Offset < g.From {
			continue
		}
		if !keep || !g.Cell.Held() {
			g.Cell.Hold(r.Offset)
		}
		g.Took(r.Offset)
		if g.Void() { // given up in this moment: whoever waits for the drain sees that nothing is in hand
			g.Untook(r.Offset, r.Offset+1)
			g.Cell.UnholdAt(r.Offset)
			return true
		}
		out.Offset, out.TimestampMs, out.Key, out.Value, out.Headers = r.Offset, r.Timestamp, r.Key, r.Value, r.Headers
		if len(c.cfg.Interceptors) == 0 {
			if !yield(out, nil) {
				return false
			}
		} else if !yield(c.intercept(out), nil) {
			return false
		}
		if c.reader.Stopped(g) {
			return true
		}
	}
	return true
}

// blank is a record with what all records of a batch share.
func blank(g *fetch.Reading) Record {
	return Record{Topic: g.Cell.Topic, Partition: g.Cell.Partition, LeaderEpoch: g.Header.PartitionLeaderEpoch,
		TimestampType: timestampType(&g.Header)}
}

// intercept shows a record to the interceptors. They get a pointer to a copy, so that records of loops without
// interceptors need not be on the heap.
func (c *Consumer) intercept(r Record) Record {
	p := &r
	for _, f := range c.cfg.Interceptors {
		f(p)
	}
	return *p
}
