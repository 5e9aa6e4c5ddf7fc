package machine

import (
	"fmt"
	"slices"
	"time"
)

// revoke asks the owner to give up partitions. They stay in owned until it confirms.
func (m *Member) revoke(parts []TopicPartition, eff *Effects) {
	if m.revoking != nil {
		panic(fmt.Sprintf("machine: revocation of %d partitions while %d are being revoked", len(parts), len(m.revoking.Parts)))
	}
	m.serial++
	m.revoking = &Revocation{Serial: m.serial, Parts: parts}
	eff.Revoke = m.revoking
}

// confirmed: the owner has given up what it was asked for. A confirmation that came too late is ignored.
func (m *Member) confirmed(ev Revoked) {
	if m.revoking == nil || m.revoking.Serial != ev.Serial {
		return
	}
	m.owned = without(m.owned, m.revoking.Parts)
	m.revoking, m.reason = nil, "the owner gave up what was revoked"
}

// assign gives the owner what is in target and not held yet. What is held and not in target stays.
func (m *Member) assign(target []TopicPartition, eff *Effects) {
	added := without(target, m.owned)
	m.owned = sorted(append(slices.Clone(m.owned), added...))
	eff.Assigned = &Assignment{Generation: m.generation, Added: added, All: m.owned}
}

// lose tells the owner that everything is gone, and forgets the membership.
func (m *Member) lose(cause error, reason string, eff *Effects) {
	lost := m.owned
	if eff.Assigned != nil { // in this very step, by an answer that came too late: the owner never hears of it
		lost = without(lost, eff.Assigned.Added)
		eff.Assigned = nil
	}
	if len(lost) > 0 {
		eff.Lost = append(eff.Lost, Loss{Parts: lost, Cause: cause})
		if eff.Revoke != nil { // asked for in this very step: it would come after the loss
			eff.Revoke = nil
		}
	}
	m.owned, m.revoking, m.alive = nil, nil, time.Time{}
	m.generation.ID = NoGeneration
	m.reason = reason
	m.rules.reset()
}

// expired tells that the coordinator may have given our partitions to others: it last heard of us a session ago.
func (m *Member) expired(now time.Time) bool {
	return !m.alive.IsZero() && !now.Before(m.alive.Add(m.cfg.Session))
}

// heard notes that the coordinator got something from us at that time.
func (m *Member) heard(at time.Time) {
	if at.After(m.alive) {
		m.alive = at
	}
}

// begin notes the start of a rebalance, finish its end.
func (m *Member) begin(now time.Time) {
	if m.began.IsZero() {
		m.began = now
	}
}

func (m *Member) finish(now time.Time, eff *Effects) {
	if !m.began.IsZero() {
		eff.Rebalanced = max(now.Sub(m.began), 1)
		m.began = time.Time{}
	}
}
