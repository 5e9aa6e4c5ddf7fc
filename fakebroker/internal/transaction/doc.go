// Package transaction coordinates transactions: who has a transactional id, what is in its open transaction, and how it
// ends.
//
// # Shape
//
// A [Machine] is the coordinator of one partition of __transaction_state, a pure machine of the replicated kind run by
// package coordinator: Handle proposes records and replies, Replay is the only thing that changes what is durable, a
// timeout is a Tick. It holds no clock, no lock and no goroutine. Two things it cannot do itself it asks for:
//
//	a new producer id   the answer NeedsProducerID; the request comes again with the id
//	end markers         Options.SendMarkers, once the decision is committed; MarkersWritten comes when all are there
//
// # One transaction
//
//	client             machine                                              partitions
//	InitProducerId ──► Empty           id and epoch; who had them is fenced
//	AddPartitions  ──► Ongoing         (or implied by Produce and TxnOffsetCommit, KIP-890)
//	EndTxn         ──► PrepareCommit   the decision: from here on it is finished, by whichever coordinator
//	       ◄── answer                  ── SendMarkers ─────────────────────► control batches
//	                   CompleteCommit  ◄─ MarkersWritten ─────────────────── all of them
//
// Every transition is one record, the whole of what is known of the id (transaction.go). The transitions that exist are
// listed at [State].
//
// # Map
//
//	machine.go           Machine: dispatch, checks by time
//	state.go             the states and what may follow what
//	transaction.go       what is known of an id, to and from its record
//	environment.go       the level of transaction.version, and the configs
//	init_producer_id.go  add_partitions.go  end_txn.go   one file per request: the rules of epochs are in the first and the last
//	markers.go           what happens between decided and complete
//	patience.go          requests that come while a transaction is being ended
//	expire.go            transactions that take too long, ids that nobody uses
//	list.go  describe.go administration;  inspect.go  what tests look at
//	testdata/            stories with every record and answer; the tables of all requests in all states
//
// # transaction.version
//
//	0   records of version 0: the producer ids before and after an exhausted epoch are not kept
//	1   records of version 1, flexible
//	2   clients may use KIP-890: EndTxn from version 5 on raises the epoch with every end, and answers with it
//
// Which protocol a transaction follows is the client's choice, by the versions of its requests; the level of the cluster
// decides for what the coordinator does by itself: timeouts and fencing. Those raise the epoch at every level.
package transaction
