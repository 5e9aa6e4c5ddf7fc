package consumer

import (
	"context"
	"fmt"

	"github.com/ottla-kafka/ottla/consumer/internal/fetch"
)

// What Records, Batches and Poll have in common. With a group they keep track of what is in the application's hand: it is
// done when the application asks for more, and a partition is given up only when nothing of it is in hand.

// ended is the cause when a ctx has ended already: a call that is given one starts nothing. Whoever asks for more with it
// has done what was handed out all the same.
func (c *Consumer) ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	if c.group != nil && c.reader.Enter() {
		c.unhold()
		c.reader.Leave()
	}
	return context.Cause(ctx)
}

// before is ended for calls that ask for no records.
func (c *Consumer) before(ctx context.Context, op string) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case c.group != nil:
		return c.group.groupError(op, context.Cause(ctx))
	}
	return fmt.Errorf("consumer: %s: %w", op, context.Cause(ctx))
}

// enter claims the reader, and joins the group if that is the first call.
func (c *Consumer) enter(ctx context.Context) (leave func(), err error) {
	if err := c.ended(ctx); err != nil {
		return nil, err
	}
	if c.group != nil {
		if err := c.group.join(); err != nil {
			return nil, err
		}
	}
	if !c.reader.Enter() {
		if c.closing.Load() {
			return nil, ErrClosed
		}
		return nil, ErrBusy
	}
	stop := c.reader.Watch(ctx)
	if c.group != nil {
		c.release()
		c.group.entered()
	}
	return func() {
		stop()
		c.reader.Leave()
		if c.group != nil && c.closing.Load() {
			c.group.abandoned()
		}
	}, nil
}

// next asks for more on behalf of a loop: what was handed out is done.
func (c *Consumer) next(ctx context.Context, wait bool) (*fetch.Reading, *fetch.Failed, error) {
	if c.group != nil {
		c.release()
	}
	return c.reader.Next(ctx, wait)
}

// more asks for more of the same Poll.
func (c *Consumer) more(ctx context.Context, wait bool) (*fetch.Reading, *fetch.Failed, error) {
	return c.reader.Next(ctx, wait)
}

// hold notes whose records are handed out from now on.
func (c *Consumer) hold(g *fetch.Reading) *claim {
	n := len(c.held)
	if !c.group.keep.Load() && (n == 0 || c.held[n-1] != g.Cell) {
		c.held = append(c.held, g.Cell)
	}
	c.group.asked.Add(1)
	c.group.mu.Lock()
	defer c.group.mu.Unlock()
	return c.group.claims[g.Cell.TopicPartition]
}

// release notes that everything that was handed out is done, and that more is asked for. The caller has the reader.
func (c *Consumer) release() {
	if c.group.left.Load() {
		c.group.back()
	}
	c.unhold()
}

// unhold notes that everything that was handed out is done. The caller has the reader.
func (c *Consumer) unhold() {
	g := c.group
	g.asked.Add(1)
	if g.keep.Load() {
		if g.draining.Load() > 0 {
			g.mu.Lock()
			g.poke() // a record may have been given up in the moment it was to be handed out
			g.mu.Unlock()
		}
		return
	}
	if len(c.held) == 0 {
		return
	}
	for i, cell := range c.held {
		cell.Unhold()
		c.held[i] = nil
	}
	c.held = c.held[:0]
	if g.draining.Load() > 0 {
		g.mu.Lock()
		g.poke()
		g.mu.Unlock()
	}
}

// entered notes who reads.
func (g *group) entered() {
	id := goroutineID()
	g.mu.Lock()
	g.reading = id
	g.mu.Unlock()
}

// back comes back to a group that was left because of a stall.
func (g *group) back() {
	if g.left.CompareAndSwap(true, false) {
		g.mu.Lock()
		m := g.member
		g.mu.Unlock()
		m.Resume()
	}
}

// abandoned notes that the last loop has ended while the consumer is being closed: what it broke off at stays undone,
// and nobody has to be waited for.
func (g *group) abandoned() {
	g.mu.Lock()
	g.idle = true
	g.poke()
	g.mu.Unlock()
}
