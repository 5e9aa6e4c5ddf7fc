package fakebroker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// findCoordinator makes the topic of the groups, as every client's first request does.
func findCoordinator(c *rawClient, group string) {
	c.t.Helper()
	resp := call[*message.FindCoordinatorResponse](c, 4, &message.FindCoordinatorRequest{CoordinatorKeys: []string{group}})
	require.Zero(c.t, resp.Coordinators[0].ErrorCode)
}

func consumerJoin(group, member string, topics ...string) *message.ConsumerGroupHeartbeatRequest {
	r := message.NewConsumerGroupHeartbeatRequest()
	r.GroupId, r.MemberId, r.RebalanceTimeoutMs, r.SubscribedTopicNames = group, member, 20_000, topics
	r.TopicPartitions = []message.ConsumerGroupHeartbeatRequestTopicPartitions{}
	return r
}

func consumerBeat(group, member string, epoch int32) *message.ConsumerGroupHeartbeatRequest {
	r := message.NewConsumerGroupHeartbeatRequest()
	r.GroupId, r.MemberId, r.MemberEpoch = group, member, epoch
	return r
}

func commitOffset(c *rawClient, group, member string, epoch int32, topic string, offset int64) errcode.Code {
	c.t.Helper()
	resp := call[*message.OffsetCommitResponse](c, 9, &message.OffsetCommitRequest{GroupId: group, MemberId: member,
		GenerationIdOrMemberEpoch: epoch, RetentionTimeMs: -1, Topics: []message.OffsetCommitRequestTopic{{Name: topic,
			Partitions: []message.OffsetCommitRequestPartition{{CommittedOffset: offset, CommittedLeaderEpoch: -1}}}}})
	return errcode.Code(resp.Topics[0].Partitions[0].ErrorCode)
}

func classicJoin(group, member string) *message.JoinGroupRequest {
	return &message.JoinGroupRequest{GroupId: group, MemberId: member, SessionTimeoutMs: 10_000, RebalanceTimeoutMs: 20_000, ProtocolType: "test",
		Protocols: []message.JoinGroupRequestProtocol{{Name: "any", Metadata: []byte("me")}}}
}

// joinClassic takes a client through both steps of joining and the sync, as the only member.
func joinClassic(c *rawClient, group string) (member string, generation int32) {
	c.t.Helper()
	id := call[*message.JoinGroupResponse](c, 5, classicJoin(group, "")).MemberId
	joined := call[*message.JoinGroupResponse](c, 5, classicJoin(group, id))
	require.Zero(c.t, joined.ErrorCode)
	synced := call[*message.SyncGroupResponse](c, 3, &message.SyncGroupRequest{GroupId: group, MemberId: id, GenerationId: joined.GenerationId,
		Assignments: []message.SyncGroupRequestAssignment{{MemberId: id, Assignment: []byte("all")}}})
	require.Equal(c.t, "all", string(synced.Assignment))
	return id, joined.GenerationId
}

func TestGroupsAndOffsetsSurviveARestartAndAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 3))
		ctx := t.Context()
		c := connect(t, k)
		findCoordinator(c, "modern")
		joined := call[*message.ConsumerGroupHeartbeatResponse](c, 1, consumerJoin("modern", "A", "orders"))
		require.Equal(t, int32(2), joined.MemberEpoch)
		require.Equal(t, errcode.None, commitOffset(c, "modern", "A", 2, "orders", 42))
		member, generation := joinClassic(c, "classic")
		before, err := k.Group(ctx, "modern")
		require.NoError(t, err)
		require.Len(t, before.Members[0].Assigned, 3)

		for name, again := range map[string]func() error{
			"reload":  func() error { return k.ReloadCoordinator(ctx, "modern") },
			"restart": func() error { return k.Restart(ctx) },
		} {
			require.NoError(t, again(), name)
			c = connect(t, k)
			after, err := k.AwaitGroup(ctx, "modern", fakebroker.GroupIs("Stable"), fakebroker.GroupCommitted("orders", 0, 42))
			require.NoError(t, err)
			after.History, before.History = nil, nil
			require.Equal(t, before, after, name)
			require.Zero(t, call[*message.ConsumerGroupHeartbeatResponse](c, 1, consumerBeat("modern", "A", 2)).ErrorCode)
			beat := &message.HeartbeatRequest{GroupId: "classic", MemberId: member, GenerationId: generation}
			require.Zero(t, call[*message.HeartbeatResponse](c, 3, beat).ErrorCode, name)
		}
		groups, err := k.Groups(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"classic", "modern"}, groups)
	})
}

func TestAwaitGroupSeesEachStepAndItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 3))
		ctx := t.Context()
		seen := make(chan *fakebroker.Group, 1)
		go func() {
			g, _ := k.AwaitGroup(ctx, "g", fakebroker.GroupIs("Stable"), fakebroker.GroupHas(1))
			seen <- g
		}()
		synctest.Wait()
		c := connect(t, k)
		findCoordinator(c, "g")
		call[*message.ConsumerGroupHeartbeatResponse](c, 1, consumerJoin("g", "A", "orders"))
		g := <-seen
		require.Equal(t, fakebroker.MemberJoined, g.History[0].Cause)
		require.Equal(t, "A", g.History[0].Member)

		require.NoError(t, k.ForceRebalance(ctx, "g"))
		_, err := k.AwaitGroup(ctx, "g", fakebroker.GroupSaw(fakebroker.RebalanceForced))
		require.NoError(t, err)
		require.NoError(t, k.FenceMember(ctx, "g", "A"))
		code := call[*message.ConsumerGroupHeartbeatResponse](c, 1, consumerBeat("g", "A", 2)).ErrorCode
		require.Equal(t, errcode.UnknownMemberId, errcode.Code(code))
		require.Zero(t, call[*message.ConsumerGroupHeartbeatResponse](c, 1, consumerJoin("g", "A", "orders")).ErrorCode)
		require.NoError(t, k.ExpireSession(ctx, "g", "A"))
		_, err = k.AwaitGroup(ctx, "g", fakebroker.GroupIs("Empty"), fakebroker.GroupSaw(fakebroker.SessionTimeout))
		require.NoError(t, err)
		require.ErrorIs(t, k.ExpireSession(ctx, "g", "A"), errcode.UnknownMemberId)
		require.ErrorIs(t, k.ForceRebalance(ctx, "nobody"), errcode.GroupIdNotFound)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err = k.AwaitGroup(short, "g", fakebroker.GroupHas(7))
		require.ErrorContains(t, err, "await group g, which is Empty")
	})
}

func TestAReloadAnswersWhoWaitsInAJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t)
		c := connect(t, k)
		findCoordinator(c, "g")
		id := call[*message.JoinGroupResponse](c, 5, classicJoin("g", "")).MemberId
		c.send(5, classicJoin("g", id))
		synctest.Wait()
		require.NoError(t, k.ReloadCoordinator(t.Context(), "g"))
		var resp message.JoinGroupResponse
		c.receive(5, &resp)
		require.Equal(t, errcode.NotCoordinator, errcode.Code(resp.ErrorCode))
	})
}

func TestFaultRulesReachGroupRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		c := connect(t, k)
		findCoordinator(c, "g")
		k.Inject(fault.On(wire.KeyOffsetCommit).Error(errcode.NotCoordinator).Times(1))
		require.Equal(t, errcode.NotCoordinator, commitOffset(c, "g", "", -1, "orders", 1))
		require.Equal(t, errcode.None, commitOffset(c, "g", "", -1, "orders", 1))
	})
}

func TestTheOffsetsTopicIsMadeAsConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Config("offsets.topic.num.partitions", "7"))
		c := connect(t, k)
		g, err := k.Group(t.Context(), "g")
		require.NoError(t, err)
		require.Equal(t, "Dead", string(g.State))
		findCoordinator(c, "g")
		md := call[*message.MetadataResponse](c, 12, &message.MetadataRequest{Topics: []message.MetadataRequestTopic{{Name: new("__consumer_offsets")}}})
		require.Len(t, md.Topics[0].Partitions, 7)
		require.True(t, md.Topics[0].IsInternal)
	})
}

// BenchmarkHeartbeats is the whole way of a heartbeat: frame, coordinator, answer.
func BenchmarkHeartbeats(b *testing.B) {
	k, err := fakebroker.New(fakebroker.Topic("orders", 3))
	require.NoError(b, err)
	b.Cleanup(func() { _ = k.Close(context.Background()) })
	c := connect(b, k)
	findCoordinator(c, "g")
	call[*message.ConsumerGroupHeartbeatResponse](c, 1, consumerJoin("g", "A", "orders"))
	b.ResetTimer()
	for b.Loop() {
		call[*message.ConsumerGroupHeartbeatResponse](c, 1, consumerBeat("g", "A", 2))
	}
}

func TestClosingDoesNotWaitForAJoinPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t)
		c := connect(t, k)
		findCoordinator(c, "g")
		id := call[*message.JoinGroupResponse](c, 5, classicJoin("g", "")).MemberId
		c.send(5, classicJoin("g", id))
		synctest.Wait()
		began := time.Now()
		require.NoError(t, k.Close(t.Context()))
		require.Less(t, time.Since(began), time.Second)
	})
}

func TestAGroupsOwnConfigsReachItsMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		c := connect(t, k)
		findCoordinator(c, "g")
		joined := call[*message.ConsumerGroupHeartbeatResponse](c, 1, consumerJoin("g", "A", "orders"))
		require.Equal(t, int32(5000), joined.HeartbeatIntervalMs)
		const groupResource = 32
		altered := call[*message.IncrementalAlterConfigsResponse](c, 1, &message.IncrementalAlterConfigsRequest{Resources: []message.IncrementalAlterConfigsRequestAlterConfigsResource{{
			ResourceType: groupResource, ResourceName: "g", Configs: []message.IncrementalAlterConfigsRequestAlterableConfig{
				{Name: "consumer.heartbeat.interval.ms", Value: new("9000")}, {Name: "consumer.session.timeout.ms", Value: new("50000")}}}}})
		require.Zero(t, altered.Responses[0].ErrorCode)
		require.Equal(t, int32(9000), call[*message.ConsumerGroupHeartbeatResponse](c, 1, consumerBeat("g", "A", 2)).HeartbeatIntervalMs)
		time.Sleep(49 * time.Second)
		g, err := k.Group(t.Context(), "g")
		require.NoError(t, err)
		require.Len(t, g.Members, 1)
		time.Sleep(2 * time.Second)
		g, err = k.Group(t.Context(), "g")
		require.NoError(t, err)
		require.Empty(t, g.Members)
	})
}

// BenchmarkOffsetCommits is the whole way of a commit: frame, coordinator, log, answer.
func BenchmarkOffsetCommits(b *testing.B) {
	k, err := fakebroker.New(fakebroker.Topic("orders", 3))
	require.NoError(b, err)
	b.Cleanup(func() { _ = k.Close(context.Background()) })
	c := connect(b, k)
	findCoordinator(c, "g")
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		commitOffset(c, "g", "", -1, "orders", int64(i))
	}
}
