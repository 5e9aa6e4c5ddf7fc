package admin

import (
	"context"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/message"
)

// MorePartitions asks for a topic to have Total partitions; a topic never loses any.
type MorePartitions struct {
	Topic string
	Total int
	// Assignment places the new partitions by hand, broker ids for each in the order of their numbers.
	Assignment [][]int32
}

// GrownTopic is a row of CreatePartitions.
type GrownTopic struct {
	Topic string
	Err   error
}

// CreatePartitions adds partitions to topics. Keys hash to other partitions afterwards.
func (a *Admin) CreatePartitions(ctx context.Context, topics ...MorePartitions) ([]GrownTopic, error) {
	return a.createPartitions(ctx, topics, false)
}

// ValidatePartitions checks whether CreatePartitions would succeed, and changes nothing.
func (a *Admin) ValidatePartitions(ctx context.Context, topics ...MorePartitions) ([]GrownTopic, error) {
	return a.createPartitions(ctx, topics, true)
}

func (a *Admin) createPartitions(ctx context.Context, topics []MorePartitions, validateOnly bool) ([]GrownTopic, error) {
	errs := a.rounds(ctx, len(topics), throttled, func(ctx context.Context, left []int, errs []error) {
		req := message.NewCreatePartitionsRequest()
		req.TimeoutMs, req.ValidateOnly = a.patience(ctx), validateOnly
		for _, i := range left {
			req.Topics = append(req.Topics, topics[i].growable())
		}
		resp, err := request[*message.CreatePartitionsResponse](ctx, a, client.Controller(), req)
		if err != nil {
			setAll(errs, left, err)
			return
		}
		answers := byName(resp.Results, func(r message.CreatePartitionsTopicResult) string { return r.Name })
		for _, i := range left {
			if r, ok := answers[topics[i].Topic]; ok {
				errs[i] = rowError("create partitions of", r.Name, r.ErrorCode, r.ErrorMessage)
			} else {
				errs[i] = leftOut("create partitions of", topics[i].Topic)
			}
		}
	})
	rows := make([]GrownTopic, len(topics))
	for i, err := range errs {
		rows[i] = GrownTopic{topics[i].Topic, err}
	}
	return rows, outcome(ctx, errs)
}

// growable is the wire form.
func (t MorePartitions) growable() message.CreatePartitionsTopic {
	out := message.CreatePartitionsTopic{Name: t.Topic, Count: clamp32(t.Total)}
	for _, brokers := range t.Assignment {
		out.Assignments = append(out.Assignments, message.CreatePartitionsAssignment{BrokerIds: brokers})
	}
	return out
}
