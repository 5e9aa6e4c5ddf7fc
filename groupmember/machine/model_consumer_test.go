package machine_test

import (
	"maps"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/groupmember/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// consumerGroup is a small model of a coordinator of the consumer protocol (KIP-848).
type consumerGroup struct {
	now      func() time.Time
	session  time.Duration
	interval time.Duration
	view     func() modelView
	epoch    int32
	members  map[string]*consumerMember
}

type consumerMember struct {
	epoch, previous int32
	instance        string
	topics          []string
	rebalance       time.Duration
	deadline        time.Time
	revokeBy        time.Time
	target          []machine.TopicPartition
	assigned        map[machine.TopicPartition]bool
	revoking        map[machine.TopicPartition]bool
	gone            bool // a static member that comes back
}

func newConsumerGroup(now func() time.Time, view func() modelView, session, interval time.Duration) *consumerGroup {
	return &consumerGroup{now: now, view: view, session: session, interval: interval, members: map[string]*consumerMember{}}
}

func (g *consumerGroup) ordered() []string { return slices.Sorted(maps.Keys(g.members)) }

func (g *consumerGroup) handle(req message.Request, reply func(message.Response)) {
	reply(g.heartbeat(req.(*message.ConsumerGroupHeartbeatRequest)))
}

func (g *consumerGroup) heartbeat(req *message.ConsumerGroupHeartbeatRequest) message.Response {
	refuse := func(code errcode.Code) message.Response {
		return &message.ConsumerGroupHeartbeatResponse{ErrorCode: int16(code)}
	}
	m := g.members[req.MemberId]
	switch {
	case req.MemberEpoch == -2 && m != nil:
		m.gone = true
		return &message.ConsumerGroupHeartbeatResponse{MemberEpoch: -2}
	case req.MemberEpoch < 0:
		g.remove(req.MemberId)
		return &message.ConsumerGroupHeartbeatResponse{MemberEpoch: req.MemberEpoch}
	case req.MemberEpoch == 0:
		if req.InstanceId != nil {
			for _, id := range g.ordered() {
				if other := g.members[id]; id != req.MemberId && other.instance == *req.InstanceId {
					if !other.gone {
						return refuse(errcode.UnreleasedInstanceId)
					}
					delete(g.members, id)
				}
			}
		}
		if m == nil {
			m = &consumerMember{}
			g.members[req.MemberId] = m
		}
		m.assigned, m.revoking, m.gone = map[machine.TopicPartition]bool{}, map[machine.TopicPartition]bool{}, false
		if req.InstanceId != nil {
			m.instance = *req.InstanceId
		}
	case m == nil:
		return refuse(errcode.UnknownMemberId)
	case m.epoch != req.MemberEpoch && m.previous != req.MemberEpoch:
		return refuse(errcode.FencedMemberEpoch)
	}
	if req.RebalanceTimeoutMs > 0 {
		m.rebalance = time.Duration(req.RebalanceTimeoutMs) * time.Millisecond
	}
	if req.SubscribedTopicNames != nil {
		m.topics = slices.Clone(req.SubscribedTopicNames)
	}
	m.deadline = g.now().Add(g.session)
	if req.MemberEpoch == 0 || req.SubscribedTopicNames != nil {
		g.distribute()
	}
	if req.TopicPartitions != nil {
		g.told(m, req.TopicPartitions)
	}
	changed := g.reconcile(m)
	resp := &message.ConsumerGroupHeartbeatResponse{MemberId: &req.MemberId, MemberEpoch: m.epoch, HeartbeatIntervalMs: int32(g.interval.Milliseconds())}
	if changed || req.TopicPartitions != nil || req.MemberEpoch == 0 {
		resp.Assignment = &message.ConsumerGroupHeartbeatResponseAssignment{}
		for _, tp := range slices.SortedFunc(maps.Keys(m.assigned), machine.ComparePartitions) {
			resp.Assignment.TopicPartitions = append(resp.Assignment.TopicPartitions,
				message.ConsumerGroupHeartbeatResponseTopicPartitions{TopicId: topicID(tp.Topic), Partitions: []int32{tp.Partition}})
		}
	}
	return resp
}

// told: a partition that was to be given up and is not among the owned ones any more is free.
func (g *consumerGroup) told(m *consumerMember, owned []message.ConsumerGroupHeartbeatRequestTopicPartitions) {
	has := map[machine.TopicPartition]bool{}
	for _, t := range owned {
		name, _ := g.view().Name(t.TopicId)
		for _, p := range t.Partitions {
			has[machine.TopicPartition{Topic: name, Partition: p}] = true
		}
	}
	for tp := range m.revoking {
		if !has[tp] {
			delete(m.revoking, tp)
		}
	}
}

// reconcile takes a member one step towards its target.
func (g *consumerGroup) reconcile(m *consumerMember) (changed bool) {
	for tp := range m.assigned {
		if !slices.Contains(m.target, tp) {
			delete(m.assigned, tp)
			m.revoking[tp] = true
			m.revokeBy = g.now().Add(m.rebalance)
			changed = true
		}
	}
	if len(m.revoking) > 0 {
		m.epoch = max(m.epoch, 1)
		return changed
	}
	if m.epoch != g.epoch {
		m.previous, m.epoch = m.epoch, g.epoch
	}
	for _, tp := range m.target {
		free := !m.assigned[tp]
		for _, other := range g.members {
			free = free && !other.assigned[tp] && !other.revoking[tp]
		}
		if free {
			m.assigned[tp] = true
			changed = true
		}
	}
	return changed
}

// distribute makes new targets.
func (g *consumerGroup) distribute() {
	g.epoch++
	ids := g.ordered()
	for _, id := range ids {
		g.members[id].target = nil
	}
	for _, name := range slices.Sorted(maps.Keys(g.view())) {
		var takers []string
		for _, id := range ids {
			if slices.Contains(g.members[id].topics, name) {
				takers = append(takers, id)
			}
		}
		for p := range g.view()[name] {
			if len(takers) > 0 {
				m := g.members[takers[p*len(takers)/g.view()[name]]]
				m.target = append(m.target, machine.TopicPartition{Topic: name, Partition: int32(p)})
			}
		}
	}
}

func (g *consumerGroup) remove(id string) {
	if g.members[id] != nil {
		delete(g.members, id)
		g.distribute()
	}
}

func (g *consumerGroup) tick() {
	for _, id := range g.ordered() {
		m := g.members[id]
		if !g.now().Before(m.deadline) || len(m.revoking) > 0 && !g.now().Before(m.revokeBy) {
			g.remove(id)
		}
	}
}

func (g *consumerGroup) cut() {
	for _, m := range g.members {
		m.deadline = g.now().Add(g.session)
	}
}

func (g *consumerGroup) counted(gen machine.Generation) bool {
	m := g.members[gen.MemberID]
	return m != nil && !m.gone && (gen.ID == m.epoch || gen.ID == m.previous)
}
