// Package harness runs whole clients against the broker in virtual time: consumers of a group under seeded faults, the causes
// in a group's history, and how long consumption stands still in a rebalance. Its tests are all there is; what the machines
// alone do under far more seeds is in fakebroker/internal/sim.
//
//	go test ./fakebroker/harness                                        20 seeds
//	go test ./fakebroker/harness -run TestChurn -churn-seeds 500        more
//	go test ./fakebroker/harness -run TestChurn -churn-seed 17 -v       one again: the same faults, in the runtime's order
//	go test ./fakebroker/harness -run TestPause -v                      the pauses side by side
//	go test ./fakebroker/harness -run TestEveryCrashPoint -points 0 -v  a pipeline with something going wrong at each of its steps
package harness
