// Package server is the broker: it answers requests out of partitions and the metadata image. It is the only place where
// the parts are wired together.
//
// # The way of a request
//
//	network.Front ── frame ──> Broker.Handle        serve.go     header, session, version, body, fault rules
//	                             │
//	                             v
//	                          handler              table.go     one file per API
//	                             │
//	     ┌───────────────┬───────┴───────┬─────────────────┐
//	     v               v               v                 v
//	 image (read)   partition.log    purgatory         Controller.Submit
//	 metadata.go    produce.go       fetch.go waits,   create_topics ...: proposals
//	 describe_*.go  list_offsets.go  produce.go waits      │ records committed, applied
//	                                     │                 v
//	                                     │            ApplyImage      apply.go: configs, partitions, image
//	                                     v                 │
//	                          Request.Respond  <───────────┘
//	                             │
//	network.Conn  <── encodes and writes
//
// # Who runs what
//
//   - A connection's goroutine (network.Conn) runs Handle and the handler, holding one of num.io.threads slots, and
//     encodes and writes the answer. It owns the session and the request.
//   - The controller's driver has one goroutine; ApplyImage and the done functions of Submit run on it.
//   - The group coordinators have one goroutine (package coordinator), the transaction coordinators another; their answers
//     leave from it. Each transaction that is being ended has one more until its markers are written.
//   - A Produce request that opens a transaction in a partition has a goroutine of its own from then on: it waits for the
//     transaction coordinator and appends (transactional.go).
//   - keepUp (upkeep.go) runs the storage manager's periodic work.
//   - A request that a fault rule lets come after its connection has a goroutine of its own (late.go); so has a hook of a
//     rule, which may stop the broker (inject.go, serve.go).
//   - Timers of purgatory and fault rules only wake connections.
//
// Handlers share the partition table (a lock for looking up), partitions (immutable state behind an atomic pointer; the
// log has its own order of appends), the fetch sessions and the purgatories. Nothing holds a mutex across a disk call or
// a wait.
//
// # Map
//
//   - broker.go open.go apply.go upkeep.go   the Broker, its start and stop, how it follows the image
//   - request.go serve.go session.go sasl.go answer.go   a request, its connection, its answer
//   - table.go table_*.go                    which APIs there are
//   - partition.go topic_config.go leader.go topics and partitions of this broker
//   - produce.go, fetch.go ...               one file per API
//   - repeated.go authorized.go              what several requests have in common: names named twice, operations
//   - alter_resources.go                     what the broker refuses itself of a request that alters configs
//   - fetch_session.go fetch_answer.go       KIP-227, and records that are never copied
//   - coordinators.go coordinator_log.go     coordinators of either kind: who leads what, their log, waits
//   - groups.go group_failed.go              the group coordinators, and what tests ask of them
//   - transactions.go producer_ids.go        the transaction coordinators, likewise, and where their ids come from
//   - transaction_markers.go mistakes.go     from decided to complete: the end markers; and how tests have it go wrong
//   - transaction_failed.go                  answers about transactions that failed as a whole
//   - transactional.go                       transactional batches: who is asked before they are appended
//   - write_txn_markers.go txn_offset_commit.go   how a partition's part of a transaction ends; offsets in one
//   - controller.go propose.go internal_topics.go   what is asked of the controller; topics that the broker needs itself
//   - inject.go request_names.go late.go     fault rules: what strikes, by which names, and what comes after its connection
//   - hanging.go await.go metrics.go         faults, waits and counts, for the public face
package server
