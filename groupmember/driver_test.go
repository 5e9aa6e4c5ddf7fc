package groupmember_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/groupmember/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// scripted is a coordinator of one classic member whose answers a test changes.
type scripted struct {
	mu         sync.Mutex
	generation int32
	code       errcode.Code // of heartbeats
	commit     errcode.Code
	commits    []*message.OffsetCommitRequest
	joins      int
	left       int
	more       func(*wiretest.Request) message.Response // answers first, unless nil
}

func (s *scripted) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *scripted) answer(r *wiretest.Request) message.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.more != nil {
		if resp := s.more(r); resp != nil {
			return resp
		}
	}
	switch req := r.Body.(type) {
	case *message.FindCoordinatorRequest:
		return &message.FindCoordinatorResponse{Coordinators: []message.Coordinator{{Key: "g", NodeId: 1, Host: "broker-1", Port: 9092}}}
	case *message.JoinGroupRequest:
		s.joins++
		if req.MemberId == "" {
			return &message.JoinGroupResponse{ErrorCode: int16(errcode.MemberIdRequired), MemberId: "m-1", GenerationId: -1}
		}
		s.generation++
		s.code, s.commit = errcode.None, errcode.None
		return &message.JoinGroupResponse{GenerationId: s.generation, MemberId: "m-1", Leader: "m-1", ProtocolName: &req.Protocols[0].Name,
			Members: []message.JoinGroupResponseMember{{MemberId: "m-1", Metadata: req.Protocols[0].Metadata}}}
	case *message.SyncGroupRequest:
		return &message.SyncGroupResponse{Assignment: req.Assignments[0].Assignment}
	case *message.HeartbeatRequest:
		if req.GenerationId != s.generation {
			return &message.HeartbeatResponse{ErrorCode: int16(errcode.IllegalGeneration)}
		}
		return &message.HeartbeatResponse{ErrorCode: int16(s.code)}
	case *message.LeaveGroupRequest:
		s.left++
		return &message.LeaveGroupResponse{}
	case *message.OffsetFetchRequest:
		g := message.OffsetFetchResponseGroup{GroupId: "g"}
		for _, t := range req.Groups[0].Topics {
			rt := message.OffsetFetchResponseTopics{Name: t.Name, TopicId: t.TopicId}
			for _, p := range t.PartitionIndexes {
				rt.Partitions = append(rt.Partitions, message.OffsetFetchResponsePartitions{PartitionIndex: p, CommittedOffset: 4, CommittedLeaderEpoch: -1})
			}
			g.Topics = append(g.Topics, rt)
		}
		return &message.OffsetFetchResponse{Groups: []message.OffsetFetchResponseGroup{g}}
	case *message.OffsetCommitRequest:
		s.commits = append(s.commits, req)
		resp := &message.OffsetCommitResponse{}
		code := s.commit
		if req.GenerationIdOrMemberEpoch != s.generation && code == errcode.None {
			code = errcode.IllegalGeneration
		}
		for _, t := range req.Topics {
			rt := message.OffsetCommitResponseTopic{Name: t.Name, TopicId: t.TopicId}
			for _, p := range t.Partitions {
				rt.Partitions = append(rt.Partitions, message.OffsetCommitResponsePartition{PartitionIndex: p.PartitionIndex, ErrorCode: int16(code)})
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp
	}
	return nil
}

// diary writes down what a Listener is told.
type diary struct {
	mu     sync.Mutex
	lines  []string
	revoke func(parts []groupmember.TopicPartition, done func())
}

func (l *diary) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *diary) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.lines
	l.lines = nil
	return out
}

func (l *diary) Assigned(a groupmember.Assignment) {
	l.add("assigned %v in %d", a.Added, a.Generation.ID)
}

func (l *diary) Revoked(parts []groupmember.TopicPartition, done func()) {
	l.add("revoked %v", parts)
	if l.revoke != nil {
		l.revoke(parts, done)
		return
	}
	done()
}

func (l *diary) Lost(parts []groupmember.TopicPartition, cause error) {
	l.add("lost %v: %v", parts, cause)
}

// bubble runs a test with a scripted coordinator and topic a of two partitions in virtual time. A goroutine that was left
// behind would make synctest.Test fail.
func bubble(t *testing.T, test func(t *testing.T, cl *client.Client, s *scripted, peer *wiretest.Peer)) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		peer := wiretest.NewCluster(1, s.answer)
		peer.SetTopic("a", 1, 1, 1)
		peer.SetVersions(wire.KeyConsumerGroupHeartbeat, 1, 0)
		cl, err := client.New(client.Cluster(peer), client.Jitter(1))
		require.NoError(t, err)
		test(t, cl, s, peer)
		require.NoError(t, cl.Close(t.Context()))
		peer.Close()
	})
}

func tp(topic string, p int32) groupmember.TopicPartition {
	return groupmember.TopicPartition{Topic: topic, Partition: p}
}

func at(n int64) map[groupmember.TopicPartition]groupmember.Offset {
	return map[groupmember.TopicPartition]groupmember.Offset{tp("a", 0): groupmember.OffsetAt(n)}
}

func TestListenerIsToldInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, cl *client.Client, s *scripted, _ *wiretest.Peer) {
		l := &diary{}
		var states []machine.State
		var ended error = errors.New("not told")
		m, err := groupmember.Join(t.Context(), cl, groupmember.Group("g"), groupmember.Topics("a"), groupmember.WithListener(l),
			groupmember.OnTransition(func(tr groupmember.Transition) { states = append(states, tr.To) }), groupmember.OnEnd(func(err error) { ended = err }))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{"assigned [a-0 a-1] in 1"}, l.take())
		require.Equal(t, groupmember.Stable, m.State())
		require.Equal(t, groupmember.Classic, m.Generation().Protocol, "the cluster speaks nothing else")
		claim := m.Claim(tp("a", 0))
		require.NoError(t, claim.Err())

		s.set(func() { s.code = errcode.RebalanceInProgress })
		time.Sleep(4 * time.Second)
		require.Equal(t, []string{"revoked [a-0 a-1]", "assigned [a-0 a-1] in 2"}, l.take())
		require.ErrorIs(t, context.Cause(claim), groupmember.ErrRevoked)

		claim = m.Claim(tp("a", 0))
		s.set(func() { s.code = errcode.UnknownMemberId })
		time.Sleep(4 * time.Second)
		require.Equal(t, []string{"lost [a-0 a-1]: partition lost", "assigned [a-0 a-1] in 3"}, l.take())
		require.ErrorIs(t, context.Cause(claim), groupmember.ErrLost)

		claim = m.Claim(tp("a", 0))
		require.NoError(t, m.Close(t.Context()))
		require.NoError(t, m.Close(t.Context()), "again")
		require.Equal(t, []string{"revoked [a-0 a-1]"}, l.take())
		require.ErrorIs(t, context.Cause(claim), groupmember.ErrClosed)
		require.NoError(t, ended)
		require.Equal(t, 1, s.left)
		require.Equal(t, groupmember.Ended, m.State())
		require.ErrorIs(t, context.Cause(m.Context()), groupmember.ErrClosed)
		require.ErrorIs(t, context.Cause(m.Claim(tp("a", 0))), groupmember.ErrNotOwned)
		require.Equal(t, []machine.State{machine.FindingCoordinator, machine.Joining, machine.Syncing, machine.Stable, machine.Revoking,
			machine.Joining, machine.Syncing, machine.Stable, machine.Joining, machine.Syncing, machine.Stable, machine.Leaving, machine.Ended}, states)
		require.EqualValues(t, 3, cl.Metrics().Rebalances)
	})
}

func TestHeartbeatsGoOnWhileTheListenerBlocks(t *testing.T) {
	bubble(t, func(t *testing.T, cl *client.Client, s *scripted, peer *wiretest.Peer) {
		l := &diary{revoke: func(_ []groupmember.TopicPartition, done func()) { time.Sleep(2 * time.Minute); done() }}
		m, err := groupmember.Join(t.Context(), cl, groupmember.Group("g"), groupmember.Topics("a"), groupmember.WithListener(l))
		require.NoError(t, err)
		s.set(func() { s.code = errcode.RebalanceInProgress })
		time.Sleep(time.Minute)
		require.Equal(t, groupmember.Revoking, m.State())
		require.Greater(t, len(peer.Requests(wire.KeyHeartbeat)), 15)
		require.NoError(t, m.Commit(t.Context(), at(7)), "what is being revoked can be committed")
		time.Sleep(2 * time.Minute)
		require.Equal(t, groupmember.Stable, m.State())
		require.EqualValues(t, 2, m.Generation().ID)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = m.Close(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "2 partitions not given up")
		require.Equal(t, groupmember.Ended, m.State())
		time.Sleep(3 * time.Minute) // the listener returns
	})
}

func TestCommitsFollowTheGeneration(t *testing.T) {
	bubble(t, func(t *testing.T, cl *client.Client, s *scripted, _ *wiretest.Peer) {
		m, err := groupmember.Join(t.Context(), cl, groupmember.Group("g"), groupmember.Topics("a"), groupmember.Assignors(groupmember.CooperativeSticky()))
		require.NoError(t, err)
		require.NoError(t, m.Commit(t.Context(), map[groupmember.TopicPartition]groupmember.Offset{
			tp("a", 1): groupmember.OffsetAt(9).WithEpoch(3), tp("a", 0): {At: 4, Metadata: "text"}}))
		p := s.commits[0].Topics[0].Partitions
		require.Equal(t, []int64{4, 9}, []int64{p[0].CommittedOffset, p[1].CommittedOffset})
		require.Equal(t, []int32{-1, 3}, []int32{p[0].CommittedLeaderEpoch, p[1].CommittedLeaderEpoch})
		require.Equal(t, "text", *p[0].CommittedMetadata)

		// A cooperative rebalance overtakes the commit: it is repeated for what was kept.
		s.set(func() { s.commit, s.code = errcode.RebalanceInProgress, errcode.RebalanceInProgress })
		outcome := make(chan error, 1)
		m.CommitAsync(at(5), func(err error) { outcome <- err })
		require.NoError(t, <-outcome)
		last := s.commits[len(s.commits)-1]
		require.Equal(t, m.Generation().ID, last.GenerationIdOrMemberEpoch)

		err = m.Commit(t.Context(), map[groupmember.TopicPartition]groupmember.Offset{tp("other", 3): {At: 1}})
		require.ErrorIs(t, err, groupmember.ErrNotOwned)
		require.ErrorContains(t, err, "OffsetCommit other-3")
		s.set(func() { s.commit = errcode.OffsetMetadataTooLarge })
		err = m.Commit(t.Context(), at(6))
		require.ErrorIs(t, err, errcode.OffsetMetadataTooLarge)
		s.set(func() { s.commit = errcode.CoordinatorLoadInProgress })
		go func() { time.Sleep(time.Second); s.set(func() { s.commit = errcode.None }) }()
		require.NoError(t, m.Commit(t.Context(), at(6)), "what passes is tried again")
		require.NoError(t, m.Leave(t.Context()))
		require.ErrorIs(t, m.Commit(t.Context(), at(7)), groupmember.ErrNotOwned)
		metrics := cl.Metrics()
		require.EqualValues(t, 3, metrics.Commits)
		require.EqualValues(t, 3, metrics.CommitErrors)
	})
}

func TestLostClaimCannotCommit(t *testing.T) {
	bubble(t, func(t *testing.T, cl *client.Client, s *scripted, _ *wiretest.Peer) {
		m, err := groupmember.Join(t.Context(), cl, groupmember.Group("g"), groupmember.Topics("a"))
		require.NoError(t, err)
		s.set(func() { s.commit, s.code = errcode.UnknownMemberId, errcode.UnknownMemberId })
		before := len(s.commits)
		err = m.Commit(t.Context(), at(5))
		require.ErrorIs(t, err, groupmember.ErrNotOwned, "the partition was lost; that it came back is another claim")
		require.ErrorIs(t, err, errcode.UnknownMemberId)
		require.Len(t, s.commits, before+1)
		require.NoError(t, m.Close(t.Context()))
	})
}

func TestGenerationsEndWithTheirCause(t *testing.T) {
	bubble(t, func(t *testing.T, cl *client.Client, s *scripted, _ *wiretest.Peer) {
		m, err := groupmember.Start(cl, groupmember.Group("g"), groupmember.Topics("a"))
		require.NoError(t, err)
		l := &diary{}
		finished := make(chan error, 1)
		go func() {
			for g, err := range m.Generations(t.Context()) {
				if err != nil {
					finished <- err
					return
				}
				id := g.Generation.ID
				g.Go(func(ctx context.Context, p groupmember.TopicPartition) {
					<-ctx.Done()
					if errors.Is(context.Cause(ctx), groupmember.ErrRevoked) {
						time.Sleep(time.Second) // finishes what it has begun
						l.add("commit %s: %v", p, m.Commit(context.Background(), map[groupmember.TopicPartition]groupmember.Offset{p: {At: 1}}))
					}
					l.add("%s ended in %d: %v", p, id, context.Cause(ctx))
				})
			}
		}()
		require.NoError(t, m.Await(t.Context()))
		s.set(func() { s.code = errcode.RebalanceInProgress })
		time.Sleep(5 * time.Second)
		require.ElementsMatch(t, []string{"commit a-0: <nil>", "commit a-1: <nil>", "a-0 ended in 1: partition revoked by a rebalance",
			"a-1 ended in 1: partition revoked by a rebalance"}, l.take())
		s.set(func() { s.code = errcode.IllegalGeneration })
		time.Sleep(5 * time.Second)
		require.ElementsMatch(t, []string{"a-0 ended in 2: partition lost", "a-1 ended in 2: partition lost"}, l.take())
		require.NoError(t, m.Close(t.Context()))
		require.ElementsMatch(t, []string{"a-0 ended in 3: group member is closed", "a-1 ended in 3: group member is closed"}, l.take())
		require.ErrorIs(t, <-finished, groupmember.ErrClosed)
	})
}

func TestFencedMemberEnds(t *testing.T) {
	bubble(t, func(t *testing.T, cl *client.Client, s *scripted, _ *wiretest.Peer) {
		l := &diary{}
		var ended error
		m, err := groupmember.Join(t.Context(), cl, groupmember.Group("g"), groupmember.Topics("a"), groupmember.InstanceID("i"), groupmember.WithListener(l),
			groupmember.OnEnd(func(err error) { ended = err }))
		require.NoError(t, err)
		claim := m.Claim(tp("a", 1))
		s.set(func() { s.code = errcode.FencedInstanceId })
		time.Sleep(4 * time.Second)
		synctest.Wait() // what OnEnd wrote is there to be read
		require.ErrorIs(t, context.Cause(claim), groupmember.ErrFenced)
		require.ErrorIs(t, ended, groupmember.ErrFenced)
		require.ErrorIs(t, ended, errcode.FencedInstanceId)
		require.ErrorIs(t, m.Await(t.Context()), groupmember.ErrFenced)
		require.ErrorContains(t, ended, `group "g": Heartbeat: fenced`)
		require.NoError(t, m.Close(t.Context()))
		require.Zero(t, s.left)
	})
}

func TestRefusedJoinLeavesNothingBehind(t *testing.T) {
	bubble(t, func(t *testing.T, cl *client.Client, s *scripted, peer *wiretest.Peer) {
		peer.SetVersions(wire.KeyJoinGroup, 0, 4)
		_, err := groupmember.Join(t.Context(), cl, groupmember.Group("g"), groupmember.Topics("a"), groupmember.InstanceID("i"))
		require.ErrorContains(t, err, "takes brokers from 2.3 on", "static members")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		peer.Stop(1)
		_, err = groupmember.Join(ctx, cl, groupmember.Group("g"), groupmember.Topics("a"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, `group "g": no assignment yet (FindingCoordinator)`)
		_, err = groupmember.Start(cl)
		require.ErrorContains(t, err, "group.id: is required")
		require.ErrorContains(t, err, "Topics: or Pattern is required")
	})
}

func TestBrokerRestartIsSurvived(t *testing.T) {
	bubble(t, func(t *testing.T, cl *client.Client, s *scripted, peer *wiretest.Peer) {
		l := &diary{}
		m, err := groupmember.Join(t.Context(), cl, groupmember.Group("g"), groupmember.Topics("a"), groupmember.WithListener(l))
		require.NoError(t, err)
		claim := m.Claim(tp("a", 0))
		peer.Stop(1)
		time.Sleep(20 * time.Second)
		require.NoError(t, claim.Err(), "within the session nothing is given up")
		peer.Start(1)
		time.Sleep(5 * time.Second)
		require.NoError(t, claim.Err())
		require.Equal(t, groupmember.Stable, m.State())
		peer.Stop(1)
		time.Sleep(60 * time.Second)
		require.ErrorIs(t, context.Cause(claim), groupmember.ErrLost)
		peer.Start(1)
		time.Sleep(5 * time.Second)
		require.Equal(t, groupmember.Stable, m.State())
		require.Equal(t, []string{"assigned [a-0 a-1] in 1", "lost [a-0 a-1]: partition lost", "assigned [a-0 a-1] in 2"}, l.take())
		peer.Stop(1)
		time.Sleep(2 * time.Hour)
		require.Equal(t, groupmember.FindingCoordinator, m.State(), "an outage is never final")
		require.NoError(t, context.Cause(m.Context()))
		peer.Start(1)
		time.Sleep(5 * time.Second)
		require.Equal(t, groupmember.Stable, m.State())
		require.NoError(t, m.Close(t.Context()))
	})
}

func TestPatternFindsNewTopics(t *testing.T) {
	bubble(t, func(t *testing.T, cl *client.Client, s *scripted, peer *wiretest.Peer) {
		m, err := groupmember.Join(t.Context(), cl, groupmember.Group("g"), groupmember.Pattern("a|log-.*"))
		require.NoError(t, err)
		require.Equal(t, []groupmember.TopicPartition{tp("a", 0), tp("a", 1)}, m.Assignment())
		peer.SetTopic("log-1", 1, 1)
		peer.SetTopic("a-log-2", 1, 1)
		time.Sleep(12 * time.Second)
		require.Equal(t, []groupmember.TopicPartition{tp("a", 0), tp("a", 1), tp("log-1", 0)}, m.Assignment())
		require.NoError(t, m.Subscribe("a-log-2"))
		time.Sleep(2 * time.Second)
		require.Equal(t, []groupmember.TopicPartition{tp("a-log-2", 0)}, m.Assignment())
		require.NoError(t, m.Close(t.Context()))
	})
}

func TestStallLeavesUntilResume(t *testing.T) {
	bubble(t, func(t *testing.T, cl *client.Client, s *scripted, _ *wiretest.Peer) {
		l := &diary{}
		m, err := groupmember.Join(t.Context(), cl, groupmember.Group("g"), groupmember.Topics("a"), groupmember.WithListener(l))
		require.NoError(t, err)
		claim := m.Claim(tp("a", 0))
		m.Stall()
		require.ErrorIs(t, context.Cause(claim), groupmember.ErrStalled)
		time.Sleep(time.Hour)
		require.Equal(t, groupmember.Stalled, m.State())
		require.Equal(t, 1, s.left)
		m.Resume()
		time.Sleep(time.Second)
		require.Equal(t, groupmember.Stable, m.State())
		require.Len(t, m.Assignment(), 2)
		require.NoError(t, m.Close(t.Context()))
	})
}
