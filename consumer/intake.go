package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/groupmember"
)

// Intake is the consuming side of transactions: while there is one, the offsets of its consumer are committed by transactions
// and by nothing else. Everything that the consumer hands out (Records, Batches, Poll) stays in hand until a transaction has
// settled it, however often the loop asks for more; partitions are given up only then (DrainTimeout bounds that), and
// enable.auto.commit rests.
//
// txn.Session.Consume and txn.Session.Pipe do all of it. By hand, a transaction goes like this:
//
//	p, err := in.Portion()              // what was handed out, and the generation that it belongs to
//	err = tx.SendOffsets(ctx, ...)      // TxnOffsetCommit with that generation: the coordinator refuses a zombie's (KIP-447)
//	err = in.Err()                      // and nothing was lost meanwhile
//	err = tx.Commit(ctx)
//	in.Settle(p)                        // or, when it was aborted:
//	err = in.Rewind(ctx)                // positions back to the committed offsets: the same records are handed out again
//
// Its methods are called by whoever reads, or while nobody reads.
type Intake struct {
	g *group

	// These belong to group.mu.
	watches map[*watch]struct{}
	broken  error // why what is in hand cannot be committed any more
}

// watch is one call of Watch.
type watch struct{ reading, handling context.CancelCauseFunc }

// Portion is what a consumer has handed out, or passed over, since the last Settle or Rewind.
type Portion struct {
	// Group is the group.id, Generation the membership under which it was handed out.
	Group      string
	Generation groupmember.Generation
	// Offsets are the positions to commit: behind the last record handed out, and behind markers of transactions and aborted
	// records after it, so that the lag of the group can reach zero. Partitions without news are not in it.
	Offsets map[TopicPartition]Offset
}

// ErrInTransaction is the error of commits while the consumer's offsets are committed by transactions; see Intake.
var ErrInTransaction = errors.New("the offsets of this consumer are committed by transactions")

// Intake hands the consumer's offsets over to transactions, until Release. It fails with ErrNoGroup without a group, with
// ErrBusy when there is an Intake already, or Run or Serve works. It joins the group, if the consumer subscribes; offsets of a
// consumer that is assigned its partitions are committed without a member, and no zombie is refused (KIP-447).
func (c *Consumer) Intake() (*Intake, error) {
	g, _, err := c.joined()
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.intake != nil || g.engine != nil {
		return nil, ErrBusy
	}
	g.intake = &Intake{g: g, watches: map[*watch]struct{}{}}
	g.keep.Store(true)
	return g.intake, nil
}

// Generation identifies the membership in the group: what TxnOffsetCommit has to name. Its ID is -1 while there is none, and
// for a consumer that is assigned its partitions.
func (c *Consumer) Generation() groupmember.Generation {
	if c.group == nil {
		return groupmember.Generation{ID: -1}
	}
	c.group.mu.Lock()
	m := c.group.member
	c.group.mu.Unlock()
	if m == nil {
		return groupmember.Generation{ID: -1}
	}
	return m.Generation()
}

// Portion tells what a transaction has to commit. The error says that a partition with records in hand is gone: the transaction
// has to be aborted. It matches ErrRevoked, ErrLost, ErrFenced or ErrClosed.
//
// It is asked again before every attempt to send the offsets: the member epoch of KIP-848's protocol may move while the
// partitions stay.
func (in *Intake) Portion() (Portion, error) {
	g := in.g
	// The generation comes first: partitions that are still held a moment later were held in it, since a claim that has ended
	// never comes back. The other way round, a member that was dropped and joined anew in between would commit offsets of
	// its former life under its new one.
	p := Portion{Group: g.cfg.ID, Generation: g.c.Generation(), Offsets: map[TopicPartition]Offset{}}
	g.mu.Lock()
	defer g.mu.Unlock()
	if in.broken != nil {
		return p, in.broken
	}
	for tp, c := range g.claims {
		if c.cell == nil {
			continue
		}
		held := c.cell.Held()
		if !c.inTime() {
			if held {
				return p, c.whyGone()
			}
			continue
		}
		at := c.cell.Position()
		c.seen = at.Offset
		if at.Offset < 0 || at.Offset == c.committed.Offset || !held && at.Offset == 0 {
			continue
		}
		c.tried = at
		p.Offsets[tp] = c.offset(at)
	}
	return p, nil
}

// Err is why what is in hand cannot be committed any more, nil if it can. It is asked once more when the offsets have been sent,
// before the transaction is committed: a request that was under way while the member was dropped and came back may have been
// taken for one of its new life (KIP-848 may give it the same epoch again), after that had fetched the older offsets.
func (in *Intake) Err() error {
	g := in.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if in.broken != nil {
		return in.broken
	}
	for _, c := range g.claims {
		if c.cell != nil && c.cell.Held() && !c.inTime() {
			return c.whyGone()
		}
	}
	return nil
}

// inTime tells whether a transaction may still commit what is in hand: the claim is read, or its drain waits for just that.
// g.mu is held.
func (c *claim) inTime() bool {
	s := c.state.State()
	return c.alive() && (s == machine.ClaimReading || s == machine.ClaimDraining)
}

// whyGone is the error about a claim with records in hand that is no more. g.mu is held.
func (c *claim) whyGone() error {
	cause := context.Cause(c.over)
	if cause == nil {
		cause = context.Cause(c.held)
	}
	if cause == nil {
		cause = ErrLost
	}
	return fmt.Errorf("consumer: %s from offset %d is in hand and cannot be committed for group %q: %w", c.TopicPartition, c.cell.Done().Offset, c.g.cfg.ID, cause)
}

// Pending tells whether a Portion would have offsets.
func (in *Intake) Pending() bool {
	g := in.g
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.claims {
		if c.cell == nil || !c.inTime() {
			continue
		}
		if at := c.cell.Position().Offset; c.cell.Held() || at > 0 && at != c.committed.Offset {
			return true
		}
	}
	return in.broken != nil
}

// Settle notes that a transaction has committed a portion: it is done.
func (in *Intake) Settle(p Portion) {
	g := in.g
	g.mu.Lock()
	defer g.mu.Unlock()
	for tp, o := range p.Offsets {
		if c := g.claims[tp]; c != nil && c.cell != nil && c.tried.Offset == o.At {
			c.committed = c.tried
		}
	}
	for _, c := range g.claims {
		c.settle()
	}
	g.poke()
}

// settle ends what was in hand at the last Portion; what was handed out since stays. g.mu is held.
func (c *claim) settle() {
	switch {
	case c.cell == nil || !c.cell.Held() || c.seen < 0:
	case c.seen >= c.cell.Position().Offset:
		c.cell.Unhold()
	case c.seen > c.cell.Done().Offset:
		c.cell.Hold(c.seen)
	}
	c.tried, c.seen = nowhere, -1
}

// nowhere is the position of what has none.
var nowhere = Position{Offset: -1, Epoch: -1}

// Rewind puts the positions back to the committed offsets after a transaction was aborted, so that the records in hand are
// handed out again; what is buffered of partitions with nothing in hand stays. When offsets had been sent (see Portion) it asks
// the coordinator for them, and waits for the transaction to be over: if it was committed after all, nothing is repeated.
// Without that it knows them. On an error everything stays in hand and Rewind may be called again.
func (in *Intake) Rewind(ctx context.Context) error {
	g := in.g
	if err := g.c.before(ctx, "going back to the committed offsets"); err != nil {
		return err
	}
	var ask []TopicPartition
	g.mu.Lock()
	for tp, c := range g.claims {
		if c.tried.Offset >= 0 && c.alive() {
			ask = append(ask, tp)
		}
	}
	m := g.member
	g.mu.Unlock()
	var have map[TopicPartition]Offset
	if len(ask) > 0 {
		var err error
		if have, err = m.Committed(ctx, ask...); err != nil {
			return g.groupError("finding the committed offsets after an aborted transaction", err)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for tp, c := range g.claims {
		if c.cell == nil {
			continue
		}
		to := c.rewound(have[tp], have)
		if c.reading() && to.Offset >= 0 && to.Offset != c.cell.Position().Offset {
			g.c.driver.Step(machine.Sought{TopicPartition: tp, To: machine.AtPosition(to)})
		}
		c.cell.Unhold()
		c.tried, c.seen = nowhere, -1
	}
	in.broken = nil
	g.poke()
	return nil
}

// rewound is where a claim goes on: at the first record in hand, unless the coordinator has another offset than it had before.
// That is so when the commit came through, although nobody heard of it. g.mu is held.
func (c *claim) rewound(o Offset, have map[TopicPartition]Offset) Position {
	to := c.cell.Done()
	if _, ok := have[c.TopicPartition]; !ok {
		return to
	}
	at := Position{Offset: o.At, Epoch: o.Epoch()}
	before := c.committed.Offset
	c.committed = at
	if o.At == before || before < 0 && o.At != c.tried.Offset {
		return to // what it had before: the application may have sought elsewhere since
	}
	return at
}

// Watch tells a transaction what happens to the partitions that it has records of. The context reading ends with ctx, and as
// soon as one of them is to be given up, with ErrRevoked (ErrClosed when the consumer is closed) as its cause: the transaction
// should end soon. Both end when one is lost, with ErrLost or ErrFenced: it cannot be committed any more. While a watch is open
// Close waits for the transaction. stop ends it; it is called after Settle or Rewind.
func (in *Intake) Watch(ctx context.Context) (reading, handling context.Context, stop func()) {
	w := &watch{}
	handling, w.handling = context.WithCancelCause(ctx)
	reading, w.reading = context.WithCancelCause(handling)
	g := in.g
	g.mu.Lock()
	in.watches[w] = struct{}{}
	for _, c := range g.claims {
		if c.state.State() == machine.ClaimDraining && c.cell != nil && c.cell.Held() {
			w.reading(c.endingCause())
		}
	}
	if in.broken != nil {
		w.handling(in.broken)
	}
	g.mu.Unlock()
	return reading, handling, func() {
		g.mu.Lock()
		delete(in.watches, w)
		g.poke()
		g.mu.Unlock()
		w.handling(context.Canceled)
	}
}

// endingCause is why a claim is being given up.
func (c *claim) endingCause() error {
	if cause := context.Cause(c.ending); cause != nil {
		return cause
	}
	return ErrRevoked
}

// revoking tells the watches that a claim with records in hand is wanted back. g.mu is held.
func (in *Intake) revoking(cause error) {
	for w := range in.watches {
		w.reading(cause)
	}
}

// lose notes that a claim with records in hand is gone. g.mu is held.
func (in *Intake) lose(c *claim) {
	if in.broken == nil {
		in.broken = c.whyGone()
	}
	for w := range in.watches {
		w.handling(in.broken)
	}
}

// Release gives the offsets back to the consumer's own ways of committing. What is still in hand will be handed out again. Watches
// should have been stopped.
func (in *Intake) Release() {
	g := in.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.intake != in {
		return
	}
	for tp, c := range g.claims {
		if c.cell == nil {
			continue
		}
		if to := c.cell.Done(); c.cell.Held() && c.reading() && to.Offset != c.cell.Position().Offset {
			g.c.driver.Step(machine.Sought{TopicPartition: tp, To: machine.AtPosition(to)})
		}
		c.cell.Unhold()
		c.tried, c.seen = nowhere, -1
	}
	g.intake = nil
	g.keep.Store(false)
	g.poke()
}
