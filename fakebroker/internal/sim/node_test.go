package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/sim/clockwork"
	"github.com/ottla-kafka/ottla/groupmember/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// node is a process with one member of the group: the driver of machine.Member, one event at a time.
type node struct {
	w        *world
	name     string
	instance string
	m        *machine.Member
	old      bool // speaks old versions
	wakeAt   time.Time
	over     bool // the member has ended
	ended    error
	twin     bool // somebody else has, or had, its instance id: it may be fenced
	leaving  bool

	dead       bool // crashed: does nothing any more
	paused     bool // the process stands still; what happens to it waits in backlog
	backlog    []func()
	mute, deaf bool // what it sends, what is sent to it is lost

	group, held, client lane // connections
	owner
}

// do has something happen to the node, later if it is paused.
func (n *node) do(f func()) {
	switch {
	case n.dead:
	case n.paused:
		n.backlog = append(n.backlog, f)
	default:
		f()
	}
}

func (n *node) after(d time.Duration, f func()) { n.w.After(d, func() { n.do(f) }) }

// add starts a process.
func (w *world) add(instance string) *node {
	w.made++
	n := &node{w: w, name: fmt.Sprintf("n%d", w.made), instance: instance, old: !w.menu.replace && clockwork.Chance(w.fault, 4)}
	cfg := machine.Config{GroupID: groupID, InstanceID: instance, MemberID: fmt.Sprintf("uuid-%03d", w.made), Topics: slices.Clone(names),
		Session: session, Heartbeat: heartbeat, Rebalance: rebalance, RetryBackoff: 100 * time.Millisecond, RetryBackoffMax: time.Second, Seed: uint64(w.made)}
	w.fleet.configure(w, &cfg)
	n.m = machine.New(cfg)
	n.owner.init(n)
	w.nodes = append(w.nodes, n)
	w.Note("%s starts: %s instance %q old %t", n.name, cfg.Protocol, instance, n.old)
	n.step(machine.Started{})
	n.look()
	return n
}

// step steps the member and carries out what it wants, in the order of Effects.
func (n *node) step(ev machine.Event) {
	if n.over {
		return
	}
	w := n.w
	before := n.m.Generation()
	eff := n.m.Step(w.Now, ev)
	w.ledger.generation(n, before, n.m.Generation())
	for _, t := range eff.Transitions {
		w.Note("%s %s -> %s: %s", n.name, t.From, t.To, t.Reason)
	}
	for _, l := range eff.Lost {
		w.Note("%s lost %v: %v", n.name, l.Parts, l.Cause)
		n.lost(l)
	}
	if eff.Revoke != nil {
		w.Note("%s gives up %v", n.name, eff.Revoke.Parts)
		n.revoked(eff.Revoke)
	}
	if eff.Assigned != nil {
		w.Note("%s generation %d gets %v", n.name, eff.Assigned.Generation.ID, eff.Assigned.Added)
		n.assigned(eff.Assigned)
	}
	if eff.FindCoordinator {
		n.findCoordinator()
	}
	if len(eff.FindNames) > 0 {
		n.after(w.delay(), n.look)
	}
	for _, req := range eff.Send {
		l := &n.group
		if req.Held {
			n.held = lane{} // its own connection, a new one while an old request may still be held
			l = &n.held
		}
		n.send(l, req.Broker, req.Body.Key(), req.Append, req.Timeout, func(resp message.Response, err error) {
			if err != nil {
				n.step(machine.Failed{Request: req, Err: err})
				return
			}
			n.step(machine.Answered{Request: req, Response: resp})
		})
	}
	if eff.Ended {
		n.over, n.ended = true, eff.Err
		w.Note("%s ends: %v", n.name, eff.Err)
		n.expectEnd()
	}
	n.arm(ev)
}

// expectEnd fails if a member gave up that should not have.
func (n *node) expectEnd() {
	switch {
	case n.ended == nil:
	case n.instance != "" && (n.w.menu.late || n.w.menu.slow) && errors.Is(n.ended, machine.ErrFenced):
		n.w.Sometimes("a static member was fenced by a request of its own that came too late")
	case n.instance != "" && n.w.fleet.name == "mixed" && errors.Is(n.ended, errcode.UnreleasedInstanceId):
		n.w.Sometimes("a conversion gave a dead static member another session")
	case n.twin && (errors.Is(n.ended, machine.ErrFenced) || errors.Is(n.ended, errcode.UnreleasedInstanceId) || errors.Is(n.ended, errcode.FencedInstanceId)):
		n.w.Sometimes("a member with an instance id that another has gave up")
	default:
		n.w.Fail("%s ended: %v", n.name, n.ended)
	}
}

// arm sets the alarm for the member's deadline.
func (n *node) arm(ev machine.Event) {
	at := n.m.Deadline()
	if _, woke := ev.(machine.Woke); woke && !at.IsZero() && !at.After(n.w.Now) {
		n.w.Fail("%s in %s would wake for ever", n.name, n.m.State())
	}
	if at.IsZero() || at.Equal(n.wakeAt) {
		return
	}
	n.wakeAt = at
	n.after(at.Sub(n.w.Now), func() {
		if n.wakeAt.Equal(at) && !n.over {
			n.wakeAt = time.Time{}
			n.step(machine.Woke{})
		}
	})
}

// look reads metadata as it is now.
func (n *node) look() {
	n.img = n.w.topics.img
	n.step(machine.TopologyChanged{View: view{n.img}})
	n.adopt()
}

// findCoordinator asks any broker. The answer may be out of date.
func (n *node) findCoordinator() {
	w := n.w
	n.after(w.delay(), func() {
		b := w.brokers
		said := b.leader
		if w.faulty && w.menu.moves && clockwork.Chance(w.net, 10) {
			said = 3 - said
			w.Sometimes("told the wrong coordinator")
		}
		switch {
		case n.mute || n.deaf:
			n.after(3*time.Second, func() { n.step(machine.CoordinatorFailed{Err: errTimeout}) })
		case b.down(1) && b.down(2) || b.down(said):
			n.after(w.delay(), func() { n.step(machine.CoordinatorFailed{Err: errBroken}) })
		default:
			n.after(w.delay(), func() { n.step(machine.CoordinatorFound{Broker: said}) })
		}
	})
}

// live are the nodes that are to be in the group.
func (w *world) live() (out []*node) {
	for _, n := range w.nodes {
		if !n.dead && !n.over && !n.leaving {
			out = append(out, n)
		}
	}
	return out
}
