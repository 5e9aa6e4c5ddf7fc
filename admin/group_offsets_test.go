package admin_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

func TestCommittedOffsetsAreListedAlteredAndDeleted(t *testing.T) {
	a := adminOf(t, groupBroker(t, fakebroker.Topic("orders", 12), fakebroker.Topic("users", 1)))
	none, err := a.ListGroupOffsets(t.Context(), "g")
	require.NoError(t, err, "a group that does not exist has committed nothing")
	require.Empty(t, none)

	rows, err := a.AlterGroupOffsets(t.Context(), "g", map[admin.TopicPartition]admin.NewOffset{
		tp("orders", 10): {Offset: 7, Metadata: "by hand", LeaderEpoch: new(int32(0))}, tp("orders", 2): {Offset: 3}, tp("missing", 0): {Offset: 1}})
	require.ErrorIs(t, err, errcode.UnknownTopicOrPartition)
	require.Equal(t, []admin.TopicPartition{tp("missing", 0), tp("orders", 2), tp("orders", 10)},
		[]admin.TopicPartition{rows[0].TopicPartition, rows[1].TopicPartition, rows[2].TopicPartition})
	require.Error(t, rows[0].Err)
	require.NoError(t, rows[2].Err)

	all, err := a.ListGroupOffsets(t.Context(), "g")
	require.NoError(t, err)
	require.Equal(t, []admin.GroupOffset{
		{TopicPartition: tp("orders", 2), Offset: 3, LeaderEpoch: -1},
		{TopicPartition: tp("orders", 10), Offset: 7, LeaderEpoch: 0, Metadata: "by hand"}}, all)
	some, err := a.ListGroupOffsets(t.Context(), "g", tp("users", 0), tp("orders", 10), tp("users", 0))
	require.NoError(t, err)
	require.Len(t, some, 2)
	require.Equal(t, int64(-1), some[0].Offset, "nothing is committed")
	require.Equal(t, "orders-10@7", some[1].String())

	_, err = a.AlterGroupOffsets(t.Context(), "g", map[admin.TopicPartition]admin.NewOffset{tp("orders", 10): {Offset: 7, Metadata: strings.Repeat("x", 5000)}})
	require.ErrorIs(t, err, errcode.OffsetMetadataTooLarge)
	require.ErrorContains(t, err, "offset.metadata.max.bytes")
	_, err = a.DeleteGroupOffsets(t.Context(), "g", tp("orders", 10))
	require.NoError(t, err)
	_, err = a.DeleteGroupOffsets(t.Context(), "missing", tp("orders", 10))
	require.ErrorIs(t, err, errcode.GroupIdNotFound)
	all, err = a.ListGroupOffsets(t.Context(), "g")
	require.NoError(t, err)
	require.Len(t, all, 1)
}

// Members would go on with what they have in memory and commit over it.
func TestOffsetsOfAGroupWithMembersAreNotTouched(t *testing.T) {
	a := adminOf(t, groupBroker(t, fakebroker.Topic("orders", 1)))
	classicMember(t, a.Client(), "busy", "", "orders", 0)
	_, err := a.AlterGroupOffsets(t.Context(), "busy", offsets("orders", 5))
	require.ErrorIs(t, err, errcode.UnknownMemberId)
	require.ErrorContains(t, err, "stop its consumers")
	_, err = a.DeleteGroupOffsets(t.Context(), "busy", tp("orders", 0))
	require.ErrorIs(t, err, errcode.GroupSubscribedToTopic)

	plan, err := a.ResetGroupOffsets(t.Context(), "busy", admin.ResetToLatest, tp("orders", 0))
	var active *admin.ActiveGroupError
	require.ErrorAs(t, err, &active)
	require.ErrorIs(t, err, errcode.NonEmptyGroup)
	require.Equal(t, admin.GroupStable, active.State)
	require.Equal(t, 1, active.Members)
	require.Len(t, plan.Rows, 1, "the plan is made none the less")
	left, err := a.ListGroupOffsets(t.Context(), "busy")
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestOffsetsAreResetToEveryPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := groupBroker(t, fakebroker.Topic("orders", 1))
		a := adminOf(t, k)
		first := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
		produce(t, k, "orders", 0, first, first.Add(time.Minute), first.Add(2*time.Minute), time.Now(), time.Now(), time.Now())
		_, err := a.DeleteRecords(t.Context(), map[admin.TopicPartition]int64{tp("orders", 0): 1})
		require.NoError(t, err)
		for _, c := range []struct {
			to      admin.ResetTo
			say     string
			offset  int64
			clamped bool
		}{
			{admin.ResetToEarliest, "earliest", 1, false},
			{admin.ResetToLatest, "latest", 6, false},
			{admin.ResetToCurrent, "current", 4, false},
			{admin.ResetToTime(first.Add(30 * time.Second)), "time ", 1, false},
			{admin.ResetToTime(first.Add(90 * time.Second)), "time ", 2, false},
			{admin.ResetToTime(time.Now().Add(time.Hour)), "time ", 6, false},
			{admin.ResetByDuration(58*time.Minute + 30*time.Second), "now - 58m30s", 2, false},
			{admin.ResetByShift(-2), "current-2", 2, false},
			{admin.ResetByShift(+1), "current+1", 5, false},
			{admin.ResetByShift(-20), "current-20", 1, true},
			{admin.ResetByShift(20), "current+20", 6, true},
			{admin.ResetToOffset(3), "offset 3", 3, false},
			{admin.ResetToOffset(0), "offset 0", 1, true},
			{admin.ResetToOffset(99), "offset 99", 6, true},
		} {
			_, err := a.AlterGroupOffsets(t.Context(), "g", offsets("orders", 4))
			require.NoError(t, err)
			plan, err := a.PlanReset(t.Context(), "g", c.to)
			require.NoError(t, err, c.to)
			require.Contains(t, c.to.String(), c.say)
			require.Equal(t, []admin.ResetRow{{TopicPartition: tp("orders", 0), Committed: 4, Offset: c.offset, Start: 1, End: 6, Clamped: c.clamped}}, plan.Rows, c.to)
			require.Equal(t, 6-c.offset, plan.Rows[0].Lag())
			before, err := a.ListGroupOffsets(t.Context(), "g")
			require.NoError(t, err)
			require.Equal(t, int64(4), before[0].Offset, "a plan changes nothing")

			_, err = plan.Execute(t.Context(), a)
			require.NoError(t, err)
			after, err := a.ListGroupOffsets(t.Context(), "g")
			require.NoError(t, err)
			require.Equal(t, c.offset, after[0].Offset, c.to)
		}
	})
}

func TestResetChangesNothingWhenARowFails(t *testing.T) {
	a := adminOf(t, groupBroker(t, fakebroker.Topic("orders", 2)))
	_, err := a.PlanReset(t.Context(), "new", admin.ResetToLatest)
	require.ErrorContains(t, err, "name the partitions")
	_, err = a.PlanReset(t.Context(), "new", admin.ResetTo{})
	require.ErrorContains(t, err, "zero ResetTo")

	plan, err := a.ResetGroupOffsets(t.Context(), "new", admin.ResetToLatest, tp("orders", 1), tp("orders", 15))
	require.ErrorIs(t, err, errcode.UnknownTopicOrPartition)
	require.NoError(t, plan.Rows[0].Err)
	_, err = plan.Execute(t.Context(), a)
	require.ErrorContains(t, err, "nothing was changed")
	_, err = a.PlanReset(t.Context(), "new", admin.ResetByShift(1), tp("orders", 1))
	require.ErrorContains(t, err, "cannot be shifted")
	left, err := a.ListGroupOffsets(t.Context(), "new")
	require.NoError(t, err)
	require.Empty(t, left)

	plan.Rows = plan.Rows[:1] // go on without the row that failed
	_, err = plan.Execute(t.Context(), a)
	require.NoError(t, err)
	left, err = a.ListGroupOffsets(t.Context(), "new")
	require.NoError(t, err)
	require.Len(t, left, 1, "a group that did not exist is created")
}

func TestLagIsToldForWhatIsCommittedOrAssigned(t *testing.T) {
	k := groupBroker(t, fakebroker.Topic("orders", 4))
	a := adminOf(t, k)
	for p := range int32(3) {
		produce(t, k, "orders", p, time.Now(), time.Now(), time.Now())
	}
	_, err := a.AlterGroupOffsets(t.Context(), "g", offsets("orders", 1, 3))
	require.NoError(t, err)
	_, err = a.AlterGroupOffsets(t.Context(), "other", offsets("orders", 2))
	require.NoError(t, err)
	classicMember(t, a.Client(), "g", "till-1", "orders", 1, 2)

	rows, err := a.Lag(t.Context(), "other", "missing", "g")
	require.ErrorIs(t, err, errcode.GroupIdNotFound)
	require.Error(t, rows[1].Err)
	require.Equal(t, int64(1), rows[0].Total())
	g := rows[2]
	require.NoError(t, g.Err)
	require.Equal(t, admin.GroupStable, g.Group.State)
	require.Equal(t, int64(2), g.Total())
	type part struct {
		committed, end, lag int64
		owned               bool
	}
	var got []part
	for _, p := range g.Partitions {
		got = append(got, part{p.Committed, p.End, p.Lag, p.Member != nil && p.Member.InstanceID == "till-1"})
	}
	require.Equal(t, []part{{1, 3, 2, false}, {3, 3, 0, true}, {-1, 3, -1, true}}, got, "partition 3 is neither committed nor assigned")
}
