package groupmember_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// Kafka 2.1 gives member ids with the first JoinGroup, has no static members, commits leaders' epochs, and finds one
// coordinator at a time.
func TestKafka21HasMembers(t *testing.T) {
	bubble(t, func(t *testing.T, cl *client.Client, s *scripted, peer *wiretest.Peer) {
		for k, most := range map[wire.Key]int16{wire.KeyMetadata: 7, wire.KeyFindCoordinator: 2, wire.KeyJoinGroup: 3, wire.KeySyncGroup: 2, wire.KeyHeartbeat: 2,
			wire.KeyLeaveGroup: 2, wire.KeyOffsetCommit: 6, wire.KeyOffsetFetch: 5, wire.KeyApiVersions: 2} {
			least, _, _ := wire.BrokerVersions(k)
			peer.SetVersions(k, least, most)
		}
		s.more = func(r *wiretest.Request) message.Response {
			switch req := r.Body.(type) {
			case *message.MetadataRequest:
				resp := peer.Metadata(req)
				for i := range resp.Topics { // not known to that version
					resp.Topics[i].TopicAuthorizedOperations = -1 << 31
				}
				return resp
			case *message.FindCoordinatorRequest:
				return &message.FindCoordinatorResponse{NodeId: 1, Host: "broker-1", Port: 9092}
			case *message.JoinGroupRequest:
				if req.MemberId == "" {
					req.MemberId = "m-1"
				}
			case *message.LeaveGroupRequest:
				require.Equal(t, "m-1", req.MemberId)
			case *message.OffsetFetchRequest:
				require.Equal(t, "g", req.GroupId)
				text := "text"
				return &message.OffsetFetchResponse{Topics: []message.OffsetFetchResponseTopic{{Name: "a", Partitions: []message.OffsetFetchResponsePartition{
					{PartitionIndex: 0, CommittedOffset: 4, CommittedLeaderEpoch: 3, Metadata: &text}, {PartitionIndex: 1, CommittedOffset: -1, CommittedLeaderEpoch: -1, Metadata: &text}}}}}
			}
			return nil
		}
		m, err := groupmember.Join(t.Context(), cl, groupmember.Group("g"), groupmember.Topics("a"))
		require.NoError(t, err)
		require.Equal(t, groupmember.Classic, m.Generation().Protocol)
		require.Len(t, m.Assignment(), 2)
		four := map[groupmember.TopicPartition]groupmember.Offset{tp("a", 0): groupmember.Offset{At: 4, Metadata: "text"}.WithEpoch(3)}
		require.NoError(t, m.Commit(t.Context(), four))
		require.EqualValues(t, 3, s.commits[0].Topics[0].Partitions[0].CommittedLeaderEpoch)
		got, err := m.Committed(t.Context(), tp("a", 0), tp("a", 1))
		require.NoError(t, err)
		require.Equal(t, four, got)
		time.Sleep(time.Minute)
		require.Equal(t, groupmember.Stable, m.State())
		require.NoError(t, m.Close(t.Context()))
		require.Equal(t, 1, s.left)

		_, err = groupmember.Join(t.Context(), cl, groupmember.Group("g"), groupmember.Topics("a"), groupmember.InstanceID("till-1"))
		require.ErrorContains(t, err, `group.instance.id ("till-1") takes brokers from 2.3 on`)
		var final *groupmember.GroupError
		require.ErrorAs(t, err, &final)
		require.Equal(t, []string{"g", "JoinGroup"}, []string{final.Group, final.Op})
		_, err = groupmember.Join(t.Context(), cl, groupmember.Group("g"), groupmember.Topics("a"), groupmember.WithProtocol(groupmember.Consumer))
		require.ErrorIs(t, err, client.ErrUnsupportedVersion)
		require.ErrorContains(t, err, "group.protocol")
	})
}
