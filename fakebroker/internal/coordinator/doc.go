// Package coordinator runs coordinators: machines whose state is the replay of a partition of an internal topic
// (__consumer_offsets for groups; transactions and share groups have theirs).
//
// # Shape
//
// A [Shard] is the coordinator of one partition, a pure machine of the replicated kind:
//
//	request ──Handle(now)──► Result: records + replies
//	                           │ Writer.Append: one batch, all or nothing
//	                           ▼
//	                        Replay(record)*          the only thing that changes what is durable, here and on loading
//	                           │ held until the high watermark has passed the batch
//	                           ▼
//	                        replies leave, effects run
//
// The [Runtime] owns all shards of one topic: one goroutine, one inbox, one timer. A timeout is a request like any other:
// the runtime sleeps until the nearest Deadline of its shards and calls Tick.
//
// A result may be a batch of a producer's transaction: the machine, a [TxnShard], keeps what was written until the marker
// comes, which WriteMarker appends. Transactions that are open in a log when it is loaded are open in the machine.
//
// # Map
//
//   - shard.go    Shard, TxnShard, Request, Result, Record: what a machine and the runtime say to each other
//   - writer.go   Writer: what the runtime needs of the log; the server hands one in
//   - runtime.go  Runtime: inbox, loop, timer, Submit, WriteMarker, Elect, Resign, Close
//   - serve.go    one request from Handle to its replies
//   - load.go     replay of a partition's log; small logs at once, big ones beside the loop
//   - batch.go    records to a batch and back
//
// # States of a shard
//
//	          Elect                    loaded
//	(none) ──────────► loading ──────────────────► active
//	   ▲                  │ Resign, load failed       │ Resign, newer Elect
//	   └──────────────────┴───────────────────────────┘
//
//	(none)   requests get NOT_COORDINATOR
//	loading  requests get COORDINATOR_LOAD_IN_PROGRESS
//	active   requests are handled
//
// # Failure
//
// Records are appended first and replayed when the log has them, so a refused append leaves nothing to take back: the
// machine is told by Result.Failed and the requests get the error. What was appended under a leadership that is lost is
// cut off the log by the next leader, and the whole shard is dropped with it: all that waits for the high watermark gets
// NOT_COORDINATOR, and the next election replays what is left. Reads wait for the high watermark too, so nobody is told
// of a state that could still be lost.
package coordinator
