package groupmember

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/ottla-kafka/ottla/groupmember/machine"
)

// Lifetime is what an assignment brought, as Generations yields it.
type Lifetime struct {
	Assignment
	m      *Member
	claims map[TopicPartition]*claim
}

// Generations yields a Lifetime for each assignment that brings something or ends a rebalance, the first one with
// everything that is held already. Assignments that follow each other while the loop's body runs become one. It ends with
// ctx or with the member; the last error then says why (ErrClosed after Close or Leave). One loop at a time makes sense:
// each partition is yielded once for each time it is held.
func (m *Member) Generations(ctx context.Context) iter.Seq2[*Lifetime, error] {
	return func(yield func(*Lifetime, error) bool) {
		seen := 0
		for {
			if ctx.Err() != nil { // before a Lifetime is taken that nobody would work on
				yield(nil, context.Cause(ctx))
				return
			}
			m.mu.Lock()
			rounds, ended, changed := m.rounds, m.ended, m.changed
			var life *Lifetime
			if rounds > seen {
				life = m.lifetime()
			}
			m.mu.Unlock()
			switch {
			case life != nil:
				seen = rounds
				if !yield(life, nil) {
					return
				}
				continue
			case ended:
				yield(nil, context.Cause(m.ctx))
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
}

// lifetime gathers the claims that no Lifetime had yet. m.mu is held.
func (m *Member) lifetime() *Lifetime {
	l := &Lifetime{m: m, claims: map[TopicPartition]*claim{}}
	l.Generation, l.All = m.machine.Generation(), slices.Clone(m.machine.Owned())
	for tp, c := range m.claims {
		if !c.shown && c.giving == nil {
			c.shown = true
			l.claims[tp] = c
			l.Added = append(l.Added, tp)
		}
	}
	slices.SortFunc(l.Added, machine.ComparePartitions)
	return l
}

// Go runs f for each partition of Added, each in a goroutine of its own, with a context that ends with the claim
// (cause: ErrRevoked, ErrLost, ErrFenced, ErrClosed). A revocation is confirmed when the partition's f has returned:
// f stops when its context ends, finishes what it has begun, commits (the claim lasts until it returns), returns.
func (l *Lifetime) Go(f func(ctx context.Context, tp TopicPartition)) {
	for _, tp := range l.Added {
		ctx, release := l.Hold(tp)
		go func() { // ends when f returns, which its context asks for at the end of the claim
			defer release()
			f(ctx, tp)
		}()
	}
}

// Hold is Go's part for one partition of Added: a context that ends with the claim, and release, which must be called
// when the work on it has stopped. For a partition that is gone already the context has ended.
func (l *Lifetime) Hold(tp TopicPartition) (ctx context.Context, release func()) {
	c := l.claims[tp]
	if c == nil {
		return l.m.Claim(tp), func() {}
	}
	l.m.mu.Lock()
	live := l.m.claims[tp] == c
	if live {
		l.m.hold(c)
	}
	l.m.mu.Unlock()
	if !live {
		return c.ctx, func() {}
	}
	return c.ctx, sync.OnceFunc(func() { l.m.release(c) })
}
