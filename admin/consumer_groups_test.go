package admin_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// join makes a member of either protocol and lets its group come to rest.
func join(t *testing.T, a *admin.Admin, group string, opts ...groupmember.Option) *groupmember.Member {
	t.Helper()
	m, err := groupmember.Join(t.Context(), a.Client(), append([]groupmember.Option{groupmember.Group(group), groupmember.Topics("orders")}, opts...)...)
	require.NoError(t, err)
	time.Sleep(10 * time.Second)
	return m
}

// A group of KIP-848 is administered as a classic one is, on a broker and with real members.
func TestConsumerGroupsAreAdministered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := groupBroker(t, fakebroker.Topic("orders", 2))
		a := adminOf(t, k)
		produce(t, k, "orders", 0, time.Now(), time.Now())
		m := join(t, a, "g", groupmember.WithProtocol(groupmember.Consumer), groupmember.InstanceID("till-1"), groupmember.Rack("r1"))
		require.NoError(t, m.Commit(t.Context(), map[groupmember.TopicPartition]groupmember.Offset{tp("orders", 0): groupmember.OffsetAt(1)}))

		listed, err := a.ListGroups(t.Context(), admin.GroupFilter{Types: []admin.GroupType{admin.ConsumerGroup}})
		require.NoError(t, err)
		require.Equal(t, []admin.ListedGroup{{ID: "g", ProtocolType: "consumer", State: admin.GroupStable, Type: admin.ConsumerGroup, Coordinator: 1}}, listed)
		rows, err := a.DescribeGroups(t.Context(), "g")
		require.NoError(t, err)
		require.Len(t, rows[0].Members, 1)
		got, all := rows[0].Members[0], []admin.TopicPartition{tp("orders", 0), tp("orders", 1)}
		require.Equal(t, admin.ConsumerGroup, rows[0].Type)
		require.Equal(t, admin.GroupStable, rows[0].State)
		require.Equal(t, "uniform", rows[0].Assignor)
		require.Equal(t, rows[0].Epoch, rows[0].TargetEpoch)
		require.Equal(t, rows[0].Epoch, got.Epoch)
		require.Equal(t, m.Generation().MemberID, got.ID)
		require.Equal(t, []string{"till-1", "r1"}, []string{got.InstanceID, got.Rack})
		require.Equal(t, []string{"orders"}, got.Topics)
		require.Equal(t, all, got.Assigned)
		require.Equal(t, all, got.Target)
		require.False(t, got.Classic)
		lag, err := a.Lag(t.Context(), "g")
		require.NoError(t, err)
		require.EqualValues(t, 1, lag[0].Total())
		require.Equal(t, "till-1", lag[0].Partitions[1].Member.InstanceID)

		_, err = a.DeleteGroups(t.Context(), "g")
		require.ErrorIs(t, err, errcode.NonEmptyGroup)
		_, err = a.AlterGroupOffsets(t.Context(), "g", offsets("orders", 2))
		require.ErrorIs(t, err, errcode.UnknownMemberId)
		require.ErrorContains(t, err, "stop its consumers")
		_, err = a.DeleteGroupOffsets(t.Context(), "g", tp("orders", 0))
		require.ErrorIs(t, err, errcode.GroupSubscribedToTopic)
		_, err = a.ResetGroupOffsets(t.Context(), "g", admin.ResetToLatest)
		require.ErrorIs(t, err, errcode.NonEmptyGroup)
		require.NoError(t, m.Leave(t.Context()))
		plan, err := a.ResetGroupOffsets(t.Context(), "g", admin.ResetToLatest)
		require.NoError(t, err)
		require.EqualValues(t, 2, plan.Rows[0].Offset)
		_, err = a.DeleteGroups(t.Context(), "g")
		require.NoError(t, err)
	})
}

// Whoever is removed and still runs loses what it had and joins again, with either protocol, by member id or instance id.
func TestRemovedMembersJoinAgain(t *testing.T) {
	for name, protocol := range map[string]groupmember.Protocol{"classic": groupmember.Classic, "consumer": groupmember.Consumer} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := adminOf(t, groupBroker(t, fakebroker.Topic("orders", 2)))
				m := join(t, a, "g", groupmember.WithProtocol(protocol))
				claim := m.Claim(tp("orders", 0))
				rows, err := a.RemoveMembers(t.Context(), "g", "a bad day", admin.MemberIdentity{ID: m.Generation().MemberID}, admin.MemberIdentity{ID: "nobody"})
				require.ErrorIs(t, err, errcode.UnknownMemberId)
				require.NoError(t, rows[0].Err)
				require.ErrorContains(t, rows[1].Err, "no such member")
				time.Sleep(20 * time.Second)
				require.Error(t, claim.Err())
				require.Len(t, m.Assignment(), 2)
				removed, err := a.RemoveAllMembers(t.Context(), "g", "")
				require.NoError(t, err)
				require.Len(t, removed, 1)
				require.NoError(t, m.Close(t.Context()))

				static := join(t, a, "g", groupmember.WithProtocol(protocol), groupmember.InstanceID("till-1"))
				removed, err = a.RemoveAllMembers(t.Context(), "g", "closing time")
				require.NoError(t, err)
				require.Equal(t, "till-1", removed[0].String())
				groups, err := a.DescribeGroups(t.Context(), "g")
				require.NoError(t, err)
				require.Empty(t, groups[0].Members)
				require.NoError(t, static.Close(t.Context()))
			})
		})
	}
}
