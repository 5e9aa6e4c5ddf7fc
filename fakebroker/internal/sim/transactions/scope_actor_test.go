package transactions

import (
	"encoding/binary"

	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// kind is what a producer may ask for.
type kind int8

const (
	initID kind = iota
	addPartitions
	produceOne
	endTransaction
)

// ask is one request of an actor. What arrives is this, whatever has become of the actor.
type ask struct {
	kind   kind
	actor  int8
	by     transaction.Producer // of an initID: whom the actor takes itself for
	part   int8
	seq    int8
	of     label
	commit bool
}

func (a *ask) key(b []byte) []byte {
	b = append(b, byte(a.kind), byte(a.actor), byte(a.part), byte(a.seq), byte(a.of.txn), byte(a.of.index))
	b = binary.BigEndian.AppendUint16(b, uint16(a.by.ID))
	b = binary.BigEndian.AppendUint16(b, uint16(a.by.Epoch))
	if a.commit {
		return append(b, 1)
	}
	return append(b, 0)
}

// wish is what an actor wants of a transaction, and what it is told.
type wish int8

const (
	nothing wish = iota
	commits
	aborts
)

// actor is a transactional producer: a few transactions of a record for each partition, one request at a time, and what a
// client makes of an answer. It decides whether to commit when it comes to that; the search tries both.
type actor struct {
	by      transaction.Producer
	ready   bool // it has its producer id
	txn     int8 // number of the transaction, from 1
	at      int8 // step within it
	seq     [2]int8
	doomed  bool // only an abort is left
	bump    bool // it has to take a new epoch first (KIP-360)
	over    bool // all done
	dead    bool // fenced, or in a state that it cannot go on from
	waiting bool // for the answer to a record that is verified and not yet appended
	asked   [4]wish
	told    [4]wish
	acked   [4]int8 // records of each transaction that are acknowledged
}

func (a *actor) idle() bool { return a.over || a.dead }

// next is the actor's next request; an endTransaction is still to be decided, unless it was decided before or only one
// outcome is left.
func (a *actor) next(i int8, version int16) (r ask, undecided bool) {
	r = ask{actor: i, by: a.by, of: label{i, a.txn, 0}}
	if !a.ready || a.bump {
		r.kind = initID
		if !a.ready {
			r.by = transaction.NoProducer
		}
		return r, false
	}
	part, add := a.at, false
	if version < 2 { // each partition is added before the first record for it
		part, add = a.at/2, a.at%2 == 0
	}
	switch {
	case a.doomed || part >= 2 || a.asked[a.txn] != nothing:
		r.kind = endTransaction
		r.commit = a.asked[a.txn] == commits
		return r, a.asked[a.txn] == nothing && !a.doomed
	case add:
		r.kind, r.part = addPartitions, part
	default:
		r.kind, r.part, r.seq, r.of.index = produceOne, part, a.seq[part], part
	}
	return r, false
}

// answered takes an answer.
func (a *actor) answered(r *ask, code errcode.Code, now transaction.Producer, version int16, txns int8) {
	switch code {
	case errcode.None:
	case errcode.ConcurrentTransactions, errcode.NotCoordinator, errcode.CoordinatorLoadInProgress, errcode.CoordinatorNotAvailable:
		return // and it asks again
	case errcode.ProducerFenced:
		a.dead = true
		return
	default:
		if r.kind == initID || r.kind == endTransaction {
			a.dead = true
		}
		a.doomed = true
		return
	}
	switch r.kind {
	case initID:
		a.by, a.seq, a.bump = now, [2]int8{}, false
		if !a.ready {
			a.ready, a.txn = true, 1
		}
		a.rest(txns)
	case addPartitions:
		a.at++
	case produceOne:
		a.at++
		a.seq[r.part]++
		a.acked[a.txn]++
	case endTransaction:
		a.told[a.txn] = aborts
		if r.commit {
			a.told[a.txn] = commits
		}
		a.bump = version < 2 && a.doomed
		if now != a.by {
			a.by, a.seq = now, [2]int8{}
		}
		a.txn, a.at, a.doomed = a.txn+1, 0, false
		a.rest(txns)
	}
}

// rest ends the actor after its last transaction.
func (a *actor) rest(txns int8) { a.over = !a.bump && a.txn > txns }

func (a *actor) key(b []byte) []byte {
	flags := byte(0)
	for i, on := range []bool{a.ready, a.doomed, a.bump, a.over, a.dead, a.waiting} {
		if on {
			flags |= 1 << i
		}
	}
	b = append(b, flags, byte(a.txn), byte(a.at), byte(a.seq[0]), byte(a.seq[1]))
	for i := range a.asked {
		b = append(b, byte(a.asked[i])<<4|byte(a.told[i])<<2|byte(a.acked[i]))
	}
	b = binary.BigEndian.AppendUint16(b, uint16(a.by.ID))
	return binary.BigEndian.AppendUint16(b, uint16(a.by.Epoch))
}
