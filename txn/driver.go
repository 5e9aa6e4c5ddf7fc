package txn

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// The session has no goroutine of its own: whoever brings an event (a call, an answer, the producer's hooks, the timer)
// takes it to the machine, and carries out what comes of it. What the producer has to do is done under the lock, so that
// it comes in the order of the steps; none of that blocks. Requests go out without the lock.

// step takes events to the machine.
func (s *Session) step(events ...machine.Event) {
	s.mu.Lock()
	s.stepLocked(events...)
	s.unlock()
}

// stepLocked is step for those who hold the lock, and end with unlock.
func (s *Session) stepLocked(events ...machine.Event) {
	eff := s.m.Step(time.Now(), events...)
	s.apply(&eff)
	s.todo = append(s.todo, eff)
}

// unlock releases the lock and carries out what came of the steps.
func (s *Session) unlock() {
	todo := s.todo
	s.todo = nil
	s.mu.Unlock()
	for i := range todo {
		s.carryOut(&todo[i])
	}
}

// apply does what has to be done within the step, in the order of Effects.
func (s *Session) apply(eff *machine.Effects) {
	switch {
	case eff.Seal:
		s.p.Seal()
	case eff.Unseal:
		s.p.Unseal(s.m.Serial())
	}
	if eff.Drop != nil {
		s.p.Drop(s.said(eff.Drop))
	}
	if len(eff.Enlisted) > 0 {
		s.p.Enlisted(eff.Enlisted)
	}
	if n := eff.Flush; n > 0 {
		s.p.Flush(func() { s.step(machine.Flushed{Number: n}) })
	}
	if eff.Open {
		id, epoch := s.m.Producer()
		s.p.Begin(s.m.Serial(), id, epoch, s.m.Implicit())
	}
	if eff.Doomed != nil {
		s.tx.doomed(s.wrap("transaction", Abortable, eff.Doomed))
	}
	for _, job := range eff.Done {
		close(job.Owner.(chan struct{}))
	}
	if f := eff.Finished; f != nil {
		s.finished(f)
	}
	for _, r := range eff.Send {
		r.Owner = new(attempt)
	}
	if len(eff.Transitions) > 0 || len(eff.Done) > 0 || eff.Finished != nil || eff.Doomed != nil {
		close(s.changed)
		s.changed = make(chan struct{})
	}
	if d := s.m.Deadline(); machine.Never(d) {
		s.timer.Stop()
	} else {
		s.timer.Reset(time.Until(d))
	}
}

// finished notes what became of the newest transaction.
func (s *Session) finished(f *machine.Finish) {
	var err error
	if f.Err != nil {
		err = s.wrap("transaction", s.classOf(f), f.Err)
		var e *Error
		if f.Outcome == InDoubt && errors.As(err, &e) { // nothing more can become known: the coordinator answers others only
			e.over = true
			e.Hint = "the session is over: asking again brings nothing new, only the output tells whether the transaction is committed"
		}
	}
	s.tx.finished(f.Outcome, err)
}

func (s *Session) classOf(f *machine.Finish) ErrorClass {
	switch {
	case f.Outcome == InDoubt:
		return OutcomeUnknown
	case s.m.State() == machine.Over:
		return Fenced
	}
	return Abortable
}

// carryOut does what needs no lock.
func (s *Session) carryOut(eff *machine.Effects) {
	for i := range eff.Transitions {
		s.note(&eff.Transitions[i])
	}
	for _, c := range eff.Find {
		s.finds.Go(func() { s.find(c) }) // ends with the session
	}
	for _, r := range eff.Send {
		s.issue(r)
	}
}

// note tells observers of a change of the state.
func (s *Session) note(t *machine.Transition) {
	s.cl.Note(client.NoteEvent{Role: "txn", Kind: "session-state", Partition: -1,
		Text: fmt.Sprintf("%s -> %s: %s (transactional id %q, producer id %d, epoch %d)", t.From, t.To, t.Reason, s.cfg.ID, t.ProducerID, t.Epoch)})
}

// attempt is a request on its way to the connection, which begins it once it is not revoked.
type attempt struct{ state atomic.Int32 }

const (
	issued  = iota // the connection has not looked at it
	begun          // bytes may have got out
	revoked        // it will not be written
)

var errRevoked = errors.New("called back before it was written")

// revoke calls a request back; false when it may have got out.
func (a *attempt) revoke() bool { return a.state.CompareAndSwap(issued, revoked) }

// issue sends one request. Its outcome comes back as an event.
func (s *Session) issue(r *machine.Request) {
	a := r.Owner.(*attempt)
	s.cl.Issue(r.Broker, client.Transactions, &client.Call{
		Key: r.Body.Key(), MinVersion: r.MinVersion, MaxVersion: r.MaxVersion, Timeout: r.Timeout,
		Append: func(dst []byte, version int16) ([]byte, error) {
			if !a.state.CompareAndSwap(issued, begun) {
				return dst, errRevoked
			}
			return r.Body.AppendTo(dst, version)
		},
		Done: func(reply client.Reply) {
			if a.state.Load() != revoked {
				s.replied(r, reply)
			}
		},
	})
}

// replied reads an answer. It runs on the connection's goroutine.
func (s *Session) replied(r *machine.Request, reply client.Reply) {
	if err := reply.Err; err != nil {
		s.step(machine.Failed{Request: r, Err: err, Written: reply.Written, Final: final(err), Unsupported: errors.Is(err, client.ErrUnsupportedVersion)})
		return
	}
	resp := r.Body.NewResponse()
	if err := resp.ReadFrom(wire.NewReader(reply.Body), reply.Version); err != nil {
		s.step(machine.Failed{Request: r, Err: fmt.Errorf("%w: %w", client.ErrProtocol, err), Written: true})
		return
	}
	s.step(machine.Answered{Request: r, Response: resp, Version: reply.Version, Broker: s.cl.BrokerName(r.Broker)})
}

// final tells whether trying on cannot help: an outage may last as long as it likes and is not final.
func final(err error) bool {
	if client.Retriable(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, client.ErrTimeout) {
		return false
	}
	var code errcode.Code
	return !errors.As(err, &code) || !code.Retriable()
}

// find asks where a coordinator is, forgetting what the client knows.
func (s *Session) find(c machine.Coordinator) {
	s.cl.ForgetCoordinator(c.Kind, c.Key)
	nodes, errs, err := s.cl.Coordinators(s.life, c.Kind, c.Key)
	if err == nil {
		err = errs[c.Key]
	}
	if err == nil {
		if _, known := s.cl.Topology().Brokers[nodes[c.Key].ID]; !known {
			s.cl.RefreshMetadata() // connections follow metadata alone
			err = fmt.Errorf("%w: coordinator %d", client.ErrUnknownBroker, nodes[c.Key].ID)
		}
	}
	if err != nil {
		s.step(machine.CoordinatorFailed{Coordinator: c, Err: err, Final: final(err) && s.life.Err() == nil})
		return
	}
	s.step(machine.CoordinatorFound{Coordinator: c, Broker: nodes[c.Key].ID})
}

// hooks are what the producer calls.
func (s *Session) hooks() producer.Hooks {
	return producer.Hooks{
		Enlist: func(parts []client.TopicPartition) { s.step(machine.PartitionsUsed{Parts: parts}) },
		Doomed: func(d producer.Doom) {
			err := d.Err
			if d.Code != errcode.None {
				err = d.Code
			}
			switch {
			case d.Expired && err == nil:
				err = producer.ErrDeliveryTimeout
			case d.Expired:
				err = fmt.Errorf("%w, last attempt: %w", producer.ErrDeliveryTimeout, err)
			}
			op := &client.OpError{Op: "Produce", Topic: d.Topic, Partition: d.Partition, Err: err}
			s.step(machine.BatchFailed{TopicPartition: d.TopicPartition, InDoubt: d.Outcome == producer.Unknown, Sequenced: d.Sequenced, Code: d.Code, Err: op})
		},
	}
}
