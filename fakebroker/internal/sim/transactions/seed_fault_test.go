package transactions

import (
	"math/rand/v2"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/sim/clockwork"
	"github.com/ottla-kafka/ottla/txn/machine"
)

// menu is what can go wrong in a seed.
type menu struct {
	loss    bool // single packets are lost
	late    bool // connections break, and what was sent on them arrives all the same, later
	slow    bool // packets take seconds
	lag     bool // what was appended is committed some time later
	moves   bool // the coordinator moves
	brokers bool // brokers crash
	refuse  bool // the coordinator's log takes nothing for a while
	zombies bool // there are several sessions of one id
	crash   bool // sessions die
	pause   bool // processes stand still
	cut     bool // processes lose the network, perhaps in one direction only
	last    bool // the id is at the end of its epochs
	slowISR bool // brokers answer REQUEST_TIMED_OUT to some of what they have appended
}

func drawMenu(r *rand.Rand) menu {
	on := func() bool { return clockwork.Chance(r, 2) }
	return menu{on(), on(), on(), on(), on(), on(), on(), on(), on(), on(), on(), clockwork.Chance(r, 4), on()}
}

// action is one thing that may happen. It returns false when it cannot at present.
type action struct {
	name    string
	enabled func(m *menu) bool
	do      func(w *world, n *node) bool // n is a live node, nil if there is none
}

var actions = []action{
	{"nothing", func(*menu) bool { return true }, func(*world, *node) bool { return true }},
	{"another session", func(m *menu) bool { return m.zombies }, func(w *world, _ *node) bool {
		if len(w.live()) >= 4 || len(w.nodes) >= 60 {
			return false
		}
		w.add()
		return true
	}},
	{"crash of a session", func(m *menu) bool { return m.crash }, func(_ *world, n *node) bool {
		if n != nil {
			n.dead = true
		}
		return n != nil
	}},
	{"close of a session", func(m *menu) bool { return m.crash }, func(_ *world, n *node) bool {
		if n != nil {
			n.do(func() { n.step(machine.Ended{}); n.dead = true })
		}
		return n != nil
	}},
	{"pause", func(m *menu) bool { return m.pause }, func(w *world, n *node) bool {
		if n == nil || n.paused {
			return false
		}
		n.paused = true
		w.After(clockwork.Between(w.fault, 100*time.Millisecond, 12*time.Second), func() {
			n.paused = false
			list := n.backlog
			n.backlog = nil
			for _, f := range list {
				n.do(f)
			}
		})
		return true
	}},
	{"cut", func(m *menu) bool { return m.cut }, func(w *world, n *node) bool {
		if n == nil {
			return false
		}
		way := w.fault.IntN(3)
		n.mute, n.deaf = way != 1, way != 0
		w.After(clockwork.Between(w.fault, 0, 10*time.Second), func() { n.mute, n.deaf = false, false })
		return true
	}},
	{"connections break", func(*menu) bool { return true }, func(w *world, n *node) bool {
		if n == nil {
			return false
		}
		n.hangUp(0)
		return true
	}},
	{"coordinator moves", func(m *menu) bool { return m.moves }, func(w *world, _ *node) bool {
		if !w.up[3-w.coord.leader] {
			return false
		}
		w.coord.move(clockwork.Between(w.fault, 0, time.Second))
		return true
	}},
	{"broker crashes", func(m *menu) bool { return m.brokers }, func(w *world, _ *node) bool {
		id := int32(1 + w.fault.IntN(2))
		if !w.up[1] || !w.up[2] {
			return false
		}
		w.crash(id, clockwork.Between(w.fault, 0, 4*time.Second), clockwork.Chance(w.fault, 2))
		return true
	}},
	{"log refuses", func(m *menu) bool { return m.refuse }, func(w *world, _ *node) bool {
		w.coord.refusing = w.Now.Add(clockwork.Between(w.fault, 0, 2*time.Second))
		return true
	}},
}

// hangUp ends connections: to one broker, or to all.
func (n *node) hangUp(to int32) {
	for _, l := range []**lane{&n.txnLane, &n.groupLane, &n.data[1], &n.data[2]} {
		old := *l
		if to != 0 && (len(old.calls) == 0 || old.calls[0].to != to) {
			continue
		}
		old.mute, old.deaf = true, true
		n.w.After(n.w.delay(), func() { n.w.breaks(l, old) })
	}
}

// crash takes a broker down for a while; the other one takes over the coordinator, or it comes back as it was.
func (w *world) crash(id int32, away time.Duration, takeover bool) {
	w.up[id] = false
	for _, p := range w.leaders {
		if p.broker == id {
			p.crash()
		}
	}
	if w.offsets.broker == id {
		w.offsets.life++
	}
	if w.coord.leader == id {
		w.coord.drop(true)
		if takeover {
			w.coord.leader = 3 - id
			w.coord.load(100 * time.Millisecond)
		}
	}
	for _, n := range w.nodes {
		n.hangUp(id)
	}
	w.After(away, func() {
		w.up[id] = true
		for _, p := range w.leaders {
			if p.broker == id {
				p.open()
				w.ledger.moved = true
			}
		}
		if w.offsets.broker == id {
			w.offsets.open()
		}
		if w.coord.leader == id && w.coord.shard == nil {
			w.coord.load(50 * time.Millisecond)
		}
	})
}

// live are the nodes that have a session that goes on.
func (w *world) live() (out []*node) {
	for _, n := range w.nodes {
		if !n.dead && !n.over {
			out = append(out, n)
		}
	}
	return out
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
	w.Note("-- %s", a.name)
	if a.do(w, n) {
		w.Sometimes("fault: " + a.name)
	}
	if len(w.live()) == 0 {
		w.add()
	}
}
