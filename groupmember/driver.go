package groupmember

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/groupmember/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// step takes an event to the machine. What ends claims takes effect before it returns; requests and calls of the
// Listener follow from their goroutines.
func (m *Member) step(ev machine.Event) {
	m.mu.Lock()
	if m.ended {
		m.mu.Unlock()
		return
	}
	eff := m.machine.Step(time.Now(), ev)
	m.apply(&eff)
	m.todo = append(m.todo, eff)
	stop := m.stop
	ended := m.ended
	m.mu.Unlock()
	signal(m.wake)
	if ended && stop != nil {
		stop()
	}
}

// apply does what has to be done within the step, in the order of Effects. m.mu is held.
func (m *Member) apply(eff *machine.Effects) {
	for _, l := range eff.Lost {
		m.lost(l)
		m.tell(func(to Listener) { to.Lost(l.Parts, l.Cause) })
	}
	if rev := eff.Revoke; rev != nil {
		cause := error(ErrRevoked)
		if m.machine.State() == Leaving {
			cause = ErrClosed
		}
		r := m.revoking(rev, cause)
		done := sync.OnceFunc(func() { m.arrived(r) })
		if m.cfg.Listener == nil {
			m.told.add(done)
		} else {
			m.tell(func(to Listener) { to.Revoked(rev.Parts, done) })
		}
	}
	if a := eff.Assigned; a != nil {
		m.claimed(a.Added)
		m.rounds++
		m.tell(func(to Listener) { to.Assigned(Assignment{Generation: a.Generation, Added: a.Added, All: a.All}) })
		if m.rounds == 1 {
			m.told.add(m.introduce)
		}
	}
	if eff.Rebalanced > 0 {
		m.cl.Meter().Rebalanced(eff.Rebalanced)
	}
	if eff.Ended {
		m.finish(eff.Err)
	}
	if eff.Assigned != nil || eff.Ended || len(eff.Lost) > 0 || len(eff.Transitions) > 0 {
		m.broadcast()
	}
}

// introduce lets Await return: the Listener knows of the first assignment.
func (m *Member) introduce() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.introduced = true
	m.broadcast()
}

// broadcast wakes those who wait for a change. m.mu is held.
func (m *Member) broadcast() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// tell has the Listener called.
func (m *Member) tell(f func(Listener)) {
	if to := m.cfg.Listener; to != nil {
		m.told.add(func() { f(to) })
	}
}

// finish ends the member. m.mu is held.
func (m *Member) finish(err error) {
	m.ended, m.err = true, err
	cause := err
	if cause == nil {
		cause = ErrClosed
	}
	m.cancel(cause)
	if m.cfg.OnEnd != nil {
		m.told.add(func() { m.cfg.OnEnd(err) })
	}
	m.told.close()
	m.commits.close()
}

// run carries out what the machine decides, in order, and wakes it at its deadlines. It is the only goroutine that
// calls the client and OnTransition.
func (m *Member) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		m.mu.Lock()
		todo, due, ended := m.todo, m.machine.Deadline(), m.ended
		m.todo = nil
		m.mu.Unlock()
		for i := range todo {
			m.carryOut(&todo[i])
		}
		if ended {
			m.untrack()
			if m.freeLane != nil {
				m.freeLane()
			}
			return
		}
		if len(todo) > 0 {
			continue // answers may be here already
		}
		wait := time.Hour
		if !due.IsZero() {
			wait = time.Until(due)
		}
		if wait <= 0 {
			m.step(machine.Woke{})
			continue
		}
		timer.Reset(wait)
		select {
		case <-m.wake:
		case <-timer.C:
			m.step(machine.Woke{})
		}
	}
}

// carryOut does what a step wants done outside of it.
func (m *Member) carryOut(eff *machine.Effects) {
	for _, t := range eff.Transitions {
		m.note(t)
	}
	if eff.Track != nil {
		m.track(eff.Track)
	}
	if len(eff.FindNames) > 0 {
		m.findNames(eff.FindNames)
	}
	if eff.FindCoordinator {
		m.group.Go(m.findCoordinator) // ends with the member
	}
	for _, req := range eff.Send {
		m.issue(req)
	}
	m.mu.Lock()
	look := m.pattern != nil && !m.looking && !m.ended && m.machine.Generation().Protocol == Classic
	m.looking = m.looking || look
	m.mu.Unlock()
	if look {
		m.group.Go(m.discover) // ends with the member
	}
}

// note tells observers, the logger and OnTransition of a change of the state.
func (m *Member) note(t Transition) {
	text := fmt.Sprintf("%s -> %s: %s (group %q, member %q, generation %d, %s)", t.From, t.To, t.Reason, m.cfg.GroupID, t.Generation.MemberID,
		t.Generation.ID, t.Generation.Protocol)
	m.cl.Note(client.NoteEvent{Role: "groupmember", Kind: "member-state", Partition: -1, Text: text})
	if f := m.cfg.OnTransition; f != nil {
		f(t)
	}
}

// issue sends one request. Its outcome comes back as an event.
func (m *Member) issue(req *machine.Request) {
	purpose := client.Group
	if req.Held {
		purpose = m.laneFor()
	}
	m.cl.Issue(req.Broker, purpose, &client.Call{
		Key: req.Body.Key(), MinVersion: req.MinVersion, Timeout: req.Timeout, Append: req.Append,
		Done: func(r client.Reply) {
			if req.Held {
				m.held.Add(-1)
			}
			m.replied(req, r)
		},
	})
}

// laneFor is the member's own connection, a new one when a request that was given up is still held on the old one.
func (m *Member) laneFor() client.Purpose {
	if m.freeLane != nil && m.held.Load() > 0 {
		m.freeLane()
		m.freeLane = nil
	}
	if m.freeLane == nil {
		m.lane, m.freeLane = m.cl.Lane(client.Group)
	}
	m.held.Add(1)
	return m.lane
}

// replied reads an answer. It runs on the connection's goroutine.
func (m *Member) replied(req *machine.Request, r client.Reply) {
	if r.Err != nil {
		m.step(machine.Failed{Request: req, Err: r.Err, Final: final(r.Err), Unsupported: errors.Is(r.Err, client.ErrUnsupportedVersion)})
		return
	}
	resp := req.Body.NewResponse()
	if err := resp.ReadFrom(wire.NewReader(r.Body), r.Version); err != nil {
		m.step(machine.Failed{Request: req, Err: fmt.Errorf("%w: %w", client.ErrProtocol, err)})
		return
	}
	m.step(machine.Answered{Request: req, Response: resp})
}

// final tells whether looking on cannot help: an outage may last as long as it likes and is not final.
func final(err error) bool {
	if client.Retriable(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, client.ErrTimeout) {
		return false
	}
	var code errcode.Code
	return !errors.As(err, &code) || !code.Retriable()
}

// findCoordinator asks anew, forgetting what the client knows.
func (m *Member) findCoordinator() {
	id := m.cfg.GroupID
	m.cl.ForgetCoordinator(client.GroupCoordinator, id)
	nodes, errs, err := m.cl.Coordinators(m.ctx, client.GroupCoordinator, id)
	if err == nil {
		err = errs[id]
	}
	if err == nil {
		if _, known := m.cl.Topology().Brokers[nodes[id].ID]; !known {
			m.cl.RefreshMetadata() // connections follow metadata alone
			err = fmt.Errorf("%w: coordinator %d", client.ErrUnknownBroker, nodes[id].ID)
		}
	}
	if err != nil {
		m.step(machine.CoordinatorFailed{Err: err, Final: final(err) && m.ctx.Err() == nil})
		return
	}
	m.step(machine.CoordinatorFound{Broker: nodes[id].ID})
}
