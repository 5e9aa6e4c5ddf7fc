package transaction

import (
	"math"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// EndTxn commits or aborts a producer's transaction. The answer is a Producer: who the producer is from now on. It comes
// when the outcome is decided for good; the markers follow.
type EndTxn struct {
	ID       string
	Producer Producer
	Commit   bool
	// Version is the client's transaction.version as its request shows it: 0, or 2, where every end bumps the epoch.
	Version       int16
	NewProducerID int64 // for a round with NeedsProducerID; -1
}

func (m *Machine) endTxn(now time.Time, ticket coordinator.Ticket, r EndTxn, out *coordinator.Result) {
	if m.mistakenEnd(now, ticket, &r, out) {
		return
	}
	switch {
	case r.ID == "":
		out.Refuse(ticket, errcode.InvalidRequest)
	case m.txns[r.ID] == nil:
		out.Refuse(ticket, errcode.InvalidProducerIdMapping)
	case r.Version >= 2:
		m.endBumping(now, ticket, m.txns[r.ID], r, out)
	default:
		m.endSameEpoch(now, ticket, m.txns[r.ID], r, out)
	}
}

// endSameEpoch is the end as it was before KIP-890: the epoch stays, so a repetition cannot be told from the end of the
// next transaction, and one that comes late may hit it.
func (m *Machine) endSameEpoch(now time.Time, ticket coordinator.Ticket, t *txn, r EndTxn, out *coordinator.Result) {
	code := errcode.None
	switch {
	case t.producerID != r.Producer.ID:
		code = errcode.InvalidProducerIdMapping
	case t.epoch != r.Producer.Epoch:
		code = errcode.ProducerFenced
	case t.state.preparing():
		m.busy(now, r.ID, ticket, r, out)
		return
	case t.state == CompleteCommit && r.Commit, t.state == CompleteAbort && !r.Commit:
		out.Reply(ticket, Producer{t.producerID, t.epoch})
		return
	case t.state != Ongoing:
		code = errcode.InvalidTxnState
	}
	if code != errcode.None {
		out.Refuse(ticket, code)
		return
	}
	next := t.decided(now, r.Commit, 0)
	m.write(t, next, out)
	m.sendMarkers(next, out)
	out.Reply(ticket, Producer{next.producerID, next.epoch})
}

// endBumping is the end of KIP-890: the epoch rises with it, so what belongs to this transaction cannot hit the next.
// By state, and by whether the request's epoch is the current one or the one before (a repetition):
//
//	                abort, before  abort, current   commit, before  commit, current
//	Ongoing         fenced         PrepareAbort     fenced          PrepareCommit
//	Empty           fenced         PrepareAbort     fenced          INVALID_TXN_STATE
//	CompleteAbort   done           PrepareAbort     INVALID_...     INVALID_TXN_STATE
//	CompleteCommit  INVALID_...    PrepareAbort     done            INVALID_TXN_STATE
//	Prepare...      CONCURRENT_TRANSACTIONS, whoever asks
func (m *Machine) endBumping(now time.Time, ticket coordinator.Ticket, t *txn, r EndTxn, out *coordinator.Result) {
	// The producer id of an exhausted epoch changes with the end: who has both the old and the new name is one producer.
	overflow := t.previousID == r.Producer.ID && r.Producer.Epoch == exhausted && t.epoch == 0
	again := overflow || int(t.epoch) == int(r.Producer.Epoch)+1
	complete := t.state == CompleteCommit || t.state == CompleteAbort
	code := errcode.None
	switch {
	case t.state.preparing():
		m.busy(now, r.ID, ticket, r, out)
		return
	case t.producerID != r.Producer.ID && !overflow:
		code = errcode.InvalidProducerIdMapping
	case t.epoch != r.Producer.Epoch && !(complete && again):
		code = errcode.ProducerFenced
	case again && (t.state == CompleteCommit) != r.Commit:
		code = errcode.InvalidTxnState
	case again:
		out.Reply(ticket, Producer{t.producerID, t.epoch})
		return
	case t.state != Ongoing && r.Commit:
		code = errcode.InvalidTxnState
	case !m.writable(r.Version):
		code = errcode.UnsupportedVersion
	}
	if code != errcode.None {
		out.Refuse(ticket, code)
		return
	}
	if t.exhausted() && r.NewProducerID < 0 {
		out.Reply(ticket, NeedsProducerID{With: func(id int64) any { r.NewProducerID = id; return r }})
		return
	}
	next := t.decided(now, r.Commit, r.Version)
	if t.exhausted() {
		next.nextID = r.NewProducerID
	}
	m.write(t, next, out)
	m.sendMarkers(next, out)
	out.Reply(ticket, next.afterwards())
}

// decided is t with its outcome fixed, for a client of a transaction.version.
func (t *txn) decided(now time.Time, commit bool, version int16) txn {
	next := *t
	next.state, next.updated, next.version, next.nextID = PrepareAbort, now.UnixMilli(), version, noProducerID
	if commit {
		next.state = PrepareCommit
	}
	if t.state != Ongoing {
		next.start = next.updated // nothing was begun: an empty abort has to have some time
	}
	if version >= 2 {
		next.lastEpoch = t.epoch
		if t.epoch < math.MaxInt16 {
			next.epoch = t.epoch + 1
		}
	}
	return next
}

// afterwards is who the producer will be when t is complete.
func (t *txn) afterwards() Producer {
	if t.version >= 2 && t.nextID != noProducerID {
		return Producer{t.nextID, 0}
	}
	return Producer{t.producerID, t.epoch}
}

// fence aborts an open transaction under an epoch that its producer does not have. It returns false when that takes a new
// producer id. count notes the reason.
//
// In a cluster of transaction.version 2 this is an end like any other: a producer that repeats what it said last learns
// its new epoch. Below that a fenced producer must not be taken for one that repeats itself, so the epoch before is
// forgotten.
func (m *Machine) fence(now time.Time, t *txn, newProducerID int64, count func(*counts), out *coordinator.Result) bool {
	bumping := m.env.Level >= 2
	if bumping && t.exhausted() && newProducerID < 0 {
		return false
	}
	var next txn
	if bumping {
		next = t.decided(now, false, 2)
		if t.exhausted() {
			next.nextID = newProducerID
		}
	} else {
		next = t.decided(now, false, 0)
		next.epoch, next.lastEpoch = min(t.epoch, math.MaxInt16-1)+1, noProducerEpoch
	}
	if m.o.Bugs.Has(bug.TimeoutWithoutBump) {
		next.epoch, next.lastEpoch, next.version = t.epoch, t.lastEpoch, 0
	}
	count(&next.counts)
	m.write(t, next, out)
	m.sendMarkers(next, out)
	return true
}
