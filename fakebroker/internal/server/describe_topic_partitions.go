package server

import (
	"slices"

	"github.com/ottla-kafka/ottla/fakebroker/internal/controller"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleDescribeTopicPartitions describes topics in alphabetical order, at most so many partitions at a time (KIP-966).
// Where it stops it says at which partition of which topic to go on; the client sends that back as the cursor.
func handleDescribeTopicPartitions(b *Broker, r *Request) {
	req := r.Body.(*message.DescribeTopicPartitionsRequest)
	img := b.Image()
	names, ok := pagedTopics(img, req)
	if !ok {
		r.Respond(failedTopicPartitions(req))
		return
	}
	all := len(req.Topics) == 0
	left := max(min(int(b.Config().Int("max.request.partition.size.limit")), int(req.ResponsePartitionLimit)), 1)
	resp := message.NewDescribeTopicPartitionsResponse()
	resp.Topics = []message.DescribeTopicPartitionsResponseTopic{}
	view := metadataView{image: img, listener: r.Listener, version: 13}
	for _, name := range names {
		if left == 0 {
			resp.NextCursor = &message.DescribeTopicPartitionsResponseCursor{TopicName: name}
			break
		}
		t := img.Topic(name)
		if t == nil {
			if !all {
				resp.Topics = append(resp.Topics, unknownTopic(name))
			}
			continue
		}
		from := 0
		if req.Cursor != nil && req.Cursor.TopicName == name {
			from = min(int(req.Cursor.PartitionIndex), len(t.Partitions))
		}
		to := min(from+left, len(t.Partitions))
		resp.Topics = append(resp.Topics, view.describe(t, from, to))
		left -= to - from
		if to < len(t.Partitions) {
			resp.NextCursor = &message.DescribeTopicPartitionsResponseCursor{TopicName: name, PartitionIndex: int32(to)}
			break
		}
	}
	r.Respond(resp)
}

// pagedTopics returns the names to describe, from the cursor on; ok is false for a cursor that does not fit.
func pagedTopics(img *image.Image, req *message.DescribeTopicPartitionsRequest) (names []string, ok bool) {
	from := ""
	if req.Cursor != nil {
		from = req.Cursor.TopicName
		if req.Cursor.PartitionIndex < 0 {
			return nil, false
		}
	}
	if len(req.Topics) == 0 {
		names = img.TopicNames()
		at, _ := slices.BinarySearch(names, from)
		return names[at:], true
	}
	for i := range req.Topics {
		if req.Topics[i].Name >= from {
			names = append(names, req.Topics[i].Name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names, req.Cursor == nil || slices.Contains(names, from)
}

func failedTopicPartitions(req *message.DescribeTopicPartitionsRequest) *message.DescribeTopicPartitionsResponse {
	resp := message.NewDescribeTopicPartitionsResponse()
	for i := range req.Topics {
		resp.Topics = append(resp.Topics, message.DescribeTopicPartitionsResponseTopic{ErrorCode: int16(errcode.InvalidRequest),
			Name: &req.Topics[i].Name, TopicAuthorizedOperations: notAsked})
	}
	return resp
}

func unknownTopic(name string) message.DescribeTopicPartitionsResponseTopic {
	code := errcode.UnknownTopicOrPartition
	if controller.ValidateTopicName(name) != "" {
		code = errcode.InvalidTopicException
	}
	return message.DescribeTopicPartitionsResponseTopic{ErrorCode: int16(code), Name: &name, IsInternal: image.Internal(name),
		TopicAuthorizedOperations: topicOperations}
}

// describe is the topic with partitions [from, to).
func (v *metadataView) describe(t *image.Topic, from, to int) message.DescribeTopicPartitionsResponseTopic {
	out := message.DescribeTopicPartitionsResponseTopic{Name: &t.Name, TopicId: t.ID, IsInternal: image.Internal(t.Name),
		TopicAuthorizedOperations: topicOperations}
	for _, p := range t.Partitions[from:to] {
		if p == nil {
			continue
		}
		m := v.partition(p)
		out.Partitions = append(out.Partitions, message.DescribeTopicPartitionsResponsePartition{
			ErrorCode: m.ErrorCode, PartitionIndex: m.PartitionIndex, LeaderId: m.LeaderId, LeaderEpoch: m.LeaderEpoch,
			ReplicaNodes: m.ReplicaNodes, IsrNodes: m.IsrNodes, OfflineReplicas: m.OfflineReplicas,
			EligibleLeaderReplicas: orEmpty(p.ELR), LastKnownElr: orEmpty(p.LastKnownELR),
		})
	}
	return out
}

// orEmpty is for fields that may be null and never are.
func orEmpty(ids []int32) []int32 {
	if ids == nil {
		return []int32{}
	}
	return ids
}
