// Package sim runs members and coordinators of groups against each other, pure machine against pure machine: one
// goroutine, an event heap for time, and chance from named streams of one seed. The same seed takes the same course, byte
// for byte. All of it is test files; they alone import the machines of the SDK.
//
//	go test ./fakebroker/internal/sim                                  28 seeds of each fleet, and those that found something
//	go test ./fakebroker/internal/sim -run TestChurn -seeds 1000       that many of each fleet
//	go test ./fakebroker/internal/sim -run TestChurn -seed 17 -fleet consumer -v    one again, with what happens in it
//
// Transactions have a simulation of their own, in transactions; clockwork is what both share.
//
// # Map
//
//	world_test.go    time, chance, the trace, what a run is
//	link_test.go     connections: delay, loss of one direction, breaks, requests that arrive too late; real bytes
//	broker_test.go   two brokers and one log of __consumer_offsets: append, commit, crash, move, loading
//	topics_test.go   topics that grow, go and come back; their records
//	node_test.go     a member with its driver
//	owner_test.go    who processes what the member is given, and commits it
//	fault_test.go    what goes wrong; each seed enables some of it
//	check_test.go    what must hold after every event
//	churn_test.go    the seeds, and that the places worth reaching are reached
//
// # What holds
//
// G1: of members that the coordinator counts in, one owns a partition (consumer protocol: until it has confirmed that it
// gave it up; classic: within a generation). G2: a committed offset goes neither back nor past a record that nobody has
// processed. G4: generations and epochs only grow, and no member is ahead of its group. G5: when faults end, the group is
// at rest within twice session plus rebalance timeout. G6: a coordinator's state is the replay of its log. Every record is
// processed at least once; twice only if a claim on its partition ended badly (lost, crashed, given up undrained).
package sim
