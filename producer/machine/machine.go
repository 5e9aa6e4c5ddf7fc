package machine

import (
	"math"
	"time"
)

// Config is what the machine has to know; package producer validates it.
type Config struct {
	Linger          time.Duration // linger.ms
	DeliveryTimeout time.Duration // delivery.timeout.ms
	RetryBackoff    time.Duration // retry.backoff.ms
	RetryBackoffMax time.Duration // retry.backoff.max.ms
	Retries         int           // retries
	MaxInFlight     int           // max.in.flight.requests.per.connection
	MaxRequestSize  int           // max.request.size
	Idempotent      bool          // enable.idempotence
	Compressed      bool          // batches go through Prepare
	NoAcks          bool          // acks=0
	Transactional   bool          // batches belong to transactions; see transaction.go
	Seed            uint64        // of the jitter
}

// Machine decides for one producer. It belongs to one goroutine at a time.
type Machine struct {
	cfg  Config
	rand random

	brokers []*broker // in order of first use, so that results do not depend on map order
	// homeless is the pipeline of partitions without a leader: nothing is ever sent
	// through it, but lingering, expiry and refreshing work as everywhere.
	homeless *broker

	producerID int64
	epoch      int16
	idState    idState
	idRetryAt  time.Time
	idFailures int

	txn       transaction
	hurry     int   // Hurried minus Relaxed
	pressed   int   // Pressed minus Eased
	abort     error // set by Aborted
	expireAt  time.Time
	refreshAt time.Time

	free []*Request // recycled by Recycle
	eff  Effects
}

// New returns a machine. Brokers and partitions come to it by LeaderChanged.
func New(cfg Config) *Machine {
	m := &Machine{cfg: cfg, rand: random(cfg.Seed), producerID: -1, epoch: -1, expireAt: never, refreshAt: never}
	m.homeless = &broker{id: -1, wakeAt: never}
	return m
}

// never is a deadline that does not come.
var never = time.Unix(math.MaxInt32, 0)

// Never reports whether a deadline is none.
func Never(t time.Time) bool { return !t.Before(never) }

// handlers is the table of what each event does. An event touches at most the
// brokers it names; Step then lets those send.
var handlers = [...]func(*Machine, time.Time, *Event){
	Tick:               (*Machine).onTick,
	Gathered:           (*Machine).onGathered,
	Prepared:           (*Machine).onPrepared,
	Replied:            (*Machine).onReplied,
	LeaderChanged:      (*Machine).onLeaderChanged,
	ProducerIDReceived: (*Machine).onProducerID,
	Divided:            (*Machine).onDivided,
	Withdrawn:          (*Machine).onWithdrawn,
	Hurried:            (*Machine).onHurried,
	Relaxed:            (*Machine).onRelaxed,
	Pressed:            (*Machine).onPressed,
	Eased:              (*Machine).onEased,
	Aborted:            (*Machine).onAborted,
	Begun:              (*Machine).onBegun,
	Enlisted:           (*Machine).onEnlisted,
	Dropped:            (*Machine).onDropped,
}

// Step takes events in order and returns what to do about them. The effects are
// to be carried out before the next Step.
func (m *Machine) Step(now time.Time, events ...Event) *Effects {
	m.eff.reset()
	for i := range events {
		handlers[events[i].Kind](m, now, &events[i])
	}
	if !now.Before(m.expireAt) {
		m.expire(now)
	}
	m.retryProducerID(now)
	for _, b := range m.brokers {
		if b.dirty || !now.Before(b.wakeAt) {
			m.drain(now, b)
		}
	}
	m.drainHomeless(now)
	return &m.eff
}

// Deadline is when to bring a Tick if nothing else happens before.
func (m *Machine) Deadline() time.Time {
	d := earlier(m.expireAt, m.refreshAt)
	for _, b := range m.brokers {
		d = earlier(d, b.wakeAt)
	}
	if m.idState == idNone {
		d = earlier(d, m.idRetryAtOrNever())
	}
	return d
}

// ExpireAt is when Step will look for batches that are older than
// delivery.timeout.ms. A driver that can call back requests that were never written
// brings them as Replied before, so that their batches end as not written.
func (m *Machine) ExpireAt() time.Time { return m.expireAt }

// Idle reports whether no batch is without a verdict and no request in the air.
func (m *Machine) Idle() bool {
	if len(m.homeless.active) > 0 {
		return false
	}
	for _, b := range m.brokers {
		if b.inFlight > 0 || len(b.active) > 0 {
			return false
		}
	}
	return true
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (m *Machine) onTick(time.Time, *Event) {}

// onGathered takes over what the driver sealed, and notes the open batch.
func (m *Machine) onGathered(now time.Time, e *Event) {
	p := e.Partition
	p.sealing = false
	p.opened = e.Opened
	p.urgent = e.Urgent && !e.Opened.IsZero()
	for _, b := range e.Batches {
		b.part = p
		if err := p.ending(m); err != nil {
			b.state = resolved
			m.end(b, Verdict{Outcome: NotWritten, Err: err})
			continue
		}
		p.queue = append(p.queue, b)
		m.expireAt = earlier(m.expireAt, b.Created.Add(m.cfg.DeliveryTimeout))
		b.state = waiting
		if m.cfg.Compressed {
			b.state, b.worked, b.pipe = preparing, true, p.broker
			p.broker.preparing++
			m.eff.Prepare = append(m.eff.Prepare, b)
		}
	}
	p.doomed = nil
	if !p.busy() {
		return
	}
	p.broker.activate(p)
	m.needProducerID(now) // early: it takes a round trip, and the batch may linger meanwhile
	m.enlist(p)
	if p.opened.IsZero() {
		p.broker.dirty = true
		return
	}
	m.expireAt = earlier(m.expireAt, p.opened.Add(m.cfg.DeliveryTimeout))
	if len(e.Batches) > 0 || m.impatient(p.broker, p) || p.broker.id < 0 {
		p.broker.dirty = true
		return
	}
	// Only a batch was opened, which is frequent: look when it has lingered, not now.
	p.broker.wakeAt = earlier(p.broker.wakeAt, p.opened.Add(m.cfg.Linger))
}

// onPrepared lets a compressed batch go.
func (m *Machine) onPrepared(now time.Time, e *Event) {
	b := e.Batch
	b.worked = false
	b.pipe.preparing--
	b.pipe.dirty, b.part.broker.dirty = true, true
	switch {
	case b.gone:
		m.release(b)
	case b.state == preparing:
		b.state = waiting
	}
}

// onHurried and onRelaxed count the reasons not to linger.
func (m *Machine) onHurried(time.Time, *Event) {
	m.hurry++
	m.touchAll()
}

func (m *Machine) onRelaxed(time.Time, *Event) { m.hurry-- }

// onPressed and onEased count those who wait for memory.
func (m *Machine) onPressed(time.Time, *Event) {
	m.pressed++
	m.touchAll()
}

func (m *Machine) onEased(time.Time, *Event) { m.pressed-- }

func (m *Machine) touchAll() {
	for _, b := range m.brokers {
		b.dirty = true
	}
	m.homeless.dirty = true
}

// onLeaderChanged moves the partition to the pipeline of its new leader. What is
// in the air to the old one stays there until it is answered or lost.
func (m *Machine) onLeaderChanged(now time.Time, e *Event) {
	p := e.Partition
	if p.broker != nil && (e.LeaderEpoch >= 0 && e.LeaderEpoch < p.leaderEpoch) {
		return // older than what a hint or a newer answer said
	}
	if e.Leader != p.leader || e.LeaderEpoch > p.leaderEpoch {
		p.retryAt = time.Time{} // another leader, or the same one again: no reason to wait
	}
	if p.broker != nil {
		p.broker.deactivate(p)
	}
	p.leader, p.leaderEpoch = e.Leader, e.LeaderEpoch
	p.broker = m.broker(e.Leader)
	if p.busy() {
		p.broker.activate(p)
	}
	p.broker.dirty = true
}
