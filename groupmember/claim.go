package groupmember

import (
	"context"

	"github.com/ottla-kafka/ottla/groupmember/machine"
)

// claim is the time in which this member holds a partition, once.
type claim struct {
	TopicPartition
	ctx    context.Context
	cancel context.CancelCauseFunc
	holds  int         // functions of Lifetime.Go that run, and commits under way
	shown  bool        // a Lifetime had it
	giving *revocation // it is being revoked
}

// revocation is what the machine waits for: it is confirmed when the Listener has called done, all functions that work on
// its partitions have returned, and their commits have ended.
type revocation struct {
	serial uint64
	waits  int
}

// claimed begins claims. m.mu is held.
func (m *Member) claimed(parts []TopicPartition) {
	for _, tp := range parts {
		c := &claim{TopicPartition: tp}
		c.ctx, c.cancel = context.WithCancelCause(context.Background())
		m.claims[tp] = c
	}
}

// revoking ends the contexts of claims in good order. m.mu is held.
func (m *Member) revoking(rev *machine.Revocation, cause error) *revocation {
	r := &revocation{serial: rev.Serial, waits: 1}
	for _, tp := range rev.Parts {
		c := m.claims[tp]
		c.giving = r
		r.waits += c.holds
		c.cancel(cause)
	}
	m.revoked = r
	return r
}

// lost ends claims at once. m.mu is held.
func (m *Member) lost(l machine.Loss) {
	for _, tp := range l.Parts {
		if c := m.claims[tp]; c != nil {
			c.cancel(l.Cause)
			c.giving = nil
			delete(m.claims, tp)
		}
	}
	m.revoked = nil
}

// hold keeps a claim from being given up until release. m.mu is held.
func (m *Member) hold(c *claim) {
	c.holds++
	if c.giving != nil {
		c.giving.waits++
	}
}

// release undoes hold.
func (m *Member) release(c *claim) {
	m.mu.Lock()
	c.holds--
	r := c.giving
	m.mu.Unlock()
	if r != nil {
		m.arrived(r)
	}
}

// arrived is one less to wait for.
func (m *Member) arrived(r *revocation) {
	m.mu.Lock()
	r.waits--
	confirmed := r.waits == 0 && m.revoked == r
	if confirmed {
		m.revoked = nil
		for tp, c := range m.claims {
			if c.giving == r {
				delete(m.claims, tp)
			}
		}
	}
	m.mu.Unlock()
	if confirmed {
		m.step(machine.Revoked{Serial: r.serial})
	}
}

// Claim is the lifetime of a held partition: its context ends when the partition is being revoked (ErrRevoked, or
// ErrClosed when the member leaves) or is lost (ErrLost, ErrFenced, ErrClosed). For a partition that is not held it has
// ended already, with ErrNotOwned.
func (m *Member) Claim(tp TopicPartition) context.Context {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.claims[tp]; c != nil {
		return c.ctx
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(ErrNotOwned)
	return ctx
}
