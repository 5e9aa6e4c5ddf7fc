package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/sim/clockwork"
	"github.com/ottla-kafka/ottla/groupmember/machine"
)

// menu is what can go wrong in a seed. A clean one has only what a group has to bear without repeating a record: members
// that come and go in good order, coordinators that move or restart, topics that change.
type menu struct {
	clean   bool
	crash   bool // members die
	cut     bool // members lose the network, perhaps in one direction only
	pause   bool // processes stand still
	stall   bool // owners do not process in time
	loss    bool // single requests and answers are lost
	late    bool // given up requests arrive all the same
	slow    bool // packets take seconds
	lag     bool // records are committed some time after they were appended
	moves   bool // the coordinator moves
	brokers bool // brokers crash
	refuse  bool // the log takes no records for a while
	static  bool
	grow    bool
	replace bool // topics are deleted and made again
	subs    bool // subscriptions change
}

func drawMenu(r *rand.Rand) menu {
	on := func() bool { return clockwork.Chance(r, 2) }
	m := menu{clean: clockwork.Chance(r, 3), lag: on(), moves: on(), brokers: on(), refuse: on(), static: on(), grow: on(), replace: on(), subs: on()}
	if !m.clean {
		m.crash, m.cut, m.pause, m.stall, m.loss, m.late, m.slow = on(), on(), on(), on(), on(), on(), on()
	}
	return m
}

// action is one thing that may happen. It returns false when it cannot at present.
type action struct {
	name    string
	enabled func(m *menu) bool
	do      func(w *world, n *node) bool // n is a live node, nil if there is none
}

func always(*menu) bool { return true }

// actions are drawn from with equal chances.
var actions = []action{
	{"join", always, func(w *world, _ *node) bool {
		if len(w.live()) >= 6 {
			return false
		}
		w.add(w.instance())
		return true
	}},
	{"leave", always, func(w *world, n *node) bool {
		if n == nil {
			return false
		}
		n.leave(n.instance != "" && clockwork.Chance(w.fault, 2))
		return true
	}},
	{"rejoin", always, func(w *world, n *node) bool {
		if n == nil {
			return false
		}
		n.do(func() { n.step(machine.Rejoin{Reason: "sim"}) })
		return true
	}},
	{"subscribe", func(m *menu) bool { return m.subs }, func(w *world, n *node) bool {
		if n == nil {
			return false
		}
		list := [][]string{{"a"}, {"a", "b"}, {"b", "c"}, {"a", "b", "c"}}[w.fault.IntN(4)]
		n.do(func() { n.step(machine.Subscribed{Topics: list}) })
		return true
	}},
	{"crash", func(m *menu) bool { return m.crash }, func(w *world, n *node) bool {
		if n == nil {
			return false
		}
		n.crash()
		return true
	}},
	{"cut", func(m *menu) bool { return m.cut }, func(w *world, n *node) bool {
		if n == nil {
			return false
		}
		n.cut()
		return true
	}},
	{"pause", func(m *menu) bool { return m.pause }, func(w *world, n *node) bool {
		if n == nil || n.paused {
			return false
		}
		n.pause(clockwork.Between(w.fault, 100*time.Millisecond, 20*time.Second))
		return true
	}},
	{"stall", func(m *menu) bool { return m.stall }, func(w *world, n *node) bool {
		if n == nil {
			return false
		}
		n.do(func() { n.step(machine.Stall{}) })
		n.after(clockwork.Between(w.fault, 0, 15*time.Second), func() { n.step(machine.Resume{}) })
		return true
	}},
	{"connections break", always, func(w *world, n *node) bool {
		if n == nil {
			return false
		}
		n.hangUp(-1)
		return true
	}},
	{"coordinator moves", func(m *menu) bool { return m.moves }, func(w *world, _ *node) bool {
		if w.brokers.down(3 - w.brokers.leader) {
			return false
		}
		w.brokers.move(clockwork.Between(w.fault, 0, time.Second))
		return true
	}},
	{"broker crashes", func(m *menu) bool { return m.brokers }, func(w *world, _ *node) bool {
		id := int32(1 + w.fault.IntN(2))
		if w.brokers.down(id) || w.brokers.down(3-id) {
			return false
		}
		w.brokers.crash(id, clockwork.Between(w.fault, 0, 4*time.Second), clockwork.Chance(w.fault, 2))
		return true
	}},
	{"log refuses", func(m *menu) bool { return m.refuse }, func(w *world, _ *node) bool {
		w.brokers.refusing = w.Now.Add(clockwork.Between(w.fault, 0, 2*time.Second))
		return true
	}},
	{"topic grows", func(m *menu) bool { return m.grow }, func(w *world, _ *node) bool {
		w.topics.grow(names[w.fault.IntN(3)], 1+w.fault.IntN(2))
		return true
	}},
	{"topic deleted", func(m *menu) bool { return m.replace }, func(w *world, _ *node) bool {
		name := names[w.fault.IntN(3)]
		if w.topics.img.Topic(name) == nil {
			return false
		}
		w.topics.remove(name)
		w.After(clockwork.Between(w.fault, 0, 3*time.Second), func() {
			if w.topics.img.Topic(name) == nil {
				w.topics.grow(name, 1+w.fault.IntN(4))
			}
		})
		return true
	}},
}

// misfortune does one thing of the menu.
func (w *world) misfortune() {
	live := w.live()
	var n *node
	if len(live) > 0 {
		n = live[w.fault.IntN(len(live))]
	}
	var open []action
	for _, a := range actions {
		if a.enabled(&w.menu) {
			open = append(open, a)
		}
	}
	a := open[w.fault.IntN(len(open))]
	name := "-"
	if n != nil {
		name = n.name
	}
	w.Note("-- %s (%s)", a.name, name)
	if a.do(w, n) {
		w.Sometimes("fault: " + a.name)
	}
	if len(w.live()) == 0 {
		w.add(w.instance())
	}
}

// instance draws an instance id: none, a new one, one of a member that is gone, or, rarely, one that somebody has.
func (w *world) instance() string {
	if !w.menu.static || clockwork.Chance(w.fault, 2) {
		return ""
	}
	var gone, taken []*node
	for _, n := range w.nodes {
		switch {
		case n.instance == "":
		case n.dead || n.over:
			gone = append(gone, n)
		default:
			taken = append(taken, n)
		}
	}
	if len(taken) > 0 && !w.menu.clean && clockwork.Chance(w.fault, 8) {
		n := taken[w.fault.IntN(len(taken))]
		w.Sometimes("two processes have one instance id")
		for _, other := range w.nodes {
			if other.instance == n.instance {
				other.spoil()
				other.twin = true
			}
		}
		w.twins(n.instance)
		return n.instance
	}
	gone = slices.DeleteFunc(gone, func(n *node) bool {
		return slices.ContainsFunc(taken, func(t *node) bool { return t.instance == n.instance })
	})
	if len(gone) > 0 && clockwork.Chance(w.fault, 2) {
		w.Sometimes("a static member came back")
		n := gone[w.fault.IntN(len(gone))]
		if n.dead || w.menu.moves || w.menu.brokers {
			w.twins(n.instance) // a last request of the dead may be under way; a coordinator may forget who came last
		}
		return n.instance
	}
	return fmt.Sprintf("static-%d", w.made)
}

// twins lets whoever has that id be fenced, those to come included.
func (w *world) twins(instance string) {
	w.After(0, func() {
		for _, n := range w.nodes {
			if n.instance == instance {
				n.twin = true
			}
		}
	})
}

// spoil says that what the node holds may be done again by others.
func (n *node) spoil() {
	for _, c := range n.sorted() {
		n.w.ledger.badly(c.part, crashed)
	}
}

func (n *node) leave(stay bool) {
	n.leaving = true
	n.do(func() { n.step(machine.Leave{Stay: stay}) })
}

func (n *node) crash() {
	n.spoil()
	n.dead = true
}

// cut takes the network away, in one direction or both, with or without a sign.
func (n *node) cut() {
	w := n.w
	switch w.fault.IntN(3) {
	case 0:
		n.mute = true
	case 1:
		n.deaf = true
	case 2:
		n.mute, n.deaf = true, true
	}
	n.spoil()
	if clockwork.Chance(w.fault, 2) {
		n.hangUp(-1)
	}
	w.After(clockwork.Between(w.fault, 0, 25*time.Second), func() { n.mute, n.deaf = false, false })
}

func (n *node) pause(d time.Duration) {
	n.spoil()
	n.paused = true
	n.w.After(d, func() {
		n.paused = false
		list := n.backlog
		n.backlog = nil
		for _, f := range list {
			n.do(f)
		}
	})
}

// peace ends all faults; what is broken heals within the longest of them.
func (w *world) peace() {
	w.Note("-- peace")
	w.faulty = false
	w.run(26 * time.Second)
	w.topics.grow("a", 1)
	for _, n := range w.live() {
		n.do(func() { n.step(machine.Subscribed{Topics: slices.Clone(names)}) })
	}
	if len(w.live()) == 0 {
		w.add("")
	}
}
