package fetch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/wire/compress"
)

// Options are what a Driver needs to know beside what the machine does.
type Options struct {
	Client          *client.Client
	Machine         machine.Config
	MinBytes        int32
	ReadCommitted   bool
	Rack            string
	CheckCRC        bool
	MaxDecompressed int // of one batch, in bytes
	Decompressor    *compress.Decompressor
	// Reuse gives the memory of answers to later ones, unless Reading.Keep says that the application keeps them.
	Reuse bool
	// Notice is told what happens, in order, from the driver's goroutine; it must not block. May be nil.
	Notice func(machine.Notice)
}

// Driver owns a machine and everything that is done about its decisions. Its methods may be called from any
// goroutine and do not block, except Close.
type Driver struct {
	opts   Options
	cl     *client.Client
	budget *client.Budget
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	stop   func()         // of the topology subscription
	lane   client.Purpose // for requests that a broker holds back until there is data: nobody else waits behind them
	free   func()         // the lane
	pool   *pool          // of answers' memory; nil without Options.Reuse
	group  sync.WaitGroup // the planning goroutine, and one for each fetch that waits for memory

	wake  chan struct{} // one slot: the planning goroutine has something to do
	ready chan struct{} // one slot: the reader has something to look at

	mu      sync.Mutex // held for steps of the machine and short list work, never across anything that waits
	machine *machine.Fetcher
	cells   map[machine.TopicPartition]*Cell
	queue   []item // for the reader, in order
	todo    machine.Effects
	closed  bool

	starving int // fetches that wait for memory

	reports  []error     // for the reader, about the consumer as a whole; bounded by maxReports
	reported atomic.Bool // reports or final is not empty
	final    error       // why nothing will come any more
}

// maxReports bounds the errors that wait for a reader who does not come.
const maxReports = 64

// item is one delivery on its way to the reader, or one that the reader gave back half read.
type item struct {
	cell *Cell
	machine.Delivery
	reading *Reading
}

// New starts a driver: one goroutine, which Close ends.
func New(o Options) *Driver {
	ctx, cancel := context.WithCancel(context.Background())
	d := &Driver{
		opts: o, cl: o.Client, budget: o.Client.Budget(), ctx: ctx, cancel: cancel,
		wake: make(chan struct{}, 1), ready: make(chan struct{}, 1),
		machine: machine.New(o.Machine), cells: map[machine.TopicPartition]*Cell{},
	}
	if o.Reuse {
		d.pool = &pool{}
	}
	d.lane, d.free = d.cl.Lane(client.Fetch)
	d.group.Go(d.run) // ends with d.ctx
	d.stop = d.cl.OnTopology(func(t *client.Topology) { d.Step(machine.TopologyChanged{View: view{t}}) })
	return d
}

// Step takes an event to the machine. What it decides takes effect before Step returns as far as the reader is
// concerned (a sought partition hands out nothing old any more); requests follow from the driver's goroutine.
func (d *Driver) Step(ev machine.Event) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return
	}
	wake, ready := d.step(ev)
	d.mu.Unlock()
	if wake {
		signal(d.wake)
	}
	if ready {
		signal(d.ready)
	}
}

// step is Step with d.mu held.
func (d *Driver) step(ev machine.Event) (wake, ready bool) {
	switch ev := ev.(type) {
	case machine.Added:
		if d.cells[ev.TopicPartition] == nil {
			d.cells[ev.TopicPartition] = newCell(ev.TopicPartition)
		}
	case machine.Sought:
		if c := d.cells[ev.TopicPartition]; c != nil {
			c.setPosition(machine.Position{Offset: -1, Epoch: -1}) // until the machine knows better
			c.err = nil
		}
	case machine.Paused:
		if c := d.cells[ev.TopicPartition]; c != nil {
			c.setPaused(true)
		}
	case machine.Resumed:
		if c := d.cells[ev.TopicPartition]; c != nil {
			c.setPaused(false)
			ready = true // what it has buffered may be handed out again
		}
	}
	eff := d.machine.Step(time.Now(), ev)
	if len(eff.Voided) > 0 {
		d.void(eff.Voided)
	}
	for _, del := range eff.Deliver {
		ready = d.deliver(del) || ready
	}
	if d.starving > 0 && (len(eff.Deliver) > 0 || pausedEvent(ev)) {
		d.evict()
	}
	if gone, ok := ev.(machine.Removed); ok && d.cells[gone.TopicPartition] != nil {
		delete(d.cells, gone.TopicPartition)
		d.cl.Meter().ForgetLag(gone.Topic, gone.Partition)
	}
	return d.keep(&eff), ready
}

func pausedEvent(ev machine.Event) bool {
	_, ok := ev.(machine.Paused)
	return ok
}

// keep puts what is to be sent or told onto the list of the driver's goroutine.
func (d *Driver) keep(eff *machine.Effects) bool {
	t := &d.todo
	t.Notices = append(t.Notices, eff.Notices...)
	t.Track = append(t.Track, eff.Track...)
	t.Untrack = append(t.Untrack, eff.Untrack...)
	t.Leaders = append(t.Leaders, eff.Leaders...)
	t.Lookups = append(t.Lookups, eff.Lookups...)
	t.Fetches = append(t.Fetches, eff.Fetches...)
	t.Refresh = t.Refresh || eff.Refresh
	t.Wake = t.Wake || eff.Wake
	return t.Wake || t.Refresh || len(t.Notices)+len(t.Track)+len(t.Untrack)+len(t.Leaders)+len(t.Lookups)+len(t.Fetches) > 0
}

// void makes the reader drop what is void, and drops it from the queue now, so that its memory is free.
func (d *Driver) void(list []machine.Voided) {
	for _, v := range list {
		if c := d.cells[v.TopicPartition]; c != nil {
			c.void(v.Generation)
		}
	}
	d.keepItems(func(it item) bool { return !it.cell.stale(it.Generation) })
}

// drop forgets a delivery that nobody will read.
func (d *Driver) drop(it item) {
	if it.reading != nil {
		d.budget.Release(it.reading.plain) // of the batch that is open in it
		it.reading.plain = 0
	}
	it.cell.leave(it.Generation)
	if it.Chunk != nil {
		it.Chunk.Owner.(*charge).leave()
	}
}

// deliver queues a delivery. A move without anything in front of it takes effect at once, so that Position knows
// of it without anybody reading.
func (d *Driver) deliver(del machine.Delivery) (ready bool) {
	c := d.cells[del.TopicPartition]
	if c == nil {
		return false
	}
	if del.Moved != nil && c.pending == 0 {
		c.setPosition(*del.Moved)
		return false
	}
	if del.Failure != nil {
		d.cl.Meter().FetchErrors.Add(1)
		if del.Failure.Halted {
			c.err = del.Failure.Err
		}
	} else {
		c.err = nil
	}
	if del.Chunk != nil {
		del.Chunk.Owner.(*charge).use()
		c.end, c.start = del.Chunk.HighWatermark, del.Chunk.LogStart
		if d.opts.ReadCommitted && del.Chunk.LastStable >= 0 {
			c.end = del.Chunk.LastStable
		}
	}
	c.pending++
	d.queue = append(d.queue, item{cell: c, Delivery: del})
	return true
}

// run plans whenever something changed, and does what is to be done. It is the only goroutine that calls the
// client and the application's Notice.
func (d *Driver) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		d.mu.Lock()
		if d.closed {
			d.mu.Unlock()
			return
		}
		d.todo.Wake = false
		d.step(machine.Woke{})
		todo := d.todo
		d.todo = machine.Effects{Wake: todo.Wake}
		due := d.machine.Deadline()
		ready := len(d.queue) > 0
		d.mu.Unlock()
		if ready {
			signal(d.ready)
		}
		d.carryOut(&todo)
		wait := time.Hour
		if !due.IsZero() {
			wait = max(time.Until(due), 0)
		}
		timer.Reset(wait)
		select {
		case <-d.ctx.Done():
			return
		case <-d.wake:
		case <-timer.C:
		}
	}
}

// Close stops everything. Answers still on their way are dropped when they come; sessions are given back without
// waiting. It returns when the driver's goroutines are gone or ctx ends.
func (d *Driver) Close(ctx context.Context) error {
	d.mu.Lock()
	if !d.closed {
		d.step(machine.Closed{})
		d.closed = true
		todo := d.todo
		d.todo = machine.Effects{}
		topics := d.queue
		d.queue = nil
		for _, it := range topics {
			d.drop(it)
		}
		for tp := range d.cells {
			d.cl.Meter().ForgetLag(tp.Topic, tp.Partition)
		}
		d.mu.Unlock()
		d.cancel()
		d.stop()
		todo.Lookups, todo.Leaders, todo.Refresh = nil, nil, false
		d.carryOut(&todo)
		signal(d.ready)
	} else {
		d.mu.Unlock()
	}
	done := make(chan struct{})
	go func() { d.group.Wait(); d.free(); close(done) }() // ends with the group, which d.cancel ended
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Report gives the reader an error about the consumer as a whole; it goes on afterwards. With final the error is the
// answer to every further call.
func (d *Driver) Report(err error, final bool) {
	d.mu.Lock()
	switch {
	case final && d.final == nil:
		d.final = err
	case !final && len(d.reports) < maxReports:
		d.reports = append(d.reports, err)
	}
	d.reported.Store(true)
	d.mu.Unlock()
	signal(d.ready)
}

// Tell has Options.Notice told, in order with what the machine has to tell.
func (d *Driver) Tell(n machine.Notice) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return
	}
	d.todo.Notices = append(d.todo.Notices, n)
	d.mu.Unlock()
	signal(d.wake)
}

// report takes the next of those errors; what is not final comes first.
func (d *Driver) report() (err error, final bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.reports) > 0 {
		err, d.reports = d.reports[0], d.reports[1:]
		d.reported.Store(len(d.reports) > 0 || d.final != nil)
		return err, false
	}
	return d.final, d.final != nil
}

// Cell is what is shared about a partition, nil if it is not read. It stays of use after the partition was removed.
func (d *Driver) Cell(tp machine.TopicPartition) *Cell {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cells[tp]
}

// Closed tells whether Close was called.
func (d *Driver) Closed() bool { return d.ctx.Err() != nil }

// signal fills a one-slot channel.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
