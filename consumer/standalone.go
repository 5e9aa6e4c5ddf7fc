package consumer

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/ottla-kafka/ottla/groupmember"
)

// membership is where the partitions of a group's consumer come from and its offsets go: a *groupmember.Member, or
// *standalone. Any goroutine may call its methods; what they do to each is said there.
type membership interface {
	Claim(tp TopicPartition) context.Context
	Commit(ctx context.Context, offsets map[TopicPartition]Offset) error
	CommitAsync(offsets map[TopicPartition]Offset, done func(error))
	Committed(ctx context.Context, parts ...TopicPartition) (map[TopicPartition]Offset, error)
	State() groupmember.State
	Generation() groupmember.Generation
	Stall()
	Resume()
	Close(ctx context.Context) error
	Leave(ctx context.Context) error
}

// standalone is what a consumer has in place of a member when its partitions are assigned to it and only its offsets belong
// to a group. Claims begin with Add and end with Remove in the order in which those of a member do.
type standalone struct {
	g *group

	// These belong to group.mu.
	next   map[TopicPartition]*claim // added again while the claim before is being given up
	closed bool                      // no claim begins any more

	mu    sync.Mutex
	queue []handed // commits that wait
	busy  bool     // a goroutine carries them out
}

// handed is one call of CommitAsync.
type handed struct {
	offsets map[TopicPartition]Offset
	done    func(error)
}

// errRemoved is the cause when the application took a partition away from its own consumer.
var errRemoved error = removedError{}

type removedError struct{}

func (removedError) Error() string { return "the partition was removed from this consumer" }

// Is makes it match ErrRevoked: whoever has a record in hand has to do the same.
func (removedError) Is(target error) bool { return target == ErrRevoked }

// add begins claims; partitions that are read already stay as they are.
func (s *standalone) add(list []Assignment) {
	g := s.g
	var begun []*claim
	g.mu.Lock()
	for _, a := range list {
		old := g.claims[a.TopicPartition]
		if s.closed || s.next[a.TopicPartition] != nil || old != nil && !old.givenUp() {
			continue
		}
		c := newClaim(g, a.TopicPartition, context.Background())
		c.start = a.Start
		if old != nil {
			s.next[a.TopicPartition] = c
			continue
		}
		g.claims[a.TopicPartition] = c
		begun = append(begun, c)
	}
	g.mu.Unlock()
	if len(begun) > 0 {
		g.spawn(func() { g.begin(begun) }) // ends when they are read or removed, or with g.ctx
	}
}

// remove gives claims up in the background, with a commit of what is done.
func (s *standalone) remove(list []TopicPartition) {
	g := s.g
	var parts []TopicPartition
	g.mu.Lock()
	for _, tp := range list {
		delete(s.next, tp)
		if c := g.claims[tp]; c != nil && !c.givenUp() {
			parts = append(parts, tp)
		}
	}
	g.mu.Unlock()
	if len(parts) > 0 {
		g.revoke(parts, errRemoved, func() { s.follow(parts) })
	}
}

// follow begins the claims that had to wait for those that were given up.
func (s *standalone) follow(parts []TopicPartition) {
	g := s.g
	var begun []*claim
	g.mu.Lock()
	for _, tp := range parts {
		if c := s.next[tp]; c != nil && g.claims[tp] == nil {
			delete(s.next, tp)
			g.claims[tp] = c
			begun = append(begun, c)
		}
	}
	g.mu.Unlock()
	if len(begun) > 0 {
		g.spawn(func() { g.begin(begun) }) // as in add
	}
}

// Close gives all claims up in good order, or as far as that is possible until ctx ends.
func (s *standalone) Close(ctx context.Context) error {
	g := s.g
	var parts []TopicPartition
	g.mu.Lock()
	s.closed = true
	clear(s.next)
	for tp, c := range g.claims {
		if !c.givenUp() {
			parts = append(parts, tp)
		}
	}
	g.mu.Unlock()
	if len(parts) > 0 && ctx.Err() == nil {
		g.revoke(parts, ErrClosed, func() {})
	}
	if g.until(ctx, func() bool { return len(g.claims) == 0 }) {
		return nil
	}
	g.mu.Lock()
	left := len(g.claims)
	g.mu.Unlock()
	return fmt.Errorf("consumer: group %q: closed with %d partitions not given up: %w", g.cfg.ID, left, context.Cause(ctx))
}

// Leave is Close: there is nothing to leave.
func (s *standalone) Leave(ctx context.Context) error { return s.Close(ctx) }

// Claim is a context that does not end: nobody takes the partition away.
func (s *standalone) Claim(TopicPartition) context.Context { return context.Background() }

// State says that there is no membership, and Generation says the same.
func (s *standalone) State() groupmember.State { return groupmember.Unknown }

// Generation is that of commits without a member.
func (s *standalone) Generation() groupmember.Generation { return groupmember.Generation{ID: -1} }

// Stall does nothing: nobody waits for the partitions.
func (s *standalone) Stall() {}

// Resume does nothing.
func (s *standalone) Resume() {}

// Commit waits for the outcome of CommitAsync.
func (s *standalone) Commit(ctx context.Context, offsets map[TopicPartition]Offset) error {
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("the commit of %d partitions was not sent: %w", len(offsets), err)
	}
	outcome := make(chan error, 1)
	s.CommitAsync(offsets, func(err error) { outcome <- err })
	select {
	case err := <-outcome:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-outcome: // it was there
		return err
	default:
		return fmt.Errorf("the commit of %d partitions has no outcome yet: %w", len(offsets), context.Cause(ctx))
	}
}

// CommitAsync commits, after the commits before. done is called from a goroutine of the consumer's, or
// when that is closed by the caller.
func (s *standalone) CommitAsync(offsets map[TopicPartition]Offset, done func(error)) {
	s.mu.Lock()
	s.queue = append(s.queue, handed{maps.Clone(offsets), done})
	start := !s.busy
	s.busy = true
	s.mu.Unlock()
	if start && !s.g.spawn(s.commits) { // ends when the queue is empty; g.ctx ends what it waits for
		for c, ok := s.take(); ok; c, ok = s.take() {
			c.done(ErrClosed)
		}
	}
}

func (s *standalone) take() (c handed, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy = len(s.queue) > 0; !s.busy {
		s.queue = nil
		return c, false
	}
	c, s.queue = s.queue[0], s.queue[1:]
	return c, true
}

// commits carries out what waits, in the order of the calls.
func (s *standalone) commits() {
	meter := s.g.c.cl.Meter()
	for c, ok := s.take(); ok; c, ok = s.take() {
		began := time.Now()
		err := s.commit(c.offsets)
		if err != nil {
			meter.CommitErrors.Add(1)
		} else {
			meter.Commits.Add(1)
			meter.CommitLatency.Add(time.Since(began))
		}
		c.done(err)
	}
}
