package machine

import (
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// maxPartition bounds partition ids taken from an answer; a broker that names a higher one is not believed.
const maxPartition = 1 << 24

// Merge makes the topology that follows from a metadata answer. Brokers, cluster and controller are the answer's.
// A topic the answer names is replaced, with two exceptions that keep what is known: partitions whose leader
// epoch in the answer is older than the known one (the answering broker is behind), and all partitions when the
// answer has but a passing error for the topic. A topic whose id changed was deleted and created again; nothing
// of the old one is kept. A topic the answer does not name stays, if keep says so.
func (t *Topology) Merge(now time.Time, resp *message.MetadataResponse, keep func(topic string) bool) *Topology {
	next := &Topology{Controller: resp.ControllerId, At: now, Version: t.Version + 1,
		Brokers: make(map[int32]Node, len(resp.Brokers)),
		topics:  make(map[string]*Topic, len(t.topics)),
		ids:     make(map[wire.UUID]*Topic, len(t.ids)),
	}
	if resp.ClusterId != nil {
		next.ClusterID = *resp.ClusterId
	}
	for _, b := range resp.Brokers {
		n := Node{ID: b.NodeId, Host: b.Host, Port: b.Port}
		if b.Rack != nil {
			n.Rack = *b.Rack
		}
		next.Brokers[n.ID] = n
	}
	for name, topic := range t.topics {
		if keep(name) {
			next.topics[name] = topic
		}
	}
	for i := range resp.Topics {
		answer := &resp.Topics[i]
		name := t.nameOf(answer)
		if name == "" || !keep(name) {
			continue
		}
		next.topics[name] = mergeTopic(t.topics[name], name, answer)
	}
	for _, topic := range next.topics {
		if !topic.ID.IsZero() {
			next.ids[topic.ID] = topic
		}
	}
	return next
}

func (t *Topology) nameOf(answer *message.MetadataResponseTopic) string {
	if answer.Name != nil {
		return *answer.Name
	}
	if known := t.ids[answer.TopicId]; known != nil {
		return known.Name
	}
	return ""
}

func mergeTopic(old *Topic, name string, answer *message.MetadataResponseTopic) *Topic {
	topic := &Topic{Name: name, ID: answer.TopicId, Internal: answer.IsInternal, Err: errcode.Code(answer.ErrorCode)}
	same := old != nil && (old.ID == topic.ID || old.ID.IsZero() || topic.ID.IsZero())
	if topic.Err != errcode.None {
		// The topic may well be there; only this answer could not tell. An unknown topic is gone.
		if same && topic.Err.Retriable() && topic.Err != errcode.UnknownTopicOrPartition {
			topic.ID, topic.Internal, topic.Partitions = old.ID, old.Internal, old.Partitions
		}
		return topic
	}
	topic.Partitions = make([]Partition, 0, len(answer.Partitions))
	for i := range answer.Partitions {
		p := &answer.Partitions[i]
		if p.PartitionIndex < 0 || p.PartitionIndex > maxPartition {
			continue
		}
		fresh := Partition{ID: p.PartitionIndex, Leader: p.LeaderId, LeaderEpoch: p.LeaderEpoch,
			Replicas: p.ReplicaNodes, ISR: p.IsrNodes, Offline: p.OfflineReplicas, Err: errcode.Code(p.ErrorCode)}
		if same {
			if known := old.Partition(fresh.ID); known != nil && fresh.LeaderEpoch >= 0 && fresh.LeaderEpoch < known.LeaderEpoch {
				fresh = *known
			}
		}
		topic.Partitions = append(topic.Partitions, fresh)
	}
	sort.Slice(topic.Partitions, func(i, j int) bool { return topic.Partitions[i].ID < topic.Partitions[j].ID })
	return topic
}

// WithLeader is the topology after a hint in a produce or fetch answer (KIP-951), or t itself when the hint is
// not newer than what is known or is about a topic that is not.
func (t *Topology) WithLeader(topicID wire.UUID, partition, leader, epoch int32, endpoints []Node) *Topology {
	topic := t.ids[topicID]
	known := topic.Partition(partition)
	if known == nil || leader < 0 || epoch <= known.LeaderEpoch {
		return t
	}
	next := *t
	next.Version++
	for _, n := range endpoints {
		if n.ID == leader && next.Brokers[n.ID] != n {
			next.Brokers = maps.Clone(next.Brokers)
			next.Brokers[n.ID] = n
		}
	}
	if _, ok := next.Brokers[leader]; !ok {
		return t // nowhere to send to: a refresh has to find out
	}
	changed := *topic
	changed.Partitions = slices.Clone(topic.Partitions)
	p := changed.Partition(partition)
	p.Leader, p.LeaderEpoch, p.Err = leader, epoch, errcode.None
	next.topics, next.ids = maps.Clone(t.topics), maps.Clone(t.ids)
	next.topics[topic.Name], next.ids[topicID] = &changed, &changed
	return &next
}

// Missing tells what keeps a topic from being usable: waitable is true when asking again may help. Both are
// zero when every partition has a leader.
func (t *Topology) Missing(name string) (code errcode.Code, waitable bool) {
	topic := t.topics[name]
	if topic == nil {
		return errcode.UnknownTopicOrPartition, true
	}
	if topic.Err != errcode.None {
		return topic.Err, topic.Err.Retriable()
	}
	if len(topic.Partitions) == 0 {
		return errcode.LeaderNotAvailable, true
	}
	for i := range topic.Partitions {
		if topic.Partitions[i].Leader < 0 {
			return errcode.LeaderNotAvailable, true
		}
	}
	return errcode.None, false
}

// HasLeader tells whether at least one partition of a topic has a leader.
func (t *Topology) HasLeader(name string) bool {
	topic := t.topics[name]
	if topic == nil || topic.Err != errcode.None {
		return false
	}
	for i := range topic.Partitions {
		if topic.Partitions[i].Leader >= 0 {
			return true
		}
	}
	return false
}
