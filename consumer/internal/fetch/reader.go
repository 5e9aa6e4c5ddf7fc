package fetch

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/wire/record"
)

// ErrClosed is what a reader gets after Close.
var ErrClosed = errors.New("the consumer is closed")

// Failed is an error of one partition that the reader came to.
type Failed struct {
	machine.TopicPartition
	machine.Failure
}

// Reader goes through what the driver delivers. One goroutine at a time uses it; Enter and Leave see to that.
type Reader struct {
	d      *Driver
	busy   atomic.Bool
	halt   atomic.Bool // the caller's ctx ended, or the consumer closed: look at it before the next record
	wait   atomic.Bool // Next waits for data
	cur    *Reading    // what is half read
	failed *Failed     // taken from the queue and not returned yet
	spare  []byte      // for the next batch that is decompressed, with Options.Reuse
}

// NewReader makes the one reader of a driver.
func NewReader(d *Driver) *Reader { return &Reader{d: d} }

// Enter claims the reader; false means that somebody else has it.
func (r *Reader) Enter() bool { return r.busy.CompareAndSwap(false, true) }

// Leave gives it back. After Close nobody comes back for what is half read.
func (r *Reader) Leave() {
	if r.d.Closed() {
		r.release()
	}
	r.busy.Store(false)
}

// Waiting tells whether somebody waits for data in Next.
func (r *Reader) Waiting() bool { return r.wait.Load() }

// Abandon follows the driver's Close: whoever reads stops before the next record, and what is half read is given up.
func (r *Reader) Abandon() {
	r.halt.Store(true)
	if r.Enter() {
		r.Leave()
	}
}

// Watch makes Stopped true when ctx ends; the caller calls the result when he is done.
func (r *Reader) Watch(ctx context.Context) (stop func() bool) {
	r.halt.Store(ctx.Err() != nil || r.d.Closed())
	return context.AfterFunc(ctx, func() { r.halt.Store(true) })
}

// Reading is a batch with records to hand out, and the chunk around it.
type Reading struct {
	It     record.Iterator // the batch that is open
	Header record.BatchHeader
	Cell   *Cell
	Chunk  *machine.Chunk
	From   int64 // records below are not to be handed out: an answer may begin with older ones

	expect uint64 // of Cell.state, for as long as this may be handed out
	cursor cursor
	open   bool
	plain  int64 // charged for the decompressed batch
}

// Took notes that the record at that offset is handed out. It is called before, so that a seek from inside the
// application's code is not undone.
func (g *Reading) Took(offset int64) {
	g.From = offset + 1
	g.Cell.offset.Store(offset + 1)
}

// Untook undoes Took for a record that must not be handed out after all, because its partition was given up in that
// moment.
func (g *Reading) Untook(offset, behind int64) { g.Cell.offset.CompareAndSwap(behind, offset) }

// Keep notes that the application may keep what it is handed out of this answer: its memory is not used again.
func (g *Reading) Keep() { g.Chunk.Owner.(*charge).kept.Store(true) }

func (g *Reading) kept() bool { return g.Chunk.Owner.(*charge).kept.Load() }

// Void tells whether the partition was sought or removed since Next returned this.
func (g *Reading) Void() bool { return g.Cell.state.Load()>>1 != g.expect>>1 }

// at is where to go on if nothing more can be read of the chunk in hand.
func (g *Reading) at() machine.Position {
	return machine.Position{Offset: max(g.From, g.cursor.behind), Epoch: g.Cell.epoch.Load()}
}

// Expect guesses how many records are left in the chunk, from what the open batch is like.
func (g *Reading) Expect() int {
	rest := int64(len(g.cursor.rest)) * int64(g.Header.Count) / int64(max(g.Header.Size(), 1))
	return g.It.Left() + int(min(rest, int64(len(g.cursor.rest)/record.MinRecordSize)))
}

// Stopped tells that the next record must not be handed out before Next was called again: its partition was
// sought, paused or removed, or the caller's ctx ended.
func (r *Reader) Stopped(g *Reading) bool { return g.Cell.state.Load() != g.expect || r.halt.Load() }

// Next gives the batch to go on with, or an error of a partition. It waits for one if wait is set, and returns
// three nils if there is none and wait is not set. The error is ErrClosed or the cause of ctx's end.
func (r *Reader) Next(ctx context.Context, wait bool) (*Reading, *Failed, error) {
	for {
		r.halt.Store(false) // before looking at what sets it: an earlier caller's ctx may have, and must not slow this one
		if r.d.Closed() {
			r.release()
			return nil, nil, ErrClosed
		}
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		if r.d.reported.Load() {
			if err, final := r.d.report(); final {
				r.release()
				return nil, nil, err
			} else if err != nil {
				return nil, &Failed{Failure: machine.Failure{Broker: -1, Err: err}}, nil
			}
		}
		if r.failed != nil {
			f := r.failed
			r.failed = nil
			return nil, f, nil
		}
		if r.cur != nil && r.advance() {
			return r.cur, nil, nil
		}
		if r.cur != nil || r.take() {
			continue
		}
		if !wait {
			return nil, nil, nil
		}
		r.wait.Store(true)
		select {
		case <-r.d.ready:
		case <-ctx.Done():
		case <-r.d.ctx.Done():
		}
		r.wait.Store(false)
	}
}

// Later puts a failure back, to be returned by the next call of Next.
func (r *Reader) Later(f *Failed) { r.failed = f }

// advance comes to the next record of what is half read; false if that is over.
func (r *Reader) advance() bool {
	g := r.cur
	if s := g.Cell.state.Load(); s != g.expect {
		if s == g.expect|pausedBit {
			r.giveBack()
		} else {
			r.finish()
		}
		return false
	}
	for {
		if g.open && g.It.Left() > 0 {
			return true
		}
		if g.open {
			r.closeBatch()
			if err := g.It.Err(); err != nil {
				r.broken(wrap(err))
				return false
			}
		}
		g.cursor.options.Buffer = r.spare
		ok, err := g.cursor.next(&g.It, g.From)
		if err != nil {
			r.broken(err)
			return false
		}
		if !ok {
			r.end()
			return false
		}
		r.openBatch()
	}
}

// openBatch accounts for a batch that was just opened.
func (r *Reader) openBatch() {
	g := r.cur
	g.open, g.Header = true, g.It.Header()
	g.Cell.epoch.Store(g.Header.PartitionLeaderEpoch)
	g.Cell.setTopic(g.Chunk.TopicID)
	r.d.cl.Meter().FetchedRecords.Add(int64(g.Header.Count))
	// The application's own goroutine must not wait for memory that only it can free, so a decompressed batch may
	// overdraw the budget; fetches then wait the longer. max.decompressed.batch.bytes bounds it.
	if n := int64(cap(g.It.Decompressed())); n > 0 {
		r.spare = nil
		r.d.budget.Charge(n)
		g.plain = n
	}
}

func (r *Reader) closeBatch() {
	g := r.cur
	g.open = false
	if b := g.It.Decompressed(); r.d.pool != nil && b != nil && cap(b) <= maxSpare && !g.kept() {
		r.spare = b[:0]
	}
	if g.plain > 0 {
		r.d.budget.Release(g.plain)
		g.plain = 0
	}
}

// end leaves a chunk behind that was read to its end: the position moves over what was not for the application.
func (r *Reader) end() {
	g := r.cur
	d := r.d
	d.mu.Lock()
	if g.Cell.state.Load()&^pausedBit == g.expect && g.Cell.offset.Load() < g.Chunk.Next.Offset {
		g.Cell.setPosition(g.Chunk.Next)
	}
	lag := max(g.Cell.end-g.Cell.offset.Load(), 0)
	d.mu.Unlock()
	d.cl.Meter().SetLag(g.Cell.Topic, g.Cell.Partition, lag)
	r.finish()
}

// finish gives up the chunk in hand.
func (r *Reader) finish() {
	g := r.release()
	r.d.Step(machine.Drained{TopicPartition: g.Cell.TopicPartition, Generation: uint32(g.expect >> 1), Bytes: len(g.Chunk.Records)})
}

// release gives up the chunk in hand without telling the machine.
func (r *Reader) release() *Reading {
	g := r.cur
	if g == nil {
		return nil
	}
	if g.open {
		r.closeBatch()
	}
	r.cur = nil
	g.Chunk.Owner.(*charge).leave()
	r.d.mu.Lock()
	g.Cell.leave(uint32(g.expect >> 1))
	r.d.mu.Unlock()
	return g
}

// broken reports that the chunk in hand cannot be read further.
func (r *Reader) broken(err error) {
	at := r.cur.at()
	g := r.release()
	r.d.Step(machine.Broken{TopicPartition: g.Cell.TopicPartition, Generation: uint32(g.expect >> 1), Position: at, Err: err})
}

// giveBack puts a half-read chunk of a paused partition back to the front of the queue.
func (r *Reader) giveBack() {
	g := r.cur
	r.cur = nil
	d := r.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	back := item{cell: g.Cell, reading: g, Delivery: machine.Delivery{TopicPartition: g.Cell.TopicPartition,
		Generation: uint32(g.expect >> 1), Chunk: g.Chunk}}
	d.queue = append([]item{back}, d.queue...)
}

// take takes the next delivery that may be handed out; false if there is none.
func (r *Reader) take() bool {
	d := r.d
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, it := range d.queue {
		if it.cell.paused() && it.Moved == nil {
			continue
		}
		copy(d.queue[i:], d.queue[i+1:])
		d.queue[len(d.queue)-1] = item{}
		d.queue = d.queue[:len(d.queue)-1]
		switch {
		case it.reading != nil:
			r.cur = it.reading
		case it.Chunk != nil:
			r.cur = &Reading{Cell: it.cell, Chunk: it.Chunk, From: it.Chunk.From.Offset, expect: live(it.Generation), cursor: newCursor(it.Chunk, &d.opts)}
		case it.Failure != nil:
			it.cell.leave(it.Generation)
			r.failed = &Failed{it.TopicPartition, *it.Failure}
		case it.Moved != nil:
			it.cell.leave(it.Generation)
			it.cell.setPosition(*it.Moved)
		}
		return true
	}
	return false
}

// TookAll notes that the rest of the open batch is handed out as one.
func (g *Reading) TookAll(last int64) {
	g.Took(last)
	g.It = record.Iterator{}
}

// Broken reports that a batch handed out with TookAll turned out to be damaged inside, from that offset on.
func (r *Reader) Broken(g *Reading, from int64, err error) {
	if r.cur != g {
		return
	}
	if g.Cell.state.Load() == g.expect {
		g.Cell.offset.Store(from)
	}
	g.From, g.cursor.behind = from, -1
	r.broken(wrap(err))
}
