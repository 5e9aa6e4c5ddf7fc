package machine

import "time"

// A broker is worth a request when it has a free place in flight and one of its
// partitions is due: a sealed batch waits, someone waits for the open one and
// nothing is in the air, or the open one has lingered. Then every other partition goes
// along that has a sealed batch or has lingered for half of linger.ms, up to
// max.request.size. (Kafka takes along whatever is there. With many partitions that halves the
// records in a batch, and batches are what costs.)

// drain sends what may be sent to one broker.
func (m *Machine) drain(now time.Time, b *broker) {
	b.dirty = false
	if m.abort != nil {
		b.wakeAt = never
		m.sealAll(b)
		return
	}
	if m.txn.doom != nil {
		m.sealAll(b) // they end when they come; what is in doubt goes on below
	}
	for {
		b.wakeAt = never
		if b.inFlight >= m.cfg.MaxInFlight {
			return // an answer will wake it
		}
		due := m.survey(now, b)
		if !due || m.needProducerID(now) {
			return
		}
		if m.seal(now, b) {
			return // goes on with Gathered
		}
		if !m.assemble(now, b) {
			return
		}
	}
}

// survey drops idle partitions from the active list, closes gaps that can be
// closed, and tells whether any partition is due; if none is, wakeAt is when one
// will be.
func (m *Machine) survey(now time.Time, b *broker) (due bool) {
	for i := 0; i < len(b.active); {
		p := b.active[i]
		if !p.busy() {
			p.active = false
			b.remove(i)
			continue
		}
		i++
		m.settle(p)
		at := m.dueAt(now, b, p)
		if !now.Before(at) {
			due = true
		} else {
			b.wakeAt = earlier(b.wakeAt, at)
		}
	}
	return due
}

// dueAt is from when on the partition is worth a request; never when something
// else has to happen first.
func (m *Machine) dueAt(now time.Time, b *broker, p *Partition) time.Time {
	if p.sealing || p.recovering || p.elsewhere() || !m.roomFor(p) {
		return never
	}
	if now.Before(p.retryAt) {
		return p.retryAt
	}
	if p.next() != nil {
		return now
	}
	if p.opened.IsZero() || p.blocked() {
		return never
	}
	if m.impatient(b, p) {
		return now
	}
	return p.opened.Add(m.cfg.Linger)
}

// impatient: the open batch is not to linger.
func (m *Machine) impatient(b *broker, p *Partition) bool {
	return m.hurry > 0 || b.inFlight == 0 && (p.urgent || m.pressed > 0)
}

// roomFor: without idempotence one batch of a partition is in flight at a time,
// since nothing at the broker would keep two in order; see also Partition.known.
func (m *Machine) roomFor(p *Partition) bool {
	return (p.inFlight == 0 || m.cfg.Idempotent && p.known) && m.mayProduce(p)
}

// elsewhere: batches are in the air to a former leader.
func (p *Partition) elsewhere() bool { return p.inFlight > 0 && p.pipe != p.broker }

// blocked: batches in the queue keep a newer one from being sent.
func (p *Partition) blocked() bool {
	if p.gap || len(p.queue) >= remembered {
		return true
	}
	for _, b := range p.queue {
		if b.state == preparing || b.state == splitting {
			return true
		}
	}
	return false
}

// seal asks for the open batches of all partitions that have nothing else to send and have
// lingered for a while.
func (m *Machine) seal(now time.Time, b *broker) bool {
	n := len(m.eff.Seal)
	for _, p := range b.active {
		if p.opened.IsZero() || p.sealing || p.recovering || p.elsewhere() || !m.roomFor(p) ||
			now.Before(p.retryAt) || p.blocked() || p.next() != nil {
			continue
		}
		if !p.urgent && !m.impatient(b, p) && now.Before(p.opened.Add(m.cfg.Linger/2)) {
			continue
		}
		p.sealing = true
		m.eff.Seal = append(m.eff.Seal, p)
	}
	return len(m.eff.Seal) > n
}

// sealAll asks for every open batch, to give it up.
func (m *Machine) sealAll(b *broker) {
	for _, p := range b.active {
		if !p.opened.IsZero() && !p.sealing {
			p.sealing = true
			m.eff.Seal = append(m.eff.Seal, p)
		}
	}
}

// assemble makes one request of the batches that wait, if it is worth it.
func (m *Machine) assemble(now time.Time, b *broker) bool {
	if b.preparing > 0 && b.inFlight > 0 && !m.full(now, b) {
		return false // Prepared will come; together they make one request
	}
	r := m.newRequest(b)
	n := len(b.active)
	for i := range n {
		p := b.active[(b.start+i)%n]
		x := m.sendable(now, p)
		if x == nil {
			continue
		}
		if len(r.Batches) > 0 && r.Size+x.Size > m.cfg.MaxRequestSize {
			b.start = (b.start + i) % n // it is first next time
			break
		}
		m.launch(p, x, b)
		r.Batches = append(r.Batches, x)
		r.Size += x.Size
	}
	if len(r.Batches) == 0 {
		m.Recycle(r)
		return false
	}
	b.inFlight++
	m.eff.Send = append(m.eff.Send, r)
	return true
}

// full reports whether the waiting batches fill a request.
func (m *Machine) full(now time.Time, b *broker) bool {
	size := 0
	for _, p := range b.active {
		if x := m.sendable(now, p); x != nil {
			if size += x.Size; size >= m.cfg.MaxRequestSize {
				return true
			}
		}
	}
	return false
}

func (m *Machine) sendable(now time.Time, p *Partition) *Batch {
	if p.sealing || p.recovering || !m.roomFor(p) || now.Before(p.retryAt) || p.elsewhere() {
		return nil
	}
	return p.next()
}

// launch puts a batch in flight.
func (m *Machine) launch(p *Partition, x *Batch, b *broker) {
	if m.cfg.Idempotent && !x.sequenced {
		m.assign(p, x)
	}
	if m.cfg.Transactional {
		m.join(p, x)
	}
	x.state = inFlight
	x.pipe, p.pipe = b, b
	x.Attempts++
	x.carriers++
	p.inFlight++
}

// drainHomeless asks for metadata as long as a partition with work has no leader.
func (m *Machine) drainHomeless(now time.Time) {
	b := m.homeless
	for i := 0; i < len(b.active); {
		p := b.active[i]
		if !p.busy() {
			p.active = false
			b.remove(i)
			continue
		}
		i++
	}
	if m.abort != nil || m.txn.doom != nil {
		m.sealAll(b)
	}
	if len(b.active) == 0 {
		m.refreshAt = never
		return
	}
	if Never(m.refreshAt) || !now.Before(m.refreshAt) {
		m.eff.Refresh = true
		m.refreshAt = now.Add(m.cfg.RetryBackoffMax)
	}
}
