package machine

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ottla-kafka/ottla/client"
	clientmachine "github.com/ottla-kafka/ottla/client/machine"
)

// Config is what the machine has to know; package txn validates it.
type Config struct {
	ID                            string        // transactional.id
	Timeout                       time.Duration // transaction.timeout.ms
	RetryBackoff, RetryBackoffMax time.Duration // retry.backoff.ms, retry.backoff.max.ms
	Seed                          uint64        // of the jitter
}

// Machine decides for one session. It belongs to one goroutine at a time.
type Machine struct {
	cfg  Config
	rand clientmachine.Rand

	state State
	err   *Error // why it is Over

	producerID int64
	epoch      int16
	implicit   bool // transaction.version 2
	bumps      bool // the coordinator takes InitProducerId with the present epoch (version 3, brokers from 2.5 on)
	needEpoch  bool // the next transaction needs another epoch
	strayInit  bool // a request for another epoch may come late
	served     bool // a transaction has been open since the epoch was given

	tx     transaction
	serial uint64
	jobs   []*OffsetJob // the first is under way
	flush  int          // the number of the newest Flush

	txn   slot
	group slot // of the first job's group

	eff Effects
}

// transaction is the open one, or the one that is being ended.
type transaction struct {
	pending []client.TopicPartition // to be added, or being added
	groups  map[string]bool         // that were added
	begun   time.Time               // when the coordinator may have heard of it first; zero: it has not
	sure    bool                    // it certainly has
	flushed bool
	allowed bool // CommitAllowed came
	doubt   bool // a commit may have been carried out, and nobody told
	doom    error
	fence   *fencing
}

// New returns a machine that waits for Started.
func New(cfg Config) *Machine {
	m := &Machine{cfg: cfg, rand: clientmachine.NewRand(cfg.Seed), producerID: -1, epoch: -1}
	m.txn = slot{who: Coordinator{client.TransactionCoordinator, cfg.ID}, broker: -1}
	m.group = slot{broker: -1}
	return m
}

// never is a deadline that does not come.
var never = time.Unix(math.MaxInt32, 0)

// Never reports whether a deadline is none.
func Never(t time.Time) bool { return !t.Before(never) }

// State is where the session is.
func (m *Machine) State() State { return m.state }

// Err is why it is Over, nil otherwise.
func (m *Machine) Err() *Error { return m.err }

// Serial is the number of the newest transaction.
func (m *Machine) Serial() uint64 { return m.serial }

// Producer is the producer id and epoch, -1 before the first.
func (m *Machine) Producer() (id int64, epoch int16) { return m.producerID, m.epoch }

// Implicit tells whether the open transaction, or the next one, is.
func (m *Machine) Implicit() bool { return m.implicit }

// InDoubt tells that the transaction may be committed already.
func (m *Machine) InDoubt() bool {
	return m.state == Committing && (m.tx.doubt || m.txn.air != nil && m.txn.air.api == endTxn)
}

// Air is the request in the air to the transaction coordinator, nil if there is none.
func (m *Machine) Air() *Request { return m.txn.air }

// Step takes events in order and returns what to do about them. The effects are to be carried out before the next Step.
func (m *Machine) Step(now time.Time, events ...Event) Effects {
	m.eff = Effects{}
	from := m.state
	reason := ""
	for _, e := range events {
		before := m.state
		m.handle(now, e)
		if m.state != before {
			reason = eventName(e)
		}
	}
	handled := m.state
	if m.settle(now); m.state != handled && len(events) > 0 {
		reason = eventName(events[len(events)-1])
	}
	m.send(now)
	if m.state != from {
		m.eff.Transitions = append(m.eff.Transitions, Transition{From: from, To: m.state, ProducerID: m.producerID, Epoch: m.epoch, Reason: reason, At: now})
	}
	return m.eff
}

// eventName is the name of an event's type.
func eventName(e Event) string { return fmt.Sprintf("%T", e)[len("machine."):] }

// Deadline is when to bring Woke if nothing else happens before.
func (m *Machine) Deadline() time.Time {
	d := never
	for _, s := range []*slot{&m.txn, &m.group} {
		if at := m.wakeAt(s); at.Before(d) {
			d = at
		}
	}
	return d
}

// handle is the table from event to what it does.
func (m *Machine) handle(now time.Time, e Event) {
	if m.state == Closed {
		return
	}
	switch e := e.(type) {
	case Started:
		if m.state == Uninitialized {
			m.state = Initializing
		}
	case Checked:
		m.checked(e.Implicit)
	case Begun:
		m.begin()
	case CommitAsked:
		if m.state == InTransaction {
			m.state, m.tx.flushed, m.tx.allowed, m.eff.Seal = Committing, false, false, true
			m.askFlush()
		}
	case CommitAllowed:
		m.tx.allowed = m.state == Committing
	case CommitRecalled:
		m.recall()
	case AbortAsked:
		m.abort(e.Cause)
	case OffsetsGiven:
		m.offsetsGiven(e.Job)
	case OffsetsRecalled:
		m.offsetsRecalled(now, e.Job, e.Err)
	case Spoiled:
		m.doom(e.Err)
	case PartitionsUsed:
		m.partitionsUsed(now, e.Parts)
	case BatchFailed:
		m.batchFailed(now, &e)
	case Flushed:
		m.tx.flushed = m.tx.flushed || e.Number == m.flush
	case CoordinatorFound:
		m.found(&e)
	case CoordinatorFailed:
		m.notFound(now, &e)
	case Answered:
		m.answered(now, &e)
	case Failed:
		m.failed(now, &e)
	case Ended:
		m.close()
	}
}

// checked takes over what the cluster says between transactions. When transactions become implicit, the first such one
// begins in an epoch of its own, as Kafka's producer does it: requests of the old kind may be on their way.
func (m *Machine) checked(implicit bool) {
	if m.state != Ready {
		return
	}
	if implicit && !m.implicit && m.served && m.bumps {
		m.needEpoch = true
	}
	m.implicit = implicit
	if m.needEpoch {
		m.state = Initializing
	}
}

func (m *Machine) begin() {
	if m.state != Ready {
		return
	}
	m.serial++
	m.state, m.served = InTransaction, true
	m.tx = transaction{}
	m.eff.Open = true
}

func (m *Machine) askFlush() {
	m.flush++
	m.eff.Flush = m.flush
}

// recall: nobody waits for the commit any more.
func (m *Machine) recall() {
	switch {
	case m.state != Committing:
	case m.tx.fence != nil:
		m.over(m.fenceError(nil))
	case m.InDoubt():
		m.eff.Finished = &Finish{Serial: m.serial, Outcome: InDoubt}
	default:
		m.state, m.eff.Unseal = InTransaction, true
	}
}

// abort gives up. A commit that may have been carried out cannot be aborted any more.
func (m *Machine) abort(cause error) {
	if m.state != InTransaction && m.state != Doomed && (m.state != Committing || m.InDoubt()) {
		return
	}
	m.state = Aborting
	m.tx.flushed = false
	m.eff.Drop = cause
	m.dropJobs(cause)
	m.askFlush()
}

// doom says that the open transaction can only be aborted.
func (m *Machine) doom(err error) {
	if m.state != InTransaction && m.state != Committing {
		return // Aborting and Doomed have a reason already
	}
	if m.state == Committing && m.tx.doubt {
		return // it is decided elsewhere
	}
	m.state = Doomed
	m.tx.doom = err
	m.eff.Doomed, m.eff.Drop = err, err
	m.dropJobs(err)
}

// over ends the session.
func (m *Machine) over(err *Error) {
	if m.state == Over {
		return
	}
	open := m.state == InTransaction || m.state == Doomed || m.state == Committing || m.state == Aborting
	if open {
		out := Aborted
		if m.InDoubt() {
			out = InDoubt
		}
		m.eff.Finished = &Finish{Serial: m.serial, Outcome: out, Err: err}
		m.eff.Drop = err
	}
	m.state, m.err = Over, err
	m.tx.fence = nil
	m.dropJobs(err)
}

// ErrEnded is why a session is over that its owner has closed.
var ErrEnded = errors.New("the session was closed")

func (m *Machine) close() {
	if m.state != Over {
		m.over(&Error{Err: ErrEnded})
	}
	m.state = Closed
}

// partitionsUsed notes partitions of the transaction.
func (m *Machine) partitionsUsed(now time.Time, parts []client.TopicPartition) {
	if m.state == Ready || m.state == Initializing || m.state == Over {
		return
	}
	if m.implicit {
		m.reached(now, true)
		return
	}
	if m.state == InTransaction || m.state == Committing {
		m.tx.pending = append(m.tx.pending, parts...)
	}
}

// reached notes that the coordinator knows, or may know, of the transaction.
func (m *Machine) reached(now time.Time, sure bool) {
	if m.tx.begun.IsZero() {
		m.tx.begun = now
	}
	m.tx.sure = m.tx.sure || sure
}

// batchFailed: the producer lost records. In the same epoch a partition could not go on behind what may be in its log.
func (m *Machine) batchFailed(now time.Time, e *BatchFailed) {
	v := judge(produce, e.Code)
	if v == fatal {
		m.over(&Error{Request: apiNames[produce], Hint: hints[e.Code], Err: e.Err})
		return
	}
	if v == fenced {
		m.fenced(now, e.Code, apiNames[produce], "")
		return
	}
	if !m.implicit && e.Sequenced {
		switch {
		case m.bumps:
			m.needEpoch = true
		case e.InDoubt || v == bump && e.Code != 0 && sequenceLost[e.Code]:
			m.over(&Error{Request: apiNames[produce], Err: e.Err,
				Hint: "brokers before 2.5 cannot give the session another epoch (KIP-360), so it cannot go on behind records that may be in the log; make a new session"})
			return
		}
	}
	m.doom(&Error{Request: apiNames[produce], Hint: hints[e.Code], Err: e.Err})
}

// settle takes the transaction to its end when nothing has to be asked for that.
func (m *Machine) settle(now time.Time) {
	if m.tx.fence != nil || m.txn.air != nil {
		return
	}
	switch m.state {
	case Committing:
		if m.readyToEnd() && m.tx.begun.IsZero() {
			m.finish(Committed)
		}
	case Aborting:
		if m.tx.flushed && m.tx.begun.IsZero() {
			m.finish(Aborted)
		}
	}
}

// readyToEnd: everything that belongs to the transaction is in it, and its owner has said so.
func (m *Machine) readyToEnd() bool {
	return m.tx.flushed && m.tx.allowed && len(m.tx.pending) == 0 && len(m.jobs) == 0
}

// finish ends the transaction.
func (m *Machine) finish(out Outcome) {
	var err error
	if m.tx.doom != nil && out == Aborted {
		err = m.tx.doom
	}
	m.eff.Finished = &Finish{Serial: m.serial, Outcome: out, Err: err}
	m.state = Ready
	m.tx = transaction{}
	if m.needEpoch {
		m.state = Initializing
	}
}
