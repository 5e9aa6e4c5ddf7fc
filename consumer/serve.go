package consumer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/ottla-kafka/ottla/consumer/machine"
)

// Claim is one partition while it is this member's, as Serve hands it out. Its methods belong to the handler's goroutine,
// except where they say otherwise.
type Claim struct {
	c *claim
	e *engine
}

// TopicPartition names the partition. Any goroutine may call it.
func (cl *Claim) TopicPartition() TopicPartition { return cl.c.TopicPartition }

// Ending is a context that ends as soon as the claim is to be given up, with ErrRevoked, ErrLost, ErrFenced or ErrClosed as
// its cause. The handler's own ctx goes on a while, so that what is in hand can end. Any goroutine may call it.
func (cl *Claim) Ending() context.Context { return cl.c.ending }

// Records yields the records of the partition in order and ends by itself when the claim is to be given up, is lost, or ctx
// ends; context.Cause of Ending or ctx says why. A record is done when the loop asks for the next one, and the last one
// when the handler returns nil. An error is about the partition, as with Consumer.Records; it is yielded with a record that
// names the partition and nothing else, and the loop may go on.
func (cl *Claim) Records(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for {
			r, err, ok := cl.next(ctx)
			if !ok || !yield(r, err) {
				return
			}
		}
	}
}

// next waits for the next record; false when there will be none.
func (cl *Claim) next(ctx context.Context) (Record, error, bool) {
	c, g := cl.c, cl.e.g
	for {
		g.mu.Lock()
		cl.done()
		switch {
		case !c.reading() || cl.e.stopping || ctx.Err() != nil:
			handling, over := c.handling, cl.e.ctx.Err() != nil
			g.mu.Unlock()
			if over && handling != nil {
				<-handling.Done() // ended by the same cause, which the handler finds there when its loop is over
			}
			return Record{}, nil, false
		case len(c.errs) > 0:
			err := c.errs[0]
			c.errs = c.errs[1:]
			g.mu.Unlock()
			return Record{Topic: c.Topic, Partition: c.Partition, Offset: -1, TimestampMs: -1, TimestampType: NoTimestamp}, err, true
		}
		if job, ok := c.work.Take(); ok {
			c.inHand, c.inHandAt = &job, time.Now()
			g.mu.Unlock()
			return job.Item, nil, true
		}
		g.mu.Unlock()
		select {
		case <-c.more:
		case <-ctx.Done():
		}
	}
}

// done notes that the record in hand is done. g.mu is held.
func (cl *Claim) done() {
	c := cl.c
	if c.inHand == nil || c.work == nil {
		return
	}
	cl.e.g.asked.Add(1)
	if c.alive() && c.final == nil {
		c.work.Finish(c.inHand.Seq)
		cl.e.room(c)
	}
	c.inHand = nil
}

// Commit declares the record in hand done and commits what is done of this partition, waiting as Consumer.Commit does. For a
// claim that is gone the error is the cause of its end.
func (cl *Claim) Commit(ctx context.Context) error {
	g := cl.e.g
	g.mu.Lock()
	cl.done()
	p, alive := cl.c.done(), cl.c.alive()
	g.mu.Unlock()
	if !alive {
		return cl.c.gone()
	}
	if p.Offset < 0 {
		return nil
	}
	return g.c.CommitOffsets(ctx, map[TopicPartition]Offset{cl.c.TopicPartition: offsetOf(p)})
}

// Serve calls handle once for each partition that the group gives this member, each in a goroutine of its own, for as long
// as it is this member's:
//
//	err := c.Serve(ctx, func(ctx context.Context, claim *consumer.Claim) error {
//		for r, err := range claim.Records(ctx) {
//			...
//		}
//		return nil
//	})
//
// When the partition is to be given up, claim.Records ends by itself and the partition goes to its next owner when handle
// has returned and what is done was committed. handle's ctx ends when that takes too long (DrainTimeout), at once when the
// partition is lost, and when Serve's ctx ends; context.Cause says which: ErrRevoked, ErrLost, ErrFenced, ErrClosed.
//
// An error of handle while it has the claim ends Serve; nil means that it wants no more of the partition, which stays
// unread until it is given up. Serve returns as Run does.
func (c *Consumer) Serve(ctx context.Context, handle func(context.Context, *Claim) error) error {
	if err := c.ended(ctx); err != nil {
		return err
	}
	if handle == nil {
		return errors.New("consumer: Serve: the handler is nil")
	}
	return c.drive(ctx, &engine{serve: handle, buffer: DefaultRunOptions().Buffer})
}

// serveClaim is the goroutine of one claim.
func (e *engine) serveClaim(c *claim) {
	cl := &Claim{c, e}
	e.g.mu.Lock()
	ctx := c.handling
	c.goroutine = goroutineID()
	e.g.mu.Unlock()
	err := fmt.Errorf("consumer: %s: %w", c.TopicPartition, errNoReturn) // unless it returns
	defer func() { e.ended(cl, ctx, err) }()
	err = e.serve(ctx, cl)
}

// ended takes the outcome of Serve's handler.
func (e *engine) ended(cl *Claim, ctx context.Context, err error) {
	c := cl.c
	e.g.mu.Lock()
	defer e.g.mu.Unlock()
	if err == nil {
		cl.done()
	}
	c.serving, c.served = false, true
	if err != nil && c.reading() && ctx.Err() == nil {
		e.fail(err)
	} else if c.reading() && !e.stopping {
		e.g.c.driver.Step(machine.Paused{TopicPartition: c.TopicPartition})
	}
	e.g.poke()
}
