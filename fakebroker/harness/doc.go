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
//	go test ./fakebroker/harness -run TestMutants -v -seeds 500         from seed 0 on
//	go test ./fakebroker/harness -run TestEveryCrashPoint -points 0 -v  a pipeline with something going wrong at each of its steps
//	go test ./fakebroker/harness -run TestChurn -churn-seeds 500        groups that come and go
//	go test ./fakebroker/harness -run TestChurn -churn-seed 17 -v       one again: the same faults, in the runtime's order
//	go test ./fakebroker/harness -run TestPause -v                      how long consumption stands still in a rebalance
package harness
