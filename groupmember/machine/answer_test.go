package machine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/groupmember/internal/assignor"
	"github.com/ottla-kafka/ottla/groupmember/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// story drives one member by hand.
type story struct {
	*testing.T
	m    *machine.Member
	now  time.Time
	eff  machine.Effects
	sent []*machine.Request
}

func tell(t *testing.T, protocol machine.Protocol, change func(*machine.Config)) *story {
	cfg := machine.Config{GroupID: "g", MemberID: "me", Topics: []string{"a"}, Protocol: protocol, Assignors: []machine.Assignor{assignor.Range{}},
		Session: session, Heartbeat: heartbeat, Rebalance: rebalance, RetryBackoff: 100 * time.Millisecond, RetryBackoffMax: time.Second}
	if change != nil {
		change(&cfg)
	}
	s := &story{T: t, m: machine.New(cfg), now: start}
	s.step(machine.TopologyChanged{View: modelView{"a": 2}})
	s.step(machine.Started{})
	return s
}

func (s *story) step(ev machine.Event) machine.Effects {
	s.eff = s.m.Step(s.now, ev)
	s.sent = s.eff.Send
	return s.eff
}

// wake lets time pass up to the next deadline.
func (s *story) wake() {
	s.now = s.m.Deadline()
	s.step(machine.Woke{})
}

// request is the only request that the last step sent.
func (s *story) request() *machine.Request {
	require.Len(s, s.sent, 1)
	return s.sent[0]
}

// stableClassic joins as the follower of another member.
func stableClassic(t *testing.T, change func(*machine.Config)) *story {
	s := tell(t, machine.Classic, change)
	require.True(t, s.eff.FindCoordinator)
	s.step(machine.CoordinatorFound{Broker: 1})
	s.step(machine.Answered{Request: s.request(), Response: &message.JoinGroupResponse{ErrorCode: int16(errcode.MemberIdRequired), MemberId: "m-1", GenerationId: -1}})
	require.Equal(t, "m-1", s.request().Body.(*message.JoinGroupRequest).MemberId, "the second step follows at once")
	name := "range"
	s.step(machine.Answered{Request: s.request(), Response: &message.JoinGroupResponse{GenerationId: 5, MemberId: "m-1", Leader: "m-0", ProtocolName: &name}})
	require.Equal(t, machine.Syncing, s.m.State())
	s.step(machine.Answered{Request: s.request(), Response: &message.SyncGroupResponse{Assignment: machine.AppendAssignment(nil, 3, []machine.TopicPartition{{Topic: "a", Partition: 1}}, nil)}})
	require.Equal(t, machine.Stable, s.m.State())
	require.Equal(t, []machine.TopicPartition{{Topic: "a", Partition: 1}}, s.eff.Assigned.Added)
	s.wake()
	require.IsType(t, &message.HeartbeatRequest{}, s.request().Body)
	return s
}

func stableConsumer(t *testing.T, change func(*machine.Config)) *story {
	s := tell(t, machine.Consumer, change)
	s.step(machine.CoordinatorFound{Broker: 1})
	first := s.request().Body.(*message.ConsumerGroupHeartbeatRequest)
	require.Zero(t, first.MemberEpoch)
	require.NotNil(t, first.TopicPartitions)
	require.Empty(t, first.TopicPartitions)
	s.step(machine.Answered{Request: s.request(), Response: &message.ConsumerGroupHeartbeatResponse{MemberEpoch: 3, HeartbeatIntervalMs: 1000,
		Assignment: &message.ConsumerGroupHeartbeatResponseAssignment{TopicPartitions: []message.ConsumerGroupHeartbeatResponseTopicPartitions{{TopicId: topicID("a"), Partitions: []int32{0, 1}}}}}})
	require.Len(t, s.eff.Assigned.Added, 2)
	require.Equal(t, machine.Stable, s.m.State())
	require.Len(t, s.request().Body.(*message.ConsumerGroupHeartbeatRequest).TopicPartitions, 1, "the coordinator is told at once")
	s.step(machine.Answered{Request: s.request(), Response: &message.ConsumerGroupHeartbeatResponse{MemberEpoch: 3, HeartbeatIntervalMs: 1000}})
	s.wake()
	beat := s.request().Body.(*message.ConsumerGroupHeartbeatRequest)
	require.Nil(t, beat.TopicPartitions, "what has not changed is not told again")
	require.Nil(t, beat.SubscribedTopicNames)
	return s
}

func TestWhatHeartbeatAnswersMean(t *testing.T) {
	for _, c := range []struct {
		code     errcode.Code
		state    machine.State
		lost     bool
		memberID string
		ended    error
	}{
		{code: errcode.None, state: machine.Stable, memberID: "m-1"},
		{code: errcode.RebalanceInProgress, state: machine.Revoking, memberID: "m-1"},
		{code: errcode.IllegalGeneration, state: machine.Joining, lost: true, memberID: "m-1"},
		{code: errcode.UnknownMemberId, state: machine.Joining, lost: true, memberID: ""},
		{code: errcode.NotCoordinator, state: machine.FindingCoordinator, memberID: "m-1"},
		{code: errcode.CoordinatorNotAvailable, state: machine.FindingCoordinator, memberID: "m-1"},
		{code: errcode.CoordinatorLoadInProgress, state: machine.Stable, memberID: "m-1"},
		{code: errcode.UnknownServerError, state: machine.Stable, memberID: "m-1"},
		{code: errcode.FencedInstanceId, state: machine.Ended, lost: true, memberID: "m-1", ended: machine.ErrFenced},
		{code: errcode.GroupAuthorizationFailed, state: machine.Ended, lost: true, memberID: "m-1", ended: errcode.GroupAuthorizationFailed},
	} {
		t.Run("classic/"+c.code.Name(), func(t *testing.T) {
			s := stableClassic(t, nil)
			s.step(machine.Answered{Request: s.request(), Response: &message.HeartbeatResponse{ErrorCode: int16(c.code)}})
			require.Equal(t, c.state, s.m.State())
			require.Equal(t, c.lost, len(s.eff.Lost) > 0)
			require.Equal(t, c.memberID, s.m.Generation().MemberID)
			if c.ended != nil {
				require.ErrorIs(t, s.eff.Err, c.ended)
			}
		})
	}
	for _, c := range []struct {
		code  errcode.Code
		state machine.State
		lost  bool
		ended error
	}{
		{code: errcode.None, state: machine.Stable},
		{code: errcode.FencedMemberEpoch, state: machine.Joining, lost: true},
		{code: errcode.UnknownMemberId, state: machine.Joining, lost: true},
		{code: errcode.NotCoordinator, state: machine.FindingCoordinator},
		{code: errcode.CoordinatorLoadInProgress, state: machine.Stable},
		{code: errcode.UnreleasedInstanceId, state: machine.Stable},
		{code: errcode.FencedInstanceId, state: machine.Ended, lost: true, ended: machine.ErrFenced},
		{code: errcode.UnsupportedAssignor, state: machine.Ended, lost: true, ended: errcode.UnsupportedAssignor},
		{code: errcode.GroupIdNotFound, state: machine.Joining, lost: true}, // only classic members are left
		{code: errcode.InvalidRegularExpression, state: machine.Ended, lost: true, ended: errcode.InvalidRegularExpression},
	} {
		t.Run("consumer/"+c.code.Name(), func(t *testing.T) {
			s := stableConsumer(t, nil)
			s.step(machine.Answered{Request: s.request(), Response: &message.ConsumerGroupHeartbeatResponse{ErrorCode: int16(c.code), MemberEpoch: 3}})
			require.Equal(t, c.state, s.m.State())
			require.Equal(t, c.lost, len(s.eff.Lost) > 0)
			if c.ended != nil {
				require.ErrorIs(t, s.eff.Err, c.ended)
			}
			if c.state == machine.Joining {
				s.wake()
				body := s.request().Body.(*message.ConsumerGroupHeartbeatRequest)
				require.Zero(t, body.MemberEpoch)
				require.Equal(t, "me", body.MemberId, "the id stays for the life of the process")
				require.Equal(t, []string{"a"}, body.SubscribedTopicNames)
			}
		})
	}
}

func TestSessionEndsWithoutHeartbeats(t *testing.T) {
	for _, s := range []*story{stableClassic(t, nil), stableConsumer(t, nil)} {
		sent := s.now
		for len(s.eff.Lost) == 0 {
			require.Less(t, s.now.Sub(sent), session+time.Second, "what the coordinator may have given away is not kept")
			if len(s.sent) > 0 {
				s.step(machine.Failed{Request: s.sent[0], Err: errors.New("connection ended")})
				continue
			}
			if s.eff.FindCoordinator {
				s.step(machine.CoordinatorFound{Broker: 1})
				continue
			}
			s.wake()
		}
		require.ErrorIs(t, s.eff.Lost[0].Cause, machine.ErrLost)
		require.Equal(t, machine.NoGeneration, s.m.Generation().ID)
	}
}

// Who gave up without the coordinator's knowing ends that life before the next one: the coordinator would give the same epoch
// again, and take a commit of before for one of now.
func TestFormerLifeIsEndedBeforeTheNextOne(t *testing.T) {
	for _, c := range []struct {
		code errcode.Code
		done bool
	}{{errcode.None, true}, {errcode.UnknownMemberId, true}, {errcode.GroupIdNotFound, true}, {errcode.CoordinatorLoadInProgress, false}, {errcode.NotCoordinator, false}} {
		s := stableConsumer(t, nil)
		for range 1000 {
			if len(s.eff.Lost) > 0 {
				break
			} else if len(s.sent) > 0 {
				s.step(machine.Failed{Request: s.sent[0], Err: errors.New("connection ended")})
			} else if s.eff.FindCoordinator {
				s.step(machine.CoordinatorFound{Broker: 1})
			} else {
				s.wake()
			}
		}
		require.NotEmpty(t, s.eff.Lost)
		next := func() *message.ConsumerGroupHeartbeatRequest {
			for range 100 {
				if len(s.sent) > 0 {
					break
				} else if s.eff.FindCoordinator {
					s.step(machine.CoordinatorFound{Broker: 1})
				} else {
					s.wake()
				}
			}
			return s.request().Body.(*message.ConsumerGroupHeartbeatRequest)
		}
		require.EqualValues(t, -1, next().MemberEpoch)
		require.Equal(t, "me", next().MemberId)
		s.step(machine.Answered{Request: s.request(), Response: &message.ConsumerGroupHeartbeatResponse{MemberEpoch: -1, ErrorCode: int16(c.code)}})
		if !c.done {
			require.EqualValues(t, -1, next().MemberEpoch, c.code.Name())
			s.step(machine.Answered{Request: s.request(), Response: &message.ConsumerGroupHeartbeatResponse{MemberEpoch: -1}})
		}
		join := next()
		require.Zero(t, join.MemberEpoch, c.code.Name())
		require.Equal(t, []string{"a"}, join.SubscribedTopicNames, "it tells everything")
		require.NotNil(t, join.TopicPartitions)
		s.step(machine.Answered{Request: s.request(), Response: &message.ConsumerGroupHeartbeatResponse{MemberEpoch: 5, HeartbeatIntervalMs: 1000}})
		require.EqualValues(t, 5, s.m.Generation().ID)
	}
}

func TestStalledMemberLeavesAndComesBack(t *testing.T) {
	s := stableClassic(t, nil)
	s.step(machine.Stall{})
	require.Equal(t, machine.Stalled, s.m.State())
	require.ErrorIs(t, s.eff.Lost[0].Cause, machine.ErrStalled)
	require.ErrorIs(t, s.eff.Lost[0].Cause, machine.ErrLost)
	require.IsType(t, &message.LeaveGroupRequest{}, s.request().Body)
	require.True(t, s.m.Deadline().IsZero(), "nothing is sent until Resume")
	s.step(machine.Resume{})
	require.Empty(t, s.request().Body.(*message.JoinGroupRequest).MemberId)
	require.Equal(t, machine.Joining, s.m.State())
}

func TestStaticMemberStaysUnlessTheGroupWaitsForIt(t *testing.T) {
	static := func(c *machine.Config) { c.InstanceID = "i-1" }
	s := stableClassic(t, static)
	s.step(machine.Leave{Stay: true})
	s.step(machine.Revoked{Serial: s.eff.Revoke.Serial})
	require.True(t, s.eff.Ended)
	require.Empty(t, s.sent, "its partitions wait for it")

	s = stableClassic(t, static)
	s.step(machine.Answered{Request: s.request(), Response: &message.HeartbeatResponse{ErrorCode: int16(errcode.RebalanceInProgress)}})
	serial := s.eff.Revoke.Serial
	s.step(machine.Leave{Stay: true})
	s.step(machine.Revoked{Serial: serial})
	require.IsType(t, &message.LeaveGroupRequest{}, s.request().Body, "others would wait until its session ends")

	s = stableConsumer(t, static)
	s.step(machine.Leave{Stay: true})
	s.step(machine.Revoked{Serial: s.eff.Revoke.Serial})
	require.EqualValues(t, -2, s.request().Body.(*message.ConsumerGroupHeartbeatRequest).MemberEpoch)

	s = stableConsumer(t, static)
	s.step(machine.Leave{})
	s.step(machine.Revoked{Serial: s.eff.Revoke.Serial})
	require.EqualValues(t, -1, s.request().Body.(*message.ConsumerGroupHeartbeatRequest).MemberEpoch)
	s.step(machine.Answered{Request: s.request(), Response: &message.ConsumerGroupHeartbeatResponse{MemberEpoch: -1}})
	require.True(t, s.eff.Ended)
	require.NoError(t, s.eff.Err)
}

func TestAutoFallsBackToClassic(t *testing.T) {
	s := tell(t, machine.Auto, nil)
	s.step(machine.CoordinatorFound{Broker: 1})
	s.step(machine.Failed{Request: s.request(), Err: errors.New("no common version"), Unsupported: true, Final: true})
	require.Equal(t, machine.Classic, s.m.Generation().Protocol)
	require.IsType(t, &message.JoinGroupRequest{}, s.request().Body)

	s = tell(t, machine.Auto, nil)
	s.step(machine.CoordinatorFound{Broker: 1})
	s.step(machine.Answered{Request: s.request(), Response: &message.ConsumerGroupHeartbeatResponse{ErrorCode: int16(errcode.GroupIdNotFound)}})
	require.IsType(t, &message.JoinGroupRequest{}, s.request().Body, "the group is a classic one that cannot be converted")

	s = tell(t, machine.Consumer, nil)
	s.step(machine.CoordinatorFound{Broker: 1})
	s.step(machine.Failed{Request: s.request(), Err: errcode.UnsupportedVersion, Unsupported: true, Final: true})
	require.True(t, s.eff.Ended)
	require.ErrorContains(t, s.eff.Err, "does not speak this group.protocol")
}

func TestPartitionsOfNewTopicsWaitForTheirNames(t *testing.T) {
	s := stableConsumer(t, nil)
	s.step(machine.Answered{Request: s.request(), Response: &message.ConsumerGroupHeartbeatResponse{MemberEpoch: 4, HeartbeatIntervalMs: 1000,
		Assignment: &message.ConsumerGroupHeartbeatResponseAssignment{TopicPartitions: []message.ConsumerGroupHeartbeatResponseTopicPartitions{
			{TopicId: topicID("a"), Partitions: []int32{0}}, {TopicId: topicID("new"), Partitions: []int32{0}}}}}})
	require.Equal(t, machine.Reconciling, s.m.State())
	require.Len(t, s.eff.FindNames, 1)
	require.Equal(t, []machine.TopicPartition{{Topic: "a", Partition: 1}}, s.eff.Revoke.Parts)
	require.Nil(t, s.eff.Assigned)
	s.step(machine.Revoked{Serial: s.eff.Revoke.Serial})
	require.Empty(t, s.eff.Assigned.Added, "nothing new has a name yet")
	require.Len(t, s.eff.Assigned.All, 1)
	s.step(machine.TopologyChanged{View: modelView{"new": 1}})
	require.Equal(t, []machine.TopicPartition{{Topic: "new"}}, s.eff.Assigned.Added, "that the topology lacks the old topic takes nothing away")
	require.Len(t, s.eff.Assigned.All, 2)
	require.Equal(t, machine.Stable, s.m.State())
}

func TestLeaderDistributesAnewWhenTopicsChange(t *testing.T) {
	s := tell(t, machine.Classic, nil)
	s.step(machine.CoordinatorFound{Broker: 1})
	name := "range"
	other := machine.AppendSubscription(nil, machine.Subscription{Topics: []string{"a", "late"}, Generation: -1})
	s.step(machine.Answered{Request: s.request(), Response: &message.JoinGroupResponse{GenerationId: 1, MemberId: "m-1", Leader: "m-1", ProtocolName: &name,
		Members: []message.JoinGroupResponseMember{{MemberId: "m-1", Metadata: machine.AppendSubscription(nil, machine.Subscription{Topics: []string{"a"}, Generation: -1})}, {MemberId: "m-2", Metadata: other}}}})
	require.Equal(t, []string{"a", "late"}, s.eff.Track, "also what only others want")
	sync := s.request().Body.(*message.SyncGroupRequest)
	require.Len(t, sync.Assignments, 2)
	s.step(machine.Answered{Request: s.request(), Response: &message.SyncGroupResponse{Assignment: sync.Assignments[0].Assignment}})
	require.Equal(t, machine.Stable, s.m.State())
	s.step(machine.TopologyChanged{View: modelView{"a": 2}})
	require.Equal(t, machine.Stable, s.m.State())
	s.step(machine.TopologyChanged{View: modelView{"a": 2, "late": 1}})
	require.Equal(t, machine.Revoking, s.m.State(), "a topic was born after the join")
}

func TestLateConfirmationIsIgnored(t *testing.T) {
	s := stableClassic(t, nil)
	s.step(machine.Answered{Request: s.request(), Response: &message.HeartbeatResponse{ErrorCode: int16(errcode.RebalanceInProgress)}})
	serial := s.eff.Revoke.Serial
	s.wake()
	s.step(machine.Answered{Request: s.request(), Response: &message.HeartbeatResponse{ErrorCode: int16(errcode.UnknownMemberId)}})
	require.Len(t, s.eff.Lost, 1)
	join := s.request()
	s.step(machine.Revoked{Serial: serial})
	require.Empty(t, s.sent)
	s.step(machine.Answered{Request: join, Response: &message.JoinGroupResponse{ErrorCode: int16(errcode.GroupMaxSizeReached)}})
	require.ErrorContains(t, s.eff.Err, "group.max.size")
	require.Zero(t, s.step(machine.Woke{}), "nothing comes after the end")
}

func TestFarewellFollowsTheCoordinator(t *testing.T) {
	for name, s := range map[string]*story{"classic": stableClassic(t, nil), "consumer": stableConsumer(t, nil)} {
		s.step(machine.Leave{})
		s.step(machine.Revoked{Serial: s.eff.Revoke.Serial})
		s.step(machine.Failed{Request: s.request(), Err: errors.New("connection ended")})
		require.Equal(t, machine.Leaving, s.m.State(), name)
		s.wake()
		require.True(t, s.eff.FindCoordinator, name)
		s.step(machine.CoordinatorFound{Broker: 2})
		farewell := s.request()
		require.EqualValues(t, 2, farewell.Broker, name)
		s.step(machine.Failed{Request: farewell, Err: errors.New("connection ended")})
		for began := s.now; !s.eff.Ended; s.wake() {
			require.LessOrEqual(t, s.now.Sub(began), 5*time.Second, "nobody waits long for a cluster that is gone")
			if s.eff.FindCoordinator {
				s.step(machine.CoordinatorFailed{Err: errors.New("no answer")})
			}
		}
		require.NoError(t, s.eff.Err, name)
	}
}
