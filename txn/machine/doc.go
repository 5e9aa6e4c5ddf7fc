// Package machine decides for a transactional session: which request goes to which coordinator when, what an answer
// means for the transaction and for the session, and what is known about a commit whose answer did not come. It is pure:
// no goroutine, lock, channel, clock or global random. Time arrives as an argument, randomness as a seed, and the only way
// in is Machine.Step.
//
// The package is public so that simulations can drive it; its API carries no compatibility promise.
//
// # What lives where
//
//	state.go     the states and the list of their transitions
//	event.go     what can happen
//	effects.go   what the driver has to do about it, and in which order
//	machine.go   Step, Deadline, and what the user asks for
//	slot.go      one coordinator: where it is, what is in the air to it, when to try again
//	next.go      what to send next, derived from the state alone
//	answers.go   what an answer does
//	verdicts.go  the table of error codes behind answers.go, for every request
//	offsets.go   consumer offsets of a transaction
//	fence.go     who fenced us, by the coordinator's evidence
//
// # Level, not edge
//
// Nothing is queued. After every event the machine looks at its state and asks what has to be sent next; an answer
// changes the state, a failure only the time of the next attempt. So a request is tried again by doing nothing, and there
// is at most one request in the air to a coordinator.
//
// # What a lost answer leaves behind
//
// A request whose connection ended before its answer may still be in the broker's queue and be carried out late, when the
// transaction that it belongs to has long ended. Where every end of a transaction brings a new epoch (KIP-890,
// transaction.version 2) the broker refuses it. Where not, the machine takes a new epoch itself before the next
// transaction (InitProducerId with the present epoch, KIP-360, brokers from 2.5 on): that a late EndTxn or
// AddPartitionsToTxn must not touch the next transaction is more than Kafka's own producer takes care of. A request for
// another epoch that may come late is followed by one more, which makes the late one too old to be obeyed. Only the very
// first InitProducerId of a session cannot be guarded: one that comes late fences the session, which is safe.
package machine
