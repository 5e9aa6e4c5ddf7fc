package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer/machine"
)

// begin finds where claims start and reads them from there: where the application sought to, else the committed
// offset, else what Config.Start or the reset policy says. It tries until it works or they are gone.
func (g *group) begin(claims []*claim) {
	pause := client.DefaultConfig().RetryBackoff
	for attempt := 0; ; attempt++ {
		open := g.starting(claims)
		if len(open) == 0 {
			return
		}
		err, stopped := g.attempt(open)
		if err == nil || stopped {
			continue
		}
		g.c.driver.Report(g.groupError("finding where to start", err), false)
		select {
		case <-g.ctx.Done():
			return
		case <-time.After(min(pause<<min(attempt, 10), time.Second)):
		}
	}
}

// attempt is resolve, until nobody waits for its outcome any more.
func (g *group) attempt(claims []*claim) (err error, stopped bool) {
	ctx, cancel := context.WithCancel(g.ctx)
	defer cancel()
	for _, c := range claims {
		defer context.AfterFunc(c.ending, func() {
			if len(g.starting(claims)) == 0 {
				cancel()
			}
		})()
	}
	err = g.resolve(ctx, claims)
	return err, ctx.Err() != nil
}

// starting are the claims that still wait for their start.
func (g *group) starting(claims []*claim) (out []*claim) {
	if g.ctx.Err() != nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range claims {
		if c.state.State() == machine.ClaimStarting {
			out = append(out, c)
		}
	}
	return out
}

// resolve makes one attempt. What it has found is read even if it fails over the rest.
func (g *group) resolve(ctx context.Context, claims []*claim) error {
	var ask []TopicPartition
	g.mu.Lock()
	for _, c := range claims {
		if !c.start.IsZero() {
			g.read(c, c.start, Position{Offset: -1, Epoch: -1})
		} else {
			ask = append(ask, c.TopicPartition)
		}
	}
	g.mu.Unlock()
	if len(ask) == 0 {
		return nil
	}
	committed, err := g.member.Committed(ctx, ask...)
	if err != nil {
		return err
	}
	var fresh []*claim
	g.mu.Lock()
	for _, c := range claims {
		if o, ok := committed[c.TopicPartition]; ok {
			p := Position{Offset: o.At, Epoch: o.Epoch()}
			g.read(c, machine.AtPosition(p), p)
		} else if c.state.State() == machine.ClaimStarting {
			fresh = append(fresh, c)
		}
	}
	g.mu.Unlock()
	return g.first(ctx, fresh)
}

// first starts claims that the group has no offset of. A start that moves with the log (the end, a time ago) is looked
// up and committed before anything is read: else a crash before the first commit would start again at a later end, and
// what came in between would never be read.
func (g *group) first(ctx context.Context, claims []*claim) error {
	where := g.c.cfg.Start
	if where.IsZero() {
		where = g.c.cfg.Reset
	}
	asked, moves := where.Moves(time.Now())
	if !moves || len(claims) == 0 {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, c := range claims {
			if where == Fail || where == Nearest {
				g.read(c, Where{}, Position{Offset: -1, Epoch: -1}) // the reset policy knows what to do
			} else {
				g.read(c, where, Position{Offset: -1, Epoch: -1})
			}
		}
		return nil
	}
	found, err := g.firstOffsets(ctx, claims, asked)
	if err != nil {
		return err
	}
	offsets := map[TopicPartition]Offset{}
	for tp, at := range found {
		offsets[tp] = Offset{At: at}
	}
	// Who commits by hand, for a group of which it is no member, may not want to write at all.
	commits := g.alone == nil || g.cfg.AutoCommit
	if commits {
		if err := g.member.Commit(ctx, offsets); err != nil {
			return fmt.Errorf("committing the start before the first fetch: %w", err)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range claims {
		p := Position{Offset: found[c.TopicPartition], Epoch: -1}
		committed := nowhere
		if commits {
			committed = p
		}
		g.read(c, machine.AtPosition(p), committed)
	}
	return nil
}

// firstOffsets looks up a moving start; a time behind the last record means the end.
func (g *group) firstOffsets(ctx context.Context, claims []*claim, asked int64) (map[TopicPartition]int64, error) {
	asks := map[TopicPartition]int64{}
	for _, c := range claims {
		asks[c.TopicPartition] = asked
	}
	out := map[TopicPartition]int64{}
	for len(asks) > 0 {
		found, err := g.c.listOffsets(ctx, "finding where to start", asks)
		if err != nil {
			return nil, err
		}
		clear(asks)
		for tp, o := range found {
			if o.Offset >= 0 {
				out[tp] = o.Offset
			} else {
				asks[tp] = askLatest
			}
		}
	}
	return out, nil
}

// read begins to fetch a claim. g.mu is held.
func (g *group) read(c *claim, from Where, committed Position) {
	if !c.state.Step(machine.ClaimResolved).Read {
		return
	}
	c.committed = committed
	g.c.driver.Step(machine.Added{TopicPartition: c.TopicPartition, Start: from})
	c.cell = g.c.driver.Cell(c.TopicPartition)
	if c.paused {
		g.c.driver.Step(machine.Paused{TopicPartition: c.TopicPartition})
	}
	if g.engine != nil {
		g.engine.attach(c)
	}
}
