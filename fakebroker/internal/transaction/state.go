package transaction

import "slices"

// A State of a transactional id, with the number that records have for it.
type State int8

// The states. PrepareEpochFence is never written: it is what a fence passes through on its way to PrepareAbort.
const (
	Empty             State = 0 // has never had a transaction since its producer started
	Ongoing           State = 1
	PrepareCommit     State = 2 // decided; the markers are being written
	PrepareAbort      State = 3
	CompleteCommit    State = 4 // the markers are written
	CompleteAbort     State = 5
	Dead              State = 6 // expired, on its way out; also what is said of an id that does not exist
	PrepareEpochFence State = 7
)

// The legal transitions, by what may come before:
//
//	             ┌──────────────────── InitProducerId ──────────────────┐
//	             ▼                                                      │
//	(none) ──► Empty ──► Ongoing ──► PrepareCommit ──► CompleteCommit ──┤
//	             │         ▲ │ │                                        │
//	             │         └─┘ └───► PrepareAbort ───► CompleteAbort ───┤
//	             │      partitions        ▲                             │
//	             └────────────────────────┴── an empty abort (KIP-890) ─┘
//
// From Empty and the complete states a new transaction may begin, and the id may expire (Dead).
var previous = [...][]State{
	Empty:             {Empty, CompleteCommit, CompleteAbort},
	Ongoing:           {Ongoing, Empty, CompleteCommit, CompleteAbort},
	PrepareCommit:     {Ongoing},
	PrepareAbort:      {Ongoing, PrepareEpochFence, Empty, CompleteCommit, CompleteAbort},
	CompleteCommit:    {PrepareCommit},
	CompleteAbort:     {PrepareAbort},
	Dead:              {Empty, CompleteCommit, CompleteAbort},
	PrepareEpochFence: {Ongoing},
}

// mayFollow reports whether a transition from one state to s is legal.
func (s State) mayFollow(from State) bool { return slices.Contains(previous[s], from) }

// valid reports whether a number from a record is a state that records may have.
func (s State) valid() bool { return s >= Empty && s <= CompleteAbort }

var names = [...]string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"}

// String is Apache Kafka's name of the state.
func (s State) String() string {
	if s < 0 || int(s) >= len(names) {
		return "unknown"
	}
	return names[s]
}

// stateNamed is the state of a name.
func stateNamed(name string) (State, bool) {
	i := slices.Index(names[:], name)
	return State(i), i >= 0
}

// preparing reports whether the outcome is decided and not yet everywhere.
func (s State) preparing() bool { return s == PrepareCommit || s == PrepareAbort }

// idle reports whether no transaction is open or being ended; only then may an id expire.
func (s State) idle() bool { return s == Empty || s == CompleteCommit || s == CompleteAbort }
