// Package group coordinates groups: who is in them, who reads what, and what they have committed.
//
// # Shape
//
// A [Machine] is the coordinator of one partition of __consumer_offsets, a pure machine of the replicated kind run by
// package coordinator: Handle proposes records and replies, Replay is the only thing that changes what is durable, a
// timeout is a Tick. It holds no clock, no lock and no goroutine; member ids come from a source that is handed in, and
// nothing depends on the order of a map.
//
// # Map
//
//	machine.go             Machine: dispatch by request, record and timer
//	environment.go         the metadata image and the configs it goes by
//	timers.go              what it wants to be woken for
//	classic.go             a group of the classic protocol: states, members, choice of the protocol
//	classic_join.go ...    one file per request: join, sync, heartbeat, leave; rebalance is what they lead to
//	consumer.go            a group of the consumer protocol (KIP-848): members, epochs, owners
//	consumer_heartbeat.go  its one request; consumer_reconcile.go what a member may own now; consumer_target.go who shall
//	                       own what; consumer_regex.go subscriptions by pattern
//	convert.go             from one protocol to the other while members are in the group
//	consumer_classic.go    classic members of a consumer group
//	offsets.go, offset_*.go  committed offsets: commit, fetch, delete, expiry
//	pending.go, txn_offset_commit.go   offsets of transactions that have not ended: they wait beside the committed ones
//	list.go, describe.go, delete.go  administration
//	history.go, inspect.go what tests look at, and do to a group
//	assignor/              the server-side assignors
//
// # Records, in the order in which a request writes them
//
//	JoinGroup (new group)     GroupMetadata, empty
//	SyncGroup (leader)        GroupMetadata with every member's assignment
//	(the last one is gone)    GroupMetadata, empty, next generation
//	OffsetCommit              OffsetCommit per partition, version 4 (1 when the client gave a retention)
//	TxnOffsetCommit           the same, in a batch of the producer's transaction; its marker comes later
//	ConsumerGroupHeartbeat    MemberMetadata, RegularExpression*, GroupMetadata (epoch), TargetAssignmentMember*,
//	                          TargetAssignmentMetadata, CurrentMemberAssignment: what has changed of them
//	member leaves, fenced     tombstones of the member's three records, GroupMetadata
//	DeleteGroups, expiry      tombstones of the offsets, then of the group
package group
