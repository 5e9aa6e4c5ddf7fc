package server

import "github.com/ottla-kafka/ottla/wire"

// groupHandlers are the APIs about groups and committed offsets. Each goes to the coordinator of its group, on this broker
// or not: then the answer is NOT_COORDINATOR, and the client looks for it with FindCoordinator.
var groupHandlers = map[wire.Key]handler{
	wire.KeyFindCoordinator:        handleFindCoordinator,
	wire.KeyJoinGroup:              handleJoinGroup,
	wire.KeySyncGroup:              handleSyncGroup,
	wire.KeyHeartbeat:              handleHeartbeat,
	wire.KeyLeaveGroup:             handleLeaveGroup,
	wire.KeyOffsetCommit:           handleOffsetCommit,
	wire.KeyOffsetFetch:            handleOffsetFetch,
	wire.KeyOffsetDelete:           handleOffsetDelete,
	wire.KeyListGroups:             handleListGroups,
	wire.KeyDescribeGroups:         handleDescribeGroups,
	wire.KeyDeleteGroups:           handleDeleteGroups,
	wire.KeyConsumerGroupHeartbeat: handleConsumerGroupHeartbeat,
	wire.KeyConsumerGroupDescribe:  handleConsumerGroupDescribe,
}
