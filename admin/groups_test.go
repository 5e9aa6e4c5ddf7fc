package admin_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// classicMember makes one member of a classic group with the given partitions of a topic, by bare requests: what the
// coordinator tells of it does not depend on our own members.
func classicMember(t *testing.T, cl *client.Client, group, instance, topic string, partitions ...int32) (id string) {
	t.Helper()
	to := client.Coordinator(client.GroupCoordinator, group)
	var static *string
	if instance != "" {
		static = &instance
	}
	subscription, err := (&message.ConsumerProtocolSubscription{Topics: []string{topic}, GenerationId: -1}).AppendTo([]byte{0, 1}, 1)
	require.NoError(t, err)
	join := message.NewJoinGroupRequest()
	join.GroupId, join.GroupInstanceId, join.ProtocolType, join.SessionTimeoutMs, join.RebalanceTimeoutMs = group, static, "consumer", 1_800_000, 1_800_000 // no heartbeats follow
	join.Protocols = []message.JoinGroupRequestProtocol{{Name: "range", Metadata: subscription}}
	resp, err := cl.Request(t.Context(), to, join)
	if errors.Is(err, errcode.MemberIdRequired) {
		join.MemberId = resp.(*message.JoinGroupResponse).MemberId
		resp, err = cl.Request(t.Context(), to, join)
	}
	require.NoError(t, err)
	joined := resp.(*message.JoinGroupResponse)

	assignment, err := (&message.ConsumerProtocolAssignment{AssignedPartitions: []message.ConsumerProtocolAssignmentTopicPartition{
		{Topic: topic, Partitions: partitions}}}).AppendTo([]byte{0, 1}, 1)
	require.NoError(t, err)
	sync := message.NewSyncGroupRequest()
	sync.GroupId, sync.GroupInstanceId, sync.MemberId, sync.GenerationId = group, static, joined.MemberId, joined.GenerationId
	sync.ProtocolType, sync.ProtocolName = new("consumer"), new("range")
	sync.Assignments = []message.SyncGroupRequestAssignment{{MemberId: joined.MemberId, Assignment: assignment}}
	_, err = cl.Request(t.Context(), to, sync)
	require.NoError(t, err)
	return joined.MemberId
}

// groupBroker is a broker where the first member of a group does not wait for others.
func groupBroker(t *testing.T, opts ...fakebroker.Option) *fakebroker.Cluster {
	t.Helper()
	return fakebroker.Start(t, append([]fakebroker.Option{fakebroker.Config("group.initial.rebalance.delay.ms", "0")}, opts...)...)
}

// offsets are what AlterGroupOffsets takes, for partitions 0, 1, ... of a topic.
func offsets(topic string, list ...int64) map[admin.TopicPartition]admin.NewOffset {
	m := map[admin.TopicPartition]admin.NewOffset{}
	for p, o := range list {
		m[tp(topic, int32(p))] = admin.NewOffset{Offset: o}
	}
	return m
}

func TestGroupsAreListedByStateTypeAndProtocol(t *testing.T) {
	a := adminOf(t, groupBroker(t, fakebroker.Topic("orders", 2)))
	classicMember(t, a.Client(), "busy", "", "orders", 0, 1)
	_, err := a.AlterGroupOffsets(t.Context(), "asleep", offsets("orders", 0))
	require.NoError(t, err)

	for _, c := range []struct {
		name   string
		filter admin.GroupFilter
		want   []string
	}{
		{"all", admin.GroupFilter{}, []string{"asleep", "busy"}},
		{"stable", admin.GroupFilter{States: []admin.GroupState{admin.GroupStable}}, []string{"busy"}},
		{"either state", admin.GroupFilter{States: []admin.GroupState{admin.GroupStable, admin.GroupEmpty}}, []string{"asleep", "busy"}},
		{"classic", admin.GroupFilter{Types: []admin.GroupType{admin.ClassicGroup}}, []string{"asleep", "busy"}},
		{"share", admin.GroupFilter{Types: []admin.GroupType{admin.ShareGroup}}, nil},
		{"consumers", admin.GroupFilter{Protocols: []string{"consumer"}}, []string{"busy"}},
		{"offsets only", admin.GroupFilter{Protocols: []string{""}}, []string{"asleep"}},
	} {
		rows, err := a.ListGroups(t.Context(), c.filter)
		require.NoError(t, err, c.name)
		var ids []string
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		require.Equal(t, c.want, ids, c.name)
	}
	rows, err := a.ListGroups(t.Context(), admin.GroupFilter{})
	require.NoError(t, err)
	require.Equal(t, admin.ListedGroup{ID: "busy", ProtocolType: "consumer", State: admin.GroupStable, Type: admin.ClassicGroup, Coordinator: 1}, rows[1])
}

func TestClassicGroupsAreDescribedWithMembersAndAssignments(t *testing.T) {
	a := adminOf(t, groupBroker(t, fakebroker.Topic("orders", 3)), client.ClientID("shop"))
	id := classicMember(t, a.Client(), "busy", "till-1", "orders", 2, 0)
	rows, err := a.DescribeGroups(t.Context(), "busy", "missing", "busy")
	require.ErrorIs(t, err, errcode.GroupIdNotFound)
	require.Len(t, rows, 2, "in the order of asking, once")
	require.ErrorIs(t, rows[1].Err, errcode.GroupIdNotFound)
	require.ErrorContains(t, rows[1].Err, "missing")

	g := rows[0]
	require.NoError(t, g.Err)
	require.Equal(t, "busy", g.ID)
	require.Equal(t, admin.ClassicGroup, g.Type)
	require.Equal(t, admin.GroupStable, g.State)
	require.Equal(t, "range", g.Assignor)
	require.Equal(t, int32(1), g.Coordinator.ID)
	require.Len(t, g.Members, 1)
	m := g.Members[0]
	require.Equal(t, id, m.ID)
	require.Equal(t, "till-1", m.InstanceID)
	require.Equal(t, "shop", m.ClientID)
	require.NotEmpty(t, m.Host)
	require.Equal(t, []string{"orders"}, m.Topics)
	require.Equal(t, []admin.TopicPartition{tp("orders", 0), tp("orders", 2)}, m.Assigned)
	require.True(t, m.Classic)
}

func TestMembersAreRemovedByInstanceOrMemberID(t *testing.T) {
	a := adminOf(t, groupBroker(t, fakebroker.Topic("orders", 1)))
	classicMember(t, a.Client(), "static", "till-1", "orders", 0)
	id := classicMember(t, a.Client(), "dynamic", "", "orders", 0)

	rows, err := a.RemoveMembers(t.Context(), "static", "a new till", admin.MemberIdentity{InstanceID: "till-9"}, admin.MemberIdentity{InstanceID: "till-1"})
	require.ErrorIs(t, err, errcode.UnknownMemberId)
	require.ErrorContains(t, err, "till-9")
	require.Error(t, rows[0].Err)
	require.NoError(t, rows[1].Err)

	rows, err = a.RemoveMembers(t.Context(), "dynamic", "", admin.MemberIdentity{ID: id})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	groups, err := a.DescribeGroups(t.Context(), "static", "dynamic")
	require.NoError(t, err)
	for _, g := range groups {
		require.Equal(t, admin.GroupEmpty, g.State, g.ID)
	}
	classicMember(t, a.Client(), "static", "till-2", "orders", 0)
	rows, err = a.RemoveAllMembers(t.Context(), "static", "closing time")
	require.NoError(t, err)
	require.Equal(t, "till-2", rows[0].String())
	none, err := a.RemoveMembers(t.Context(), "static", "")
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestGroupsWithMembersAreNotDeleted(t *testing.T) {
	a := adminOf(t, groupBroker(t, fakebroker.Topic("orders", 1)))
	classicMember(t, a.Client(), "busy", "", "orders", 0)
	_, err := a.AlterGroupOffsets(t.Context(), "asleep", offsets("orders", 0))
	require.NoError(t, err)
	rows, err := a.DeleteGroups(t.Context(), "busy", "asleep", "missing")
	require.ErrorIs(t, rows[0].Err, errcode.NonEmptyGroup)
	require.NoError(t, rows[1].Err)
	require.ErrorIs(t, rows[2].Err, errcode.GroupIdNotFound)
	require.ErrorIs(t, err, errcode.NonEmptyGroup)
	require.ErrorIs(t, err, errcode.GroupIdNotFound)
	left, err := a.ListGroups(t.Context(), admin.GroupFilter{})
	require.NoError(t, err)
	require.Len(t, left, 1)
}
