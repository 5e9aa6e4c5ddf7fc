package groupmember

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/groupmember/machine"
	"github.com/ottla-kafka/ottla/wire"
)

// Member is a member of a group. All methods may be called from any goroutine.
type Member struct {
	cfg Config
	cl  *client.Client

	ctx    context.Context // ends when the member has ended
	cancel context.CancelCauseFunc
	group  sync.WaitGroup // the member's goroutines but one
	told   inbox          // for the goroutine that calls the Listener
	called chan struct{}  // closed when that one has ended: the Listener may take its time
	stop   func()         // of the topology subscription
	wake   chan struct{}  // one slot: the run goroutine has something to do

	mu         sync.Mutex // held for steps of the machine and short list work, never across anything that waits
	machine    *machine.Member
	todo       []machine.Effects // for the run goroutine, in order
	claims     map[TopicPartition]*claim
	revoked    *revocation // waits for the owner
	commits    inbox       // for the goroutine that commits
	pending    []*commit   // for it
	changed    chan struct{}
	rounds     int  // assignments so far
	introduced bool // the Listener knows of the first
	pattern    *regexp.Regexp
	look       chan struct{} // one slot: look for topics that match now
	looking    bool
	byID       []string // topics tracked because an assignment named their ids
	ended      bool
	err        error // with ended: the final error

	held atomic.Int32 // requests on the lane without an answer

	// Owned by the run goroutine.
	tracked  map[string]bool // topics
	lane     client.Purpose  // for requests that the broker holds back
	freeLane func()
}

// Join makes a member and waits until the coordinator has given it its first assignment, which may be empty. The
// error is about the configuration, about a group that refuses it, or the end of ctx; then nothing is left behind but
// a Listener that has not returned.
func Join(ctx context.Context, cl *client.Client, opts ...Option) (*Member, error) {
	if ctx.Err() != nil { // else a group that answers at once would be faster than the select that looks at ctx
		return nil, fmt.Errorf("groupmember: not joined: %w", context.Cause(ctx))
	}
	m, err := Start(cl, opts...)
	if err != nil {
		return nil, err
	}
	if err := m.Await(ctx); err != nil {
		m.step(machine.Abandon{})
		m.group.Wait()
		select {
		case <-m.called:
		case <-ctx.Done():
		}
		return nil, err
	}
	return m, nil
}

// Start is Join without waiting: it does no I/O itself, and the error is only ever about the configuration.
// Use it where a Listener needs the Member.
func Start(cl *client.Client, opts ...Option) (*Member, error) {
	cfg := DefaultConfig()
	for _, o := range opts {
		o(&cfg)
	}
	return StartFromConfig(cl, cfg)
}

// StartFromConfig is Start with a finished Config; begin with DefaultConfig, since zero means zero.
func StartFromConfig(cl *client.Client, cfg Config) (*Member, error) {
	if cl == nil {
		return nil, errors.New("groupmember: the client is nil")
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("groupmember: %w", err)
	}
	for _, line := range cfg.Lint() {
		cl.Logger().Warn("kafka group member: "+line, "group", cfg.GroupID)
	}
	m := &Member{
		cfg: cfg, cl: cl, called: make(chan struct{}), wake: make(chan struct{}, 1), look: make(chan struct{}, 1), changed: make(chan struct{}),
		machine: machine.New(cfg.machine(cl.Config())), claims: map[TopicPartition]*claim{}, tracked: map[string]bool{},
	}
	if cfg.Pattern != "" {
		m.pattern = whole(cfg.Pattern)
	}
	m.told.init()
	m.commits.init()
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	m.group.Go(m.run) // these three end when the machine has ended
	m.group.Go(m.commits.serve)
	go func() { defer close(m.called); m.told.serve() }() // and the Listener has returned, or has ended its goroutine
	m.step(machine.Started{})
	stop := cl.OnTopology(func(t *client.Topology) { m.step(machine.TopologyChanged{View: view{t}}) })
	m.mu.Lock()
	m.stop = stop
	ended := m.ended
	m.mu.Unlock()
	if ended {
		stop()
	}
	return m, nil
}

// machine is the part of the configuration that decisions depend on.
func (c *Config) machine(of client.Config) machine.Config {
	mc := machine.Config{
		GroupID: c.GroupID, InstanceID: c.InstanceID, MemberID: newMemberID(), Topics: slices.Clone(c.Topics), Regex: c.Pattern, Rack: c.Rack,
		Protocol: c.Protocol, Assignors: c.Assignors, RemoteAssignor: c.RemoteAssignor,
		Session: c.SessionTimeout, Heartbeat: c.HeartbeatInterval, Rebalance: c.RebalanceTimeout,
		RetryBackoff: of.RetryBackoff, RetryBackoffMax: of.RetryBackoffMax, Seed: of.Seed,
	}
	if mc.Rack == "" {
		mc.Rack = of.Rack
	}
	if mc.Protocol == Auto && c.ownAssignors() {
		mc.Protocol = Classic
	}
	if mc.Seed == 0 {
		var b [8]byte
		rand.Read(b[:]) // never fails
		mc.Seed = uint64(wire.NewReader(b[:]).Int64())
	}
	return mc
}

// newMemberID is what a member of the consumer protocol calls itself: a random UUID in Kafka's text form.
func newMemberID() string {
	for {
		var id wire.UUID
		rand.Read(id[:])                                // never fails
		id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // version 4
		if s := id.String(); s[0] != '-' {              // a leading hyphen is a nuisance on command lines
			return s
		}
	}
}

// Await waits until the member has its first assignment and the Listener has been told of it, or the member has ended.
// It must not be called by the Listener.
func (m *Member) Await(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("groupmember: group %q: not waited for (%s): %w", m.cfg.GroupID, m.State(), context.Cause(ctx))
	}
	for {
		m.mu.Lock()
		introduced, ended, err, changed := m.introduced, m.ended, m.err, m.changed
		m.mu.Unlock()
		switch {
		case ended && err != nil:
			return err
		case ended:
			return ErrClosed
		case introduced:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("groupmember: group %q: no assignment yet (%s): %w", m.cfg.GroupID, m.State(), context.Cause(ctx))
		}
	}
}

// State is where the member is.
func (m *Member) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.machine.State()
}

// Generation identifies the present membership; its ID is -1 while there is none.
func (m *Member) Generation() Generation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.machine.Generation()
}

// Coordinator is the broker that coordinates the group, -1 while it is not known.
func (m *Member) Coordinator() int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.machine.Coordinator()
}

// Assignment is what is held at present, sorted. Partitions that are being revoked belong to it until confirmed.
func (m *Member) Assignment() []TopicPartition {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.machine.Owned())
}

// Context ends when the member has ended, with ErrClosed or the final error, a *GroupError, as its cause.
func (m *Member) Context() context.Context { return m.ctx }

// Config is a copy of the configuration in use.
func (m *Member) Config() Config { return m.cfg }

// Subscribe changes the subscription to topics by name; a rebalance follows.
func (m *Member) Subscribe(topics ...string) error {
	if len(topics) == 0 {
		return &client.FieldError{Key: "Topics", Reason: "is empty; to give everything up, Leave or Close"}
	}
	m.mu.Lock()
	m.pattern = nil
	m.mu.Unlock()
	m.step(machine.Subscribed{Topics: topics})
	return nil
}

// SubscribePattern changes the subscription to an RE2 expression; a rebalance follows.
func (m *Member) SubscribePattern(re2 string) error {
	if re2 == "" {
		return &client.FieldError{Key: "Pattern", Reason: "is empty; to give everything up, Leave or Close"}
	}
	if _, err := regexp.Compile(re2); err != nil {
		return &client.FieldError{Key: "Pattern", Value: re2, Reason: fmt.Sprintf("is no RE2 expression: %v", err)}
	}
	m.mu.Lock()
	m.pattern = whole(re2)
	classic := m.machine.Generation().Protocol == Classic
	m.mu.Unlock()
	if classic {
		m.discoverSoon()
		signal(m.wake) // it may not be looking yet
		return nil
	}
	m.step(machine.Subscribed{Regex: re2})
	return nil
}

// Rejoin starts a rebalance (classic) or sends a heartbeat at once (KIP-848). The reason reaches the broker's log.
func (m *Member) Rejoin(reason string) { m.step(machine.Rejoin{Reason: reason}) }

// Stall tells that the owner does not process any more (max.poll.interval.ms): the member leaves the group, loses its
// partitions with ErrStalled, and stays out until Resume.
func (m *Member) Stall() { m.step(machine.Stall{}) }

// Resume undoes Stall.
func (m *Member) Resume() { m.step(machine.Resume{}) }

// Leave gives up all partitions in good order (Revoked, confirmation), leaves the group, a static member too, and
// ends the member. It returns when that is done or ctx ends; then the member ends without more, loses what it still
// has with ErrClosed, and the coordinator will notice by SessionTimeout. So it will when everything is given up and it is
// not found or does not answer within 5 s (SessionTimeout/3 if that is less): that is no error. With a ctx that has
// ended already all of that happens at once, and the coordinator is told nothing. It must not be called by the Listener.
func (m *Member) Leave(ctx context.Context) error { return m.close(ctx, machine.Leave{}) }

// Close is Leave, except that a static member stays in the group, so that its partitions wait for it to come back
// within SessionTimeout; unless the group waits for something that it has (a rebalance is under way): then it leaves,
// so that nothing stays without an owner.
func (m *Member) Close(ctx context.Context) error { return m.close(ctx, machine.Leave{Stay: true}) }

func (m *Member) close(ctx context.Context, how machine.Leave) error {
	if ctx.Err() == nil {
		m.step(how)
		gone := make(chan struct{})
		go func() { m.group.Wait(); <-m.called; close(gone) }() // ends with them, which the machine's end ends
		select {
		case <-gone:
			return nil
		case <-ctx.Done():
		}
	}
	m.mu.Lock()
	over, held := m.ended, len(m.machine.Owned())
	m.mu.Unlock()
	m.step(machine.Abandon{})
	m.group.Wait()
	if !over {
		return fmt.Errorf("groupmember: group %q: ended before it was left in good order, with %d partitions not given up: %w",
			m.cfg.GroupID, held, context.Cause(ctx))
	}
	select {
	case <-m.called:
		return nil // it had ended before
	default:
		return fmt.Errorf("groupmember: group %q: the member has ended, its Listener has not returned yet: %w", m.cfg.GroupID, context.Cause(ctx))
	}
}
