// Package machine decides what a member of a consumer group does: when it looks for its coordinator, joins, gives up
// partitions, counts itself out, leaves; and what each answer means.
//
// A Member is a protocol machine as all of this SDK's: Step(now, event) gives Effects, to be carried out in their
// order, and Deadline the next time at which it wants Woke. There is no goroutine, lock, channel, context, clock or
// global random in it; randomness comes in as a seed and a member id. What it does next follows from its state alone,
// looked at after every event, so an event that comes early, late or twice cannot make a step be left out.
//
//	state.go             the public states, with the list of transitions; Generation
//	event.go             events, Effects, Request
//	member.go            Member: what both protocols have in common
//	coordinator.go       finding it, losing it, back-off, final errors, falling back to the classic protocol
//	owner.go leave.go    the owner's side: revoking, losing, stalling, leaving, the end
//	classic.go           JoinGroup, SyncGroup, Heartbeat: phases of a rebalance, eager and cooperative (KIP-429)
//	classic_answer.go    what their answers mean
//	classic_leader.go    the leader: other members' subscriptions, metadata, the assignor
//	consumer.go          KIP-848: heartbeats with epochs, reconciliation
//	protocol.go          the bytes members exchange through the classic coordinator
//	assignor.go          what an assignor gets and gives
//
// It is public so that simulations can drive it; it carries no compatibility promise. The driver is package groupmember.
package machine
