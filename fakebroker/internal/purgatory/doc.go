// Package purgatory holds requests that wait for something: a fetch for bytes, a produce for replicas.
//
// An operation watches keys (partitions, mostly) and has one deadline. Whoever changes what a key stands for calls
// Check(key); each waiting operation then looks again at the state it waits for. It is completed exactly once, by the
// check that finds it satisfied, by its deadline, or by Close:
//
//	Watch ──try──> satisfied at once ────────────────┐
//	  │ not yet                                      v
//	  └─> waiting on its keys ──Check(key), try──> Done(Satisfied)
//	          │──deadline─────────────────────────> Done(Expired)
//	          └──Close────────────────────────────> Done(Closed)
//
// Try is a function over memory that takes no lock for long and never blocks; Done must not block either (the network
// exchange's Resume does not). Both run on the goroutine of whoever called Check, so an append does not pay for more
// than a look per waiting request.
package purgatory
