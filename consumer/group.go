package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/groupmember"
)

// group is what a consumer with a group.id has beside the others: its membership, or what stands for one, and its claims. It
// is the driver of machine.Claim and machine.Work; what is fetched comes from the consumer's one reader as always.
//
// Goroutines: the member's (which calls Assigned, Revoked and Lost), one that looks after commits and stalls, one for each
// set of partitions that is being started or given up, and without a member one for its commits. All end with Close.
type group struct {
	c      *Consumer
	cfg    *GroupConfig
	ctx    context.Context // ends when Close is over; what may still be committed is by then
	cancel context.CancelCauseFunc
	work   sync.WaitGroup

	draining atomic.Int32 // partitions whose drain is waited for: readers poke then
	left     atomic.Bool  // stalled and left; the next ask comes back
	asked    atomic.Int64 // counts what was asked for and handed out, to see progress
	keep     atomic.Bool  // there is an intake: what is handed out stays in hand until a transaction settles it

	mu         sync.Mutex  // never held across anything that waits, nor while the member is called
	member     membership  // nil before a member has begun
	alone      *standalone // the same, without a subscription; set once
	claims     map[TopicPartition]*claim
	engine     *engine       // Run or Serve, nil when none
	intake     *Intake       // offsets are committed by transactions, nil when not
	changed    chan struct{} // closed and replaced when something ended that a drain may wait for
	reading    string        // goroutine of the loop, as goroutineID has it
	idle       bool          // Close was called and no loop will ask for more
	committing bool          // a commit by time is under way
	failure    error         // of the last commits, for Close
	over       bool          // Close waits for the goroutines: no more are started
}

func newGroup(c *Consumer) *group {
	g := &group{c: c, cfg: &c.cfg.Group, claims: map[TopicPartition]*claim{}, changed: make(chan struct{})}
	g.ctx, g.cancel = context.WithCancelCause(context.Background())
	if !g.cfg.subscribes() {
		g.alone = &standalone{g: g, next: map[TopicPartition]*claim{}}
		g.member = g.alone
		g.work.Go(g.lookAfter) // ends with g.ctx
	}
	return g
}

// join starts the membership with the first call that needs it.
func (g *group) join() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.member != nil || g.c.driver.Closed() || g.ctx.Err() != nil {
		return nil
	}
	cfg := g.cfg.member(g.c.cfg.Rack)
	cfg.Listener = listener{g}
	cfg.OnEnd = g.ended
	m, err := groupmember.StartFromConfig(g.c.cl, cfg)
	if err != nil {
		return fmt.Errorf("consumer: %w", err)
	}
	g.member = m
	g.work.Go(g.lookAfter) // ends with g.ctx
	return nil
}

// joined is the member, which it starts if need be, or what is in its place.
func (c *Consumer) joined() (*group, membership, error) {
	if c.group == nil {
		return nil, nil, ErrNoGroup
	}
	if err := c.group.join(); err != nil {
		return nil, nil, err
	}
	c.group.mu.Lock()
	defer c.group.mu.Unlock()
	if c.group.member == nil {
		return nil, nil, ErrClosed
	}
	return c.group, c.group.member, nil
}

// ended is told why the membership is over: every further loop ends with that.
func (g *group) ended(err error) {
	if err == nil {
		return
	}
	g.c.driver.Report(g.groupError("Join", err), true)
}

// groupError dresses an error of the group.
func (g *group) groupError(op string, err error) error {
	var e *client.OpError
	if errors.As(err, &e) {
		return err
	}
	return fmt.Errorf("consumer: group %q: %s: %w", g.cfg.ID, op, err)
}

// spawn starts a goroutine that Close waits for; false when Close is past that, since its ctx ended before the member had
// ended.
func (g *group) spawn(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return false
	}
	g.work.Go(f)
	return true
}

// poke lets whoever waits for a drain look again. g.mu is held.
func (g *group) poke() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// until waits until a condition holds, which is looked at under g.mu whenever something changed.
func (g *group) until(ctx context.Context, holds func() bool) bool {
	for {
		g.mu.Lock()
		ok, changed := holds(), g.changed
		g.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// sorted lists the claims by topic and partition. g.mu is held.
func (g *group) sorted() []*claim {
	return slices.SortedFunc(maps.Values(g.claims), func(a, b *claim) int { return compare(a.TopicPartition, b.TopicPartition) })
}

func compare(a, b TopicPartition) int {
	if n := strings.Compare(a.Topic, b.Topic); n != 0 {
		return n
	}
	return int(a.Partition) - int(b.Partition)
}

// note tells observers, logger and OnEvent of something that happened to the membership.
func (g *group) note(kind machine.NoticeKind, tp TopicPartition, reason string, err error) {
	g.c.driver.Tell(Event{Kind: kind, TopicPartition: tp, Broker: -1, Old: Position{Offset: -1, Epoch: -1}, New: Position{Offset: -1, Epoch: -1},
		Reason: reason, Err: err})
}

// lookAfter commits what is done and looks for stalls, until the consumer is closed.
func (g *group) lookAfter() {
	every := max(g.cfg.AutoCommitInterval, 10*time.Millisecond)
	if !g.cfg.AutoCommit {
		every = time.Hour
	}
	commit := time.NewTicker(every)
	defer commit.Stop()
	watch := newStallWatch(g)
	look := time.NewTicker(watch.every)
	defer look.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-commit.C:
			if g.cfg.AutoCommit {
				g.commitAsync()
			}
		case now := <-look.C:
			watch.look(now)
		}
	}
}

// close gives everything up in good order and ends the membership: stop, drain, commit, leave. What could not be
// committed is in the error.
func (g *group) close(ctx context.Context, leave bool) error {
	g.mu.Lock()
	m := g.member
	if g.c.reader.Enter() { // no loop is under way, so nobody will ask for more
		g.idle = true
		defer g.c.reader.Leave()
	} else if g.reading == goroutineID() {
		g.idle = true // called from inside the loop, which cannot ask for more before this returns
	}
	g.poke()
	g.mu.Unlock()
	var err error
	if m != nil {
		if leave {
			err = m.Leave(ctx)
		} else {
			err = m.Close(ctx)
		}
	}
	g.cancel(ErrClosed)
	g.mu.Lock()
	for _, c := range g.claims {
		c.end(ErrClosed)
	}
	g.poke()
	err = errors.Join(err, g.failure)
	g.failure, g.over = nil, true
	g.mu.Unlock()
	done := make(chan struct{})
	go func() { g.work.Wait(); close(done) }() // ends with the goroutines that g.ctx ended
	select {
	case <-done:
	case <-ctx.Done():
		err = errors.Join(err, context.Cause(ctx))
	}
	return err
}
