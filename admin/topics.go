package admin

import (
	"context"
	"slices"
	"strings"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// NewTopic is a topic to create. Only Name is required: zero Partitions and Replicas mean the broker's num.partitions
// and default.replication.factor.
type NewTopic struct {
	Name       string
	Partitions int
	Replicas   int
	// Assignment places each partition by hand: broker ids by partition, the preferred leader first. Partitions and
	// Replicas must be zero with it.
	Assignment map[int32][]int32
	// Configs are topic configurations by Kafka's names, such as "retention.ms".
	Configs map[string]string
}

// CreatedTopic is a row of CreateTopics.
type CreatedTopic struct {
	Name       string
	ID         wire.UUID
	Partitions int
	Replicas   int
	Configs    map[string]string // what applies to the new topic, defaults included; nil with brokers before 2.4
	Err        error
}

// CreateTopics creates topics. The controller has committed the ones without error when it returns; another broker may
// hear of them a moment later, see AwaitTopic.
func (a *Admin) CreateTopics(ctx context.Context, topics ...NewTopic) ([]CreatedTopic, error) {
	return a.createTopics(ctx, topics, false)
}

// ValidateTopics checks whether CreateTopics would succeed, and creates nothing.
func (a *Admin) ValidateTopics(ctx context.Context, topics ...NewTopic) ([]CreatedTopic, error) {
	return a.createTopics(ctx, topics, true)
}

func (a *Admin) createTopics(ctx context.Context, topics []NewTopic, validateOnly bool) ([]CreatedTopic, error) {
	req := message.NewCreateTopicsRequest()
	req.TimeoutMs, req.ValidateOnly = timeoutMs(ctx), validateOnly
	for _, t := range topics {
		req.Topics = append(req.Topics, t.creatable())
	}
	resp, err := request[*message.CreateTopicsResponse](ctx, a, client.Controller(), req)
	if err != nil {
		return nil, err
	}
	rows := make([]CreatedTopic, 0, len(resp.Topics))
	for _, t := range resp.Topics {
		row := CreatedTopic{Name: t.Name, ID: t.TopicId, Partitions: int(t.NumPartitions), Replicas: int(t.ReplicationFactor)}
		row.Err = rowError("create topic", t.Name, t.ErrorCode, t.ErrorMessage)
		for _, c := range t.Configs {
			if row.Configs == nil {
				row.Configs = map[string]string{}
			}
			row.Configs[c.Name] = text(c.Value)
		}
		rows = append(rows, row)
	}
	return rows, joinRows(rows, func(r CreatedTopic) error { return r.Err })
}

// creatable is the wire form: -1 asks for the broker's default.
func (t NewTopic) creatable() message.CreatableTopic {
	c := message.CreatableTopic{Name: t.Name, NumPartitions: -1, ReplicationFactor: -1}
	if t.Partitions != 0 {
		c.NumPartitions = int32(t.Partitions)
	}
	if t.Replicas != 0 {
		c.ReplicationFactor = int16(t.Replicas)
	}
	for _, p := range sortedKeys(t.Assignment) {
		c.Assignments = append(c.Assignments, message.CreatableReplicaAssignment{PartitionIndex: p, BrokerIds: t.Assignment[p]})
	}
	for _, k := range sortedKeys(t.Configs) {
		c.Configs = append(c.Configs, message.CreatableTopicConfig{Name: k, Value: new(t.Configs[k])})
	}
	return c
}

// DeletedTopic is a row of DeleteTopics.
type DeletedTopic struct {
	Name string
	ID   wire.UUID // zero with brokers before 2.8
	Err  error
}

// DeleteTopics deletes topics by name, with all their records.
func (a *Admin) DeleteTopics(ctx context.Context, names ...string) ([]DeletedTopic, error) {
	req := message.NewDeleteTopicsRequest()
	req.TimeoutMs = timeoutMs(ctx)
	for _, n := range names {
		req.Topics = append(req.Topics, message.DeleteTopicState{Name: new(n)})
		req.TopicNames = append(req.TopicNames, n) // before version 6; a version takes the field that it has
	}
	resp, err := request[*message.DeleteTopicsResponse](ctx, a, client.Controller(), deleteTopics{req})
	if err != nil {
		return nil, err
	}
	rows := make([]DeletedTopic, 0, len(resp.Responses))
	for _, t := range resp.Responses {
		name := text(t.Name)
		rows = append(rows, DeletedTopic{name, t.TopicId, rowError("delete topic", name, t.ErrorCode, t.ErrorMessage)})
	}
	return rows, joinRows(rows, func(r DeletedTopic) error { return r.Err })
}

// Topic is a row of ListTopics and DescribeTopics.
type Topic struct {
	Name       string
	ID         wire.UUID
	Internal   bool // made by the brokers for themselves, such as __consumer_offsets
	Partitions []Partition
	Err        error
}

// Partition is where a partition lives.
type Partition struct {
	ID              int32
	Leader          int32 // broker id; -1 without a leader
	LeaderEpoch     int32 // -1 with brokers before 2.1
	Replicas        []int32
	ISR             []int32
	OfflineReplicas []int32
	Err             error
}

// ListTopics gives every topic that the client may see, internal ones too, by name.
func (a *Admin) ListTopics(ctx context.Context) ([]Topic, error) {
	return a.topics(ctx, nil)
}

// DescribeTopics gives the named topics, in their order; a missing one is a row with an error.
func (a *Admin) DescribeTopics(ctx context.Context, names ...string) ([]Topic, error) {
	if len(names) == 0 {
		return nil, nil
	}
	topics := make([]message.MetadataRequestTopic, 0, len(names))
	for _, n := range names {
		topics = append(topics, message.MetadataRequestTopic{Name: new(n)})
	}
	rows, err := a.topics(ctx, topics)
	slices.SortStableFunc(rows, func(x, y Topic) int { return slices.Index(names, x.Name) - slices.Index(names, y.Name) })
	return rows, err
}

// topics asks for metadata; nil means all topics.
func (a *Admin) topics(ctx context.Context, topics []message.MetadataRequestTopic) ([]Topic, error) {
	req := message.NewMetadataRequest()
	req.Topics, req.AllowAutoTopicCreation = topics, false
	resp, err := request[*message.MetadataResponse](ctx, a, client.AnyBroker(), req)
	if err != nil {
		return nil, err
	}
	rows := make([]Topic, 0, len(resp.Topics))
	for _, t := range resp.Topics {
		name := text(t.Name)
		row := Topic{Name: name, ID: t.TopicId, Internal: t.IsInternal, Err: rowError("describe topic", name, t.ErrorCode, nil)}
		for _, p := range t.Partitions {
			what := TopicPartition{name, p.PartitionIndex}.String()
			row.Partitions = append(row.Partitions, Partition{p.PartitionIndex, p.LeaderId, p.LeaderEpoch, p.ReplicaNodes,
				p.IsrNodes, p.OfflineReplicas, rowError("describe partition", what, p.ErrorCode, nil)})
		}
		slices.SortFunc(row.Partitions, func(x, y Partition) int { return int(x.ID) - int(y.ID) })
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(x, y Topic) int { return strings.Compare(x.Name, y.Name) })
	return rows, joinRows(rows, func(r Topic) error { return r.Err })
}

// AwaitTopic waits until the client's metadata has the topic with a leader for every partition: after CreateTopics the
// broker that is asked next may not know it yet. It ends with ctx.
func (a *Admin) AwaitTopic(ctx context.Context, name string) error {
	_, err := a.cl.AwaitTopics(ctx, name)
	if err == nil {
		a.cl.RemoveTopics(name)
	}
	return err
}
