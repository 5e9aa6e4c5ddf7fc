// Package transactions looks for what could break exactly-once, in the machines themselves: the transaction coordinator, the
// partitions' logs, and of the SDK the transactional session and the producer. All of it is test files; they alone import the
// machines of the SDK.
//
//	go test ./fakebroker/internal/sim/transactions                                       small scopes, and 20 seeds of each transaction.version
//	go test ./fakebroker/internal/sim/transactions -run AllCourses -wide -v              wide scopes, some minutes
//	go test ./fakebroker/internal/sim/transactions -run Transactions$ -seeds 1000        that many seeds of each version
//	go test ./fakebroker/internal/sim/transactions -run Transactions$ -seed 17 -version 2 -v    one again, with what happens in it
//
// # Two ways of looking
//
// A scope is a handful of transactions and a few things that may go wrong, and everything that can happen then, in every order:
// breadth first, until no state is new. What comes out is the shortest course to a broken promise, or that there is none. The
// producers are sketches of what any client may do.
//
// A seed is a minute and a half of whole sessions under faults drawn by chance, each with its driver, over connections with
// bytes. The same seed takes the same course, byte for byte.
//
// # Map
//
//	scope_test.go        the scopes and the search
//	scope_state_test.go  a state, and all that can happen in it
//	scope_actor_test.go  a producer, as a sketch
//	scope_parts_test.go  coordinator and partitions: the broker's code, made anew for each state
//	scope_check_test.go  what must hold
//
//	seed_test.go              the seeds
//	seed_world_test.go        who is there
//	seed_link_test.go         connections: delay, loss, breaks, requests that arrive when their sender has gone on
//	seed_coordinator_test.go  __transaction_state and its leader: append, commit, crash, move, loading; the markers
//	seed_leader_test.go       the leaders of out-0 and out-1: verification, append, markers
//	seed_offsets_test.go      __consumer_offsets and its leader: offsets in transactions
//	seed_session_test.go      a process with a session
//	seed_fault_test.go        what goes wrong; each seed has some of it
//	seed_check_test.go        what must hold after every event
//
// # What holds
//
// E1: sequences of a producer in a partition have no gap. E2: a record is in one place. E3: of a transaction read_committed shows
// all or nothing, over all partitions and its offsets; epochs of markers do not go back. E4: the last stable offset is not above
// the high watermark and does not go back; no transaction stays open. E5: behind a marker there is nothing of an older epoch. E6:
// an end ends its own transaction and no other; who is told that it is committed, or aborted, is told the truth.
//
// With transaction.version 0 and 1 that cannot all hold: an EndTxn or a marker that comes late may end the next transaction
// (KIP-890). A test shows that the search finds it. The sessions of package txn live with it, because they take another epoch
// after every answer that was lost; brokers cannot, so markers do not come late here.
package transactions
