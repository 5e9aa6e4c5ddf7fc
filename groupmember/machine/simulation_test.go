package machine_test

import (
	"container/heap"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/groupmember/internal/assignor"
	"github.com/ottla-kafka/ottla/groupmember/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// modelView is the partitions of each topic.
type modelView map[string]int

func (v modelView) Topic(name string) (machine.TopicRacks, bool, bool) {
	n, exists := v[name]
	return machine.TopicRacks{Name: name, Racks: make([][]string, n)}, exists, true
}

func (v modelView) Name(id wire.UUID) (string, bool) {
	for name := range v {
		if topicID(name) == id {
			return name, true
		}
	}
	return "", false
}

func topicID(name string) (id wire.UUID) {
	copy(id[:], name)
	return id
}

// coordinator is what both models are.
type coordinator interface {
	handle(req message.Request, reply func(message.Response))
	tick()
	cut()
	counted(machine.Generation) bool
}

const (
	session   = 10 * time.Second
	rebalance = 20 * time.Second
	heartbeat = time.Second
)

// world is one run: members, owners, a coordinator, and what happens to the messages between them, all from one seed.
type world struct {
	t      *testing.T
	rand   *rand.Rand
	now    time.Time
	queue  events
	seq    int
	group  coordinator
	broker int32 // who coordinates
	view   modelView
	nodes  []*node
	faulty bool
	trace  uint64
	kinds  machine.Protocol
	assign machine.Assignor
	made   int
	held   []held
	steps  int
}

// node is a member with its owner.
type node struct {
	w      *world
	name   string
	m      *machine.Member
	owned  map[machine.TopicPartition]bool
	cut    bool // no network
	dead   bool
	wakeAt time.Time
	ended  error
	over   bool
}

type event struct {
	at  time.Time
	seq int
	do  func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at.Before(q[j].at) || q[i].at.Equal(q[j].at) && q[i].seq < q[j].seq
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any     { x := (*q)[len(*q)-1]; *q = (*q)[:len(*q)-1]; return x }

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.queue, event{w.now.Add(d), w.seq, do})
}

func (w *world) delay() time.Duration {
	if w.faulty && w.rand.IntN(50) == 0 {
		return time.Duration(w.rand.IntN(4000)) * time.Millisecond
	}
	return time.Duration(1+w.rand.IntN(30)) * time.Millisecond
}

func (w *world) note(format string, args ...any) {
	h := fnv.New64a()
	line := fmt.Sprintf(format, args...)
	fmt.Fprintf(h, "%d %d %s", w.trace, w.now.UnixNano(), line)
	w.trace = h.Sum64()
	if testing.Verbose() && verboseSeed {
		w.t.Logf("%8.3f %s", w.now.Sub(start).Seconds(), line)
	}
}

var (
	start       = time.Unix(1_700_000_000, 0)
	verboseSeed = false
)

func (w *world) add(instance string) *node {
	w.made++
	n := &node{w: w, name: fmt.Sprintf("n%d", w.made), owned: map[machine.TopicPartition]bool{}}
	cfg := machine.Config{GroupID: "g", InstanceID: instance, MemberID: fmt.Sprintf("uuid-%03d", w.made), Topics: []string{"a", "b"},
		Protocol: w.kinds, Assignors: []machine.Assignor{w.assign}, Session: session, Heartbeat: heartbeat, Rebalance: rebalance,
		RetryBackoff: 100 * time.Millisecond, RetryBackoffMax: time.Second, Seed: uint64(w.made)}
	n.m = machine.New(cfg)
	w.nodes = append(w.nodes, n)
	n.step(machine.Started{})
	n.step(machine.TopologyChanged{View: w.view})
	return n
}

// step steps a member and carries out what it wants.
func (n *node) step(ev machine.Event) {
	if n.dead {
		return
	}
	w := n.w
	w.steps++
	eff := n.m.Step(w.now, ev)
	for _, t := range eff.Transitions {
		w.note("%s %s -> %s: %s", n.name, t.From, t.To, t.Reason)
		require.Contains(w.t, legal[t.From], t.To, "%s: %s -> %s (%s)", n.name, t.From, t.To, t.Reason)
	}
	for _, l := range eff.Lost {
		w.note("%s lost %v: %v", n.name, l.Parts, l.Cause)
		for _, tp := range l.Parts {
			require.True(w.t, n.owned[tp], "lost %v without having it", tp)
			delete(n.owned, tp)
		}
		require.Empty(w.t, n.owned)
	}
	if r := eff.Revoke; r != nil {
		w.note("%s revoked %v", n.name, r.Parts)
		for _, tp := range r.Parts {
			require.True(w.t, n.owned[tp], "%s is to be given up, and was not had before this step", tp)
		}
		slow := w.delay()
		if w.faulty && w.rand.IntN(10) == 0 {
			slow = time.Duration(w.rand.IntN(30)) * time.Second
		}
		w.after(slow, func() {
			if n.m.Owned() == nil || n.dead {
				return
			}
			for _, tp := range r.Parts {
				delete(n.owned, tp)
			}
			n.step(machine.Revoked{Serial: r.Serial})
			n.resync()
		})
	}
	if a := eff.Assigned; a != nil {
		w.note("%s assigned %v", n.name, a.Added)
		for _, tp := range a.Added {
			require.False(w.t, n.owned[tp])
			n.owned[tp] = true
		}
		require.Len(w.t, n.owned, len(a.All))
	}
	if eff.FindCoordinator {
		w.after(w.delay(), func() {
			if n.cut || w.faulty && w.rand.IntN(20) == 0 {
				n.step(machine.CoordinatorFailed{Err: errors.New("no answer")})
				return
			}
			n.step(machine.CoordinatorFound{Broker: w.broker})
		})
	}
	if len(eff.FindNames) > 0 {
		w.after(w.delay(), func() { n.step(machine.TopologyChanged{View: w.view}) })
	}
	for _, req := range eff.Send {
		n.send(req)
	}
	if eff.Ended {
		n.over, n.ended = true, eff.Err
	}
	n.arm(ev)
}

// resync: a revocation that was confirmed too late (after a loss and a new assignment) must not take anything away.
func (n *node) resync() {
	clear(n.owned)
	for _, tp := range n.m.Owned() {
		n.owned[tp] = true
	}
}

// arm sets the alarm for the member's deadline.
func (n *node) arm(ev machine.Event) {
	at := n.m.Deadline()
	if _, woke := ev.(machine.Woke); woke && !at.IsZero() {
		require.True(n.w.t, at.After(n.w.now), "%s in %s would wake for ever", n.name, n.m.State())
	}
	if at.IsZero() || at.Equal(n.wakeAt) {
		return
	}
	n.wakeAt = at
	n.w.after(max(at.Sub(n.w.now), 0), func() {
		if n.wakeAt.Equal(at) && !n.over {
			n.wakeAt = time.Time{}
			n.step(machine.Woke{})
		}
	})
}

// send carries a request to the coordinator and its answer back, or loses one of them.
func (n *node) send(req *machine.Request) {
	w := n.w
	failed := func() { n.step(machine.Failed{Request: req, Err: errors.New("connection ended")}) }
	w.after(w.delay(), func() {
		switch {
		case n.cut:
			w.after(3*time.Second, failed)
			return
		case w.faulty && w.rand.IntN(60) == 0:
			w.after(w.delay(), failed)
			return
		case req.Broker != w.broker:
			w.after(w.delay(), func() { n.step(machine.Answered{Request: req, Response: notCoordinator(req)}) })
			return
		}
		broker, answered := w.broker, false
		w.group.handle(req.Body, func(resp message.Response) {
			answered = true
			w.after(w.delay(), func() {
				if n.cut || broker != w.broker || w.faulty && w.rand.IntN(60) == 0 {
					failed()
					return
				}
				n.step(machine.Answered{Request: req, Response: resp})
			})
		})
		if !answered { // held back: the connection may end meanwhile
			w.held = append(w.held, held{n, failed, func() bool { return answered }})
		}
	})
}

func notCoordinator(req *machine.Request) message.Response {
	code := int16(errcode.NotCoordinator)
	switch req.Body.(type) {
	case *message.JoinGroupRequest:
		return &message.JoinGroupResponse{ErrorCode: code, GenerationId: -1}
	case *message.SyncGroupRequest:
		return &message.SyncGroupResponse{ErrorCode: code}
	case *message.HeartbeatRequest:
		return &message.HeartbeatResponse{ErrorCode: code}
	case *message.LeaveGroupRequest:
		return &message.LeaveGroupResponse{ErrorCode: code}
	}
	return &message.ConsumerGroupHeartbeatResponse{ErrorCode: code}
}

// held is a request whose answer the coordinator holds back.
type held struct {
	n        *node
	failed   func()
	answered func() bool
}

// drop ends the connections of held requests.
func (w *world) drop(which func(*node) bool) {
	list := w.held
	w.held = nil
	for _, h := range list {
		switch {
		case h.answered():
		case which(h.n):
			w.after(w.delay(), h.failed)
		default:
			w.held = append(w.held, h)
		}
	}
}

// fault does something bad, or only something new.
func (w *world) fault() {
	live := w.live()
	pick := func() *node { return live[w.rand.IntN(len(live))] }
	switch k := w.rand.IntN(10); {
	case len(live) == 0 || k == 0 && len(live) < 6:
		w.add([]string{"", "", fmt.Sprintf("static-%d", w.made)}[w.rand.IntN(3)])
	case k == 1:
		w.note("crash %s", pick().name)
		pick().dead = true
	case k == 2:
		n := pick()
		w.note("leave %s", n.name)
		n.step(machine.Leave{Stay: w.rand.IntN(2) == 0})
	case k <= 4:
		n := pick()
		w.note("cut %s", n.name)
		n.cut = true
		w.drop(func(m *node) bool { return m == n })
		w.after(time.Duration(w.rand.IntN(25))*time.Second, func() { n.cut = false })
	case k == 5:
		w.note("coordinator moves")
		w.group.cut()
		w.broker = 3 - w.broker
		w.drop(func(*node) bool { return true })
	case k == 6:
		w.view = maps.Clone(w.view)
		w.view[[]string{"a", "b", "c"}[w.rand.IntN(3)]] += 1 + w.rand.IntN(3)
		w.note("topics %v", w.view)
		w.spread()
	case k == 7:
		n := pick()
		n.step(machine.Stall{})
		w.after(time.Duration(w.rand.IntN(15))*time.Second, func() { n.step(machine.Resume{}) })
	case k == 8:
		pick().step(machine.Subscribed{Topics: [][]string{{"a"}, {"a", "b"}, {"b", "c"}, {"a", "b", "c"}}[w.rand.IntN(4)]})
	case k == 9:
		pick().step(machine.Rejoin{Reason: "test"})
	}
}

// spread tells members of the new view, and the coordinator of the consumer protocol at once.
func (w *world) spread() {
	view := w.view
	if g, ok := w.group.(*consumerGroup); ok {
		g.distribute()
	}
	for _, n := range w.nodes {
		w.after(w.delay(), func() { n.step(machine.TopologyChanged{View: view}) })
	}
}

func (w *world) live() (out []*node) {
	for _, n := range w.nodes {
		if !n.dead && !n.over && n.m.State() != machine.Leaving {
			out = append(out, n)
		}
	}
	return out
}

// check looks for two owners of a partition that the coordinator both counts in.
func (w *world) check() {
	owner := map[machine.TopicPartition]*node{}
	for _, n := range w.nodes {
		if n.dead || !w.group.counted(n.m.Generation()) {
			continue
		}
		for tp := range n.owned {
			if other := owner[tp]; other != nil {
				require.Fail(w.t, "two owners", "%s: %s (%+v) and %s (%+v)", tp, n.name, n.m.Generation(), other.name, other.m.Generation())
			}
			owner[tp] = n
		}
	}
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	end := w.now.Add(d)
	for len(w.queue) > 0 && !w.queue[0].at.After(end) {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		w.group.tick()
		e.do()
		w.check()
	}
	w.now = end
	w.group.tick()
}

// settled tells whether every partition has exactly one owner that wants it, and all members are at rest.
func (w *world) settled() error {
	want, have := map[machine.TopicPartition]bool{}, map[machine.TopicPartition]int{}
	for _, n := range w.live() {
		if n.m.State() != machine.Stable {
			return fmt.Errorf("%s is %s", n.name, n.m.State())
		}
		for _, topic := range n.topics() {
			for p := range w.view[topic] {
				want[machine.TopicPartition{Topic: topic, Partition: int32(p)}] = true
			}
		}
		for tp := range n.owned {
			have[tp]++
		}
		if !slices.Equal(slices.SortedFunc(maps.Keys(n.owned), machine.ComparePartitions), n.m.Owned()) && len(n.owned)+len(n.m.Owned()) > 0 {
			return fmt.Errorf("%s: the owner has %v, the member says %v", n.name, n.owned, n.m.Owned())
		}
	}
	for tp := range want {
		if have[tp] != 1 {
			return fmt.Errorf("%s has %d owners", tp, have[tp])
		}
	}
	if len(have) > len(want) {
		return fmt.Errorf("%d partitions are owned, %d wanted", len(have), len(want))
	}
	return nil
}

func (n *node) topics() []string { return n.m.Topics() }

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 7)), now: start, broker: 1, view: modelView{"a": 4, "b": 3}, faulty: true}
	now := func() time.Time { return w.now }
	switch seed % 4 {
	case 0:
		w.kinds = machine.Consumer
		w.group = newConsumerGroup(now, func() modelView { return w.view }, session, heartbeat)
	case 1:
		w.kinds, w.assign = machine.Classic, assignor.Range{}
	case 2:
		w.kinds, w.assign = machine.Classic, assignor.CooperativeSticky{}
	case 3:
		w.kinds, w.assign = machine.Classic, assignor.Sticky{}
	}
	if w.group == nil {
		w.group = newClassicGroup(now)
	}
	return w
}

// scenario is one seed: two minutes of faults, then peace.
func scenario(t *testing.T, seed uint64) (trace uint64, steps int) {
	w := newWorld(t, seed)
	var clock func()
	clock = func() { w.after(250*time.Millisecond, clock) } // the coordinator looks at its deadlines with every event
	clock()
	for range 3 {
		w.add("")
	}
	w.run(2 * time.Second)
	for range 40 {
		w.fault()
		w.run(time.Duration(w.rand.IntN(6000)) * time.Millisecond)
	}
	w.faulty = false
	w.run(30 * time.Second) // the last cut and stall end
	if len(w.live()) == 0 {
		w.add("")
	}
	w.run(2 * (session + rebalance))
	require.NoError(t, w.settled(), "seed %d (replay: go test -run 'TestSimulation/seed=%d$' ./groupmember/machine)", seed, seed)
	for _, n := range w.live() {
		n.step(machine.Leave{})
	}
	w.run(10 * time.Second)
	for _, n := range w.nodes {
		require.True(t, n.dead || n.over, "%s has not left", n.name)
		require.True(t, n.dead || len(n.owned) == 0)
	}
	return w.trace, w.steps
}

func TestSimulation(t *testing.T) {
	seeds := uint64(120)
	if testing.Short() {
		seeds = 40
	}
	total := 0
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			trace, steps := scenario(t, seed)
			total += steps
			if seed%20 == 0 {
				again, _ := scenario(t, seed)
				require.Equal(t, trace, again, "the same seed takes the same course")
			}
		})
		if t.Failed() {
			break
		}
	}
	t.Logf("%d seeds, %d steps", seeds, total)
}
