// Package machine is the part of the consumer that decides: where a partition is read next, what is asked of
// which broker, what an answer means, what is told to the application.
//
// Everything here is pure. There is no goroutine, lock, channel, context, clock or global random in it: the
// present time and a seed come in as values, deadlines go out as values, and no result depends on the order of
// a map. A simulation can drive it from one seed, and its tests read as stories without sleeping.
//
// The driver (consumer/internal/fetch) owns one Fetcher and calls Step under its own lock. Package consumer
// is the face that applications see. This package is public so that simulations can reach it; it carries no
// compatibility promise.
//
//	where.go      TopicPartition, Position, and Where: the places a reader can be sent to
//	fetcher.go    Fetcher: Step(now, event) Effects, Deadline; events and effects in their order
//	partition.go  the states of one partition and the transitions between them
//	command.go    what the application asks for: add, remove, seek, pause, resume, close
//	topology.go   what a new picture of the cluster changes: leaders, epochs, topics replaced
//	plan.go       what to send now: which partitions, from whom, how long a broker may wait (KIP-392 lives here)
//	fetched.go    what a fetch answer means, partition by partition
//	lookup.go     what answers to ListOffsets and OffsetForLeaderEpoch mean (KIP-320)
//	session.go    fetch sessions (KIP-227): full and incremental requests, loss, topic ids
//	aborted.go    which batches a read_committed reader leaves out
//	failure.go    errors and notices
//	claim.go      Claim: the order in which a member of a group gives a partition up
//	work.go       Work: which record of a claim may be processed next, and what is done without a gap
package machine
