package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/ottla-kafka/ottla/consumer/internal/fetch"
	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/groupmember"
)

// claim is the driver's side of machine.Claim: one partition for as long as this member has it. What is below the
// line belongs to group.mu.
type claim struct {
	TopicPartition
	g    *group
	over context.Context // ends when the claim ends, or its revocation has waited long enough, with the cause
	end  context.CancelCauseFunc

	held      context.Context // the member's: ends when it is being revoked or lost
	state     machine.Claim
	cell      *fetch.Cell // nil before it is read
	start     Where       // where the application sent it before it was read
	committed Position    // what the group has, as far as this consumer knows; Offset -1: nothing
	tried     Position    // what a transaction under way has sent to be committed; Offset -1: nothing
	seen      int64       // position at its last Portion, -1 none
	final     *Position   // what was done when Run or Serve ended while the claim was being given up

	work      *machine.Work[Record] // Run and Serve, nil otherwise
	handling  context.Context       // what handlers of Run and Serve get; ends with over and with their call
	unhandle  context.CancelCauseFunc
	charged   int            // bytes of work on the client's memory budget
	attempts  map[uint64]int // of records that failed
	queued    bool           // in engine.turns
	throttled bool           // paused because its handlers do not keep up
	paused    bool           // by the application
	serving   bool           // Serve's handler runs
	served    bool           // Serve's handler has returned
	ending    context.Context
	endSoon   context.CancelCauseFunc // ends ending: the claim is being given up
	inHand    *machine.Job[Record]    // what Serve's handler has
	inHandAt  time.Time
	goroutine string        // of Serve's handler
	more      chan struct{} // one slot: Serve's handler has something to look at
	errs      []error       // for Serve's handler
}

func newClaim(g *group, tp TopicPartition, held context.Context) *claim {
	c := &claim{TopicPartition: tp, g: g, held: held, committed: nowhere, tried: nowhere, seen: -1, more: make(chan struct{}, 1)}
	c.over, c.end = context.WithCancelCause(context.Background())
	c.ending, c.endSoon = context.WithCancelCause(context.Background())
	return c
}

// reading tells whether records of it may be handed out. g.mu is held.
func (c *claim) reading() bool { return c.state.State() == machine.ClaimReading }

// givenUp tells whether it is being given up, or has ended. g.mu is held.
func (c *claim) givenUp() bool { return c.state.State() > machine.ClaimReading }

// alive tells whether offsets of it may be committed. The member may know of a loss before the listener is told. g.mu is
// held.
func (c *claim) alive() bool { return c.state.State() != machine.ClaimEnded && !c.lost() }

// lost tells whether the member does not hold the partition any more, without having given it up.
func (c *claim) lost() bool {
	if c.held.Err() == nil {
		return false
	}
	cause := context.Cause(c.held)
	return !errors.Is(cause, ErrRevoked) && !errors.Is(cause, groupmember.ErrClosed)
}

// done is the position up to which everything is processed without a gap; its offset is -1 when there is none to
// commit. g.mu is held.
func (c *claim) done() Position {
	switch {
	case c.final != nil:
		return *c.final
	case c.cell == nil:
		return Position{Offset: -1, Epoch: -1}
	case c.work == nil:
		return c.cell.Done()
	}
	if c.reading() {
		c.pass()
	}
	return c.work.Frontier()
}

// pass moves the frontier to where the reader is when nothing is outstanding: it moves over markers and compacted records
// too. What is taken from the cell is offered under g.mu, so everything in front of it is done then. It must not be called
// after a drain has dropped what was offered. g.mu is held.
func (c *claim) pass() {
	if c.work.Len() == 0 {
		c.work.Pass(c.cell.Position())
	}
}

// inUse tells whether the application has something of it in hand. g.mu is held.
func (c *claim) inUse() bool {
	switch {
	case c.cell == nil || c.final != nil:
		return false
	case c.work == nil:
		return c.cell.Held() && (!c.g.idle || c.g.intake != nil && len(c.g.intake.watches) > 0)
	case c.serving:
		return true
	case c.served:
		return false
	case c.g.engine != nil && c.g.engine.stopping:
		return c.work.Running() > 0
	}
	return c.work.Len() > 0
}

// stop ends fetching and handing out. g.mu is held.
func (c *claim) stop(cause error) {
	c.endSoon(cause)
	c.g.c.driver.Step(machine.Removed{TopicPartition: c.TopicPartition})
	if c.work != nil {
		c.pass()
		c.work.Drain()
		c.g.engine.charge(c, c.work.Bytes())
	}
	c.signal()
}

// signal lets Serve's handler look again.
func (c *claim) signal() {
	select {
	case c.more <- struct{}{}:
	default:
	}
}
