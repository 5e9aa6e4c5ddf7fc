// Package machine decides for a producer: which batches go into which request,
// under which producer id, epoch and sequence, what an answer means, when a
// batch is sent again, split, or given up. It is pure: no goroutine, lock,
// channel, clock or global random. Time arrives as an argument, randomness as a
// seed, and the only way in is Machine.Step.
//
// The package is public so that simulations can drive it; its API carries no
// compatibility promise.
//
// # What lives where
//
//	event.go      what can happen: Event and its kinds
//	effects.go    what the driver has to do about it, and in which order
//	batch.go      one sealed batch: its states and their transitions
//	partition.go  the ordered queue of one partition
//	broker.go     the request pipeline to one broker
//	machine.go    Step, Deadline and the table from event to handler
//	drain.go      when a broker is worth sending to, and what goes along
//	reply.go      what an answer means for each batch of a request
//	classify.go   the table of error codes behind reply.go
//	sequence.go   producer ids, epochs and sequences (KIP-98, KIP-360)
//	transaction.go  what is different when batches belong to transactions
//	expire.go     delivery.timeout.ms, withdrawal and closing
//	backoff.go    retry.backoff.ms with jitter
//
// # Order
//
// The queue of a partition is in sequence order and verdicts leave it from the
// front only, so callbacks of a partition are in order whatever the network
// did. Without idempotence a partition has at most one batch in flight, since
// nothing at the broker would keep two in order. With idempotence up to
// max.in.flight.requests.per.connection are in flight, and after a failure
// nothing more is sent until all of them are answered.
//
// # The rule about sequences
//
// A sequence that was sent and not acknowledged is never used for other records
// in the same epoch. When a batch leaves the queue without being acknowledged,
// the partition has a gap; it is closed by an epoch bump (KIP-360), after
// which sequences start at 0, and only once no batch in the queue may already be
// in the log. Epochs are counted per partition, because a broker checks them per
// partition; the producer id is shared.
//
// # A weakness
//
// OUT_OF_ORDER_SEQUENCE_NUMBER proves that a batch is not in the log now. If requests of a dead connection reach the
// broker after that answer and before the new epoch does, and the first of them fills the very gap (its own batch
// having been given up meanwhile), the second is appended too and appears twice. Kafka's own producer has the same
// hole; only transactions close it (KIP-890).
package machine
