package txn

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/txn/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// ErrorClass says what an error means for the transaction and the session. Each error of this package has exactly one.
type ErrorClass uint8

// The classes. None is that of a nil error.
const (
	None ErrorClass = iota
	// Abortable: nothing of the transaction is or will be committed, and the session lives. Abort (Do has done it),
	// then run the transaction again from its beginning.
	Abortable
	// Fenced: the session is over, and nothing of its open transaction is or will be committed. Another instance has
	// taken over, or the transaction took too long, or the session may not go on for another reason, which the error
	// says. Close it; whoever should go on makes a new one.
	Fenced
	// OutcomeUnknown: the transaction may be committed or not, because the answer to its end did not come. Call
	// Commit of the same transaction again, or Begin, which finds out first (see Session.Last). When the error matches
	// ErrFenced as well, the session was fenced before it could find out and never will: only the output tells.
	OutcomeUnknown
)

// String is the class in a few words.
func (c ErrorClass) String() string {
	switch c {
	case None:
		return "none"
	case Abortable:
		return "abortable"
	case Fenced:
		return "fenced"
	}
	return "outcome unknown"
}

var (
	// ErrAbortable matches every error of class Abortable.
	ErrAbortable = errors.New("transaction must be aborted")
	// ErrFenced matches every error of class Fenced.
	ErrFenced = errors.New("transactional session is over")
	// ErrOutcomeUnknown matches every error of class OutcomeUnknown.
	ErrOutcomeUnknown = errors.New("transaction may or may not be committed")

	// ErrOver is the cause when something is asked of a transaction that has ended.
	ErrOver = errors.New("transaction is over")
	// ErrOpen is the cause when Begin is called while a transaction is open.
	ErrOpen = errors.New("a transaction is open already")
	// ErrAborted is the cause of records and offsets that did not get out before their transaction was aborted.
	ErrAborted = errors.New("transaction was aborted")
	// ErrTimedOut is the cause when the coordinator aborted a transaction that was open for too long. With
	// transaction.version 2 the session lives on (class Abortable), before it does not (class Fenced).
	ErrTimedOut = machine.ErrTimedOut
	// ErrClosed is the cause when the session is closed.
	ErrClosed = errors.New("transactional session is closed")
)

// Error is the error of everything in this package. It matches ErrAbortable, ErrFenced or ErrOutcomeUnknown (and ErrFenced
// too when a session is over whose last transaction is in doubt), and everything in its cause, which is an errcode.Code or a *client.OpError where a broker said something.
type Error struct {
	Class ErrorClass
	Op    string // the call: "New", "Begin", "Commit" ...
	ID    string // the transactional id
	Hint  string // what to do, where there is more to say than the class does
	Err   error

	over bool // in doubt for ever: the session is over
}

// Error is one line: call, id, class, cause, hint.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "transaction %q: %s: %s: %v", e.ID, e.Op, e.Class, e.Err)
	if e.Hint != "" {
		fmt.Fprintf(&b, "; hint: %s", e.Hint)
	}
	return b.String()
}

// Unwrap gives the class's sentinel and the cause.
func (e *Error) Unwrap() []error {
	switch e.Class {
	case Fenced:
		return []error{ErrFenced, e.Err}
	case OutcomeUnknown:
		if e.over {
			return []error{ErrOutcomeUnknown, ErrFenced, e.Err}
		}
		return []error{ErrOutcomeUnknown, e.Err}
	}
	return []error{ErrAbortable, e.Err}
}

// Class is the class of an error: None for nil, that of the *Error in it, and Abortable for errors that come from
// elsewhere (the function given to Do), because Do has aborted then.
func Class(err error) ErrorClass {
	if err == nil {
		return None
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return Abortable
}

// Cause says who or what ended a session from outside.
type Cause = machine.Cause

// The causes, as far as the coordinator's state lets them be told apart.
const (
	Unknown     = machine.Unknown     // the coordinator could not be asked, or its state allows more than one reading
	Timeout     = machine.Timeout     // the transaction was open for longer than transaction.timeout.ms
	NewInstance = machine.NewInstance // another producer has registered with the same transactional id
	Admin       = machine.Admin       // an administrator fenced the id (Admin.fenceProducers)
)

// FencedError is the cause of class Fenced when the coordinator or a leader refused the session's epoch.
type FencedError struct {
	By Cause
	// ProducerID and Epoch are the session's own; ByProducerID and ByEpoch are what the coordinator has now, -1 when
	// it could not be asked.
	ProducerID   int64
	Epoch        int16
	ByProducerID int64
	ByEpoch      int16
	// Open is how long the transaction had been open, zero when none was.
	Open time.Duration
	// Code is what the broker answered.
	Code errcode.Code
}

// Error says who, and by which evidence.
func (e *FencedError) Error() string {
	s := fmt.Sprintf("fenced by %s: producer id %d epoch %d", e.By, e.ProducerID, e.Epoch)
	if e.ByEpoch >= 0 {
		s += fmt.Sprintf(", the coordinator has id %d epoch %d", e.ByProducerID, e.ByEpoch)
	}
	if e.Open > 0 {
		s += fmt.Sprintf(", the transaction was open for %s", e.Open.Round(time.Millisecond))
	}
	return s + ": " + e.Code.Error()
}

// Unwrap is the broker's code, and ErrTimedOut where that was why.
func (e *FencedError) Unwrap() []error {
	if e.By == Timeout {
		return []error{e.Code, ErrTimedOut}
	}
	return []error{e.Code}
}

// fail makes an error.
func (s *Session) fail(op string, class ErrorClass, err error) error {
	return &Error{Class: class, Op: op, ID: s.cfg.ID, Err: err}
}

// failed is fail for a cause that may be one of ours: then that one stands.
func (s *Session) failed(op string, class ErrorClass, err error) error {
	var e *Error
	if errors.As(err, &e) && e.Class == class {
		return err
	}
	return s.fail(op, class, err)
}

// said is a cause of the machine's as records are told it.
func (s *Session) said(err error) error {
	if e := (*machine.Error)(nil); errors.As(err, &e) {
		return s.wrap("transaction", Abortable, err)
	}
	return err
}

// wrap makes the user's error of one of the machine's.
func (s *Session) wrap(op string, class ErrorClass, err error) error {
	e, ok := err.(*machine.Error)
	if !ok {
		return s.failed(op, class, err)
	}
	out := &Error{Class: class, Op: op, ID: s.cfg.ID, Hint: e.Hint, Err: e.Err}
	if f := e.Fence; f != nil {
		out.Err = &FencedError{By: f.By, ProducerID: f.ProducerID, Epoch: f.Epoch, ByProducerID: f.ByProducerID, ByEpoch: f.ByEpoch, Open: f.Open, Code: f.Code}
	}
	var op0 *client.OpError
	if e.Request != "" && !errors.As(e.Err, &op0) {
		out.Err = &client.OpError{Op: e.Request, Broker: e.Broker, Partition: -1, Attempts: 1, Err: out.Err}
	}
	return out
}

// overErr is the error of a session that is over, nil while it is not.
func (s *Session) overErr(op string) error {
	s.mu.Lock()
	state, err := s.m.State(), s.m.Err()
	s.mu.Unlock()
	switch {
	case state == machine.Closed && (err == nil || errors.Is(err, machine.ErrEnded)):
		return s.fail(op, Fenced, ErrClosed)
	case err != nil:
		return s.wrap(op, Fenced, err)
	}
	return nil
}
