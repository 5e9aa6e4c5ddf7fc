package group

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/message"
)

const (
	benchMembers    = 500
	benchPartitions = 5000
)

// BenchmarkClassicRebalance500Members is one rebalance of a stable group: everybody joins and syncs, the leader with an
// assignment of 5,000 partitions.
func BenchmarkClassicRebalance500Members(t *testing.B) {
	b := newBench(t, nil)
	b.grow(map[string]int32{"orders": benchPartitions})
	ids := make([]string, benchMembers)
	tickets := make([]coordinator.Ticket, benchMembers)
	for i := range ids {
		ids[i] = b.newMember("g", "orders")
		tickets[i] = b.ask(9, joinRequest("g", ids[i], "orders"))
	}
	b.pass(6 * time.Second)
	var shares []message.SyncGroupRequestAssignment
	for i, id := range ids {
		mine := make([]int32, 0, benchPartitions/benchMembers)
		for p := range int32(benchPartitions / benchMembers) {
			mine = append(mine, int32(i)*benchPartitions/benchMembers+p)
		}
		shares = append(shares, message.SyncGroupRequestAssignment{MemberId: id, Assignment: classicAssignment(mine...)})
	}
	t.ResetTimer()
	for t.Loop() {
		generation, leader := int32(0), ""
		for _, ticket := range tickets {
			r := b.take(ticket).(*message.JoinGroupResponse)
			require.Zero(t, r.ErrorCode)
			generation, leader = r.GenerationId, r.Leader
		}
		for _, id := range ids {
			if id != leader {
				b.ask(5, syncRequest("g", id, generation))
			}
		}
		b.ask(5, syncRequest("g", leader, generation, shares...))
		clear(b.got)
		b.log = b.log[:0]
		for i, id := range ids { // the leader comes first and begins the next one
			tickets[i] = b.ask(9, joinRequest("g", id, "orders"))
		}
	}
}

// BenchmarkConsumerRebalance500Members is one more partition in a stable group: a new target, and everybody told.
func BenchmarkConsumerRebalance500Members(t *testing.B) {
	b := newBench(t, map[string]string{"group.consumer.assignment.interval.ms": "0"})
	partitions := int32(benchPartitions)
	b.grow(map[string]int32{"orders": partitions})
	epochs := make([]int32, benchMembers)
	converge := func() {
		for range 4 { // revoke, confirm, release, receive
			for i := range epochs {
				r := beatRequest("g", member(i), epochs[i])
				if epochs[i] == 0 {
					r = joinConsumerRequest("g", member(i), "orders")
				} else {
					r.TopicPartitions = recordedOwned(b, member(i))
				}
				epochs[i] = b.beat(r).MemberEpoch
			}
			if b.m.groups["g"].state() == Stable {
				return
			}
		}
	}
	converge()
	t.ResetTimer()
	for t.Loop() {
		b.log = b.log[:0]
		partitions++
		b.grow(map[string]int32{"orders": partitions})
		converge()
	}
}

// recordedOwned is what a member that acts at once has.
func recordedOwned(b *bench, id string) []message.ConsumerGroupHeartbeatRequestTopicPartitions {
	list := []message.ConsumerGroupHeartbeatRequestTopicPartitions{}
	for _, t := range recordParts(b.m.groups["g"].consumer.members[id].assigned) {
		list = append(list, message.ConsumerGroupHeartbeatRequestTopicPartitions{TopicId: t.TopicId, Partitions: t.Partitions})
	}
	return list
}

// BenchmarkHeartbeat is one heartbeat in a group of 2,000 idle members: times 400 a second it has to be far below 5 % of a
// core.
func BenchmarkHeartbeat(t *testing.B) {
	b := newBench(t, nil)
	var epoch int32
	for i := range 2000 {
		epoch = b.beat(joinConsumerRequest("g", member(i), "orders")).MemberEpoch
	}
	b.pass(2 * time.Second)
	for i := range 2000 {
		epoch = b.beat(beatRequest("g", member(i), epochOf(b, member(i)))).MemberEpoch
	}
	t.ResetTimer()
	t.ReportAllocs()
	for i := 0; t.Loop(); i++ {
		b.beat(beatRequest("g", member(i%2000), epoch))
	}
}

func epochOf(b *bench, id string) int32 { return b.m.groups["g"].consumer.members[id].epoch }
