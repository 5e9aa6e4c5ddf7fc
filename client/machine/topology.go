package machine

import (
	"net"
	"sort"
	"strconv"
	"time"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// Node is a broker as metadata names it.
type Node struct {
	ID   int32
	Host string
	Port int32
	Rack string // empty when the broker has none
}

// Addr is host:port, with brackets round an IPv6 host.
func (n Node) Addr() string { return net.JoinHostPort(n.Host, strconv.Itoa(int(n.Port))) }

// Partition is what metadata says of one partition. Leader is -1 while there is none. LeaderEpoch is -1 when
// the broker is too old to tell (Metadata before version 7).
type Partition struct {
	ID          int32
	Leader      int32
	LeaderEpoch int32
	Replicas    []int32
	ISR         []int32
	Offline     []int32
	Err         errcode.Code // LEADER_NOT_AVAILABLE and such; None when fine
}

// Topic is what metadata says of one topic. ID is zero when the broker is too old for topic ids (before 2.8).
// Partitions are sorted by id and Partitions[i].ID == i unless the broker left some out.
type Topic struct {
	Name       string
	ID         wire.UUID
	Err        errcode.Code // UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED and such; None when fine
	Internal   bool
	Partitions []Partition
}

// Partition finds a partition by its id, nil when metadata has none of that id.
func (t *Topic) Partition(id int32) *Partition {
	if t == nil || id < 0 {
		return nil
	}
	if int(id) < len(t.Partitions) && t.Partitions[id].ID == id {
		return &t.Partitions[id]
	}
	for i := range t.Partitions {
		if t.Partitions[i].ID == id {
			return &t.Partitions[i]
		}
	}
	return nil
}

// Topology is one immutable picture of the cluster. A change makes a new one; whoever holds a pointer may read
// it for as long as he likes and must not write to anything reached through it.
type Topology struct {
	ClusterID  string // empty when the broker did not say (before 0.10.1)
	Controller int32  // broker id of the controller as metadata gives it, -1 when unknown
	Brokers    map[int32]Node
	At         time.Time // when the newest answer in it arrived; zero before the first
	Version    int64     // grows by one with every change

	topics map[string]*Topic
	ids    map[wire.UUID]*Topic
}

// NewTopology is the empty picture a client starts with.
func NewTopology() *Topology { return &Topology{Controller: -1} }

// Topic is the topic of that name, or nil when no answer has named it yet.
func (t *Topology) Topic(name string) *Topic { return t.topics[name] }

// TopicByID is the topic of that id, or nil.
func (t *Topology) TopicByID(id wire.UUID) *Topic { return t.ids[id] }

// Topics lists the known topics by name, in order.
func (t *Topology) Topics() []*Topic {
	out := make([]*Topic, 0, len(t.topics))
	for _, topic := range t.topics {
		out = append(out, topic)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Nodes lists the brokers by id, in order.
func (t *Topology) Nodes() []Node {
	out := make([]Node, 0, len(t.Brokers))
	for _, n := range t.Brokers {
		out = append(out, n)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

// Leader is the leader of a partition and its epoch; ok is false when the topic or partition is unknown or has
// no leader at present.
func (t *Topology) Leader(topic string, partition int32) (broker, epoch int32, ok bool) {
	p := t.topics[topic].Partition(partition)
	if p == nil || p.Leader < 0 {
		return -1, -1, false
	}
	return p.Leader, p.LeaderEpoch, true
}
