package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/groupmember"
)

// listener is told by the member what the group gives and takes, one call at a time.
type listener struct{ g *group }

// Assigned begins claims. The application is told first, so that a Seek of its decides where they start.
func (l listener) Assigned(a groupmember.Assignment) {
	g := l.g
	if len(a.Added) == 0 {
		return
	}
	var claims []*claim
	g.mu.Lock()
	m := g.member
	g.mu.Unlock()
	held := map[TopicPartition]context.Context{}
	for _, tp := range a.Added {
		held[tp] = m.Claim(tp)
	}
	g.mu.Lock()
	for _, tp := range a.Added {
		c := newClaim(g, tp, held[tp])
		g.claims[tp] = c
		claims = append(claims, c)
	}
	g.mu.Unlock()
	for _, tp := range a.Added {
		g.note(EventAssigned, tp, fmt.Sprintf("generation %d", a.Generation.ID), nil)
	}
	if f := g.cfg.OnAssigned; f != nil {
		aside(func() { f(g.ctx, a.Added) })
	}
	g.spawn(func() { g.begin(claims) }) // ends when they are read, lost or given up, or with g.ctx
}

// Revoked gives claims up.
func (l listener) Revoked(parts []TopicPartition, done func()) {
	cause := error(ErrRevoked)
	if l.g.closing() {
		cause = ErrClosed
	}
	l.g.revoke(parts, cause, done)
}

// revoke gives claims up. It returns at once, so that a loss can still be told.
func (g *group) revoke(parts []TopicPartition, cause error, done func()) {
	var claims []*claim
	g.mu.Lock()
	for _, tp := range parts {
		if c := g.claims[tp]; c != nil {
			c.step(machine.ClaimRevoking, cause)
			claims = append(claims, c)
		}
	}
	if g.intake != nil && slices.ContainsFunc(claims, (*claim).inUse) {
		g.intake.revoking(cause)
	}
	g.draining.Add(int32(len(claims)))
	g.mu.Unlock()
	if !g.spawn(func() { // ends after the drain and one commit, both bounded
		g.giveUp(claims, cause)
		g.draining.Add(-int32(len(claims)))
		done()
	}) {
		done() // nobody waits for the outcome any more, and nothing can be committed
	}
}

// Lost ends claims whose partitions others may own already.
func (l listener) Lost(parts []TopicPartition, cause error) {
	g := l.g
	var lost []TopicPartition
	g.mu.Lock()
	for _, tp := range parts {
		if c := g.claims[tp]; c != nil && c.step(machine.ClaimLost, cause).Report {
			lost = append(lost, tp)
		}
	}
	g.poke()
	g.mu.Unlock()
	for _, tp := range lost {
		g.note(EventLost, tp, "what was in hand is not committed", cause)
	}
	if f := g.cfg.OnLost; f != nil && len(lost) > 0 {
		aside(func() { f(g.ctx, lost, cause) })
	}
}

// closing tells whether Close was called.
func (g *group) closing() bool { return g.c.closing.Load() }

// step takes an event to a claim and does what concerns the claim alone; the rest is the caller's, in the order of
// machine.ClaimEffects. g.mu is held.
func (c *claim) step(ev machine.ClaimEvent, cause error) machine.ClaimEffects {
	eff := c.state.Step(ev)
	if eff.Stop {
		c.stop(cause)
	}
	if eff.Abandon {
		c.endSoon(cause)
		c.end(cause)
		if c.unhandle != nil {
			c.unhandle(cause)
		}
	}
	if c.state.State() == machine.ClaimEnded && c.g.claims[c.TopicPartition] == c {
		delete(c.g.claims, c.TopicPartition)
		if in := c.g.intake; in != nil && c.cell != nil && c.cell.Held() {
			in.lose(c)
		}
		if c.g.engine != nil {
			c.g.engine.charge(c, 0)
		}
	}
	return eff
}

// giveUp drains, tells the application, and commits what is done; then the partitions are free.
func (g *group) giveUp(claims []*claim, cause error) {
	limit := g.cfg.drain()
	if cause == ErrClosed {
		limit = min(limit, closeDrain)
	}
	ctx, cancel := context.WithTimeout(g.ctx, limit)
	g.until(ctx, func() bool {
		for _, c := range claims {
			if c.alive() && c.inUse() {
				return false
			}
		}
		return true
	})
	cancel()
	var parts []TopicPartition
	var late int
	g.mu.Lock()
	for _, c := range claims {
		ev := machine.ClaimDrained
		if c.alive() && c.inUse() {
			ev, late = machine.ClaimOverdue, late+1
			done := c.done() // what ends later does not count any more
			c.final = &done
		}
		c.step(ev, cause)
		if ev == machine.ClaimOverdue && g.intake != nil {
			g.intake.lose(c)
		}
		if c.alive() {
			parts = append(parts, c.TopicPartition)
		}
	}
	g.mu.Unlock()
	if late > 0 {
		g.c.cl.Logger().Warn("kafka consumer: partitions are given up with records in hand, which will be processed again",
			"group", g.cfg.ID, "partitions", late, "waited", limit)
	}
	if g.alone == nil {
		g.released(parts)
	}
	g.last(claims, cause)
}

// released tells the application what it gives up.
func (g *group) released(parts []TopicPartition) {
	for _, tp := range parts {
		g.note(EventRevoked, tp, "", nil)
	}
	if f := g.cfg.OnRevoked; f != nil && len(parts) > 0 {
		aside(func() { f(g.ctx, parts) })
	}
}

// aside calls a function of the application's in a goroutine of its own and waits for it: one that ends its goroutine, as
// FailNow of a test does, must not take one of ours with it, for which others wait.
func aside(f func()) {
	done := make(chan struct{})
	go func() { // ends with f
		defer close(done)
		f()
	}()
	<-done
}

// closeDrain bounds how long Close waits for what is in hand, whatever its ctx says; Kafka's consumer has the same.
const closeDrain = 30 * time.Second

// last commits what is done of claims that are being given up, and ends them.
func (g *group) last(claims []*claim, cause error) {
	offsets := map[TopicPartition]Offset{}
	g.mu.Lock()
	for _, c := range claims {
		if !c.step(machine.ClaimReleased, cause).Commit || !g.cfg.AutoCommit || g.intake != nil {
			continue
		}
		if p, news := c.news(); news {
			offsets[c.TopicPartition] = c.offset(p)
		}
	}
	g.mu.Unlock()
	if len(offsets) > 0 {
		ctx, cancel := context.WithTimeout(g.ctx, max(g.cfg.MaxPollInterval-g.cfg.drain(), time.Second))
		err := g.member.Commit(ctx, offsets)
		cancel()
		if err != nil {
			g.commitFailed(offsets, err)
			if !errors.Is(err, groupmember.ErrLost) && cause == ErrClosed {
				g.mu.Lock()
				if !g.over { // else Close was cut short and has said so; the next Close has nothing to add
					g.failure = fmt.Errorf("consumer: the last commit of group %q: %w", g.cfg.ID, err)
				}
				g.mu.Unlock()
			}
		}
	}
	g.mu.Lock()
	for _, c := range claims {
		c.step(machine.ClaimCommitted, cause)
	}
	g.poke()
	g.mu.Unlock()
}

// commitFailed tells of a commit that did not work.
func (g *group) commitFailed(offsets map[TopicPartition]Offset, err error) {
	for tp, o := range offsets {
		g.note(EventCommitFailed, tp, fmt.Sprintf("offset %d is not committed", o.At), err)
	}
}
