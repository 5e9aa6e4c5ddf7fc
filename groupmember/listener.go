package groupmember

import "github.com/ottla-kafka/ottla/groupmember/machine"

// What this package shares with its pure part; see package machine.
type (
	// TopicPartition names one partition of one topic.
	TopicPartition = machine.TopicPartition
	// State is where a member is.
	State = machine.State
	// Transition is one change of a member's state.
	Transition = machine.Transition
	// Protocol is how members and coordinator talk.
	Protocol = machine.Protocol
	// Generation identifies what a member's assignment and commits belong to.
	Generation = machine.Generation
	// GroupError is the final error of a member: which group refused what, why, and what to do.
	GroupError = machine.GroupError
	// Assignor distributes partitions in the classic protocol. Own ones are given by the option Assignors.
	Assignor = machine.Assignor
	// Subscription is what an Assignor gets to know of a member.
	Subscription = machine.Subscription
	// TopicRacks is what an Assignor gets to know of a topic.
	TopicRacks = machine.TopicRacks
)

// The protocols.
const (
	Auto     = machine.Auto
	Classic  = machine.Classic
	Consumer = machine.Consumer
)

// The states.
const (
	Unknown            = machine.Unknown
	FindingCoordinator = machine.FindingCoordinator
	Joining            = machine.Joining
	Syncing            = machine.Syncing
	Revoking           = machine.Revoking
	Reconciling        = machine.Reconciling
	Stable             = machine.Stable
	Stalled            = machine.Stalled
	Leaving            = machine.Leaving
	Ended              = machine.Ended
)

// Listener is told what a member gets and has to give. Its methods are called one at a time, in the order in which
// things happened, from a goroutine of the member's that does nothing else: they may block and may call the
// member, except for Close and Leave; heartbeats go on meanwhile.
type Listener interface {
	// Assigned tells of partitions that are this member's from now on, and of the generation. It follows every
	// rebalance, also one that brought nothing new; with Consumer, every one that changed what this member has.
	Assigned(a Assignment)
	// Revoked asks to give up partitions. The member keeps them, may commit for them, and tells the coordinator
	// only when done was called, from any goroutine, at once or later: stop fetching, drain, commit, done. Who
	// takes longer than the rebalance timeout is removed from the group, and Lost follows.
	Revoked(parts []TopicPartition, done func())
	// Lost tells of partitions that are gone already: commits for them fail, others may own them. cause matches
	// ErrLost or ErrFenced. A Revoked that was not confirmed yet is void for them.
	Lost(parts []TopicPartition, cause error)
}

// Assignment is what Listener.Assigned tells.
type Assignment struct {
	Generation Generation
	Added      []TopicPartition // new ones, sorted
	All        []TopicPartition // everything that is held now, sorted
}
