// Package logpeer is a small cluster for the consumer's own tests: partitions in memory behind a wiretest.Peer, with
// fetch sessions as strict as a broker's, leader epochs, transactions, and faults that a test asks for. It is no
// broker: it knows Fetch, ListOffsets and OffsetForLeaderEpoch, of which a consumer cannot tell it from one.
//
//	cluster.go    topics, leaders, appending, cutting
//	fetch.go      Fetch: sessions, limits, waiting for data
//	offsets.go    ListOffsets and OffsetForLeaderEpoch
package logpeer
