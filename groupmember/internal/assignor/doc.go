// Package assignor has Kafka's client-side assignors as pure functions: what the leader of a group with the classic
// protocol calls to distribute partitions.
//
//	range.go       neighbouring partitions of each topic to each member, aligned over topics; racks (KIP-881)
//	roundrobin.go  all partitions dealt out in turn
//	sticky.go      Sticky and CooperativeSticky: claims, user data, and what is withheld for a rebalance
//	solver.go      the balance that both share: as even as can be, then as few moves as can be
//	members.go     the order of members, and when racks matter
//
// Range and RoundRobin give exactly what Apache Kafka 4.4 gives (testdata has its results, made by its own classes).
// The sticky ones need not: their ties follow the order of Java's hash maps. They are never less balanced, and move
// no more. One thing differs on purpose: where racks matter, Kafka takes partitions from members that are far from
// them; here a rack decides who gets what is free, and is no reason to move anything.
package assignor
