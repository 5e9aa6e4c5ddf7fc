package group

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// simulated is a member of a consumer group as a client would be: it believes in what it was told.
type simulated struct {
	id     string
	epoch  int32
	owned  map[wire.UUID]map[int32]bool
	wanted map[wire.UUID]map[int32]bool // told, not yet acted upon; nil for nothing new
}

// TestNobodyEverSharesAPartition is G1, G4 and G6 over seeded schedules: members of both protocols join, leave, fall silent
// and come back, topics grow, the coordinator reloads, and at every moment each partition has at most one owner.
func TestNobodyEverSharesAPartition(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { churn(t, seed) })
	}
}

func churn(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	b := newBench(t, map[string]string{"group.consumer.assignment.interval.ms": fmt.Sprint(rnd.IntN(3) * 500)})
	members := make(map[string]*simulated)
	partitions := int32(6)
	lastEpoch := int32(0)
	for step := range 150 {
		id := member(rnd.IntN(6))
		x := members[id]
		switch n := rnd.IntN(20); {
		case n < 12:
			if x == nil {
				x = &simulated{id: id, owned: make(map[wire.UUID]map[int32]bool)}
				members[id] = x
			}
			x.step(b, rnd)
		case n == 12 && x != nil:
			b.refuse = errcode.None
			b.beat(beatRequest("g", id, -1))
			delete(members, id)
		case n == 13 && x != nil: // it crashes: what it had is nobody's at once
			delete(members, id)
		case n == 14 && partitions < 12:
			partitions++
			b.grow(map[string]int32{"orders": partitions})
		case n == 15:
			old := b
			b = b.replayed()
			require.Equal(t, old.durable("g"), b.durable("g"), "step %d: G6", step)
		case n == 17:
			b.refuse = errcode.CoordinatorNotAvailable // whatever is written next
		case n == 16:
			b.pass(time.Duration(rnd.IntN(20)) * time.Second)
		default:
			b.pass(time.Duration(rnd.IntN(1500)) * time.Millisecond)
		}
		v := b.view("g")
		oneOwner(t, v, members, step)
		require.GreaterOrEqual(t, v.Generation, lastEpoch, "step %d: G4", step)
		if v.Type == "consumer" {
			lastEpoch = v.Generation
		}
		for _, m := range v.Members {
			require.LessOrEqual(t, m.Epoch, v.Generation, "step %d: G4", step)
		}
	}
	b.refuse = errcode.None
	settle(t, b, members, partitions)
}

// TestClassicMembersAreAlwaysAnsweredOnce churns a classic group: every request is answered once, at the latest when the
// coordinator goes; generations only grow; a stable group is what the log says.
func TestClassicMembersAreAlwaysAnsweredOnce(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { churnClassic(t, seed) })
	}
}

func churnClassic(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 2))
	b := newBench(t, map[string]string{"group.initial.rebalance.delay.ms": fmt.Sprint(rnd.IntN(2) * 3000)})
	var ids []string
	asked := make(map[coordinator.Ticket]bool)
	answered := 0
	generation := int32(0)
	for step := range 200 {
		id := ""
		if len(ids) > 0 && rnd.IntN(5) > 0 {
			id = ids[rnd.IntN(len(ids))]
		}
		var body any
		switch rnd.IntN(8) {
		case 0, 1, 2:
			join := joinRequest("g", id, "orders")
			if instance := fmt.Sprint("instance-", rnd.IntN(3)); id == "" && rnd.IntN(2) == 0 {
				join.GroupInstanceId = &instance
			}
			body = join
		case 3, 4:
			body = syncRequest("g", id, generation, message.SyncGroupRequestAssignment{MemberId: id, Assignment: classicAssignment(1)})
		case 5:
			body = &message.HeartbeatRequest{GroupId: "g", MemberId: id, GenerationId: generation}
		case 6:
			body = &message.LeaveGroupRequest{GroupId: "g", Members: []message.MemberIdentity{{MemberId: id}}}
		default:
			if rnd.IntN(4) == 0 {
				b.refuse = errcode.NotCoordinator
			}
			b.pass(time.Duration(rnd.IntN(9000)) * time.Millisecond)
			continue
		}
		asked[b.ask(5, body)] = true
		for ticket := range asked {
			if r, ok := b.got[ticket]; ok {
				answered++
				delete(asked, ticket)
				if j, ok := r.(*message.JoinGroupResponse); ok && j.MemberId != "" && len(ids) < 30 {
					ids = append(ids, j.MemberId)
				}
			}
		}
		v := b.view("g")
		if v.Type == "classic" {
			require.GreaterOrEqual(t, v.Generation, generation, "step %d: G4", step)
			generation = v.Generation
		}
		if v.State == Stable && b.refuse == errcode.None {
			require.Equal(t, b.durable("g"), b.replayed().durable("g"), "step %d: G6", step)
		}
	}
	b.run(func(out *coordinator.Result) { b.m.Drop(errcode.NotCoordinator, out) })
	for ticket := range asked {
		require.Contains(t, b.got, ticket, "never answered")
	}
	require.Positive(t, answered)
}

// step is one heartbeat of a member, which first acts upon what it was told.
func (x *simulated) step(b *bench, rnd *rand.Rand) {
	r := beatRequest("g", x.id, x.epoch)
	if x.epoch == 0 {
		r = joinConsumerRequest("g", x.id, "orders")
		x.owned, x.wanted = make(map[wire.UUID]map[int32]bool), nil
	} else if x.wanted != nil && rnd.IntN(3) > 0 {
		x.owned, x.wanted = x.wanted, nil
		r.TopicPartitions = []message.ConsumerGroupHeartbeatRequestTopicPartitions{}
		for topic, partitions := range x.owned {
			p := message.ConsumerGroupHeartbeatRequestTopicPartitions{TopicId: topic}
			for n := range partitions {
				p.Partitions = append(p.Partitions, n)
			}
			r.TopicPartitions = append(r.TopicPartitions, p)
		}
	}
	resp, ok := b.take(b.ask(1, r)).(*message.ConsumerGroupHeartbeatResponse)
	if !ok { // the log refused: it tries again
		return
	}
	if errcode.Code(resp.ErrorCode) != errcode.None {
		*x = simulated{id: x.id, owned: make(map[wire.UUID]map[int32]bool)} // fenced: everything is gone
		return
	}
	x.epoch = resp.MemberEpoch
	if resp.Assignment == nil {
		return
	}
	x.wanted = ownedOf(nil)
	for _, t := range resp.Assignment.TopicPartitions {
		x.wanted[t.TopicId] = make(map[int32]bool)
		for _, p := range t.Partitions {
			x.wanted[t.TopicId][p] = true
		}
	}
}

// oneOwner checks that no partition has two owners among the members of the group. Who was fenced and has not noticed is
// no owner any more: its commits are refused.
func oneOwner(t *testing.T, v *View, members map[string]*simulated, step int) {
	owner := make(map[string]string)
	for _, m := range v.Members {
		x := members[m.ID]
		if x == nil || x.epoch == 0 || x.epoch > m.Epoch {
			continue
		}
		for topic, partitions := range x.owned {
			for p := range partitions {
				key := fmt.Sprint(topic, "-", p)
				require.Empty(t, owner[key], "step %d: partition %d is %s's and %s's: G1", step, p, owner[key], x.id)
				owner[key] = x.id
			}
		}
	}
}

// settle lets the members beat in peace: soon every partition has its owner (G5).
func settle(t *testing.T, b *bench, members map[string]*simulated, partitions int32) {
	if len(members) == 0 {
		return
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		for i := range 6 {
			if x := members[member(i)]; x != nil {
				x.step(b, rnd)
			}
		}
		b.pass(2 * time.Second)
		oneOwner(t, b.view("g"), members, -1)
	}
	v := b.view("g")
	require.Equal(t, Stable, v.State)
	n := 0
	for _, x := range members {
		for _, p := range x.owned {
			n += len(p)
		}
	}
	require.Equal(t, int(partitions), n)
}
