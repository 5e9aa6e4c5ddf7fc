package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Topic is a row of ListTopics and DescribeTopics.
type Topic struct {
	Name       string
	ID         wire.UUID // zero with brokers before 2.8
	Internal   bool      // made by the brokers for themselves, such as __consumer_offsets
	Partitions []Partition
	Err        error
}

// Replicas is the replication factor: the largest number of replicas that a partition has.
func (t Topic) Replicas() (n int) {
	for _, p := range t.Partitions {
		n = max(n, len(p.Replicas))
	}
	return n
}

// Partition is where a partition lives: broker ids.
type Partition struct {
	ID              int32
	Leader          int32 // -1 without a leader
	LeaderEpoch     int32 // -1 unknown
	Replicas        []int32
	ISR             []int32 // in-sync replicas
	OfflineReplicas []int32
	ELR             []int32 // replicas outside the ISR that have everything too (KIP-966, brokers from 4.0); ListTopics has none
	LastKnownELR    []int32 // likewise: the last of them, when there are none
}

// UnderReplicated tells that replicas are missing from the ISR.
func (p Partition) UnderReplicated() bool { return len(p.ISR) < len(p.Replicas) }

// UnderMinISR tells that the ISR has shrunk below min.insync.replicas, the topic's or broker's configuration, so that writes
// with acks=all are refused.
func (p Partition) UnderMinISR(minInsyncReplicas int) bool { return len(p.ISR) < minInsyncReplicas }

// ListTopics gives every topic that the client may see, internal ones too, by name.
func (a *Admin) ListTopics(ctx context.Context) ([]Topic, error) {
	resp, err := a.metadataResponse(ctx, nil)
	if err != nil {
		return nil, err
	}
	rows, errs := make([]Topic, 0, len(resp.Topics)), make([]error, 0, len(resp.Topics))
	for _, t := range resp.Topics {
		row := metadataTopic(t)
		rows, errs = append(rows, row), append(errs, row.Err)
	}
	slices.SortFunc(rows, func(x, y Topic) int { return strings.Compare(x.Name, y.Name) })
	return rows, joinErrors(errs)
}

// DescribeTopics gives the named topics, in their order; a missing one is a row with an error. Partitions without a leader
// are no error.
func (a *Admin) DescribeTopics(ctx context.Context, names ...string) ([]Topic, error) {
	if len(names) == 0 {
		return nil, outcome(ctx, nil) // an empty list would mean all topics
	}
	names = unique(names)
	found, err := a.topicPartitions(ctx, names)
	if errors.Is(err, client.ErrUnsupportedVersion) {
		found, err = a.metadata(ctx, names)
	}
	rows, errs := make([]Topic, 0, len(names)), make([]error, 0, len(names))
	for _, n := range names {
		t, ok := found[n]
		switch {
		case err != nil:
			t = Topic{Name: n, Err: err}
		case !ok:
			t = Topic{Name: n, Err: leftOut("describe topic", n)}
		}
		rows, errs = append(rows, t), append(errs, t.Err)
	}
	return rows, outcome(ctx, errs)
}

// topicPartitions describes topics page by page (KIP-966).
func (a *Admin) topicPartitions(ctx context.Context, names []string) (map[string]Topic, error) {
	found := make(map[string]Topic, len(names))
	req := message.NewDescribeTopicPartitionsRequest()
	for _, n := range names {
		req.Topics = append(req.Topics, message.DescribeTopicPartitionsRequestTopicRequest{Name: n})
	}
	for {
		resp, err := request[*message.DescribeTopicPartitionsResponse](ctx, a, client.AnyBroker(), req)
		if err != nil {
			return nil, err
		}
		for _, t := range resp.Topics {
			name := text(t.Name)
			row := found[name] // a topic may go on from the page before
			row.Name, row.ID, row.Internal = name, t.TopicId, t.IsInternal
			row.Err = rowError("describe topic", name, t.ErrorCode, nil)
			for _, p := range t.Partitions {
				row.Partitions = append(row.Partitions, Partition{p.PartitionIndex, p.LeaderId, p.LeaderEpoch, p.ReplicaNodes,
					p.IsrNodes, p.OfflineReplicas, p.EligibleLeaderReplicas, p.LastKnownElr})
			}
			sortPartitions(row.Partitions)
			found[name] = row
		}
		next := resp.NextCursor
		if next == nil {
			return found, nil
		}
		if c := req.Cursor; c != nil && c.TopicName == next.TopicName && c.PartitionIndex == next.PartitionIndex {
			return nil, fmt.Errorf("%w: DescribeTopicPartitions does not get beyond %s-%d", client.ErrProtocol, next.TopicName, next.PartitionIndex)
		}
		req.Cursor = &message.DescribeTopicPartitionsRequestCursor{TopicName: next.TopicName, PartitionIndex: next.PartitionIndex}
	}
}

// metadata describes topics by a Metadata request, which every broker knows. It creates none of them.
func (a *Admin) metadata(ctx context.Context, names []string) (map[string]Topic, error) {
	topics := make([]message.MetadataRequestTopic, 0, len(names))
	for _, n := range names {
		topics = append(topics, message.MetadataRequestTopic{Name: new(n)})
	}
	resp, err := a.metadataResponse(ctx, topics)
	if err != nil {
		return nil, err
	}
	found := make(map[string]Topic, len(names))
	for _, t := range resp.Topics {
		row := metadataTopic(t)
		found[row.Name] = row
	}
	return found, nil
}

// onlyBrokers asks for metadata of no topic.
var onlyBrokers = []message.MetadataRequestTopic{}

// metadataResponse asks for metadata; nil means all topics.
func (a *Admin) metadataResponse(ctx context.Context, topics []message.MetadataRequestTopic) (*message.MetadataResponse, error) {
	req := message.NewMetadataRequest()
	req.Topics, req.AllowAutoTopicCreation = topics, false
	return request[*message.MetadataResponse](ctx, a, client.AnyBroker(), req)
}

func metadataTopic(t message.MetadataResponseTopic) Topic {
	name := text(t.Name)
	row := Topic{Name: name, ID: t.TopicId, Internal: t.IsInternal, Err: rowError("describe topic", name, t.ErrorCode, nil)}
	for _, p := range t.Partitions {
		row.Partitions = append(row.Partitions, Partition{ID: p.PartitionIndex, Leader: p.LeaderId, LeaderEpoch: p.LeaderEpoch,
			Replicas: p.ReplicaNodes, ISR: p.IsrNodes, OfflineReplicas: p.OfflineReplicas})
	}
	sortPartitions(row.Partitions)
	return row
}

func sortPartitions(list []Partition) {
	slices.SortFunc(list, func(x, y Partition) int { return int(x.ID) - int(y.ID) })
}

// AwaitTopic waits until the broker that is asked knows the topic with a leader for every partition: after CreateTopics
// it may not know it yet. It creates nothing, and ends with ctx or after default.api.timeout.ms.
func (a *Admin) AwaitTopic(ctx context.Context, name string) error {
	errs := a.rounds(ctx, 1, func(err error, _ int) bool { return client.Retriable(err) }, func(ctx context.Context, _ []int, errs []error) {
		topics, err := a.metadata(ctx, []string{name})
		t, ok := topics[name]
		switch {
		case err != nil:
			errs[0] = err
		case !ok:
			errs[0] = leftOut("await topic", name)
		default:
			errs[0] = notReady(t)
		}
	})
	return errs[0]
}

// notReady says what a topic lacks.
func notReady(t Topic) error {
	if t.Err != nil {
		return t.Err
	}
	for _, p := range t.Partitions {
		if p.Leader < 0 {
			return &Error{Op: "await topic", What: TopicPartition{Topic: t.Name, Partition: p.ID}.String(), Code: errcode.LeaderNotAvailable, Message: "it has no leader at present"}
		}
	}
	return nil
}

// codeOf is the code inside an error.
func codeOf(err error) errcode.Code {
	code := errcode.UnknownServerError
	errors.As(err, &code)
	return code
}
