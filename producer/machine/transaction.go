package machine

import (
	"math"
	"time"

	"github.com/ottla-kafka/ottla/wire/errcode"
)

// With Config.Transactional all batches belong to transactions, one after the other, and whoever owns those (package
// txn) brings id and epoch. Then
//
//   - no batch is sent before its partition is in the transaction (Enlist, Enlisted), unless that is implicit;
//
//   - sequences go on from one transaction to the next in the same epoch, and start at 0 in a new one;
//
//   - a batch that is not acknowledged dooms the transaction (Doomed), for a hole in it is as good as nothing. There
//     is no gap to close then: the owner brings another epoch, or the same one, which takes up where the last
//     acknowledgement left off;
//
//   - after that, or after Dropped, nothing is sent that was not sent before. What is in doubt is sent again until it
//     is not, so that no late request of it opens a transaction that nobody ends; in an implicit one that is needless,
//     because there the end of every transaction brings a new epoch.
//
//     idle -> open      Begun
//     open -> doomed    Dropped, or a batch failed
//     open, doomed -> open   Begun: the owner has waited until the queues were empty
type transaction struct {
	serial   uint64 // of the open one, or the one that was open last; 0 before the first
	implicit bool
	doom     error // why nothing more is sent, nil while it is
}

// concurrentBackoff is how long to wait at most when the markers of the last transaction are still being written:
// that takes a round trip or two among the brokers.
const concurrentBackoff = 10 * time.Millisecond

// onBegun opens a transaction.
func (m *Machine) onBegun(now time.Time, e *Event) {
	m.txn = transaction{serial: m.txn.serial + 1, implicit: e.Implicit}
	m.idState, m.producerID, m.epoch = idReady, e.ID, e.Epoch
	m.touchAll()
}

// enlist asks for a partition with work to be made part of the transaction. It is early: the batch may linger meanwhile.
func (m *Machine) enlist(p *Partition) {
	if !m.cfg.Transactional || m.txn.implicit || m.txn.doom != nil || p.asked == m.txn.serial {
		return
	}
	p.asked = m.txn.serial
	m.eff.Enlist = append(m.eff.Enlist, p)
}

func (m *Machine) onEnlisted(now time.Time, e *Event) {
	e.Partition.enlisted = m.txn.serial
	if b := e.Partition.broker; b != nil {
		b.dirty = true
	}
}

// mayProduce: the transaction, if there is such a thing, lets the partition's batches go.
func (m *Machine) mayProduce(p *Partition) bool {
	return !m.cfg.Transactional || m.txn.implicit || p.enlisted == m.txn.serial
}

// join notes that the partition is written to in this transaction.
func (m *Machine) join(p *Partition, b *Batch) {
	b.pinned = true
	if p.enlisted == m.txn.serial {
		return
	}
	p.enlisted = m.txn.serial
	m.eff.Enlist = append(m.eff.Enlist, p)
}

// renew takes over the transaction's id and epoch, or goes on behind what was acknowledged in the same epoch. A broker
// that has acknowledged something under the id knows it in later epochs too, and takes a new epoch from its first
// sequence only, so that several batches may be in flight at once.
func (m *Machine) renew(p *Partition) {
	if p.producerID != m.producerID || p.epoch != m.epoch {
		p.known = p.known && p.producerID == m.producerID
		p.producerID, p.epoch, p.sequence, p.acked = m.producerID, m.epoch, 0, 0
	} else if p.numbered != m.txn.serial {
		p.sequence = p.acked
	}
	p.numbered = m.txn.serial
}

// advance notes an acknowledgement up to a sequence. It may be that of an earlier batch than the last one: an answer that
// left a batch in doubt has it asked about again, and those behind it are acknowledged meanwhile.
func (p *Partition) advance(sequence int32) {
	if ahead := (uint32(sequence) - uint32(p.acked)) & math.MaxInt32; ahead < 1<<30 {
		p.acked = sequence
	}
}

// unexpected: the broker did not expect the sequence, epoch or producer id of a batch in a transaction. What comes behind
// a batch that is tried again is tried again; a broker that lost what it knew (retention took it, before 2.5) takes
// sequences from 0. Anything else is the end of the transaction.
func (m *Machine) unexpected(now time.Time, b *Batch, t trait, res *Result) {
	p := b.part
	first := p.first() == b
	switch {
	case res.Code == errcode.OutOfOrderSequenceNumber:
		p.unwritten(b)
		if !first {
			m.retry(now, b, res.Code, nil)
			return
		}
	case res.Code == errcode.UnknownProducerId && !b.maybeWritten && b.BaseSequence != 0:
		if first {
			p.gap, p.restart = true, true
		}
		m.retry(now, b, res.Code, nil)
		return
	}
	m.fail(b, Verdict{Code: res.Code, Result: *res})
}

// hopeless: the transaction is given up, and the batch is not worth another attempt.
func (m *Machine) hopeless(b *Batch) bool {
	return m.txn.doom != nil && (m.txn.implicit || !b.maybeWritten)
}

// doomed notes that a batch ends without an acknowledgement, and gives up the transaction with the first.
func (m *Machine) doomed(b *Batch, v *Verdict) {
	if m.abort != nil {
		return
	}
	if v.Err == nil || v.Err != m.txn.doom {
		m.eff.Doomed = append(m.eff.Doomed, Doom{Partition: b.part, Outcome: v.Outcome, Code: v.Code, Err: v.Err, Expired: v.Expired, Sequenced: b.sequenced})
	} else if b.sequenced {
		m.eff.Doomed = append(m.eff.Doomed, Doom{Partition: b.part, Outcome: v.Outcome, Err: v.Err, Sequenced: true})
	}
	if m.txn.doom == nil {
		m.giveUpTransaction(&DoomedError{Code: v.Code, Err: v.Err, Expired: v.Expired}, b)
	}
}

// DoomedError is what records are told that were not sent because another one of their transaction failed.
type DoomedError struct {
	Code    errcode.Code
	Err     error
	Expired bool
}

// Error says why, as far as the batch that failed knew.
func (e *DoomedError) Error() string {
	s := "another record of the transaction failed"
	switch {
	case e.Code != errcode.None:
		return s + ": " + e.Code.Error()
	case e.Err != nil:
		return s + ": " + e.Err.Error()
	case e.Expired:
		return s + ": delivery.timeout.ms ran out"
	}
	return s
}

// Unwrap is the cause.
func (e *DoomedError) Unwrap() error {
	if e.Code != errcode.None {
		return e.Code
	}
	return e.Err
}

func (m *Machine) onDropped(now time.Time, e *Event) {
	if m.txn.doom == nil {
		m.giveUpTransaction(e.Err, nil)
	}
}

// giveUpTransaction ends what was not sent. Batches that are in the air or in doubt stay.
func (m *Machine) giveUpTransaction(cause error, failing *Batch) {
	m.txn.doom = cause
	m.touchAll()
	m.eachPartition(func(p *Partition) {
		for _, b := range p.queue {
			switch {
			case b == failing || b.state == resolved || b.state == inFlight:
			case b.maybeWritten && !m.txn.implicit:
			default:
				m.giveUp(p, b, Verdict{Err: cause})
			}
		}
		m.deliver(p)
	})
}
