package group

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// What follows was seen with Apache Kafka 4.4 (fakebroker/interop compares it live).

func TestOfEquallyManyVotesTheFirstInJavasHashTableWins(t *testing.T) {
	vote := func(names ...string) *classicMember {
		m := &classicMember{}
		for _, name := range names {
			m.protocols = append(m.protocols, protocol{name, []byte{0}})
		}
		return m
	}
	c := &classicGroup{members: []*classicMember{vote("range", "sticky", "roundrobin"), vote("roundrobin", "sticky")}}
	require.Equal(t, "sticky", c.choose())
	c.members = append(c.members, vote("roundrobin", "sticky"))
	require.Equal(t, "roundrobin", c.choose())
}

func TestAGroupWhoseAssignmentIsNoConsumersIsNotConverted(t *testing.T) {
	b := newBench(t, nil)
	id := b.newMember("g", "orders")
	join := b.ask(9, joinRequest("g", id, "orders"))
	b.pass(6 * time.Second)
	require.Zero(t, b.take(join).(*message.JoinGroupResponse).ErrorCode)
	now[*message.SyncGroupResponse](b, 5, syncRequest("g", id, 1, message.SyncGroupRequestAssignment{MemberId: id, Assignment: []byte("all")}))
	r := b.beat(joinConsumerRequest("g", "B", "orders"))
	require.Equal(t, errcode.GroupIdNotFound, errcode.Code(r.ErrorCode))
	require.Equal(t, "Cannot upgrade classic group g to consumer group because the embedded consumer protocol is malformed.", *r.ErrorMessage)
	require.Equal(t, errcode.None, b.heartbeat("g", id, 1), "nothing happened to it")
}

func TestSyncGroupLooksForTypeAndNameFirst(t *testing.T) {
	b := newBench(t, nil)
	r := now[*message.SyncGroupResponse](b, 5, &message.SyncGroupRequest{MemberId: "x"})
	require.Equal(t, errcode.InconsistentGroupProtocol, errcode.Code(r.ErrorCode))
	r = now[*message.SyncGroupResponse](b, 4, &message.SyncGroupRequest{MemberId: "x"})
	require.Equal(t, errcode.InvalidGroupId, errcode.Code(r.ErrorCode))
}

func TestATopicWithoutPartitionsIsNotInTheAnswerToACommit(t *testing.T) {
	b := newBench(t, nil)
	req := commitRequest("g", "", -1, 1)
	req.Topics[0].Partitions = nil
	require.Empty(t, now[*message.OffsetCommitResponse](b, 9, req).Topics)
}

func TestLeavingSaysWhatIsNotThere(t *testing.T) {
	b := newBench(t, nil)
	require.Equal(t, "Group g not found.", *b.beat(beatRequest("g", "x", -1)).ErrorMessage)
	b.classic("g", 1)
	require.Equal(t, "Group g is not a consumer group.", *b.beat(beatRequest("g", "x", -1)).ErrorMessage)
}
