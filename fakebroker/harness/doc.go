// Package harness is test help that needs clients: proof that a pipeline is exactly once, and recorders that tell a
// history.Log what this SDK's clients do.
//
//	func TestInvoices(t *testing.T) {
//		k := fakebroker.Start(t, fakebroker.Topic("orders", 6), fakebroker.Topic("invoices", 6))
//		... write orders, run the pipeline, kill its workers, k.Restart(ctx), until it is done ...
//		harness.CheckExactlyOnce(t, k, "orders", "invoices", harness.Group("billing"))
//	}
//
// CheckExactlyOnce looks at what is in the topics in the end and works against any cluster (Seeds). A history sees more:
// what was read too early, in the wrong order, by whom, and which transaction it was part of; see package history.
//
//	exactly_once.go exactly_once_read.go exactly_once_compare.go   CheckExactlyOnce
//	recorder.go recorder_txn.go                                    Recorder, and its Tx
//
// # Its tests
//
// They run whole clients against the broker in virtual time; what the machines alone do under far more seeds is in
// fakebroker/internal/sim.
//
//	go test ./fakebroker/harness -run TestTrials -seeds 500             exactly once under faults: a history, a comparison and an
//	                                                                    audit of the logs find nothing
//	go test ./fakebroker/harness -run TestTrials -seed 17 -v            one again, and everything that happens in it
//	go test ./fakebroker/harness -run TestMutants -v                    the bank of mistakes, and which seed finds each
//	go test ./fakebroker/harness -run TestMutants -v -seeds 500         all of them, from seed 0 on
//	go test ./fakebroker/harness -run TestEveryCrashPoint -points 0 -v  a pipeline with something going wrong at each of its steps
//	go test ./fakebroker/harness -run TestChurn -churn-seeds 500        groups that come and go
//	go test ./fakebroker/harness -run TestChurn -churn-seed 17 -v       one again: the same faults, in the runtime's order
//	go test ./fakebroker/harness -run TestPause -v                      how long consumption stands still in a rebalance
//
// Their flags:
//
//	-seeds N          TestTrials runs seeds 0 to N-1 (default: 16, with -race 3); TestMutants tries so many for each mistake,
//	                  from 0 on, and leaves out no mistake (default: up to 500 from the seed that is known to find it, without
//	                  those that take dozens; with -race one in twelve)
//	-seed N           TestTrials runs seed N alone and prints what happens, with -v every operation
//	-mutant TEXT      TestMutants tries the mistakes that have TEXT in their names; with -seed, TestTrials makes the one that
//	                  is called TEXT or alone has it in its name. TEXT that no name has is an error, which lists them
//	-level N          transaction.version 1 or 2 in all trials (default: drawn by the seed)
//	-points N         TestEveryCrashPoint goes through about N points of each kind in each set-up (default 2); 0: all, about a
//	                  minute
//	-points-bug TEXT  ... with a broker that makes this mistake: it has to fail
//	-points-log       ... and shows requests and the broker's log
//	-churn-seeds N    TestChurn runs seeds 0 to N-1 (default 20)
//	-churn-seed N     TestChurn runs seed N alone
package harness
