package admin_test

import (
	"math"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// coordinated answers FindCoordinator in all versions: broker says who has a group.
func coordinated(script wiretest.Script, broker func(group string) int32) wiretest.Script {
	return func(r *wiretest.Request) message.Response {
		req, ok := r.Body.(*message.FindCoordinatorRequest)
		if !ok {
			return script(r)
		}
		if r.Version < 4 {
			return &message.FindCoordinatorResponse{NodeId: broker(req.CoordinatorKey), Host: "broker", Port: 9092}
		}
		resp := message.NewFindCoordinatorResponse()
		for _, key := range req.CoordinatorKeys {
			resp.Coordinators = append(resp.Coordinators, message.Coordinator{Key: key, NodeId: broker(key), Host: "broker", Port: 9092})
		}
		return resp
	}
}

// Each coordinator is asked once for all its groups, and again only for those that have moved since.
func TestGroupsAreAskedForWhereTheirCoordinatorsAre(t *testing.T) {
	var moved atomic.Bool
	p := peer(t, 2, coordinated(func(r *wiretest.Request) message.Response {
		req, ok := r.Body.(*message.DeleteGroupsRequest)
		if !ok {
			return nil
		}
		resp := message.NewDeleteGroupsResponse()
		for _, g := range req.GroupsNames {
			row := message.DeletableGroupResult{GroupId: g}
			if g == "nomad" && r.Broker == 1 {
				moved.Store(true)
				row.ErrorCode = int16(errcode.NotCoordinator)
			}
			resp.Results = append(resp.Results, row)
		}
		return resp
	}, func(group string) int32 {
		if group == "b" || group == "nomad" && moved.Load() {
			return 2
		}
		return 1
	}))
	_, err := adminOf(t, p).DeleteGroups(t.Context(), "a", "b", "nomad")
	require.NoError(t, err)
	asked := map[int32][][]string{}
	for _, r := range p.Requests(wire.KeyDeleteGroups) {
		asked[r.Broker] = append(asked[r.Broker], r.Body.(*message.DeleteGroupsRequest).GroupsNames)
	}
	require.Equal(t, map[int32][][]string{1: {{"a", "nomad"}}, 2: {{"b"}, {"nomad"}}}, asked)
}

func TestACoordinatorThatLoadsIsWaitedFor(t *testing.T) {
	var asked atomic.Int32
	p := peer(t, 1, coordinated(func(r *wiretest.Request) message.Response {
		if _, ok := r.Body.(*message.OffsetCommitRequest); ok {
			code := [...]errcode.Code{errcode.CoordinatorLoadInProgress, errcode.RebalanceInProgress, errcode.None}[asked.Add(1)-1]
			return &message.OffsetCommitResponse{Topics: []message.OffsetCommitResponseTopic{{Name: "orders",
				Partitions: []message.OffsetCommitResponsePartition{{PartitionIndex: 0, ErrorCode: int16(code)}}}}}
		}
		return nil
	}, func(string) int32 { return 1 }))
	_, err := adminOf(t, p).AlterGroupOffsets(t.Context(), "g", offsets("orders", 1))
	require.NoError(t, err)
	require.Len(t, p.Requests(wire.KeyOffsetCommit), 3)
}

// KIP-848: what the coordinator does not know as a consumer group is asked for as a classic one.
func TestConsumerGroupsAreDescribed(t *testing.T) {
	assigned := func(topic string, partitions ...int32) message.ConsumerGroupDescribeResponseAssignment {
		return message.ConsumerGroupDescribeResponseAssignment{TopicPartitions: []message.ConsumerGroupDescribeResponseTopicPartitions{
			{TopicName: topic, TopicId: wiretest.TopicID(topic), Partitions: partitions}}}
	}
	p := peer(t, 1, coordinated(func(r *wiretest.Request) message.Response {
		switch req := r.Body.(type) {
		case *message.ConsumerGroupDescribeRequest:
			resp := message.NewConsumerGroupDescribeResponse()
			for _, id := range req.GroupIds {
				g := message.ConsumerGroupDescribeResponseDescribedGroup{GroupId: id, ErrorCode: int16(errcode.GroupIdNotFound), ErrorMessage: new("Group " + id + " is not a consumer group."), AuthorizedOperations: math.MinInt32}
				switch id {
				case "new":
					g.ErrorCode, g.ErrorMessage, g.GroupState, g.AssignorName, g.GroupEpoch, g.AssignmentEpoch = 0, nil, "Reconciling", "uniform", 7, 6
					g.Members = []message.ConsumerGroupDescribeResponseMember{{MemberId: "m1", RackId: new("r1"), MemberEpoch: 6, ClientId: "c", ClientHost: "/h",
						SubscribedTopicNames: []string{"orders"}, SubscribedTopicRegex: new("ord.*"), MemberType: 0, Assignment: assigned("orders", 2, 1), TargetAssignment: assigned("orders", 1)}}
				case "secret":
					g.ErrorCode, g.ErrorMessage = int16(errcode.GroupAuthorizationFailed), nil
				}
				resp.Groups = append(resp.Groups, g)
			}
			return resp
		case *message.DescribeGroupsRequest:
			require.Equal(t, []string{"old"}, req.Groups)
			return &message.DescribeGroupsResponse{Groups: []message.DescribeGroupsResponseDescribedGroup{{GroupId: "old", GroupState: "PreparingRebalance",
				ProtocolType: "consumer", AuthorizedOperations: math.MinInt32, Members: []message.DescribedGroupMember{{MemberId: "m", ClientId: "c", ClientHost: "/h"}}}}}
		}
		return nil
	}, func(string) int32 { return 1 }))
	rows, err := adminOf(t, p).DescribeGroups(t.Context(), "new", "old", "secret")
	require.ErrorIs(t, err, errcode.GroupAuthorizationFailed)
	require.Error(t, rows[2].Err)
	require.Equal(t, admin.GroupPreparingRebalance, rows[1].State)
	require.Empty(t, rows[1].Members[0].Topics, "not told while members join")
	g := rows[0]
	require.Equal(t, admin.Group{ID: "new", Type: admin.ConsumerGroup, ProtocolType: "consumer", State: admin.GroupReconciling, Assignor: "uniform", Epoch: 7, TargetEpoch: 6,
		Coordinator: admin.Broker{ID: 1, Host: "broker", Port: 9092}, Members: []admin.GroupMember{{ID: "m1", Rack: "r1", ClientID: "c", Host: "/h", Topics: []string{"orders"},
			Pattern: "ord.*", Epoch: 6, Classic: true, Assigned: []admin.TopicPartition{tp("orders", 1), tp("orders", 2)}, Target: []admin.TopicPartition{tp("orders", 1)}}}}, g)
}

// Apache Kafka 2.3 sends a member's assignment in place of its subscription, too.
func TestAnUnreadableSubscriptionCostsTheTopicsAlone(t *testing.T) {
	told := []byte("\x00\x03\x00\x00\x00\x01\x00\x09old-group\x00\x00\x00\x06\x00\x00\x00\x06\x00\x00\x00\x07\x00\x00\x00\x08\x00\x00\x00\x09\x00\x00\x00\x0a\x00\x00\x00\x0b\xff\xff\xff\xff")
	p := peer(t, 1, coordinated(func(r *wiretest.Request) message.Response {
		if _, ok := r.Body.(*message.DescribeGroupsRequest); ok {
			return &message.DescribeGroupsResponse{Groups: []message.DescribeGroupsResponseDescribedGroup{{GroupId: "g", GroupState: "Stable", ProtocolType: "consumer",
				AuthorizedOperations: math.MinInt32, Members: []message.DescribedGroupMember{{MemberId: "m", MemberMetadata: told, MemberAssignment: told}}}}}
		}
		return nil
	}, func(string) int32 { return 1 }))
	p.SetVersions(wire.KeyConsumerGroupDescribe, 0, -1)
	rows, err := adminOf(t, p).DescribeGroups(t.Context(), "g")
	require.NoError(t, err)
	m := rows[0].Members[0]
	require.Nil(t, m.Topics)
	require.Len(t, m.Assigned, 6)
	require.Equal(t, tp("old-group", 11), m.Assigned[5])
	require.Equal(t, told, m.Metadata)
}

// A broker that is gone takes only its own groups from the list.
func TestGroupsOfTheOtherBrokersAreListed(t *testing.T) {
	p := peer(t, 2, func(r *wiretest.Request) message.Response {
		if _, ok := r.Body.(*message.ListGroupsRequest); ok {
			if r.Broker == 2 {
				return &message.ListGroupsResponse{ErrorCode: int16(errcode.ClusterAuthorizationFailed)}
			}
			return &message.ListGroupsResponse{Groups: []message.ListedGroup{{GroupId: "b", GroupType: "classic"}, {GroupId: "a", GroupType: "Consumer"}}}
		}
		return nil
	})
	rows, err := adminOf(t, p).ListGroups(t.Context(), admin.GroupFilter{})
	require.ErrorIs(t, err, errcode.ClusterAuthorizationFailed)
	require.ErrorContains(t, err, "broker 2")
	require.Equal(t, []admin.ListedGroup{{ID: "a", Type: admin.ConsumerGroup, Coordinator: 1}, {ID: "b", Type: admin.ClassicGroup, Coordinator: 1}}, rows)
}

// Kafka 2.1 has groups without states in lists, members that leave one by one, and one group in a request for offsets.
func TestGroupsOfKafka21AreAdministered(t *testing.T) {
	p := kafka21(t, coordinated(func(r *wiretest.Request) message.Response {
		switch req := r.Body.(type) {
		case *message.ListGroupsRequest:
			return &message.ListGroupsResponse{Groups: []message.ListedGroup{{GroupId: "g", ProtocolType: "consumer"}}}
		case *message.DescribeGroupsRequest:
			return &message.DescribeGroupsResponse{Groups: []message.DescribeGroupsResponseDescribedGroup{{GroupId: "g", GroupState: "Dead", AuthorizedOperations: math.MinInt32}}}
		case *message.LeaveGroupRequest:
			require.Equal(t, "m", req.MemberId)
			return message.NewLeaveGroupResponse()
		case *message.OffsetFetchRequest:
			require.Equal(t, "g", req.GroupId)
			if req.Topics != nil { // null asks for all
				topics := []message.OffsetFetchResponseTopic{}
				for _, asked := range req.Topics {
					row := message.OffsetFetchResponseTopic{Name: asked.Name}
					for _, p := range asked.PartitionIndexes {
						row.Partitions = append(row.Partitions, message.OffsetFetchResponsePartition{PartitionIndex: p, CommittedOffset: 9, CommittedLeaderEpoch: -1, Metadata: new("")})
					}
					topics = append(topics, row)
				}
				return &message.OffsetFetchResponse{Topics: topics}
			}
			return &message.OffsetFetchResponse{Topics: []message.OffsetFetchResponseTopic{{Name: "orders", Partitions: []message.OffsetFetchResponsePartition{
				{PartitionIndex: 0, CommittedOffset: 5, CommittedLeaderEpoch: 2, Metadata: new("")}, {PartitionIndex: 1, CommittedOffset: -1, Metadata: new("")}}}}}
		case *message.OffsetCommitRequest:
			return &message.OffsetCommitResponse{Topics: []message.OffsetCommitResponseTopic{{Name: "orders", Partitions: []message.OffsetCommitResponsePartition{{}}}}}
		}
		return nil
	}, func(string) int32 { return 1 }))
	for k, most := range map[wire.Key]int16{wire.KeyFindCoordinator: 2, wire.KeyListGroups: 2, wire.KeyDescribeGroups: 2, wire.KeyLeaveGroup: 2, wire.KeyOffsetFetch: 5,
		wire.KeyOffsetCommit: 6, wire.KeyDeleteGroups: 1, wire.KeyOffsetDelete: -1, wire.KeyConsumerGroupDescribe: -1} {
		least, _, _ := wire.BrokerVersions(k)
		p.SetVersions(k, least, most)
	}
	a := adminOf(t, p)
	groups, err := a.ListGroups(t.Context(), admin.GroupFilter{Types: []admin.GroupType{admin.ClassicGroup}})
	require.NoError(t, err)
	require.Equal(t, []admin.ListedGroup{{ID: "g", ProtocolType: "consumer", Coordinator: 1}}, groups)
	for _, filter := range []admin.GroupFilter{{States: []admin.GroupState{admin.GroupStable}}, {Types: []admin.GroupType{admin.ConsumerGroup}}} {
		_, err = a.ListGroups(t.Context(), filter)
		require.ErrorIs(t, err, client.ErrUnsupportedVersion)
	}
	_, err = a.DescribeGroups(t.Context(), "g")
	require.ErrorIs(t, err, errcode.GroupIdNotFound, "such brokers say Dead of groups they do not know")

	_, err = a.RemoveMembers(t.Context(), "g", "why", admin.MemberIdentity{ID: "m"})
	require.NoError(t, err)
	_, err = a.RemoveMembers(t.Context(), "g", "why", admin.MemberIdentity{InstanceID: "till"})
	require.ErrorIs(t, err, client.ErrUnsupportedVersion)
	require.ErrorContains(t, err, "one at a time")
	rows, err := a.ListGroupOffsets(t.Context(), "g")
	require.NoError(t, err)
	require.Equal(t, []admin.GroupOffset{{TopicPartition: tp("orders", 0), Offset: 5, LeaderEpoch: 2}}, rows, "all that the group has committed")
	rows, err = a.ListGroupOffsets(t.Context(), "g", tp("orders", 1))
	require.NoError(t, err)
	require.Equal(t, []admin.GroupOffset{{TopicPartition: tp("orders", 1), Offset: 9, LeaderEpoch: -1}}, rows)
	_, err = a.AlterGroupOffsets(t.Context(), "g", map[admin.TopicPartition]admin.NewOffset{tp("orders", 0): {Offset: 1, LeaderEpoch: new(int32(3))}})
	require.NoError(t, err)
	_, err = a.DeleteGroupOffsets(t.Context(), "g", tp("orders", 0))
	require.ErrorIs(t, err, client.ErrUnsupportedVersion)
}
