package group

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

func TestAGroupOfThreeBecomesStableAfterTheInitialDelay(t *testing.T) {
	b := newBench(t, nil)
	ids := b.classic("g", 3)
	v := b.view("g")
	require.Equal(t, Stable, v.State)
	require.Equal(t, int32(1), v.Generation)
	require.Len(t, v.Members, 3)
	require.Equal(t, ids[0], v.Leader)
	require.Equal(t, b.durable("g"), b.replayed().durable("g"))
}

func TestAMemberThatJoinsMakesTheOthersJoinAgain(t *testing.T) {
	b := newBench(t, nil)
	ids := b.classic("g", 2)
	id := b.newMember("g", "orders")
	tickets := []coordinator.Ticket{b.ask(9, joinRequest("g", id, "orders"))}
	require.Equal(t, errcode.RebalanceInProgress, b.heartbeat("g", ids[0], 1))
	for _, old := range ids {
		tickets = append(tickets, b.ask(9, joinRequest("g", old, "orders")))
	}
	b.finish("g", append([]string{id}, ids...), tickets)
	require.Equal(t, int32(2), b.view("g").Generation)
	require.True(t, b.sawCause("g", MemberJoined))
}

func TestMembersThatDoNotRejoinAreOutAfterTheRebalanceTimeout(t *testing.T) {
	b := newBench(t, nil)
	ids := b.classic("g", 2)
	id := b.newMember("g", "orders")
	join := b.ask(9, joinRequest("g", id, "orders"))
	for range 4 { // the others live, but do not join
		b.pass(5 * time.Second)
		b.heartbeat("g", ids[0], 1)
		b.heartbeat("g", ids[1], 1)
	}
	b.pass(time.Second)
	r := b.take(join).(*message.JoinGroupResponse)
	require.Zero(t, r.ErrorCode)
	require.Equal(t, id, r.Leader)
	require.Len(t, r.Members, 1)
	require.True(t, b.sawCause("g", RebalanceTimeout))
	require.Equal(t, errcode.UnknownMemberId, b.heartbeat("g", ids[0], 1))
}

func TestASilentMemberIsOutAfterItsSession(t *testing.T) {
	b := newBench(t, nil)
	ids := b.classic("g", 2)
	for range 3 {
		b.pass(4 * time.Second)
		b.heartbeat("g", ids[0], 1)
	}
	require.Equal(t, PreparingRebalance, b.view("g").State)
	require.True(t, b.sawCause("g", SessionTimeout))
	require.Equal(t, errcode.RebalanceInProgress, b.heartbeat("g", ids[0], 1))
	require.Equal(t, errcode.UnknownMemberId, b.heartbeat("g", ids[1], 1))
}

func TestLeavingSaysWhy(t *testing.T) {
	b := newBench(t, nil)
	ids := b.classic("g", 2)
	reason := "consumer poll timeout has expired."
	r := now[*message.LeaveGroupResponse](b, 5, &message.LeaveGroupRequest{GroupId: "g", Members: []message.MemberIdentity{{MemberId: ids[1], Reason: &reason}, {MemberId: "nobody"}}})
	require.Zero(t, r.Members[0].ErrorCode)
	require.Equal(t, errcode.UnknownMemberId, errcode.Code(r.Members[1].ErrorCode))
	require.True(t, b.sawCause("g", PollIntervalExceeded))
}

func TestTheLastMemberLeavesAnEmptyGroupWithItsGeneration(t *testing.T) {
	b := newBench(t, nil)
	ids := b.classic("g", 1)
	now[*message.LeaveGroupResponse](b, 2, &message.LeaveGroupRequest{GroupId: "g", MemberId: ids[0]})
	v := b.replayed().view("g")
	require.Equal(t, Empty, v.State)
	require.Equal(t, int32(2), v.Generation)
}

func TestARestartedStaticMemberKeepsItsPartitionsAndFencesItsOldSelf(t *testing.T) {
	b := newBench(t, map[string]string{"group.initial.rebalance.delay.ms": "0"})
	join := joinRequest("g", "", "orders")
	instance := "instance"
	join.GroupInstanceId = &instance
	first := now[*message.JoinGroupResponse](b, 9, join)
	require.Zero(t, first.ErrorCode)
	now[*message.SyncGroupResponse](b, 5, syncRequest("g", first.MemberId, 1, message.SyncGroupRequestAssignment{MemberId: first.MemberId, Assignment: classicAssignment(0, 1)}))
	second := now[*message.JoinGroupResponse](b, 9, join)
	require.Equal(t, int32(1), second.GenerationId, "nobody else notices")
	require.NotEqual(t, first.MemberId, second.MemberId)
	require.True(t, second.SkipAssignment, "KIP-814")
	old := &message.HeartbeatRequest{GroupId: "g", MemberId: first.MemberId, GroupInstanceId: &instance, GenerationId: 1}
	require.Equal(t, errcode.FencedInstanceId, errcode.Code(now[*message.HeartbeatResponse](b, 4, old).ErrorCode))
	v := b.view("g")
	require.Len(t, v.Members[0].Assigned, 2)
	require.Equal(t, b.durable("g"), b.replayed().durable("g"))
	// Up to version 8 it must not think that it leads: the assignment stands.
	third := now[*message.JoinGroupResponse](b, 8, join)
	require.Equal(t, second.MemberId, third.Leader)
	require.Empty(t, third.Members)
}

func TestAStaticMemberIsNotSwappedWhenTheLogRefuses(t *testing.T) {
	b := newBench(t, map[string]string{"group.initial.rebalance.delay.ms": "0"})
	join := joinRequest("g", "", "orders")
	instance := "instance"
	join.GroupInstanceId = &instance
	first := now[*message.JoinGroupResponse](b, 9, join)
	now[*message.SyncGroupResponse](b, 5, syncRequest("g", first.MemberId, 1))
	b.refuse = errcode.CoordinatorNotAvailable
	r := now[*message.JoinGroupResponse](b, 9, join)
	require.Equal(t, errcode.CoordinatorNotAvailable, errcode.Code(r.ErrorCode))
	require.Equal(t, errcode.None, b.heartbeat("g", first.MemberId, 1))
}

func TestAnAssignmentThatIsNotWrittenRebalancesTheGroup(t *testing.T) {
	b := newBench(t, nil)
	id := b.newMember("g", "orders")
	join := b.ask(9, joinRequest("g", id, "orders"))
	b.pass(4 * time.Second)
	require.Zero(t, b.take(join).(*message.JoinGroupResponse).ErrorCode)
	b.refuse = errcode.NotCoordinator
	r := now[*message.SyncGroupResponse](b, 5, syncRequest("g", id, 1))
	require.Equal(t, errcode.NotCoordinator, errcode.Code(r.ErrorCode))
	require.Equal(t, PreparingRebalance, b.view("g").State)
	require.True(t, b.sawCause("g", WriteFailed))
}

func TestAMemberThatDoesNotSyncIsOut(t *testing.T) {
	b := newBench(t, nil)
	ids := []string{b.newMember("g", "orders"), b.newMember("g", "orders")}
	for _, id := range ids {
		b.ask(9, joinRequest("g", id, "orders"))
	}
	b.pass(7 * time.Second)
	b.ask(5, syncRequest("g", ids[0], 1))
	for range 5 {
		b.pass(4 * time.Second)
		b.heartbeat("g", ids[0], 1)
		b.heartbeat("g", ids[1], 1)
	}
	require.True(t, b.sawCause("g", SyncTimeout))
	require.Equal(t, errcode.UnknownMemberId, b.heartbeat("g", ids[1], 1))
}

func TestPendingIdsExpire(t *testing.T) {
	b := newBench(t, nil)
	id := b.newMember("g", "orders")
	b.pass(11 * time.Second)
	r := now[*message.JoinGroupResponse](b, 9, joinRequest("g", id, "orders"))
	require.Equal(t, errcode.UnknownMemberId, errcode.Code(r.ErrorCode))
}

func TestGroupMaxSizeRefusesMore(t *testing.T) {
	b := newBench(t, map[string]string{"group.max.size": "2"})
	b.classic("g", 2)
	r := now[*message.JoinGroupResponse](b, 9, joinRequest("g", "", "orders"))
	require.Equal(t, errcode.GroupMaxSizeReached, errcode.Code(r.ErrorCode))
}

func TestTheProtocolWithTheMostVotesThatAllSupportIsChosen(t *testing.T) {
	c := newClassicGroup()
	for i, names := range [][]string{{"a", "b"}, {"b", "a"}, {"b", "a", "c"}} {
		x := &classicMember{id: member(i)}
		for _, n := range names {
			x.protocols = append(x.protocols, protocol{n, []byte{}})
		}
		c.add(x)
	}
	require.Equal(t, "b", c.choose())
	c.protocolType, c.state = "consumer", Stable
	require.False(t, c.supports("consumer", []protocol{{name: "c"}}))
	require.True(t, c.supports("consumer", []protocol{{name: "a"}}))
	require.False(t, c.supports("connect", []protocol{{name: "a"}}))
}

// TestWhatEveryStateAnswers is the table of state against request; an empty cell would be a panic.
func TestWhatEveryStateAnswers(t *testing.T) {
	type answers struct{ heartbeat, sync, commit errcode.Code }
	want := map[State]answers{
		Empty:               {errcode.UnknownMemberId, errcode.UnknownMemberId, errcode.UnknownMemberId},
		PreparingRebalance:  {errcode.RebalanceInProgress, errcode.RebalanceInProgress, errcode.None},
		CompletingRebalance: {errcode.None, -100, errcode.RebalanceInProgress}, // the sync waits for the leader
		Stable:              {errcode.None, errcode.None, errcode.None},
	}
	for state, expected := range want {
		t.Run(string(state), func(t *testing.T) {
			b := newBench(t, nil)
			ids, generation := b.classic("g", 2), int32(1)
			switch state {
			case Empty:
				for _, id := range ids {
					now[*message.LeaveGroupResponse](b, 1, &message.LeaveGroupRequest{GroupId: "g", MemberId: id})
				}
				b.pass(30 * time.Second)
				generation = b.view("g").Generation
			case PreparingRebalance:
				b.ask(0, ForceRebalance{Group: "g"})
			case CompletingRebalance:
				b.ask(0, ForceRebalance{Group: "g"})
				b.ask(9, joinRequest("g", ids[0], "orders"))
				b.ask(9, joinRequest("g", ids[1], "orders"))
				generation = 2
			}
			require.Equal(t, state, b.view("g").State)
			follower := ids[1]
			require.Equal(t, expected.heartbeat, b.heartbeat("g", follower, generation))
			commit := now[*message.OffsetCommitResponse](b, 9, commitRequest("g", follower, generation, 7))
			require.Equal(t, expected.commit, errcode.Code(commit.Topics[0].Partitions[0].ErrorCode))
			answer, _ := b.take(b.ask(5, syncRequest("g", follower, generation))).(*message.SyncGroupResponse)
			if expected.sync == -100 {
				require.Nil(t, answer)
			} else {
				require.Equal(t, expected.sync, errcode.Code(answer.ErrorCode))
			}
		})
	}
}

func TestGenerationsAndStrangersAreRefused(t *testing.T) {
	b := newBench(t, nil)
	ids := b.classic("g", 1)
	require.Equal(t, errcode.IllegalGeneration, b.heartbeat("g", ids[0], 2))
	require.Equal(t, errcode.UnknownMemberId, b.heartbeat("g", "stranger", 1))
	require.Equal(t, errcode.UnknownMemberId, b.heartbeat("elsewhere", ids[0], 1))
	c := now[*message.OffsetCommitResponse](b, 9, commitRequest("g", ids[0], 5, 1))
	require.Equal(t, errcode.IllegalGeneration, errcode.Code(c.Topics[0].Partitions[0].ErrorCode), "G3")
	c = now[*message.OffsetCommitResponse](b, 9, commitRequest("g", "", -1, 1))
	require.Equal(t, errcode.UnknownMemberId, errcode.Code(c.Topics[0].Partitions[0].ErrorCode))
}

func TestPartitionCountAndSubscriptionChangesAreTheirOwnCauses(t *testing.T) {
	b := newBench(t, nil)
	ids := b.classic("g", 2)
	b.grow(map[string]int32{"orders": 8})
	leader := b.view("g").Leader
	b.ask(9, joinRequest("g", leader, "orders"))
	require.True(t, b.sawCause("g", PartitionsChanged))
	other := ids[1]
	b.ask(9, joinRequest("g", other, "orders", "plain"))
	require.True(t, b.sawCause("g", SubscriptionChanged))
}
