package machine

// ClaimState is where a claim is: the time during which a member of a group owns a partition.
//
//	             assigned
//	(none) ────────────────▶ Starting ──Resolved──▶ Reading
//	                            │ Revoking             │ Revoking: stop reading, let what is in hand end
//	                            ▼                      ▼
//	                        Releasing ◀──Drained── Draining
//	                            │                      │ Overdue: end the handlers' contexts
//	                            │ ◀────────────────────┘
//	                            │ Released: the application's callback has returned
//	                            ▼
//	                        Committing ──Committed──▶ Ended    tell the group; another may own it
//	any but Ended ──────────── Lost ────────────────▶ Ended    nothing can be committed any more
//
// The order is what keeps a rebalance from losing or repeating anything: nothing is handed out after Revoking; what
// was handed out ends before the commit; the commit is over before the group hears that the partition is free.
type ClaimState uint8

// The states.
const (
	ClaimStarting   ClaimState = iota // its start is being looked up; nothing is fetched
	ClaimReading                      // records are fetched and handed out
	ClaimDraining                     // no more are handed out; those in hand end
	ClaimReleasing                    // the application is told
	ClaimCommitting                   // what is done without a gap is being committed
	ClaimEnded                        // given up or lost
	claimStates
)

// String is the state's name.
func (s ClaimState) String() string {
	return [...]string{"starting", "reading", "draining", "releasing", "committing", "ended"}[s]
}

// ClaimEvent is what happens to a claim.
type ClaimEvent uint8

// The events.
const (
	ClaimResolved  ClaimEvent = iota // the start is known
	ClaimRevoking                    // the group wants the partition back, or the consumer closes
	ClaimDrained                     // nothing is in hand any more
	ClaimOverdue                     // that took too long
	ClaimReleased                    // the application's callback has returned
	ClaimCommitted                   // the last commit is over, well or badly
	ClaimLost                        // the partition is gone
	claimEvents
)

// String is the event's name.
func (e ClaimEvent) String() string {
	return [...]string{"resolved", "revoking", "drained", "overdue", "released", "committed", "lost"}[e]
}

// ClaimEffects says what is to be done, in this order.
type ClaimEffects struct {
	Read    bool // fetch and hand out from the start that was found
	Stop    bool // hand out nothing more and fetch nothing more
	Drain   bool // tell Drained when nothing is in hand, Overdue when that takes too long
	Abandon bool // end the contexts of what is in hand: its outcome does not count any more
	Release bool // call the application back, then tell Released
	Commit  bool // commit what is done, then tell Committed
	Confirm bool // tell the group that the partition is free
	Report  bool // tell the application that the partition is lost
}

type claimStep struct {
	next ClaimState
	eff  ClaimEffects
}

// claimTable has an entry for each event that means something in a state; others are late and change nothing.
var claimTable = map[ClaimState]map[ClaimEvent]claimStep{
	ClaimStarting: {
		ClaimResolved: {ClaimReading, ClaimEffects{Read: true}},
		ClaimRevoking: {ClaimReleasing, ClaimEffects{Release: true}},
		ClaimLost:     {ClaimEnded, ClaimEffects{Abandon: true, Report: true}},
	},
	ClaimReading: {
		ClaimRevoking: {ClaimDraining, ClaimEffects{Stop: true, Drain: true}},
		ClaimLost:     {ClaimEnded, ClaimEffects{Stop: true, Abandon: true, Report: true}},
	},
	ClaimDraining: {
		ClaimDrained: {ClaimReleasing, ClaimEffects{Release: true}},
		ClaimOverdue: {ClaimReleasing, ClaimEffects{Abandon: true, Release: true}},
		ClaimLost:    {ClaimEnded, ClaimEffects{Abandon: true, Report: true}},
	},
	ClaimReleasing: {
		ClaimReleased: {ClaimCommitting, ClaimEffects{Commit: true}},
		ClaimLost:     {ClaimEnded, ClaimEffects{Abandon: true, Report: true}},
	},
	ClaimCommitting: {
		ClaimCommitted: {ClaimEnded, ClaimEffects{Abandon: true, Confirm: true}},
		ClaimLost:      {ClaimEnded, ClaimEffects{Abandon: true, Report: true}},
	},
}

// Claim decides in which order a partition is given up. The zero value is one that was just assigned.
type Claim struct{ state ClaimState }

// State is where the claim is.
func (c *Claim) State() ClaimState { return c.state }

// Step takes an event; one that comes too late has no effects.
func (c *Claim) Step(ev ClaimEvent) ClaimEffects {
	s, ok := claimTable[c.state][ev]
	if !ok {
		return ClaimEffects{}
	}
	c.state = s.next
	return s.eff
}
