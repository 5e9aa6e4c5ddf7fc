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
	req := message.NewCreatePartitionsRequest()
	req.TimeoutMs = timeoutMs(ctx)
	for _, t := range topics {
		topic := message.CreatePartitionsTopic{Name: t.Topic, Count: int32(t.Total)}
		for _, brokers := range t.Assignment {
			topic.Assignments = append(topic.Assignments, message.CreatePartitionsAssignment{BrokerIds: brokers})
		}
		req.Topics = append(req.Topics, topic)
	}
	resp, err := request[*message.CreatePartitionsResponse](ctx, a, client.Controller(), req)
	if err != nil {
		return nil, err
	}
	rows := make([]GrownTopic, 0, len(resp.Results))
	for _, r := range resp.Results {
		rows = append(rows, GrownTopic{r.Name, rowError("create partitions of", r.Name, r.ErrorCode, r.ErrorMessage)})
	}
	return rows, joinRows(rows, func(r GrownTopic) error { return r.Err })
}
