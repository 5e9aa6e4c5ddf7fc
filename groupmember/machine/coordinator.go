package machine

import (
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/wire/errcode"
)

// coordinatorLost gives up what is under way and asks anew who coordinates. The membership stays as it is: the next
// heartbeat tells whether the new coordinator knows it.
func (m *Member) coordinatorLost(now time.Time, reason string) {
	m.coordinator, m.reason = -1, reason
	m.inFlight = [kinds]*Request{kindLeave: m.inFlight[kindLeave]}
	m.retry(now)
	m.rules.interrupted()
}

// retry sets the time before which nothing is asked again.
func (m *Member) retry(now time.Time) {
	m.failures++
	m.retryAt = now.Add(m.backoff.After(m.failures, &m.rand))
}

// fine ends a run of failures.
func (m *Member) fine() { m.failures, m.retryAt = 0, time.Time{} }

func (m *Member) coordinatorFailed(now time.Time, ev CoordinatorFailed, eff *Effects) {
	m.finding = false
	if ev.Final {
		m.end(m.refused("FindCoordinator", ev.Err, ""), ErrLost, eff)
		return
	}
	m.retry(now)
}

// failed: a request has no answer.
func (m *Member) failed(now time.Time, ev Failed, eff *Effects) {
	switch {
	case ev.Request.kind == kindLeave && ev.Final:
		m.left(eff)
	case ev.Request.kind == kindLeave:
		m.goodbye(now, errcode.CoordinatorNotAvailable, eff)
	case ev.Unsupported && m.fallBack():
	case ev.Final || ev.Unsupported:
		err := m.refused(ev.Request.Body.Key().String(), ev.Err, "")
		if ev.Unsupported && m.generation.Protocol == Consumer {
			err.Hint = hints[errcode.UnsupportedVersion]
		}
		m.end(err, ErrLost, eff)
	default:
		m.coordinatorLost(now, "coordinator does not answer")
	}
}

// fallBack goes on with the classic protocol when the other one was only a try and nothing was joined yet.
func (m *Member) fallBack() bool {
	if m.cfg.Protocol != Auto || m.generation.Protocol != Consumer || m.generation.ID != NoGeneration {
		return false
	}
	m.inFlight = [kinds]*Request{}
	m.reason = "the group does not speak the consumer protocol"
	m.useClassic()
	return true
}

// refused words a final error.
func (m *Member) refused(op string, err error, text string) *GroupError {
	code, _ := err.(errcode.Code)
	return &GroupError{Group: m.cfg.GroupID, Op: op, Text: text, Hint: hints[code], Err: err}
}

// common deals with the codes that mean the same in all answers.
func (m *Member) common(now time.Time, req *Request, code errcode.Code, text *string, eff *Effects) {
	switch {
	case code == errcode.NotCoordinator || code == errcode.CoordinatorNotAvailable:
		m.coordinatorLost(now, "coordinator moved")
	case code == errcode.FencedInstanceId:
		m.end(m.refused(req.Body.Key().String(), fmt.Errorf("%w (%w)", ErrFenced, code), ""), ErrFenced, eff)
	case code.Retriable() || code == errcode.UnknownServerError: // loading, throttled, a broker in trouble
		m.retry(now)
	default:
		said := ""
		if text != nil {
			said = *text
		}
		m.end(m.refused(req.Body.Key().String(), code, said), ErrLost, eff)
	}
}
