package machine

import (
	"fmt"
	"time"
)

// State of a session. These transitions happen and no others (the tests hold every run against the list):
//
//	Uninitialized  -> Initializing    Started
//	Initializing   -> Ready           InitProducerId answered
//	Ready          -> InTransaction   Begun
//	Ready          -> Initializing    Checked: transactions become implicit, or an abort left no usable epoch
//	InTransaction  -> Committing      CommitAsked
//	InTransaction  -> Aborting        AbortAsked
//	InTransaction  -> Doomed          a batch failed, or the coordinator refused partitions or offsets
//	Committing     -> InTransaction   CommitRecalled, before EndTxn may have got out
//	Committing     -> Doomed          as above, or EndTxn refused with TRANSACTION_ABORTABLE
//	Committing     -> Ready           EndTxn answered, or there was nothing to end
//	Committing     -> Initializing    the same, and another epoch is needed
//	Doomed         -> Aborting        AbortAsked
//	Aborting       -> Ready           EndTxn answered, or there was nothing to end
//	Aborting       -> Initializing    the same, and another epoch is needed
//	any but Closed -> Over            fenced, or an error that nothing can be done about
//	any            -> Closed          Ended
//
// A transition joins all that one step caused, so what lasts for no time does not show.
type State uint8

// The states.
const (
	Uninitialized State = iota // not begun
	Initializing               // asks the coordinator for the producer id or another epoch of it
	Ready                      // no transaction is open
	InTransaction              // one is, and takes records
	Committing                 // it takes no more; flushes, then asks the coordinator
	Aborting                   // gives up what was not sent, waits for the rest, then asks the coordinator
	Doomed                     // it can only be aborted; Kafka's name is ABORTABLE_ERROR
	Over                       // the session cannot go on; Kafka's name is FATAL_ERROR
	Closed                     // the owner has closed it
	stateCount
)

var stateNames = [stateCount]string{"Uninitialized", "Initializing", "Ready", "InTransaction", "Committing", "Aborting", "Doomed", "Over", "Closed"}

// String is the state's name.
func (s State) String() string {
	if s < stateCount {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// transitions is the list above.
var transitions = [stateCount][]State{
	Uninitialized: {Initializing},
	Initializing:  {Ready},
	Ready:         {InTransaction, Initializing},
	InTransaction: {Committing, Aborting, Doomed},
	Committing:    {InTransaction, Doomed, Ready, Initializing},
	Doomed:        {Aborting},
	Aborting:      {Ready, Initializing},
}

// Allowed reports whether the list has the transition.
func Allowed(from, to State) bool {
	if to == Closed || to == Over && from != Closed {
		return true
	}
	for _, s := range transitions[from] {
		if s == to {
			return true
		}
	}
	return false
}

// Outcome is what became of a transaction.
type Outcome uint8

// The outcomes.
const (
	Open      Outcome = iota // it has not ended
	Committed                // readers see all of it
	Aborted                  // readers see nothing of it, or will
	InDoubt                  // the answer to the commit did not come
)

// String is the outcome in a word or two.
func (o Outcome) String() string {
	switch o {
	case Open:
		return "open"
	case Committed:
		return "committed"
	case Aborted:
		return "aborted"
	}
	return "in doubt"
}

// Transition is one change of the state.
type Transition struct {
	From, To   State
	ProducerID int64
	Epoch      int16
	Reason     string // the event that caused it: "Answered"
	At         time.Time
}
