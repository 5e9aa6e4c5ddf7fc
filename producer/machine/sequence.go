package machine

import (
	"math"
	"time"
)

// idState is how far we are with a producer id.
//
//	idNone    -> idAsked   effect InitProducerID
//	idAsked   -> idReady   ProducerIDReceived
//	idAsked   -> idNone    it failed; asked again after a pause
//	idReady   -> idNone    a partition used up its epochs or was fenced
type idState uint8

const (
	idNone idState = iota
	idAsked
	idReady
)

// needProducerID reports whether nothing can be sent for want of an id, and asks for one.
func (m *Machine) needProducerID(now time.Time) bool {
	if !m.cfg.Idempotent || m.idState == idReady {
		return false
	}
	if m.cfg.Transactional {
		return true // Begun brings it
	}
	if m.idState == idNone && !now.Before(m.idRetryAt) {
		m.idState = idAsked
		m.eff.InitProducerID = true
	}
	return true
}

// retryProducerID makes those who wait for an id look again once it is time to.
func (m *Machine) retryProducerID(now time.Time) {
	if m.idState == idNone && !m.idRetryAt.IsZero() && !now.Before(m.idRetryAt) {
		m.idRetryAt = time.Time{}
		m.touchAll()
	}
}

func (m *Machine) idRetryAtOrNever() time.Time {
	if m.idRetryAt.IsZero() {
		return never
	}
	return m.idRetryAt
}

// onProducerID takes the id, or fails what waits for it.
func (m *Machine) onProducerID(now time.Time, e *Event) {
	m.touchAll()
	if e.Err == nil {
		m.idState, m.producerID, m.epoch = idReady, e.ID, e.Epoch
		m.idFailures, m.idRetryAt = 0, time.Time{}
		return
	}
	m.idState = idNone
	m.idFailures++
	m.idRetryAt = now.Add(m.backoff(m.idFailures))
	if !e.Fatal {
		return
	}
	// Without an id nothing can be sent, and asking again will not help those
	// who wait; who comes later makes us ask again.
	m.eachPartition(func(p *Partition) {
		for _, b := range p.queue {
			if b.state == waiting && !b.maybeWritten {
				m.resolve(b, Verdict{Outcome: NotWritten, Err: e.Err})
			}
		}
		m.deliver(p)
		if !p.opened.IsZero() && !p.sealing {
			p.sealing, p.doomed = true, e.Err
			m.eff.Seal = append(m.eff.Seal, p)
		}
	})
}

// assign gives a batch its place in the partition's sequence. A partition keeps
// its id until bump drops it, also when the machine has got another one since.
func (m *Machine) assign(p *Partition, b *Batch) {
	if p.producerID < 0 {
		p.producerID, p.epoch, p.sequence, p.known = m.producerID, m.epoch, 0, false
		p.numbered = m.txn.serial
	} else if m.cfg.Transactional {
		m.renew(p)
	}
	b.sequenced = true
	b.ProducerID, b.Epoch, b.BaseSequence = p.producerID, p.epoch, p.sequence
	p.sequence = addSequence(p.sequence, b.Count)
}

// addSequence: 2147483647 is followed by 0.
func addSequence(s, n int32) int32 { return int32((uint32(s) + uint32(n)) & math.MaxInt32) }

// settle ends a recovery once nothing is in flight, and closes a gap once no
// batch in the queue may already be in the log.
func (m *Machine) settle(p *Partition) {
	if p.inFlight > 0 {
		return
	}
	p.recovering, p.counted = false, false
	if !p.gap {
		return
	}
	for _, b := range p.queue {
		if b.maybeWritten && b.state != resolved {
			return // its fate must be known first: it is sent again under its old sequence
		}
		if b.state == splitting {
			return
		}
	}
	m.bump(p)
}

// bump starts a new epoch for the partition, or drops its id when there is none
// left. Sequences begin at 0, and a late request of the old epoch is refused by
// the broker.
func (m *Machine) bump(p *Partition) {
	for _, b := range p.queue {
		b.sequenced = false
	}
	m.eff.Bumped = append(m.eff.Bumped, p)
	p.gap, p.known = false, false
	p.sequence = 0
	if p.restart {
		p.restart, p.acked = false, 0
		return
	}
	if !p.renewID && p.epoch < math.MaxInt16 {
		p.epoch++
		return
	}
	p.renewID = false
	if p.producerID == m.producerID && m.idState == idReady {
		m.idState, m.idRetryAt = idNone, time.Time{}
		m.producerID = -1
	}
	p.producerID = -1
}

func (m *Machine) eachPartition(f func(*Partition)) {
	for _, b := range m.brokers {
		for _, p := range b.active {
			f(p)
		}
	}
	for _, p := range m.homeless.active {
		f(p)
	}
}
