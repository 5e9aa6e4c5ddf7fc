// Package raft keeps the metadata log: what a quorum of controllers agrees on, on disk exactly as Apache Kafka's KRaft
// keeps it. It replicates opaque record values and knows nothing of topics or brokers.
//
// # Map
//
//   - quorum.go        Quorum: the seam towards the controller: Append, leadership, committed batches, checkpoints
//   - single.go        Single: a quorum of one voter, which is its own majority
//   - log.go           Log: what a quorum needs of the log under it (package storage has it)
//   - batch.go         record values to batches and back; control batches
//   - quorum_state.go  the file quorum-state
//   - checkpoint.go    checkpoint files: names, listing, retention
//   - checkpoint_write.go, checkpoint_read.go   their content
//
// # The folder __cluster_metadata-0
//
//	00000000000000000000.log .index .timeindex   the log, of package storage
//	leader-epoch-checkpoint, partition.metadata  also storage's; the topic id is 1
//	quorum-state                                 JSON: newest epoch, its leader, my vote
//	00000000000000000000-0000000000.checkpoint   what the folder was formatted with
//	00000000000000000071-0000000001.checkpoint   image of offsets below 71; the epoch is that of offset 70
//
// A checkpoint is a log of its own: a control batch with SnapshotHeader (and, under kraft.version 1, KRaftVersion and
// KRaftVoters), data batches, a control batch with SnapshotFooter. Offsets count from 0. It is written to a .part file,
// synced, and renamed, so that one with its final name is whole.
//
// # A start, and the order of writes
//
//	quorum-state (epoch+1, voted for myself) ──► synced
//	LeaderChange record of the new epoch      ──► appended, synced
//	records                                   ──► appended, synced: committed, since one voter is the majority
//
// The state file goes first: after a crash in between the next epoch is higher still, and no two leaders ever share one.
// Nothing is handed to the controller as committed before it is synced.
//
// The quorum of several voters (elections, fetching, voter changes) comes behind the same Quorum interface: it is why
// Append does not wait for the commit, and why leadership is something that can be lost.
package raft
