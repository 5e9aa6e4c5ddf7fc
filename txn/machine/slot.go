package machine

import (
	"time"

	"github.com/ottla-kafka/ottla/client"
	clientmachine "github.com/ottla-kafka/ottla/client/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// slot is one coordinator.
//
//	unknown -> finding    something has to be sent there, and the time for it has come
//	finding -> known      CoordinatorFound
//	finding -> unknown    CoordinatorFailed
//	known   -> unknown    it moved, or the connection to it ended
type slot struct {
	who      Coordinator
	broker   int32 // -1 unknown
	finding  bool
	air      *Request
	failures int
	retryAt  time.Time
	trouble  error // why the last attempt came to nothing
}

// soonFirst is the first wait when a transaction is just ending; Kafka's is 20 ms.
const soonFirst = 5 * time.Millisecond

// later puts off the next attempt.
func (m *Machine) later(now time.Time, s *slot, v verdict) {
	s.failures++
	b := clientmachine.Backoff{First: m.cfg.RetryBackoff, Most: m.cfg.RetryBackoffMax}
	if v == soon {
		b = clientmachine.Backoff{First: min(soonFirst, m.cfg.RetryBackoff), Most: m.cfg.RetryBackoff}
	}
	s.retryAt = now.Add(b.After(s.failures, &m.rand))
}

// reset begins the count of failures anew.
func (s *slot) reset() { s.failures, s.retryAt, s.trouble = 0, time.Time{}, nil }

// Trouble is why what is being tried has not come through yet, nil when it has not failed.
func (m *Machine) Trouble() error {
	if m.txn.trouble != nil {
		return m.txn.trouble
	}
	return m.group.trouble
}

// send issues what is due.
func (m *Machine) send(now time.Time) {
	m.pump(now, &m.txn, m.nextForTxn)
	m.pump(now, &m.group, m.nextForGroup)
}

func (m *Machine) pump(now time.Time, s *slot, next func(now time.Time) *Request) {
	if s.air != nil || s.finding || now.Before(s.retryAt) {
		return
	}
	r := next(now)
	if r == nil {
		return
	}
	if s.broker < 0 {
		s.finding = true
		m.eff.Find = append(m.eff.Find, s.who)
		return
	}
	r.Coordinator, r.Broker = s.who, s.broker
	s.air = r
	m.issued(now, r)
	m.eff.Send = append(m.eff.Send, r)
}

// wakeAt is when the slot has something to do.
func (m *Machine) wakeAt(s *slot) time.Time {
	if s.air != nil || s.finding || s.retryAt.IsZero() {
		return never
	}
	next := m.nextForTxn
	if s == &m.group {
		next = m.nextForGroup
	}
	if next(s.retryAt) == nil {
		return never
	}
	return s.retryAt
}

func (m *Machine) slotOf(c Coordinator) *slot {
	switch c {
	case m.txn.who:
		return &m.txn
	case m.group.who:
		return &m.group
	}
	return nil
}

func (m *Machine) found(e *CoordinatorFound) {
	if s := m.slotOf(e.Coordinator); s != nil {
		s.finding, s.broker = false, e.Broker
	}
}

// notFound: a coordinator could not be found. That of a group concerns the transaction, ours concerns the session.
func (m *Machine) notFound(now time.Time, e *CoordinatorFailed) {
	s := m.slotOf(e.Coordinator)
	if s == nil {
		return
	}
	s.finding, s.trouble = false, e.Err
	m.later(now, s, again)
	if m.tx.fence != nil && s == &m.txn {
		m.over(m.fenceError(nil))
		return
	}
	if !e.Final {
		return
	}
	a := findTxn
	if e.Coordinator.Kind == client.GroupCoordinator {
		a = findGroup
	}
	code := codeOf(e.Err)
	err := &Error{Request: apiNames[a], Hint: hints[code], Err: e.Err}
	if code != errcode.None && judge(a, code) == doom {
		m.doom(err)
		return
	}
	m.over(err)
}
