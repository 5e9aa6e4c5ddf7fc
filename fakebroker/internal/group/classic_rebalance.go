package group

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

func (c *classicGroup) enter(s State, now time.Time) { c.state, c.since = s, now.UnixMilli() }

// rebalance begins a rebalance for a reason, or has the one that waits for members look whether all are there.
func (m *Machine) rebalance(now time.Time, g *group, why Event, out *coordinator.Result) {
	c := g.classic
	g.history.add(why.at(now, c.generation))
	if c.state == PreparingRebalance {
		m.maybeEndJoin(now, g, out)
		return
	}
	m.refuseSyncs(c, errcode.RebalanceInProgress, out)
	m.timers.stop(timerKey{kind: syncTimer, group: g.id})
	c.initial = c.state == Empty
	c.enter(PreparingRebalance, now)
	if c.initial {
		// The first members of a group are waited for a while, so that a fleet that starts does not rebalance for each.
		c.delayMs = max(int64(c.rebalanceMs())-m.set.initialDelay.Milliseconds(), 0)
		c.newcomer = false
		if m.set.initialDelay <= 0 {
			m.endJoin(now, g, out)
			return
		}
		m.timers.set(timerKey{kind: joinTimer, group: g.id}, now.Add(m.set.initialDelay))
		return
	}
	if c.allJoined() || len(c.members) == 0 { // ids that were given out have no say in when an empty group is empty
		m.endJoin(now, g, out)
		return
	}
	m.timers.set(timerKey{kind: joinTimer, group: g.id}, now.Add(time.Duration(c.rebalanceMs())*time.Millisecond))
}

// maybeEndJoin ends the join phase as soon as everybody is there; not so the first one, which waits for its delay.
func (m *Machine) maybeEndJoin(now time.Time, g *group, out *coordinator.Result) {
	if c := g.classic; c.state == PreparingRebalance && !c.initial && c.allJoined() {
		m.endJoin(now, g, out)
	}
}

// joinTimeout is the end of the join phase by time. During the initial delay a newcomer prolongs it, within the rebalance
// timeout.
func (m *Machine) joinTimeout(now time.Time, g *group, out *coordinator.Result) {
	c := g.classic
	if c.state != PreparingRebalance {
		return
	}
	if c.initial && c.newcomer && c.delayMs > 0 {
		c.newcomer = false
		delay := min(m.set.initialDelay.Milliseconds(), c.delayMs)
		c.delayMs -= delay
		m.timers.set(timerKey{kind: joinTimer, group: g.id}, now.Add(time.Duration(delay)*time.Millisecond))
		return
	}
	m.endJoin(now, g, out)
}

// endJoin ends the join phase: dynamic members that have not come are out, the others get a new generation.
func (m *Machine) endJoin(now time.Time, g *group, out *coordinator.Result) {
	c := g.classic
	m.timers.stop(timerKey{kind: joinTimer, group: g.id})
	for _, x := range append([]*classicMember(nil), c.members...) {
		if x.joining == coordinator.NoTicket && x.instance == nil {
			c.remove(x.id)
			m.timers.stop(timerKey{sessionTimer, g.id, x.id})
			g.history.add(Event{Cause: RebalanceTimeout, Member: x.id}.at(now, c.generation))
		}
	}
	if len(c.members) > 0 && !c.electJoined() {
		// Only static members are left, and none has come: until one does, or its session ends. A client may have said 0.
		wait := max(time.Duration(c.rebalanceMs())*time.Millisecond, time.Second)
		m.timers.set(timerKey{kind: joinTimer, group: g.id}, now.Add(wait))
		return
	}
	c.generation++
	c.initial = false
	clear(c.unsynced)
	if len(c.members) == 0 {
		c.enter(Empty, now)
		c.protocol, c.hasProtocol, c.leader = "", false, ""
		c.record(g.id, out)
		return
	}
	c.protocol, c.hasProtocol = c.choose(), true
	c.enter(CompletingRebalance, now)
	c.counts = m.partitionCounts(c.subscription())
	for _, x := range c.members {
		out.Reply(x.joining, c.joinResponse(x))
		x.joining, x.isNew = coordinator.NoTicket, false
		c.unsynced[x.id] = true
		m.heardOf(now, g, x)
	}
	m.timers.set(timerKey{kind: syncTimer, group: g.id}, now.Add(time.Duration(c.rebalanceMs())*time.Millisecond))
}

// electJoined makes sure that the leader is one that has joined.
func (c *classicGroup) electJoined() bool {
	if l := c.member(c.leader); l != nil && l.joining != coordinator.NoTicket {
		return true
	}
	for _, x := range c.members {
		if x.joining != coordinator.NoTicket {
			c.leader = x.id
			return true
		}
	}
	return false
}

// syncTimeout is the end of the sync phase: who has not synced is out.
func (m *Machine) syncTimeout(now time.Time, g *group, out *coordinator.Result) {
	c := g.classic
	if c.state != CompletingRebalance && c.state != Stable || len(c.unsynced) == 0 {
		return
	}
	why := Event{Cause: SyncTimeout}
	for _, x := range append([]*classicMember(nil), c.members...) {
		if c.unsynced[x.id] {
			m.takeOut(g, x, errcode.UnknownMemberId, out)
			why.Member, why.Instance = x.id, deref(x.instance)
		}
	}
	m.rebalance(now, g, why, out)
}

// removeMember takes a member out, and has the group rebalance without it.
func (m *Machine) removeMember(now time.Time, g *group, x *classicMember, code errcode.Code, why Event, out *coordinator.Result) {
	m.takeOut(g, x, code, out)
	m.afterLeaving(now, g, why, out)
}

// takeOut takes a member out; its waiting requests get code.
func (m *Machine) takeOut(g *group, x *classicMember, code errcode.Code, out *coordinator.Result) {
	m.refuseJoin(x.joining, "", code, out)
	refuseSync(x.syncing, code, out)
	x.joining, x.syncing = coordinator.NoTicket, coordinator.NoTicket
	g.classic.remove(x.id)
	m.timers.stop(timerKey{sessionTimer, g.id, x.id})
}

func (m *Machine) afterLeaving(now time.Time, g *group, why Event, out *coordinator.Result) {
	switch c := g.classic; c.state {
	case Stable, CompletingRebalance:
		m.rebalance(now, g, why, out)
	case PreparingRebalance:
		g.history.add(why.at(now, c.generation))
		m.maybeEndJoin(now, g, out)
	}
}

// heardOf starts a member's session anew.
func (m *Machine) heardOf(now time.Time, g *group, x *classicMember) {
	m.timers.set(timerKey{sessionTimer, g.id, x.id}, now.Add(time.Duration(x.sessionMs)*time.Millisecond))
}

// classicTimer takes a timer of a classic group.
func (m *Machine) classicTimer(now time.Time, g *group, key timerKey, out *coordinator.Result) {
	c := g.classic
	switch key.kind {
	case joinTimer:
		m.joinTimeout(now, g, out)
	case syncTimer:
		m.syncTimeout(now, g, out)
	case pendingTimer:
		delete(c.pending, key.member)
		m.maybeEndJoin(now, g, out)
	case sessionTimer:
		x := c.member(key.member)
		if x == nil || !x.isNew && (x.joining != coordinator.NoTicket || x.syncing != coordinator.NoTicket) {
			return // who waits for us is alive; its session starts with the answer
		}
		m.removeMember(now, g, x, errcode.UnknownMemberId, Event{Cause: SessionTimeout, Member: x.id, Instance: deref(x.instance)}, out)
	}
}

// partitionCounts is how many partitions each topic has.
func (m *Machine) partitionCounts(topics map[string]bool) map[string]int {
	counts := make(map[string]int, len(topics))
	for name := range topics {
		counts[name] = 0
		if t := m.env.Image.Topic(name); t != nil {
			counts[name] = len(t.Partitions)
		}
	}
	return counts
}

// Drop implements coordinator.Dropper: everybody who waits is told.
func (m *Machine) Drop(code errcode.Code, out *coordinator.Result) {
	for _, g := range m.sorted() {
		if g.classic != nil {
			for _, x := range g.classic.members {
				out.Refuse(x.joining, code)
				out.Refuse(x.syncing, code)
			}
		}
	}
}

func refuseSync(t coordinator.Ticket, code errcode.Code, out *coordinator.Result) {
	out.Reply(t, &message.SyncGroupResponse{ErrorCode: int16(code), Assignment: []byte{}})
}
