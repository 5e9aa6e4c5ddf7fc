package transaction

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// Options are what a Machine is made of. The functions are called on the runtime's goroutine and must not block.
type Options struct {
	Environment Environment
	// CoordinatorEpoch is the leader epoch of the log's partition, which markers carry.
	CoordinatorEpoch int32
	// Incarnation tells this machine from those that had the same partition before, in the same epoch too. Orders carry it,
	// and reports about another one's orders mean nothing.
	Incarnation int64
	// SendMarkers is called when the outcome of a transaction can no longer be lost. Whoever writes the markers comes back
	// with MarkersWritten when all are there.
	SendMarkers func(Markers)
	// AskProducerID has a request handed in again with a new producer id (NeedsProducerID.With), for what the machine does of
	// its own accord.
	AskProducerID func(id string, n NeedsProducerID)
	// Patience is how long a request waits for the end of the transaction before, instead of being told to come again; zero
	// for not at all.
	Patience time.Duration
	// Changed, when it is set, is called with each transactional id that has changed, after its record was replayed. Tests
	// wait with it.
	Changed func(id string)
	// Bugs are mistakes to make on purpose.
	Bugs bug.Set
}

// A Machine is the transaction coordinator of one partition of __transaction_state. It implements coordinator.Shard and
// coordinator.Dropper.
type Machine struct {
	o      Options
	env    Environment
	set    settings
	txns   map[string]*txn
	open   int      // how many are Ongoing
	due    []string // timed out, as of the last check
	parked []parked // requests that wait for the end of a transaction, in order of their times
	loaded bool

	nextAbortCheck, nextExpiryCheck time.Time // set once loaded
}

// New returns an empty machine.
func New(o Options) *Machine {
	if o.Changed == nil {
		o.Changed = func(string) {}
	}
	return &Machine{o: o, env: o.Environment, set: readSettings(o.Environment.Config), txns: make(map[string]*txn)}
}

// NeedsProducerID is the answer to a request that can only go on with a new producer id. The asker gets one and hands in
// what With returns: the machine judges it anew, for the world may have changed, and then may not need the id.
type NeedsProducerID struct {
	With func(producerID int64) (body any)
}

// Handle implements coordinator.Shard.
func (m *Machine) Handle(now time.Time, r coordinator.Request, out *coordinator.Result) {
	switch b := r.Body.(type) {
	case InitProducerID:
		m.initProducerID(now, r.Ticket, b, out)
	case AddPartitions:
		m.addPartitions(now, r.Ticket, b, out)
	case VerifyPartitions:
		m.verifyPartitions(now, r.Ticket, b, out)
	case EndTxn:
		m.endTxn(now, r.Ticket, b, out)
	case MarkersWritten:
		m.markersWritten(now, r.Ticket, b, out)
	case TimeOut:
		m.timeOut(now, r.Ticket, b, out)
	case Describe:
		m.describe(r.Ticket, b, out)
	case Filter:
		m.list(now, r.Ticket, b, out)
	case Inspect:
		m.inspect(r.Ticket, b, out)
	case InspectAll:
		m.inspectAll(r.Ticket, out)
	case Environment:
		m.follow(now, b)
		out.Reply(r.Ticket, nil)
	default:
		panic(fmt.Sprintf("transaction: %T is no request for a transaction coordinator", r.Body))
	}
}

// Loaded implements coordinator.Shard: what was decided before is finished, under the epoch of this election.
func (m *Machine) Loaded(now time.Time, out *coordinator.Result) {
	m.loaded = true
	m.schedule(now)
	for _, id := range m.sorted() {
		if t := m.txns[id]; t.state.preparing() && !m.o.Bugs.Has(bug.PrepareForgottenOnLoad) {
			if m.o.Bugs.Has(bug.AbortOnLoad) {
				t.state = PrepareAbort
			}
			m.sendMarkers(*t, out)
		}
		out.Written = append(out.Written, func(time.Time, *coordinator.Result) { m.o.Changed(id) })
	}
}

// schedule starts the periodic checks. Their phase means nothing to clients.
func (m *Machine) schedule(now time.Time) {
	if m.loaded {
		m.nextAbortCheck, m.nextExpiryCheck = now.Add(m.set.abortCheck), now.Add(m.set.expiryCheck)
	}
}

// Deadline implements coordinator.Shard. A machine with nothing to check sleeps.
func (m *Machine) Deadline() (next time.Time) {
	if len(m.due) > 0 {
		return m.nextAbortCheck.Add(-m.set.abortCheck) // of the check that found them
	}
	if len(m.parked) > 0 {
		next = m.parked[0].until
	}
	if m.open > 0 && (next.IsZero() || m.nextAbortCheck.Before(next)) {
		next = m.nextAbortCheck
	}
	if len(m.txns) > 0 && (next.IsZero() || m.nextExpiryCheck.Before(next)) {
		next = m.nextExpiryCheck
	}
	return next
}

// Tick implements coordinator.Shard.
func (m *Machine) Tick(now time.Time, out *coordinator.Result) {
	switch {
	case len(m.due) > 0:
		m.abortNext(now, out)
	case len(m.parked) > 0 && !now.Before(m.parked[0].until):
		m.refuseParked(errcode.ConcurrentTransactions, out)
	case m.open > 0 && !now.Before(m.nextAbortCheck):
		m.findTimedOut(now)
		m.nextAbortCheck = now.Add(m.set.abortCheck)
	case len(m.txns) > 0 && !now.Before(m.nextExpiryCheck):
		m.expire(now, out)
		m.nextExpiryCheck = now.Add(m.set.expiryCheck)
	}
}

// put replaces what is known of an id.
func (m *Machine) put(t *txn) {
	m.remove(t.id)
	m.txns[t.id] = t
	if t.state == Ongoing {
		m.open++
	}
}

func (m *Machine) remove(id string) {
	if old := m.txns[id]; old != nil && old.state == Ongoing {
		m.open--
	}
	delete(m.txns, id)
}

func (m *Machine) sorted() []string { return slices.Sorted(maps.Keys(m.txns)) }

// find returns an id's transaction if it is the producer's that asks.
func (m *Machine) find(id string, producerID int64, epoch int16) (*txn, errcode.Code) {
	t := m.txns[id]
	switch {
	case id == "":
		return nil, errcode.InvalidRequest
	case t == nil || t.producerID != producerID:
		return nil, errcode.InvalidProducerIdMapping
	case t.epoch != epoch:
		return nil, errcode.ProducerFenced
	}
	return t, errcode.None
}
