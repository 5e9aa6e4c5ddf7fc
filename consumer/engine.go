package consumer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ottla-kafka/ottla/consumer/internal/fetch"
	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/wire/record"
)

// engine is Run or Serve while it runs. One goroutine, the pump, takes records from the consumer's reader and offers them
// to the machine.Work of their claim; handlers take from there. A claim whose handlers do not keep up is paused, and
// only that one is. All fields belong to group.mu, which is never held while a handler runs.
type engine struct {
	g      *group
	ctx    context.Context // the caller's; ends with the first failure too
	cancel context.CancelCauseFunc
	buffer int // records of one claim that are offered and not finished, at most

	run   *RunOptions // Run, nil with Serve
	each  func(context.Context, Record) error
	serve func(context.Context, *Claim) error

	stopping bool
	failure  error
	handlers sync.WaitGroup
	workers  map[*worker]struct{} // handlers of Run under way
	running  int                  // goroutines of Run
	fresh    int                  // of them, have not taken anything yet
	turns    []*claim             // have records to start, in turns
	timers   map[*time.Timer]struct{}
}

// errStopped ends the pump after a handler's failure.
var errStopped = errors.New("stopped by a handler's failure")

// pumped is how many records the pump decodes before it offers them.
const pumped = 128

// drive runs an engine until ctx ends, the consumer is closed, or a handler fails for good. Then handlers end, what they
// have finished is committed, and the positions are put back to that, so that whoever reads next misses nothing.
func (c *Consumer) drive(ctx context.Context, e *engine) error {
	g, _, err := c.joined()
	if err != nil {
		return err
	}
	pumpCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	leave, err := c.enter(pumpCtx)
	if err != nil {
		return err
	}
	defer leave()
	e.g, e.ctx, e.cancel, e.workers, e.timers = g, ctx, cancel, map[*worker]struct{}{}, map[*time.Timer]struct{}{}
	g.mu.Lock()
	if g.intake != nil {
		g.mu.Unlock()
		return g.groupError("Run or Serve", ErrInTransaction)
	}
	g.engine = e
	for _, cl := range g.sorted() {
		if cl.reading() {
			e.attach(cl)
		}
	}
	g.mu.Unlock()
	err = e.pump(pumpCtx)
	g.mu.Lock()
	e.stopping = true
	if e.failure != nil {
		err = e.failure
	}
	for t := range e.timers {
		t.Stop()
	}
	for _, cl := range g.claims {
		cl.signal()
	}
	g.poke()
	g.mu.Unlock()
	e.wait(errors.Is(err, ErrStalled))
	if g.cfg.AutoCommit {
		err = errors.Join(err, e.commit(ctx))
	}
	e.detach()
	return err
}

// stallWait is how long Run waits after a stall for the handler that does not get on. It is told by its ctx; if it does
// not listen, Run says what happened all the same and leaves it behind.
const stallWait = 5 * time.Second

// wait waits until the handlers have returned.
func (e *engine) wait(stalled bool) {
	if !stalled {
		e.handlers.Wait()
		return
	}
	done := make(chan struct{})
	go func() { e.handlers.Wait(); close(done) }() // ends with the handlers
	select {
	case <-done:
	case <-time.After(stallWait):
	}
}

// commit commits what is done when the call ends; ctx may have ended already, so it has a time of its own.
func (e *engine) commit(ctx context.Context) error {
	offsets := e.g.doneOffsets(false)
	if len(offsets) == 0 || e.g.closing() {
		return nil // Close commits, or has done so
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(closeDrain, e.g.c.cfg.APITimeout))
	defer cancel()
	if err := e.g.member.Commit(ctx, offsets); err != nil {
		e.g.commitFailed(offsets, err)
		return e.g.groupError("commit", err)
	}
	e.g.stored(offsets)
	return nil
}

// attach makes a claim's records go to handlers. g.mu is held, the claim is being read.
func (e *engine) attach(cl *claim) {
	if cl.work != nil || e.stopping {
		return
	}
	cl.work = machine.NewWork[Record](cl.cell.Done(), e.serve != nil)
	cl.attempts = map[uint64]int{}
	cl.handling, cl.unhandle = context.WithCancelCause(e.ctx)
	cl.served = false
	if e.serve != nil {
		cl.serving = true
		e.handlers.Go(func() { e.serveClaim(cl) }) // ends with the handler, which cl.handling and cl.ending tell to
	}
}

// detach takes the claims back from the handlers, all of which have returned.
func (e *engine) detach() {
	g := e.g
	g.mu.Lock()
	defer g.mu.Unlock()
	g.engine = nil
	for _, cl := range g.claims {
		if cl.work == nil {
			continue
		}
		done := cl.done()
		if cl.unhandle != nil {
			cl.unhandle(context.Canceled)
		}
		if !cl.reading() {
			cl.final = &done // it is being given up
		} else if done.Offset >= 0 && done.Offset != cl.cell.Position().Offset {
			g.c.driver.Step(machine.Sought{TopicPartition: cl.TopicPartition, To: machine.AtPosition(done)})
		}
		e.charge(cl, 0)
		e.release(cl)
		if cl.served && !cl.paused && cl.reading() {
			g.c.driver.Step(machine.Resumed{TopicPartition: cl.TopicPartition})
		}
		cl.work, cl.inHand, cl.handling, cl.unhandle = nil, nil, nil, nil
	}
	g.poke()
}

// fail ends the engine with an error. g.mu is held.
func (e *engine) fail(err error) {
	if e.failure == nil {
		e.failure = err
	}
	e.stopping = true
	e.cancel(errStopped)
}

// pump takes records from the reader until that ends.
func (e *engine) pump(ctx context.Context) error {
	c := e.g.c
	for {
		g, failed, err := c.reader.Next(ctx, true)
		if err != nil {
			return err
		}
		if failed != nil {
			if err := e.failed(failed); err != nil {
				return err
			}
			continue
		}
		e.g.asked.Add(1)
		e.offer(g)
	}
}

// failed deals with an error of one partition: Serve's handler is told; Run ends when nothing more would be read from it.
func (e *engine) failed(f *fetch.Failed) error {
	err := e.g.c.partitionError(f)
	if e.run != nil || f.Topic == "" {
		if f.Halted || e.g.c.cfg.FailFast || errors.Is(err, ErrStalled) {
			return err
		}
		e.g.c.cl.Logger().Warn("kafka consumer: "+err.Error(), "group", e.g.cfg.ID)
		return nil
	}
	e.g.mu.Lock()
	defer e.g.mu.Unlock()
	if cl := e.g.claims[f.TopicPartition]; cl != nil && len(cl.errs) < 16 {
		cl.errs = append(cl.errs, err)
		cl.signal()
	}
	return nil
}

// offer decodes some records of the open batch and gives them to their claim.
func (e *engine) offer(g *fetch.Reading) {
	c := e.g.c
	var list [pumped]Record
	n := 0
	g.Keep() // handlers have the records for as long as they like
	shared := blank(g)
	var r record.Record
	for n < min(pumped, e.buffer) && g.It.Into(&r) {
		if r.Offset < g.From {
			continue
		}
		shared.Offset, shared.TimestampMs, shared.Key, shared.Value, shared.Headers = r.Offset, r.Timestamp, r.Key, r.Value, r.Headers
		if list[n] = shared; len(c.cfg.Interceptors) > 0 {
			list[n] = c.intercept(shared)
		}
		n++
	}
	if n == 0 {
		return
	}
	e.g.mu.Lock()
	defer e.g.mu.Unlock()
	cl := e.g.claims[g.Cell.TopicPartition]
	if cl == nil || cl.cell != g.Cell || !cl.reading() || g.Void() {
		return // given up or sought in this moment: these records are not wanted any more
	}
	if cl.work == nil { // it came while the engine was ending: whoever reads next gets them
		c.driver.Step(machine.Sought{TopicPartition: cl.TopicPartition, To: machine.AtOffset(list[0].Offset)})
		return
	}
	if cl.work.Frontier().Offset < 0 {
		cl.work.Pass(Position{Offset: list[0].Offset, Epoch: -1}) // where it starts was not known before
	}
	for i := range list[:n] {
		list[i].claim = cl
		cl.work.Offer(list[i].Key, list[i], len(list[i].Key)+len(list[i].Value), Position{Offset: list[i].Offset + 1, Epoch: list[i].LeaderEpoch})
	}
	g.Took(list[n-1].Offset)
	e.charge(cl, cl.work.Bytes())
	if (cl.work.Len() >= e.buffer || cl.work.Bytes() >= c.cfg.MaxPartitionBytes) && !cl.throttled {
		cl.throttled = true
		c.driver.Step(machine.Paused{TopicPartition: cl.TopicPartition})
	}
	e.turn(cl)
}

// turn lets a claim that has records to start be served. g.mu is held.
func (e *engine) turn(cl *claim) {
	if e.serve != nil {
		cl.signal()
		return
	}
	if cl.work.Ready() && !cl.queued {
		cl.queued = true
		e.turns = append(e.turns, cl)
	}
	e.spawn()
}

// charge puts what handlers have or wait for on the client's memory budget, in place of the answers that it came in. It may
// overdraw the budget, by as much as the pump takes at a time; fetches then wait. g.mu is held.
func (e *engine) charge(cl *claim, bytes int) {
	budget := e.g.c.cl.Budget()
	switch more := int64(bytes - cl.charged); {
	case more > 0:
		budget.Charge(more)
	case more < 0:
		budget.Release(-more)
	}
	cl.charged = bytes
}

// room lets a paused claim go on when half of what it may hold is finished. g.mu is held.
func (e *engine) room(cl *claim) {
	e.charge(cl, cl.work.Bytes())
	if cl.throttled && cl.work.Len() <= e.buffer/2 && cl.work.Bytes() <= e.g.c.cfg.MaxPartitionBytes/2 {
		e.release(cl)
	}
}

// release undoes the pause of a claim that was throttled, unless the application paused it too. g.mu is held.
func (e *engine) release(cl *claim) {
	if cl.throttled {
		cl.throttled = false
		if !cl.paused {
			e.g.c.driver.Step(machine.Resumed{TopicPartition: cl.TopicPartition})
		}
	}
}
