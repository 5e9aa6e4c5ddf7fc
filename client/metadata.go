package client

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/client/machine"
	"github.com/ottla-kafka/ottla/wire"
)

// metadata keeps the topology up to date. Its goroutine is started by the first wish and stopped by Close; it
// does what machine.Refresh says is due, one request at a time, and calls the subscribers.
type metadata struct {
	c       *Client
	top     atomic.Pointer[Topology]
	wake    chan struct{} // holds one token
	answers chan metaAnswer

	mu      sync.Mutex
	refresh machine.Refresh
	tracked map[string]int  // how often each topic was added
	fresh   map[string]bool // added and not asked for yet
	full    bool            // the next attempt asks for all topics
	running bool
	subs    []*subscription
	changed chan struct{}  // closed at the next change or failure
	lastErr error          // of the newest attempt; nil after a good one
	failed  int            // attempts that failed so far
	cluster string         // the pinned cluster id
	seen    map[int32]bool // ids of brokers that any answer has named
	failing time.Time      // since when every seed's name fails to resolve
}

type subscription struct {
	f    func(*Topology)
	seen int64
	off  atomic.Bool
}

type metaAnswer struct {
	broker int32
	reply  Reply
}

func (m *metadata) init(c *Client) {
	m.c = c
	m.wake, m.answers, m.changed = make(chan struct{}, 1), make(chan metaAnswer, 1), make(chan struct{})
	m.tracked, m.fresh, m.seen = make(map[string]int), make(map[string]bool), make(map[int32]bool)
	m.top.Store(machine.NewTopology())
	m.refresh = machine.Refresh{
		MaxAge:      c.cfg.MetadataMaxAge,
		Backoff:     machine.Backoff{First: c.cfg.RetryBackoff, Most: c.cfg.RetryBackoffMax},
		Rebootstrap: c.cfg.Rebootstrap,
		Trigger:     c.cfg.RebootstrapTrigger,
		Rand:        machine.NewRand(c.rand.Uint64()),
	}
}

// Topology is the newest picture of the cluster; empty, never nil, before the first answer.
func (c *Client) Topology() *Topology { return c.meta.top.Load() }

// AddTopics adds topics to those the client keeps track of and asks for them soon. It does not block.
func (c *Client) AddTopics(names ...string) {
	m := &c.meta
	m.mu.Lock()
	for _, name := range names {
		m.track(name)
		m.tracked[name]++
	}
	m.mu.Unlock()
	m.kick()
}

// RemoveTopics undoes one AddTopics of each name.
func (c *Client) RemoveTopics(names ...string) {
	m := &c.meta
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		if m.tracked[name]--; m.tracked[name] <= 0 {
			delete(m.tracked, name)
			delete(m.fresh, name)
		}
	}
}

// track makes a topic that is not followed yet wanted. The lock is held.
func (m *metadata) track(name string) {
	if m.tracked[name] == 0 {
		m.fresh[name] = true
		m.refresh.WantNew()
	}
}

// RefreshMetadata asks for new metadata soon; many requests become one, and attempts keep retry.backoff.ms
// apart. It does not block.
func (c *Client) RefreshMetadata() {
	m := &c.meta
	m.mu.Lock()
	m.full = true
	m.refresh.Want()
	m.mu.Unlock()
	m.kick()
}

// OnTopology calls f with the present topology if there is one and then after each change, in order, from one
// goroutine; of changes that follow each other closely it may see only the newest. f must not block. stop ends
// it; a call under way may still finish afterwards.
func (c *Client) OnTopology(f func(*Topology)) (stop func()) {
	s := &subscription{f: f}
	m := &c.meta
	m.mu.Lock()
	m.subs = append(m.subs, s)
	m.mu.Unlock()
	m.kick()
	return func() {
		s.off.Store(true)
		m.mu.Lock()
		defer m.mu.Unlock()
		for i, other := range m.subs {
			if other == s {
				m.subs = append(m.subs[:i:i], m.subs[i+1:]...)
				return
			}
		}
	}
}

// LearnLeader takes the hint of a produce or fetch answer (KIP-951): the leader and epoch of a partition, and
// where the brokers named in the hint are. Older epochs than the known one are ignored.
func (c *Client) LearnLeader(topicID wire.UUID, partition, leader, epoch int32, endpoints []Node) {
	m := &c.meta
	m.mu.Lock()
	old := m.top.Load()
	next := old.WithLeader(topicID, partition, leader, epoch, endpoints)
	if next != old {
		m.publish(next)
	}
	m.mu.Unlock()
	if next != old {
		m.observe(MetadataEvent{Topology: next})
		m.kick()
	}
}

// observe tells the observers of a topology. The lock is not held.
func (m *metadata) observe(e MetadataEvent) {
	for _, o := range m.c.cfg.Observers {
		o.MetadataChanged(e)
	}
}

// restart gives up what is known of the cluster: a broker said REBOOTSTRAP_REQUIRED.
func (m *metadata) restart() {
	m.mu.Lock()
	m.full = true
	m.refresh.Restart()
	m.mu.Unlock()
	m.kick()
}

// publish makes a topology the present one and wakes who waits. The lock is held.
func (m *metadata) publish(top *Topology) {
	m.top.Store(top)
	m.remember(top)
	m.announce()
}

// maxSeen bounds what is remembered of brokers; beyond it the memory starts anew.
const maxSeen = 10_000

// remember notes the brokers of a topology. The lock is held.
func (m *metadata) remember(top *Topology) {
	if len(m.seen)+len(top.Brokers) > maxSeen {
		clear(m.seen)
	}
	for id := range top.Brokers {
		m.seen[id] = true
	}
}

// hasSeen tells whether any answer has named a broker.
func (m *metadata) hasSeen(id int32) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[id]
}

func (m *metadata) announce() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// kick starts the goroutine or makes it look again.
func (m *metadata) kick() {
	m.mu.Lock()
	start := !m.running
	m.running = true
	m.mu.Unlock()
	if start {
		m.c.life.start(m.run)
		return
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// run is the goroutine. At most one request is under way, so an answer always finds room in the channel.
func (m *metadata) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var current *round
	for {
		m.notify()
		now := time.Now()
		m.mu.Lock()
		if current == nil && m.refresh.IsDue(now) {
			current = m.begin(now)
		}
		due := m.refresh.Due() // zero while a round is under way
		m.mu.Unlock()
		if current != nil && !current.waiting {
			m.ask(current)
		}
		if current == nil && !due.IsZero() {
			timer.Reset(max(due.Sub(now), 0))
		}
		select {
		case <-m.wake:
		case <-timer.C:
		case a := <-m.answers:
			current = m.answered(current, a)
		case <-m.c.closing():
			m.mu.Lock()
			m.announce() // whoever waits finds the client closed
			m.mu.Unlock()
			return
		}
	}
}

// notify calls the subscribers that have not seen the present topology.
func (m *metadata) notify() {
	top := m.top.Load()
	m.mu.Lock()
	subs := append([]*subscription(nil), m.subs...)
	m.mu.Unlock()
	for _, s := range subs {
		if s.seen < top.Version && !s.off.Load() {
			s.seen = top.Version
			s.f(top)
		}
	}
}
