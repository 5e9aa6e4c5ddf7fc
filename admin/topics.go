package admin

import (
	"context"
	"maps"
	"slices"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// NewTopic is a topic to create. Only Name is required: zero Partitions and Replicas mean the broker's num.partitions
// and default.replication.factor (brokers before 2.4 want both).
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
	ID         wire.UUID         // zero with brokers before 2.8
	Partitions int               // -1 with brokers before 2.4, and where its configuration may not be seen
	Replicas   int               // likewise
	Configs    map[string]string // what applies to the new topic, defaults included; nil where Partitions is -1
	Err        error
}

// CreateTopics creates topics. The controller has committed the ones without error when it returns; another broker may
// hear of them a moment later, see AwaitTopic. Each topic is created or refused by itself.
func (a *Admin) CreateTopics(ctx context.Context, topics ...NewTopic) ([]CreatedTopic, error) {
	return a.createTopics(ctx, topics, false)
}

// ValidateTopics checks whether CreateTopics would succeed, and creates nothing.
func (a *Admin) ValidateTopics(ctx context.Context, topics ...NewTopic) ([]CreatedTopic, error) {
	return a.createTopics(ctx, topics, true)
}

func (a *Admin) createTopics(ctx context.Context, topics []NewTopic, validateOnly bool) ([]CreatedTopic, error) {
	rows := make([]CreatedTopic, len(topics))
	for i, t := range topics {
		rows[i] = CreatedTopic{Name: t.Name, Partitions: -1, Replicas: -1}
	}
	errs := a.rounds(ctx, len(topics), throttled, func(ctx context.Context, left []int, errs []error) {
		req := message.NewCreateTopicsRequest()
		req.TimeoutMs, req.ValidateOnly = a.patience(ctx), validateOnly
		for _, i := range left {
			req.Topics = append(req.Topics, topics[i].creatable())
		}
		resp, err := request[*message.CreateTopicsResponse](ctx, a, client.Controller(), createTopics{req})
		if err != nil {
			setAll(errs, left, err)
			return
		}
		answers := byName(resp.Topics, func(t message.CreatableTopicResult) string { return t.Name })
		for _, i := range left {
			if t, ok := answers[topics[i].Name]; ok {
				rows[i], errs[i] = createdTopic(t), rowError("create topic", t.Name, t.ErrorCode, t.ErrorMessage)
			} else {
				errs[i] = leftOut("create topic", topics[i].Name)
			}
		}
	})
	for i, err := range errs {
		rows[i].Err = err
	}
	return rows, outcome(ctx, errs)
}

func createdTopic(t message.CreatableTopicResult) CreatedTopic {
	row := CreatedTopic{Name: t.Name, ID: t.TopicId, Partitions: int(t.NumPartitions), Replicas: int(t.ReplicationFactor)}
	for _, c := range t.Configs {
		if row.Configs == nil {
			row.Configs = make(map[string]string, len(t.Configs))
		}
		row.Configs[c.Name] = text(c.Value)
	}
	return row
}

// creatable is the wire form: -1 asks for the broker's default.
func (t NewTopic) creatable() message.CreatableTopic {
	c := message.CreatableTopic{Name: t.Name, NumPartitions: -1, ReplicationFactor: -1}
	if t.Partitions != 0 {
		c.NumPartitions = clamp32(t.Partitions)
	}
	if t.Replicas != 0 {
		c.ReplicationFactor = clamp16(t.Replicas)
	}
	for _, p := range slices.Sorted(maps.Keys(t.Assignment)) {
		c.Assignments = append(c.Assignments, message.CreatableReplicaAssignment{PartitionIndex: p, BrokerIds: t.Assignment[p]})
	}
	for _, k := range slices.Sorted(maps.Keys(t.Configs)) {
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

// DeleteTopics deletes topics by name, with all their records. Each is deleted or refused by itself.
func (a *Admin) DeleteTopics(ctx context.Context, names ...string) ([]DeletedTopic, error) {
	names = unique(names)
	rows := make([]DeletedTopic, len(names))
	for i, n := range names {
		rows[i].Name = n
	}
	errs := a.rounds(ctx, len(names), throttled, func(ctx context.Context, left []int, errs []error) {
		req := message.NewDeleteTopicsRequest()
		req.TimeoutMs = a.patience(ctx)
		for _, i := range left {
			req.Topics = append(req.Topics, message.DeleteTopicState{Name: new(names[i])})
			req.TopicNames = append(req.TopicNames, names[i])
		}
		resp, err := request[*message.DeleteTopicsResponse](ctx, a, client.Controller(), deleteTopics{req})
		if err != nil {
			setAll(errs, left, err)
			return
		}
		answers := byName(resp.Responses, func(t message.DeletableTopicResult) string { return text(t.Name) })
		for _, i := range left {
			if t, ok := answers[names[i]]; ok {
				rows[i].ID, errs[i] = t.TopicId, rowError("delete topic", names[i], t.ErrorCode, t.ErrorMessage)
			} else {
				errs[i] = leftOut("delete topic", names[i])
			}
		}
	})
	for i, err := range errs {
		rows[i].Err = err
	}
	return rows, outcome(ctx, errs)
}

// setAll gives each of the rows the error of the request they were in.
func setAll(errs []error, left []int, err error) {
	for _, i := range left {
		errs[i] = err
	}
}

// byName makes an answer's rows accessible by what they are about: brokers keep no order.
func byName[K comparable, R any](rows []R, name func(R) K) map[K]R {
	m := make(map[K]R, len(rows))
	for _, r := range rows {
		m[name(r)] = r
	}
	return m
}
