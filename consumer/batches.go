package consumer

import (
	"context"
	"iter"

	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/record"
)

// Batch is one batch as a producer wrote it and the log holds it. It is a value; it and its records stay valid for
// ever, unless Config.ReuseMemory is set.
type Batch struct {
	Topic         string
	Partition     int32
	LeaderEpoch   int32 // of the leader that wrote it, -1 unknown (magic 0 and 1)
	FirstOffset   int64 // of the batch; records below where the reader was sent are left out of Records
	LastOffset    int64 // of the batch, also when compaction removed its last record
	Count         int   // records in the batch
	ProducerID    int64 // -1 none
	ProducerEpoch int16 // -1 none
	Transactional bool  // written in a transaction
	Codec         compress.Codec
	HighWatermark int64 // of the partition when the batch was fetched
	TimestampType TimestampType
	MaxTimestamp  int64 // milliseconds since 1970

	state *batchState
}

// batchState is what a batch's loops share.
type batchState struct {
	it          record.Iterator // not advanced: each loop takes a copy
	from        int64
	interceptor []Interceptor
	err         error
	next        int64 // behind the last record that could be read
	claim       *claim
}

// Records yields the records of the batch, decoding them as the loop goes. It can be called again. A batch whose
// checksum is right and whose content is not ends early: see Err.
func (b Batch) Records() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		if b.state == nil {
			return
		}
		it := b.state.it
		out := Record{Topic: b.Topic, Partition: b.Partition, LeaderEpoch: b.LeaderEpoch, TimestampType: b.TimestampType, claim: b.state.claim}
		var r record.Record
		next := b.state.from
		for it.Into(&r) {
			if r.Offset < b.state.from {
				continue
			}
			next = r.Offset + 1
			out.Offset, out.TimestampMs, out.Key, out.Value, out.Headers = r.Offset, r.Timestamp, r.Key, r.Value, r.Headers
			if len(b.state.interceptor) > 0 {
				p := out
				for _, f := range b.state.interceptor {
					f(&p)
				}
				if !yield(p) {
					return
				}
			} else if !yield(out) {
				return
			}
		}
		if b.state.err = it.Err(); b.state.err != nil {
			b.state.next = next
		}
	}
}

// Err tells what ended Records early, nil if nothing did. The consumer finds out too: it fetches the batch once more, and if
// that is damaged as well its loop over batches yields the error, and the partition is halted.
func (b Batch) Err() error {
	if b.state == nil {
		return nil
	}
	return b.state.err
}

// Batches yields whole batches, in order within each partition; errors are as with Records. A batch counts as
// handed out when it is yielded: the position is behind it then. If Records, Poll or an earlier loop has read a part
// of a batch, the rest of it comes first.
func (c *Consumer) Batches(ctx context.Context) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		leave, err := c.enter(ctx)
		if err != nil {
			yield(Batch{}, err)
			return
		}
		defer leave()
		for {
			g, failed, err := c.next(ctx, true)
			if err != nil {
				yield(Batch{}, err)
				return
			}
			if failed != nil {
				if !yield(Batch{Topic: failed.Topic, Partition: failed.Partition, FirstOffset: -1, LastOffset: -1},
					c.partitionError(failed)) || c.cfg.FailFast {
					return
				}
				continue
			}
			h := &g.Header
			b := Batch{Topic: g.Cell.Topic, Partition: g.Cell.Partition, LeaderEpoch: h.PartitionLeaderEpoch, FirstOffset: h.BaseOffset,
				LastOffset: h.LastOffset(), Count: int(h.Count), ProducerID: h.ProducerID, ProducerEpoch: h.ProducerEpoch, Transactional: h.Transactional(), Codec: h.Codec(),
				HighWatermark: g.Chunk.HighWatermark, TimestampType: timestampType(h), MaxTimestamp: h.MaxTimestamp,
				state: &batchState{it: g.It, from: g.From, interceptor: c.cfg.Interceptors}}
			if c.group != nil {
				from, keep := max(g.From, b.FirstOffset), c.group.keep.Load()
				b.state.claim = c.hold(g)
				if keep {
					g.Keep()
				}
				if !keep || !g.Cell.Held() {
					g.Cell.Hold(from)
				}
				g.TookAll(b.LastOffset)
				if g.Void() {
					g.Untook(from, b.LastOffset+1)
					g.Cell.UnholdAt(from)
					continue
				}
			} else {
				g.TookAll(b.LastOffset)
			}
			more := yield(b, nil)
			if b.state.err != nil {
				c.reader.Broken(g, b.state.next, b.state.err)
			}
			if !more {
				return
			}
		}
	}
}
