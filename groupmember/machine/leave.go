package machine

import (
	"time"

	"github.com/ottla-kafka/ottla/wire/errcode"
)

// farewellWithin bounds how long a member that leaves looks for a coordinator to tell, and waits for its answer. Without being
// told it notices by the end of the session.
const farewellWithin = 5 * time.Second

// depart goes the steps of leaving: everything is given up, the coordinator is told, the end. False means that
// heartbeats have to go on meanwhile.
func (m *Member) depart(now time.Time, eff *Effects) bool {
	if m.inFlight[kindLeave] != nil {
		if !now.Before(m.leaveBy) {
			m.left(eff)
		}
		return true
	}
	if m.revoking == nil && len(m.owned) > 0 {
		m.revoke(m.owned, eff)
	}
	if m.revoking != nil {
		return false
	}
	req := m.rules.farewell(m.stay)
	if m.leaveBy.IsZero() {
		m.leaveBy = now.Add(min(farewellWithin, m.cfg.beatTimeout()))
	}
	switch {
	case req == nil || m.coordinator < 0 && (m.generation.ID == NoGeneration || !now.Before(m.leaveBy)):
		m.left(eff)
	case m.coordinator < 0:
		return false // it is looked for
	default:
		m.send(now, req, eff)
	}
	return true
}

// goodbye takes the answer to the farewell: a coordinator that has moved is looked for once more while there is time.
func (m *Member) goodbye(now time.Time, code errcode.Code, eff *Effects) {
	again := code == errcode.NotCoordinator || code == errcode.CoordinatorNotAvailable || code == errcode.CoordinatorLoadInProgress
	if again && m.leaving && now.Before(m.leaveBy) {
		m.coordinatorLost(now, "coordinator moved")
		return
	}
	m.left(eff)
}

// left: the farewell was answered, or cannot be.
func (m *Member) left(eff *Effects) {
	if m.leaving {
		m.end(nil, ErrClosed, eff)
	}
}

// stall leaves the group because the owner does not process: what it has is lost to it at once, since nobody is there
// to give it up.
func (m *Member) stall(now time.Time, eff *Effects) {
	if m.stalled || m.leaving || !m.started {
		return
	}
	req := m.rules.farewell(m.cfg.InstanceID != "")
	if req != nil && m.coordinator >= 0 {
		m.inFlight = [kinds]*Request{}
		m.send(now, req, eff)
		m.inFlight[kindLeave] = nil // nobody waits for the answer
	}
	m.inFlight = [kinds]*Request{}
	m.lose(ErrStalled, "nothing was processed within max.poll.interval.ms", eff)
	m.stalled = true
	if m.generation.Protocol == Classic {
		m.generation.MemberID = ""
	}
}

// end is the end for good.
func (m *Member) end(err, cause error, eff *Effects) {
	m.lose(cause, "ended", eff)
	m.inFlight = [kinds]*Request{}
	m.ended, eff.Ended, eff.Err = true, true, err
	if err != nil {
		m.reason = err.Error()
	}
}
