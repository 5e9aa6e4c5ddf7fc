package group

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// owned has the member report what an answer gave it.
func owned(r *message.ConsumerGroupHeartbeatRequest, from *message.ConsumerGroupHeartbeatResponse) *message.ConsumerGroupHeartbeatRequest {
	r.TopicPartitions = []message.ConsumerGroupHeartbeatRequestTopicPartitions{}
	if from.Assignment != nil {
		for _, t := range from.Assignment.TopicPartitions {
			r.TopicPartitions = append(r.TopicPartitions, message.ConsumerGroupHeartbeatRequestTopicPartitions{TopicId: t.TopicId, Partitions: t.Partitions})
		}
	}
	return r
}

func partitionsOf(r *message.ConsumerGroupHeartbeatResponse) []int32 {
	var all []int32
	if r.Assignment != nil {
		for _, t := range r.Assignment.TopicPartitions {
			all = append(all, t.Partitions...)
		}
	}
	slices.Sort(all)
	return all
}

// TestPartitionsMoveOnlyWhenTheirOwnerHasGivenThemUp follows the exchange that was recorded with Apache Kafka 4.4.
func TestPartitionsMoveOnlyWhenTheirOwnerHasGivenThemUp(t *testing.T) {
	b := newBench(t, nil)
	a := b.beat(joinConsumerRequest("g", "A", "orders"))
	require.Equal(t, int32(2), a.MemberEpoch)
	require.Equal(t, []int32{0, 1, 2, 3, 4, 5}, partitionsOf(a))
	b.beat(owned(beatRequest("g", "A", 2), a))
	b.pass(1200 * time.Millisecond)

	x := b.beat(joinConsumerRequest("g", "B", "orders"))
	require.Equal(t, int32(3), x.MemberEpoch)
	require.Empty(t, partitionsOf(x), "all are A's still")
	require.Equal(t, "unreleased", b.view("g").Members[1].State)

	told := b.beat(beatRequest("g", "A", 2))
	require.Equal(t, int32(2), told.MemberEpoch, "its epoch waits for the revocation")
	require.Equal(t, []int32{0, 1, 2}, partitionsOf(told))
	require.Equal(t, Reconciling, b.view("g").State)
	require.Nil(t, b.beat(owned(beatRequest("g", "A", 2), a)).Assignment, "still owning is no confirmation")
	require.Nil(t, b.beat(beatRequest("g", "B", 3)).Assignment)

	require.Equal(t, int32(3), b.beat(owned(beatRequest("g", "A", 2), told)).MemberEpoch)
	require.Equal(t, []int32{3, 4, 5}, partitionsOf(b.beat(beatRequest("g", "B", 3))))
	require.Equal(t, Stable, b.view("g").State)
	require.True(t, b.sawCause("g", Balanced))
	require.Equal(t, b.durable("g"), b.replayed().durable("g"))
}

func TestASecondTargetWaitsForTheAssignmentInterval(t *testing.T) {
	b := newBench(t, nil)
	b.beat(joinConsumerRequest("g", "A", "orders"))
	x := b.beat(joinConsumerRequest("g", "B", "orders"))
	require.Equal(t, int32(2), x.MemberEpoch)
	require.Equal(t, Assigning, b.view("g").State)
	b.pass(time.Second)
	require.Equal(t, int32(3), b.beat(beatRequest("g", "B", 2)).MemberEpoch)
}

func TestEpochsFence(t *testing.T) {
	b := newBench(t, nil)
	a := b.beat(joinConsumerRequest("g", "A", "orders"))
	code := func(r *message.ConsumerGroupHeartbeatRequest) errcode.Code { return errcode.Code(b.beat(r).ErrorCode) }
	require.Equal(t, errcode.FencedMemberEpoch, code(beatRequest("g", "A", 7)))
	require.Equal(t, errcode.FencedMemberEpoch, code(beatRequest("g", "A", 1)))
	require.Equal(t, errcode.UnknownMemberId, code(beatRequest("g", "stranger", 2)))
	require.Equal(t, errcode.GroupIdNotFound, code(beatRequest("nowhere", "A", 2)))
	b.pass(time.Second)
	b.grow(map[string]int32{"orders": 7})
	grown := b.beat(beatRequest("g", "A", 2))
	require.Equal(t, int32(3), grown.MemberEpoch)
	// The answer got lost: the member comes with its epoch before and what it had.
	require.Equal(t, errcode.None, code(owned(beatRequest("g", "A", 2), a)))
	require.Equal(t, errcode.FencedMemberEpoch, code(beatRequest("g", "A", 2)), "without saying what it has")
	require.Equal(t, errcode.None, code(joinConsumerRequest("g", "A", "orders")), "0 is always accepted")
	require.True(t, b.sawCause("g", PartitionsChanged))
}

func TestASilentConsumerIsOutAfterItsSession(t *testing.T) {
	b := newBench(t, nil)
	b.beat(joinConsumerRequest("g", "A", "orders"))
	b.pass(44 * time.Second)
	b.beat(beatRequest("g", "A", 2))
	b.pass(44 * time.Second)
	require.Len(t, b.view("g").Members, 1)
	b.pass(2 * time.Second)
	v := b.view("g")
	require.Equal(t, Empty, v.State)
	require.Equal(t, int32(3), v.Generation)
	require.True(t, b.sawCause("g", SessionTimeout))
}

func TestWhoDoesNotGiveUpIsFencedAfterItsRebalanceTimeout(t *testing.T) {
	b := newBench(t, nil)
	b.beat(joinConsumerRequest("g", "A", "orders"))
	b.pass(time.Second)
	b.beat(joinConsumerRequest("g", "B", "orders"))
	b.beat(beatRequest("g", "A", 2))
	for range 5 {
		b.pass(5 * time.Second)
		b.beat(beatRequest("g", "A", 2))
		b.beat(beatRequest("g", "B", 3))
	}
	require.True(t, b.sawCause("g", RebalanceTimeout))
	require.Equal(t, errcode.UnknownMemberId, errcode.Code(b.beat(beatRequest("g", "A", 2)).ErrorCode))
	v := b.view("g")
	require.Len(t, v.Members[0].Assigned, 6, "B has it all")
}

func TestAStaticConsumerComesBackToItsPartitions(t *testing.T) {
	b := newBench(t, nil)
	instance := "s"
	join := joinConsumerRequest("g", "S1", "orders")
	join.InstanceId = &instance
	b.beat(join)
	other := joinConsumerRequest("g", "S2", "orders")
	other.InstanceId = &instance
	require.Equal(t, errcode.UnreleasedInstanceId, errcode.Code(b.beat(other).ErrorCode))
	away := beatRequest("g", "S1", -2)
	away.InstanceId = &instance
	require.Equal(t, int32(-2), b.beat(away).MemberEpoch)
	require.Equal(t, int32(2), b.view("g").Generation, "nobody rebalances")
	back := b.beat(other)
	require.Equal(t, int32(2), back.MemberEpoch)
	require.Len(t, partitionsOf(back), 6)
	old := beatRequest("g", "S1", 2)
	old.InstanceId = &instance
	require.Equal(t, errcode.FencedInstanceId, errcode.Code(b.beat(old).ErrorCode))
	require.Equal(t, b.durable("g"), b.replayed().durable("g"))
}

func TestAPatternFindsNewTopics(t *testing.T) {
	b := newBench(t, nil)
	join := joinConsumerRequest("g", "R")
	pattern := "ord.*"
	join.SubscribedTopicNames, join.SubscribedTopicRegex = nil, &pattern
	require.Equal(t, int32(1), b.beat(join).MemberEpoch, "resolved after the answer")
	b.pass(time.Millisecond)
	r := b.beat(beatRequest("g", "R", 1))
	require.Equal(t, int32(2), r.MemberEpoch)
	require.Len(t, partitionsOf(r), 6)
	b.grow(map[string]int32{"ordinary": 2, "plain": 3})
	b.pass(11 * time.Second)
	r = b.beat(beatRequest("g", "R", 2))
	require.Len(t, partitionsOf(r), 8)
	require.Equal(t, b.durable("g"), b.replayed().durable("g"))
	*join.SubscribedTopicRegex = "["
	bad := b.beat(join)
	require.Equal(t, errcode.InvalidRegularExpression, errcode.Code(bad.ErrorCode))
}

func TestCommitsByEpoch(t *testing.T) {
	b := newBench(t, nil)
	b.beat(joinConsumerRequest("g", "A", "orders"))
	code := func(version int16, member string, epoch int32) errcode.Code {
		r := now[*message.OffsetCommitResponse](b, version, commitRequest("g", member, epoch, 5))
		return errcode.Code(r.Topics[0].Partitions[0].ErrorCode)
	}
	require.Equal(t, errcode.None, code(9, "A", 2))
	require.Equal(t, errcode.StaleMemberEpoch, code(9, "A", 3))
	require.Equal(t, errcode.StaleMemberEpoch, code(9, "A", 1))
	require.Equal(t, errcode.UnknownMemberId, code(9, "B", 2))
	require.Equal(t, errcode.UnsupportedVersion, code(8, "A", 2))
	b.pass(time.Second)
	b.grow(map[string]int32{"orders": 7})
	b.beat(beatRequest("g", "A", 2))
	require.Equal(t, errcode.None, code(9, "A", 2), "it has had the partition since then (KIP-1251)")
}

func TestAClassicGroupBecomesAConsumerGroupAndBack(t *testing.T) {
	b := newBench(t, nil)
	ids := b.classic("g", 1)
	x := b.beat(joinConsumerRequest("g", "B", "orders"))
	require.Zero(t, x.ErrorCode, x.ErrorMessage)
	require.Equal(t, int32(2), x.MemberEpoch)
	require.Equal(t, "consumer", b.view("g").Type)
	require.Equal(t, errcode.RebalanceInProgress, b.heartbeat("g", ids[0], 1))
	j := now[*message.JoinGroupResponse](b, 9, joinRequest("g", ids[0], "orders")) // eager: it owns nothing meanwhile
	require.Equal(t, int32(2), j.GenerationId)
	s := now[*message.SyncGroupResponse](b, 5, syncRequest("g", ids[0], 2))
	a, ok := parseAssignment(s.Assignment)
	require.True(t, ok)
	require.Equal(t, []int32{0, 1, 2}, a.AssignedPartitions[0].Partitions)
	require.Equal(t, []int32{3, 4, 5}, partitionsOf(b.beat(beatRequest("g", "B", 2))))
	require.Equal(t, errcode.None, b.heartbeat("g", ids[0], 2))
	require.Equal(t, Stable, b.view("g").State)
	require.Equal(t, b.durable("g"), b.replayed().durable("g"))

	b.beat(beatRequest("g", "B", -1))
	v := b.view("g")
	require.Equal(t, "classic", v.Type)
	require.Equal(t, PreparingRebalance, v.State)
	require.Equal(t, errcode.RebalanceInProgress, b.heartbeat("g", ids[0], 2), "its generation still counts")
	r := b.replayed().view("g")
	require.Equal(t, "classic", r.Type)
	require.Len(t, r.Members, 1)
}

func TestConversionFollowsThePolicy(t *testing.T) {
	b := newBench(t, map[string]string{"group.consumer.migration.policy": "disabled"})
	b.classic("g", 1)
	require.Equal(t, errcode.GroupIdNotFound, errcode.Code(b.beat(joinConsumerRequest("g", "B", "orders")).ErrorCode))
}

func TestAGroupsOwnSettingsAreKeptWithinTheBrokers(t *testing.T) {
	b := newBench(t, nil)
	require.Equal(t, 45*time.Second, b.m.consumerSettings("g").session)
	require.Equal(t, int32(5000), b.m.consumerSettings("g").heartbeatMs)
}

// TestTheSameRequestsWriteTheSameBytes: nothing depends on the order of a map.
func TestTheSameRequestsWriteTheSameBytes(t *testing.T) {
	script := func() *bench {
		b := newBench(t, map[string]string{"group.consumer.assignment.interval.ms": "0"})
		b.classic("c", 3)
		for i := range 20 {
			b.beat(joinConsumerRequest("g", member(i*7%20), "orders", "plain"))
			now[*message.OffsetCommitResponse](b, 9, commitRequest(fmt.Sprint("idle-", i), "", -1, 1))
		}
		for i := range 10 {
			b.beat(beatRequest("g", member(i), -1))
		}
		b.pass(8 * 24 * time.Hour)
		return b
	}
	require.Equal(t, script().log, script().log)
}

func TestAnExpiryThatIsNotWrittenIsTriedAgain(t *testing.T) {
	b := newBench(t, nil)
	b.beat(joinConsumerRequest("g", "A", "orders"))
	b.refuse = errcode.CoordinatorNotAvailable
	b.pass(45100 * time.Millisecond)
	require.Len(t, b.view("g").Members, 1)
	b.pass(time.Second)
	require.Empty(t, b.view("g").Members)
}

func TestARebalanceTimeoutOfZeroDoesNotSpin(t *testing.T) {
	b := newBench(t, map[string]string{"group.initial.rebalance.delay.ms": "0"})
	instance := "instance"
	join := joinRequest("g", "", "orders")
	join.GroupInstanceId, join.RebalanceTimeoutMs = &instance, 0
	r := now[*message.JoinGroupResponse](b, 9, join)
	now[*message.SyncGroupResponse](b, 5, syncRequest("g", r.MemberId, 1))
	b.ask(0, ForceRebalance{Group: "g"})
	b.pass(30 * time.Second) // the static member never comes, and its session ends
	require.Equal(t, Empty, b.view("g").State)
}

func TestWhoWaitsInAClassicGroupIsAnsweredOnceWhenItsConversionIsRefused(t *testing.T) {
	b := newBench(t, nil)
	ids := b.classic("g", 2)
	b.ask(0, ForceRebalance{Group: "g"})
	waiting := b.ask(9, joinRequest("g", ids[0], "orders"))
	b.refuse = errcode.CoordinatorNotAvailable
	b.ask(1, joinConsumerRequest("g", "B", "orders"))
	require.NotNil(t, b.take(waiting))
	b.pass(time.Minute)
	require.Equal(t, "classic", b.view("g").Type)
}
