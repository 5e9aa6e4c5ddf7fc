package machine

import (
	"fmt"
	"time"
)

// State is where a member is. The words are the same for both protocols.
//
// Transitions of the classic protocol (Classic):
//
//	Unknown            -> FindingCoordinator   start
//	FindingCoordinator -> Joining              coordinator found, not in the group or in a rebalance
//	FindingCoordinator -> Revoking, Stable     coordinator found again: go on where it was
//	Joining            -> Syncing              JoinGroup answered; a refusal or a member id given leaves it in Joining
//	Joining            -> Revoking             a topic that is held was unsubscribed meanwhile (cooperative)
//	Syncing            -> Stable               SyncGroup answered, nothing to give up
//	Syncing            -> Revoking             SyncGroup answered, some partitions to give up (cooperative)
//	Syncing            -> Joining              rebalance began anew
//	Stable             -> Revoking             a rebalance began and partitions have to be given up first (eager)
//	Stable             -> Joining              a rebalance began and nothing has to be given up, or everything is lost
//	Revoking           -> Joining              the owner confirmed, or everything is lost
//
// Transitions of the consumer protocol (Consumer, KIP-848):
//
//	Unknown            -> FindingCoordinator   start
//	FindingCoordinator -> Joining, Reconciling, Stable
//	Joining            -> Stable               first heartbeat answered, all of the assignment taken over
//	Joining, Stable    -> Reconciling          an assignment has something to give up, or a topic whose name is not known
//	Reconciling        -> Stable               all given up and taken over; the coordinator is told with the next heartbeat
//	Stable, Reconciling-> Joining              fenced: everything lost, join again with epoch 0
//
// Both:
//
//	any but Leaving, Ended -> FindingCoordinator   coordinator moved or is away
//	any but Leaving, Ended -> Stalled              the owner stopped to process; the member left the group
//	Stalled                -> FindingCoordinator, Joining   the owner goes on
//	any but Ended          -> Leaving              asked to end; it stays there until the owner has given everything up
//	any                    -> Ended                left, or a final error
//
// A transition joins all that one event caused, so what lasts for no time does not show. What is not in the list does
// not happen: the simulation in the tests holds every run against it.
type State uint8

// The states.
const (
	Unknown            State = iota // not begun
	FindingCoordinator              // asks which broker coordinates the group
	Joining                         // wants to be a member, or takes part in a rebalance
	Syncing                         // waits for what the leader assigns (classic)
	Revoking                        // waits until the owner has given up partitions; heartbeats go on
	Reconciling                     // gives up and takes over partitions one after the other (KIP-848)
	Stable                          // member, with an assignment
	Stalled                         // left the group because the owner stopped to process
	Leaving                         // gives up everything and says good-bye
	Ended                           // no member any more, for good
	stateCount
)

var stateNames = [stateCount]string{"Unknown", "FindingCoordinator", "Joining", "Syncing", "Revoking", "Reconciling",
	"Stable", "Stalled", "Leaving", "Ended"}

// String is the state's name.
func (s State) String() string {
	if s < stateCount {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Transition is one change of a member's state.
type Transition struct {
	From, To   State
	Generation Generation
	Reason     string    // in a few words: "coordinator moved", "SyncGroup answered"
	At         time.Time // when
}

// Protocol is how members and coordinator talk.
type Protocol uint8

const (
	// Auto takes Consumer when the cluster speaks it and the configuration asks for nothing that only Classic
	// has (Assignors), else Classic.
	Auto Protocol = iota
	// Classic is the protocol in which a member, the leader, distributes the partitions.
	Classic
	// Consumer is KIP-848's: the coordinator distributes, members reconcile one by one.
	Consumer
)

// String is the value of group.protocol.
func (p Protocol) String() string {
	switch p {
	case Classic:
		return "classic"
	case Consumer:
		return "consumer"
	}
	return "auto"
}

// Generation identifies what a member's assignment and commits belong to.
type Generation struct {
	ID         int32  // generation (classic) or member epoch (KIP-848); -1 when not a member
	MemberID   string // empty before the coordinator or the client made one
	InstanceID string // group.instance.id
	Protocol   Protocol
}
