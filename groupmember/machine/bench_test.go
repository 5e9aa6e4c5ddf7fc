package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ottla-kafka/ottla/groupmember/internal/assignor"
	"github.com/ottla-kafka/ottla/groupmember/machine"
	"github.com/ottla-kafka/ottla/wire/message"
)

// BenchmarkLeader is what a rebalance of 500 members and 5,000 partitions costs its leader: reading subscriptions,
// distributing, writing assignments.
func BenchmarkLeader(b *testing.B) {
	for _, a := range []machine.Assignor{assignor.Range{}, assignor.CooperativeSticky{}} {
		b.Run(a.Name(), func(b *testing.B) {
			view, topics, name := modelView{}, []string{}, a.Name()
			for t := range 50 {
				topics = append(topics, fmt.Sprintf("topic-%02d", t))
				view[topics[t]] = 100
			}
			resp := &message.JoinGroupResponse{GenerationId: 1, MemberId: "member-000", Leader: "member-000", ProtocolName: &name}
			for i := range 500 {
				s := machine.Subscription{Topics: topics, Generation: -1}
				resp.Members = append(resp.Members, message.JoinGroupResponseMember{MemberId: fmt.Sprintf("member-%03d", i), Metadata: machine.AppendSubscription(nil, s)})
			}
			for b.Loop() {
				m := machine.New(machine.Config{GroupID: "g", Topics: topics, Protocol: machine.Classic, Assignors: []machine.Assignor{a}, Session: session, Heartbeat: heartbeat, Rebalance: rebalance})
				m.Step(start, machine.Started{})
				m.Step(start, machine.TopologyChanged{View: view})
				eff := m.Step(start, machine.CoordinatorFound{Broker: 1})
				eff = m.Step(start, machine.Answered{Request: eff.Send[0], Response: resp})
				if len(eff.Send[0].Body.(*message.SyncGroupRequest).Assignments) != 500 {
					b.Fatal("not distributed")
				}
			}
		})
	}
}

// BenchmarkHeartbeat is one heartbeat of an idle member, the machine's part.
func BenchmarkHeartbeat(b *testing.B) {
	m := machine.New(machine.Config{GroupID: "g", MemberID: "me", Topics: []string{"a"}, Protocol: machine.Consumer, Session: session, Heartbeat: heartbeat, Rebalance: rebalance})
	m.Step(start, machine.Started{})
	now, eff := start, m.Step(start, machine.CoordinatorFound{Broker: 1})
	resp := &message.ConsumerGroupHeartbeatResponse{MemberEpoch: 1, HeartbeatIntervalMs: 1000}
	b.ReportAllocs()
	for b.Loop() {
		if len(eff.Send) == 0 {
			now = now.Add(time.Second)
			eff = m.Step(now, machine.Woke{})
		}
		eff = m.Step(now, machine.Answered{Request: eff.Send[0], Response: resp})
	}
}
