package group

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

func commitRequest(id, member string, generation int32, offset int64) *message.OffsetCommitRequest {
	text := "note"
	return &message.OffsetCommitRequest{GroupId: id, MemberId: member, GenerationIdOrMemberEpoch: generation, RetentionTimeMs: -1,
		Topics: []message.OffsetCommitRequestTopic{{Name: "orders", Partitions: []message.OffsetCommitRequestPartition{
			{PartitionIndex: 0, CommittedOffset: offset, CommittedLeaderEpoch: 3, CommittedMetadata: &text}}}}}
}

func (b *bench) fetched(id string) (offset int64, epoch int32) {
	b.t.Helper()
	r := now[message.OffsetFetchResponseGroup](b, 8, FetchOffsets{Group: message.OffsetFetchRequestGroup{GroupId: id, MemberEpoch: -1,
		Topics: []message.OffsetFetchRequestTopics{{Name: "orders", PartitionIndexes: []int32{0}}}}})
	p := r.Topics[0].Partitions[0]
	return p.CommittedOffset, p.CommittedLeaderEpoch
}

func TestOffsetsComeBackWithEpochAndSurviveAReload(t *testing.T) {
	b := newBench(t, nil)
	offset, epoch := b.fetched("g")
	require.Equal(t, []int64{-1, -1}, []int64{offset, int64(epoch)}, "unknown is -1, not 0")
	now[*message.OffsetCommitResponse](b, 9, commitRequest("g", "", -1, 42))
	for _, x := range []*bench{b, b.replayed()} {
		offset, epoch = x.fetched("g")
		require.Equal(t, []int64{42, 3}, []int64{offset, int64(epoch)})
		require.Equal(t, "note", x.view("g").Offsets[0].Metadata)
	}
}

func TestOffsetsOfATopicThatIsMadeAnewAreNotTheOldOnes(t *testing.T) {
	b := newBench(t, nil)
	now[*message.OffsetCommitResponse](b, 9, commitRequest("g", "", -1, 42))
	g := b.m.groups["g"]
	c, _ := g.offsets.get("orders", 0)
	c.topicID[3]++
	g.offsets.put("orders", 0, c)
	offset, _ := b.fetched("g")
	require.Equal(t, int64(-1), offset)
}

func TestOffsetsExpireByTheGroupsState(t *testing.T) {
	const retention = "offsets.retention.minutes"
	t.Run("of a group that nobody joined, after their commit", func(t *testing.T) {
		b := newBench(t, map[string]string{retention: "60"})
		now[*message.OffsetCommitResponse](b, 9, commitRequest("g", "", -1, 42))
		b.pass(50 * time.Minute)
		require.Len(t, b.view("g").Offsets, 1)
		b.pass(21 * time.Minute)
		require.Equal(t, Dead, b.view("g").State, "the group goes with its last offset")
		require.Equal(t, Dead, b.replayed().view("g").State)
	})
	t.Run("of an empty group, after it became empty", func(t *testing.T) {
		b := newBench(t, map[string]string{retention: "60"})
		ids := b.classic("g", 1)
		now[*message.OffsetCommitResponse](b, 9, commitRequest("g", ids[0], 1, 42))
		for range 20 * 60 / 5 {
			b.pass(5 * time.Second)
			b.heartbeat("g", ids[0], 1)
		}
		now[*message.LeaveGroupResponse](b, 1, &message.LeaveGroupRequest{GroupId: "g", MemberId: ids[0]})
		b.pass(55 * time.Minute)
		require.Len(t, b.view("g").Offsets, 1)
		b.pass(16 * time.Minute)
		require.Equal(t, Dead, b.view("g").State)
	})
	t.Run("never while a member reads the topic", func(t *testing.T) {
		b := newBench(t, map[string]string{retention: "1", "offsets.retention.check.interval.ms": "1000"})
		ids := b.classic("g", 1)
		now[*message.OffsetCommitResponse](b, 9, commitRequest("g", ids[0], 1, 42))
		for range 60 {
			b.pass(5 * time.Second)
			b.heartbeat("g", ids[0], 1)
		}
		require.Len(t, b.view("g").Offsets, 1)
	})
	t.Run("by the time that an old client gave", func(t *testing.T) {
		b := newBench(t, map[string]string{"offsets.retention.check.interval.ms": "1000"})
		req := commitRequest("g", "", -1, 42)
		req.RetentionTimeMs, req.Topics[0].Partitions[0].CommittedLeaderEpoch = 30_000, -1
		now[*message.OffsetCommitResponse](b, 3, req)
		b.pass(20 * time.Second)
		require.Len(t, b.replayed().view("g").Offsets, 1)
		b.pass(20 * time.Second)
		require.Equal(t, Dead, b.view("g").State)
	})
}

func TestDeletingGroupsAndOffsets(t *testing.T) {
	b := newBench(t, nil)
	ids := b.classic("busy", 1)
	now[*message.OffsetCommitResponse](b, 9, commitRequest("idle", "", -1, 1))
	now[*message.OffsetCommitResponse](b, 9, commitRequest("busy", ids[0], 1, 1))
	r := now[*message.OffsetDeleteResponse](b, 0, &message.OffsetDeleteRequest{GroupId: "busy", Topics: []message.OffsetDeleteRequestTopic{
		{Name: "orders", Partitions: []message.OffsetDeleteRequestPartition{{PartitionIndex: 0}}}}})
	require.Equal(t, errcode.GroupSubscribedToTopic, errcode.Code(r.Topics[0].Partitions[0].ErrorCode))
	codes := now[[]errcode.Code](b, 2, Delete{Groups: []string{"busy", "idle", "never", "idle"}})
	require.Equal(t, []errcode.Code{errcode.NonEmptyGroup, errcode.None, errcode.GroupIdNotFound, errcode.None}, codes)
	require.Equal(t, Dead, b.replayed().view("idle").State)
}

func TestADeletedTopicTakesItsOffsetsAlong(t *testing.T) {
	b := newBench(t, nil)
	for i := range 3 {
		now[*message.OffsetCommitResponse](b, 9, commitRequest(fmt.Sprint("g", i), "", -1, 42))
	}
	img := b.m.env.Image
	e := Environment{Image: img, Config: b.m.env.Config, Changed: nil}
	e.Changed = append(e.Changed, changeOfDeleted(img))
	b.ask(0, e)
	require.Empty(t, b.view("g1").Offsets)
	require.Empty(t, b.replayed().view("g2").Offsets)
}
