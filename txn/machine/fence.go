package machine

import (
	"time"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Cause is who or what fenced a session.
type Cause uint8

// The causes, as far as the coordinator's state lets them be told apart.
const (
	Unknown     Cause = iota // the coordinator could not be asked, or its state allows more than one reading
	Timeout                  // the transaction was open for longer than transaction.timeout.ms
	NewInstance              // another producer has registered with the same transactional id
	Admin                    // an administrator fenced the id
)

// Fence is the evidence.
type Fence struct {
	By           Cause
	ProducerID   int64 // ours
	Epoch        int16
	ByProducerID int64 // the coordinator's, -1 when it could not be asked
	ByEpoch      int16
	Open         time.Duration // how long the transaction was, zero when none was
	Code         errcode.Code
}

// fencing is a session that knows that it is fenced and asks by whom.
type fencing struct {
	code            errcode.Code
	request, broker string
	open            time.Duration
}

// fenced: our epoch is not the coordinator's any more. Who did it is worth one question.
func (m *Machine) fenced(now time.Time, code errcode.Code, request, broker string) {
	if m.tx.fence != nil || m.state == Over {
		return
	}
	f := &fencing{code: code, request: request, broker: broker}
	if !m.tx.begun.IsZero() {
		f.open = now.Sub(m.tx.begun)
	}
	m.tx.fence = f
	m.txn.reset()
}

// described: the coordinator told its state.
func (m *Machine) described(resp *message.DescribeTransactionsResponse) {
	if m.tx.fence == nil {
		return
	}
	for i := range resp.TransactionStates {
		if s := &resp.TransactionStates[i]; s.TransactionalId == m.cfg.ID && s.ErrorCode == 0 {
			m.over(m.fenceError(s))
			return
		}
	}
	m.over(m.fenceError(nil))
}

func (m *Machine) fenceError(s *message.DescribeTransactionsResponseTransactionState) *Error {
	f := m.tx.fence
	fence := &Fence{ProducerID: m.producerID, Epoch: m.epoch, ByProducerID: -1, ByEpoch: -1, Open: f.open, Code: f.code}
	if s != nil {
		fence.ByProducerID, fence.ByEpoch = s.ProducerId, s.ProducerEpoch
	}
	fence.By = m.blame(s, f.open)
	return &Error{Request: f.request, Broker: f.broker, Hint: fenceHints[fence.By], Fence: fence, Err: f.code}
}

// blame reads the coordinator's state.
//
// The coordinator's own abort of a transaction that took too long moves the epoch by one and leaves the transaction
// aborted. A new instance aborts an open transaction in the same way, but then goes on to an epoch of its own, and the
// state is Empty, or that of its own first transaction. What tells the two apart in between is our own clock. An
// administrator does what a new instance does, and gives away only that the timeout it registers is not ours.
func (m *Machine) blame(s *message.DescribeTransactionsResponseTransactionState, open time.Duration) Cause {
	late := open >= m.cfg.Timeout
	if s == nil {
		if late {
			return Timeout
		}
		return Unknown
	}
	moved := int(s.ProducerEpoch) - int(m.epoch)
	sameID := s.ProducerId == m.producerID
	aborted := s.TransactionState == "CompleteAbort" || s.TransactionState == "PrepareAbort" || s.TransactionState == "PrepareEpochFence"
	switch {
	case sameID && aborted && moved == 1 && late:
		return Timeout
	case s.TransactionState == "Empty" && time.Duration(s.TransactionTimeoutMs)*time.Millisecond != m.cfg.Timeout:
		return Admin
	case sameID && moved <= 0:
		return Unknown // by the coordinator's account we are not fenced
	}
	return NewInstance
}

var fenceHints = [...]string{
	Unknown:     "the coordinator has another epoch for this transactional.id; the session is over",
	Timeout:     "make transactions shorter or raise transaction.timeout.ms; a new session may go on",
	NewInstance: "another instance uses this transactional.id; give each instance its own, or stop this one",
	Admin:       "an administrator fenced this transactional.id (or another instance with another transaction.timeout.ms uses it)",
}

var causeNames = [...]string{"unknown", "transaction timeout", "new instance", "administrator"}

// String is the cause in a few words.
func (c Cause) String() string { return causeNames[c] }
