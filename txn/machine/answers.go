package machine

import (
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// sequenceLost has the codes after which a partition cannot go on in the same epoch.
var sequenceLost = map[errcode.Code]bool{
	errcode.OutOfOrderSequenceNumber: true, errcode.UnknownProducerId: true, errcode.InvalidProducerEpoch: true,
}

func codeOf(err error) errcode.Code {
	var c errcode.Code
	if errors.As(err, &c) {
		return c
	}
	return errcode.None
}

// landed takes a request out of the air; false for one that nobody waits for.
func (m *Machine) landed(r *Request) *slot {
	for _, s := range []*slot{&m.txn, &m.group} {
		if s.air == r {
			s.air = nil
			return s
		}
	}
	return nil
}

// answered: a coordinator answered.
func (m *Machine) answered(now time.Time, e *Answered) {
	s := m.landed(e.Request)
	if s == nil || m.state == Over {
		return
	}
	switch resp := e.Response.(type) {
	case *message.InitProducerIdResponse:
		m.initAnswered(now, e, resp)
	case *message.AddPartitionsToTxnResponse:
		m.addPartitionsAnswered(now, e, resp)
	case *message.AddOffsetsToTxnResponse:
		m.addOffsetsAnswered(now, e, resp)
	case *message.TxnOffsetCommitResponse:
		if m.current(e.Request.job) {
			m.offsetsAnswered(now, e, resp)
		}
	case *message.EndTxnResponse:
		m.endAnswered(now, e, resp)
	case *message.DescribeTransactionsResponse:
		m.described(resp)
	}
}

// current: the job is still wanted.
func (m *Machine) current(job *OffsetJob) bool { return len(m.jobs) > 0 && m.jobs[0] == job }

// refused does what most verdicts ask for.
func (m *Machine) refused(now time.Time, s *slot, v verdict, code errcode.Code, e *Answered) {
	name := apiNames[e.Request.api]
	err := &Error{Request: name, Broker: e.Broker, Hint: hints[code], Err: code}
	switch v {
	case again, soon:
		s.trouble = err
		m.later(now, s, v)
	case moved:
		s.broker, s.trouble = -1, err
		m.later(now, s, v)
	case doom, stale:
		m.doom(err)
	case bump:
		if !m.bumps && !m.implicit {
			m.over(err)
			return
		}
		m.needEpoch = true
		m.doom(err)
	case fenced:
		m.fenced(now, code, name, e.Broker)
	case fatal:
		m.over(err)
	}
}

func (m *Machine) initAnswered(now time.Time, e *Answered, resp *message.InitProducerIdResponse) {
	if m.state != Initializing {
		return
	}
	code := errcode.Code(resp.ErrorCode)
	if v := judge(initProducerID, code); v != fine {
		m.refused(now, &m.txn, v, code, e)
		return
	}
	m.txn.reset()
	m.producerID, m.epoch = resp.ProducerId, resp.ProducerEpoch
	m.bumps = e.Version >= epochInitProducerID
	m.served = false
	if m.needEpoch = m.strayInit; !m.needEpoch {
		m.state = Ready
	}
	m.strayInit = false
}

// addPartitionsAnswered: versions before 4 add all partitions or none.
func (m *Machine) addPartitionsAnswered(now time.Time, e *Answered, resp *message.AddPartitionsToTxnResponse) {
	worst, code, where := fine, errcode.None, ""
	for i := range resp.ResultsByTopicV3AndBelow {
		t := &resp.ResultsByTopicV3AndBelow[i]
		for _, p := range t.ResultsByPartition {
			c := errcode.Code(p.PartitionErrorCode)
			v := judge(addPartitions, c)
			if v > worst || v == worst && code == errcode.OperationNotAttempted {
				worst, code, where = v, c, fmt.Sprintf("%s-%d", t.Name, p.PartitionIndex)
			}
		}
	}
	switch worst {
	case fine:
	case doom: // the error names the partition
		m.doom(&Error{Request: apiNames[addPartitions], Broker: e.Broker, Hint: hints[code], Err: fmt.Errorf("%s: %w", where, code)})
		return
	default:
		m.refused(now, &m.txn, worst, code, e)
		return
	}
	m.txn.reset()
	m.reached(now, true)
	m.tx.pending = remove(m.tx.pending, e.Request.parts)
	if m.state == InTransaction || m.state == Committing {
		m.eff.Enlisted = append(m.eff.Enlisted, e.Request.parts...)
	}
}

func (m *Machine) addOffsetsAnswered(now time.Time, e *Answered, resp *message.AddOffsetsToTxnResponse) {
	code := errcode.Code(resp.ErrorCode)
	v := judge(addOffsets, code)
	if v == fine {
		m.txn.reset()
		m.reached(now, true)
		if m.tx.groups == nil {
			m.tx.groups = map[string]bool{}
		}
		m.tx.groups[e.Request.job.Group] = true
		return
	}
	if !m.current(e.Request.job) && v < fenced {
		return // recalled; the transaction is doomed
	}
	m.refused(now, &m.txn, v, code, e)
}

// endAnswered: the coordinator said what became of the transaction, or why it does not say yet.
func (m *Machine) endAnswered(now time.Time, e *Answered, resp *message.EndTxnResponse) {
	if m.state != Committing && m.state != Aborting {
		return
	}
	code := errcode.Code(resp.ErrorCode)
	commit := e.Request.Commit()
	v := judge(endTxn, code)
	switch {
	case v == fine:
		m.txn.reset()
		if resp.ProducerId >= 0 && e.Version >= implicitEndTxn {
			m.producerID, m.epoch = resp.ProducerId, resp.ProducerEpoch
			m.needEpoch = false
		}
		if commit {
			m.finish(Committed)
		} else {
			m.finish(Aborted)
		}
	case !commit && code == errcode.InvalidTxnState && !m.tx.sure:
		m.txn.reset()
		m.needEpoch = m.needEpoch || m.bumps // the request that would have begun it did not get there; it may yet
		m.finish(Aborted)
	case !commit && v == bump && m.bumps:
		m.txn.reset()
		m.needEpoch = true
		m.finish(Aborted) // the coordinator does not know of it any more
	case v == doom && (!commit || m.tx.doubt):
		m.later(now, &m.txn, again)
	case v == bump && commit && m.tx.doubt:
		m.over(&Error{Request: apiNames[endTxn], Broker: e.Broker, Hint: hints[code], Err: code})
	case commit && code == errcode.InvalidTxnState:
		m.tx.doubt = false // had an earlier attempt committed it, this one would have been told so
		if m.implicit {
			// The coordinator has aborted it already, and tells the epoch of the next one to whoever asks for the abort.
			m.doom(&Error{Request: apiNames[endTxn], Broker: e.Broker, Hint: hints[code], Err: m.overdue(now, code)})
			return
		}
		m.over(&Error{Request: apiNames[endTxn], Broker: e.Broker, Hint: hints[code], Err: code})
	default:
		m.refused(now, &m.txn, v, code, e)
	}
}

// overdue adds to a code that the transaction was open for too long, where our own clock says so.
func (m *Machine) overdue(now time.Time, code errcode.Code) error {
	if open := now.Sub(m.tx.begun); !m.tx.begun.IsZero() && open >= m.cfg.Timeout {
		return fmt.Errorf("%w (it was for %s): %w", ErrTimedOut, open.Round(time.Millisecond), code)
	}
	return code
}

// ErrTimedOut is the cause when the coordinator aborted a transaction that took too long.
var ErrTimedOut = errors.New("transaction was open for longer than transaction.timeout.ms")

// failed: there is no answer. Whatever it was, the state says that it has to be sent, so it will be.
func (m *Machine) failed(now time.Time, e *Failed) {
	r := e.Request
	s := m.landed(r)
	if s == nil {
		return
	}
	if m.state == Over {
		return
	}
	if r.api == describe {
		m.over(m.fenceError(nil))
		return
	}
	if e.Written {
		m.stray(r.api != initProducerID)
		switch r.api {
		case initProducerID:
			m.strayInit = r.MinVersion > 0
		case endTxn:
			m.tx.doubt = m.tx.doubt || r.Commit()
		case addPartitions, addOffsets:
			m.reached(now, false)
		}
	}
	switch {
	case e.Unsupported:
		m.unsupported(r, e.Err)
	case e.Final:
		m.over(&Error{Request: apiNames[r.api], Err: e.Err})
	default:
		s.trouble = e.Err
		s.broker = -1 // it may be the coordinator still, or the reason why the connection ended is that it is not
		m.later(now, s, again)
	}
}

// stray: a request may be carried out late. See the package comment.
func (m *Machine) stray(could bool) {
	if could && !m.implicit && m.bumps {
		m.needEpoch = true
	}
}

// unsupported: the broker is too old for a request. Fencing by generation can be done without, if its owner says so.
func (m *Machine) unsupported(r *Request, err error) {
	out := &Error{Request: apiNames[r.api], Err: err}
	switch r.api {
	case commitOffsets:
		out.Hint = TooOldToFence
		m.doom(out)
		return
	case initProducerID:
		out.Hint = "transactions need brokers from 0.11 on, another epoch for the same session those from 2.5 on"
	}
	m.over(out)
}
