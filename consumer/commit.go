package consumer

import (
	"context"
	"fmt"

	"github.com/ottla-kafka/ottla/groupmember"
)

// Offset is a committed position: the offset of the next record to process, perhaps with a leader epoch and a text. The
// zero value is offset 0.
type Offset = groupmember.Offset

// OffsetAt is an Offset without a text.
func OffsetAt(offset int64) Offset { return groupmember.OffsetAt(offset) }

// offsetOf is a position as it is committed.
func offsetOf(p Position) Offset { return groupmember.OffsetAt(p.Offset).WithEpoch(p.Epoch) }

// Commit declares everything done that was handed out by Records, Batches or Poll, the present record included, and
// commits it; with Run and Serve it commits what their handlers have finished without a gap. It waits for the coordinator,
// trying again what passes, until ctx ends or default.api.timeout.ms has passed. With nothing new to commit it returns nil
// at once. Called from inside a loop or by whoever calls Poll; with Run and Serve from anywhere. What it declared stays done
// when it fails: the next commit has it, that of Close too.
func (c *Consumer) Commit(ctx context.Context) error {
	if err := c.before(ctx, "commit"); err != nil {
		if c.group != nil && !c.group.keep.Load() {
			c.group.doneOffsets(true)
		}
		return err
	}
	g, m, err := c.joined()
	if err != nil {
		return err
	}
	if g.keep.Load() {
		return g.groupError("commit", ErrInTransaction)
	}
	offsets := g.doneOffsets(true)
	if len(offsets) == 0 {
		return nil
	}
	if err := m.Commit(ctx, offsets); err != nil {
		return g.groupError("commit", err)
	}
	g.stored(offsets)
	return nil
}

// CommitAsync is Commit without waiting. done, which may be nil, gets the outcome and must not block. It is called from a
// goroutine of the consumer's, or before CommitAsync returns when there is nothing to commit, or nowhere.
func (c *Consumer) CommitAsync(done func(error)) {
	g, m, err := c.joined()
	if err == nil && g.keep.Load() {
		err = g.groupError("commit", ErrInTransaction)
	}
	if err != nil {
		if done != nil {
			done(err)
		}
		return
	}
	g.send(m, g.doneOffsets(true), done)
}

// CommitOffsets commits offsets as they are given, with a text if wanted (Offset.Metadata), waiting as Commit does. All
// partitions must be this member's at present, else the error matches ErrNotOwned and nothing is committed; a consumer that is
// assigned its partitions may commit for any.
func (c *Consumer) CommitOffsets(ctx context.Context, offsets map[TopicPartition]Offset) error {
	if err := c.before(ctx, "commit"); err != nil {
		return err
	}
	g, m, err := c.joined()
	if err != nil {
		return err
	}
	if g.keep.Load() {
		return g.groupError("commit", ErrInTransaction)
	}
	g.mu.Lock()
	for tp, o := range offsets {
		if err == nil && g.claims[tp] == nil && g.alone == nil {
			err = fmt.Errorf("consumer: committing offset %d of %s for group %q: %w", o.At, tp, g.cfg.ID, ErrNotOwned)
		}
	}
	g.mu.Unlock()
	if err != nil {
		return err
	}
	if err := m.Commit(ctx, offsets); err != nil {
		return g.groupError("commit", err)
	}
	g.stored(offsets)
	return nil
}

// CommitRecords commits the positions behind records, the furthest of each partition. The error matches ErrLost or
// ErrRevoked if a partition is not held any more since the record was handed out, even if the member got it again
// meanwhile: then nothing is committed.
func (c *Consumer) CommitRecords(ctx context.Context, list ...Record) error {
	if err := c.before(ctx, "commit"); err != nil {
		return err
	}
	g, _, err := c.joined()
	if err != nil {
		return err
	}
	offsets := map[TopicPartition]Offset{}
	for i := range list {
		r := &list[i]
		tp := r.TopicPartition()
		if r.claim == nil || r.claim.g != g {
			return fmt.Errorf("consumer: committing %s offset %d: %w", tp, r.Offset, ErrNotOwned)
		}
		if err := r.claim.gone(); err != nil {
			return fmt.Errorf("consumer: committing %s offset %d for group %q: %w", tp, r.Offset, g.cfg.ID, err)
		}
		if o, ok := offsets[tp]; !ok || r.Offset >= o.At {
			offsets[tp] = offsetOf(Position{Offset: r.Offset + 1, Epoch: r.LeaderEpoch})
		}
	}
	return c.CommitOffsets(ctx, offsets)
}

// gone is why a claim cannot commit any more, nil if it can.
func (c *claim) gone() error {
	c.g.mu.Lock()
	defer c.g.mu.Unlock()
	switch {
	case c.alive():
		return nil
	case c.lost():
		return context.Cause(c.held)
	}
	return context.Cause(c.over)
}

// Committed asks the coordinator for committed offsets: of all partitions of this consumer when none are named, else of
// any. Partitions without one are missing in the answer. It tries again what passes, and waits for open transactions that may
// change one, until ctx ends or default.api.timeout.ms has passed.
func (c *Consumer) Committed(ctx context.Context, list ...TopicPartition) (map[TopicPartition]Offset, error) {
	if err := c.before(ctx, "committed offsets"); err != nil {
		return nil, err
	}
	g, m, err := c.joined()
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		g.mu.Lock()
		for _, cl := range g.sorted() {
			list = append(list, cl.TopicPartition)
		}
		g.mu.Unlock()
	}
	if len(list) == 0 {
		return map[TopicPartition]Offset{}, nil
	}
	out, err := m.Committed(ctx, list...)
	if err != nil {
		return nil, g.groupError("committed offsets", err)
	}
	return out, nil
}

// doneOffsets are what is done and not committed yet. With all, what loops and Poll handed out counts as done.
func (g *group) doneOffsets(all bool) map[TopicPartition]Offset {
	offsets := map[TopicPartition]Offset{}
	g.mu.Lock()
	defer g.mu.Unlock()
	for tp, c := range g.claims {
		if !c.alive() {
			continue
		}
		if all && c.cell != nil && c.work == nil && c.final == nil {
			c.cell.Unhold()
		}
		if p, news := c.news(); news {
			offsets[tp] = c.offset(p)
		}
	}
	if all {
		g.poke()
	}
	return offsets
}

// offset is a position of this claim as it is committed: for the topic that it was reached in, not for another that took
// its name.
func (c *claim) offset(p Position) Offset {
	o := offsetOf(p)
	if id := c.cell.TopicID(); !id.IsZero() {
		o = o.WithTopicID(id)
	}
	return o
}

// news is what is done and not committed. A commit does not go back behind what was committed by hand for a record that
// is still in hand; where the reader itself went back (a seek, a reset) it does. g.mu is held.
func (c *claim) news() (p Position, news bool) {
	p = c.done()
	if p.Offset < 0 || p.Offset == c.committed.Offset {
		return p, false
	}
	return p, p.Offset > c.committed.Offset || c.cell.Position().Offset < c.committed.Offset
}

// stored notes what the group has.
func (g *group) stored(offsets map[TopicPartition]Offset) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for tp, o := range offsets {
		if c := g.claims[tp]; c != nil {
			c.committed = Position{Offset: o.At, Epoch: o.Epoch()}
		}
	}
}

// commitAsync commits what is done, unless the commit before is still under way.
func (g *group) commitAsync() {
	g.mu.Lock()
	busy, m := g.committing || g.intake != nil, g.member
	g.mu.Unlock()
	if busy || m == nil {
		return
	}
	offsets := g.doneOffsets(false)
	if len(offsets) == 0 {
		return
	}
	g.mu.Lock()
	g.committing = true
	g.mu.Unlock()
	g.send(m, offsets, func(error) {
		g.mu.Lock()
		g.committing = false
		g.mu.Unlock()
	})
}

// send commits without waiting and notes the outcome.
func (g *group) send(m membership, offsets map[TopicPartition]Offset, done func(error)) {
	if len(offsets) == 0 {
		if done != nil {
			done(nil)
		}
		return
	}
	m.CommitAsync(offsets, func(err error) {
		if err != nil {
			g.commitFailed(offsets, err)
			err = g.groupError("commit", err)
		} else {
			g.stored(offsets)
		}
		if done != nil {
			aside(func() { done(err) })
		}
	})
}
