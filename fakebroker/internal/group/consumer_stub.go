package group

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

type consumerGroup struct{ members map[string]int }
type regexCache struct{}
type DescribeConsumer struct{ Group string }
type Inspect struct{ Group string }
type ForceRebalance struct{ Group string }
type FenceMember struct{ Group, Member string }
type ExpireSession struct{ Group, Member string }

func (c *consumerGroup) state() State                           { return Empty }
func (c *consumerGroup) subscribed(string) bool                 { return false }
func (c *consumerGroup) tombstones(string, *coordinator.Result) {}
func (c *consumerGroup) mayFetch(*string, int32) errcode.Code   { return 0 }
func (m *Machine) mayCommitConsumer(time.Time, *group, coordinator.Request, *message.OffsetCommitRequest) (func(wire.UUID, int32) errcode.Code, errcode.Code) {
	return nil, 0
}
func (m *Machine) replayConsumer(key, value logrecord.Record)                                  {}
func (m *Machine) consumerLoaded(time.Time, *group, *coordinator.Result)                       {}
func (m *Machine) consumerTimer(time.Time, *group, timerKey, *coordinator.Result)              {}
func (m *Machine) topicsChanged(time.Time, []image.TopicChange, *coordinator.Result)           {}
func (m *Machine) describeConsumer(coordinator.Request, DescribeConsumer, *coordinator.Result) {}
func (m *Machine) inspect(coordinator.Request, Inspect, *coordinator.Result)                   {}
func (m *Machine) force(time.Time, coordinator.Request, ForceRebalance, *coordinator.Result)   {}
func (m *Machine) fence(time.Time, coordinator.Request, FenceMember, *coordinator.Result)      {}
func (m *Machine) expireSession(time.Time, coordinator.Request, ExpireSession, *coordinator.Result) {
}
func (m *Machine) consumerHeartbeat(time.Time, coordinator.Request, *message.ConsumerGroupHeartbeatRequest, *coordinator.Result) {
}
func (m *Machine) joinConsumer(time.Time, *group, coordinator.Request, *message.JoinGroupRequest, *coordinator.Result) {
}
func (m *Machine) syncConsumer(time.Time, *group, coordinator.Request, *message.SyncGroupRequest, *coordinator.Result) {
}
func (m *Machine) heartbeatConsumer(time.Time, *group, *message.HeartbeatRequest) errcode.Code {
	return 0
}
func (m *Machine) leaveConsumer(time.Time, *group, []message.MemberIdentity, *message.LeaveGroupResponse, *coordinator.Result) {
}
