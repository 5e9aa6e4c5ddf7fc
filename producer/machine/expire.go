package machine

import (
	"errors"
	"time"
)

var errMissing = errors.New("the answer does not mention the partition")

// expire gives up batches older than delivery.timeout.ms and finds out when the
// next one is due. Batches of a partition are in order of age, so it looks at
// the front of each queue only.
func (m *Machine) expire(now time.Time) {
	next := never
	m.eachPartition(func(p *Partition) {
		n := len(m.eff.Verdicts)
		for _, b := range p.queue {
			if b.state == resolved {
				continue
			}
			if at := b.Created.Add(m.cfg.DeliveryTimeout); now.Before(at) {
				next = earlier(next, at)
				break
			}
			m.giveUp(p, b, Verdict{Expired: true, Code: b.lastCode, Err: b.lastErr})
		}
		m.deliver(p)
		if len(m.eff.Verdicts) > n {
			p.broker.dirty = true
		}
		if p.opened.IsZero() || p.sealing {
			return
		}
		// A batch that nobody could take stays open; it expires like a sealed one.
		if at := p.opened.Add(m.cfg.DeliveryTimeout); now.Before(at) {
			next = earlier(next, at)
		} else {
			p.sealing = true
			m.eff.Seal = append(m.eff.Seal, p)
			next = now // Gathered brings it, and the Step after that ends it
		}
	})
	m.expireAt = next
}

// giveUp ends a batch in whatever state it is. A batch in the air stays with its
// request: only its verdict is given, the buffer is kept until Replied.
func (m *Machine) giveUp(p *Partition, b *Batch, v Verdict) {
	v.Outcome = NotWritten
	if b.maybeWritten || b.state == inFlight {
		v.Outcome = Unknown
	}
	switch {
	case m.cfg.Transactional:
		m.doomed(b, &v)
	case b.sequenced && m.cfg.Idempotent:
		p.gap = true
	}
	if b.state == inFlight {
		p.inFlight--
	}
	m.resolve(b, v)
}

// onWithdrawn takes note of records that were taken out of a waiting batch. The
// sequences behind it are wrong now, which is a gap.
func (m *Machine) onWithdrawn(now time.Time, e *Event) {
	b := e.Batch
	p := b.part
	if b.sequenced {
		p.gap = true
	}
	p.broker.dirty = true
	if b.Count == 0 {
		p.drop(b)
		b.gone = true
		m.eff.Discard = append(m.eff.Discard, b)
		m.deliver(p)
	}
}

// onAborted ends everything. Open batches are asked for and end when they come.
func (m *Machine) onAborted(now time.Time, e *Event) {
	m.abort = e.Err
	m.touchAll()
	m.eachPartition(func(p *Partition) {
		for _, b := range p.queue {
			if b.state != resolved {
				m.giveUp(p, b, Verdict{Err: e.Err})
			}
		}
		m.deliver(p)
	})
}
