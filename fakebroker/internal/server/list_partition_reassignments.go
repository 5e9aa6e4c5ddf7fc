package server

import (
	"slices"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleListPartitionReassignments lists partitions that are on the way to other brokers: all, or those named.
func handleListPartitionReassignments(b *Broker, r *Request) {
	req := r.Body.(*message.ListPartitionReassignmentsRequest)
	resp := message.NewListPartitionReassignmentsResponse()
	resp.ErrorMessage, resp.Topics = nil, []message.OngoingTopicReassignment{}
	img := b.Image()
	if req.Topics == nil {
		for _, name := range img.TopicNames() {
			appendReassignments(resp, img.Topic(name), func(int32) bool { return true })
		}
	}
	for i := range req.Topics {
		asked := req.Topics[i].PartitionIndexes
		if t := img.Topic(req.Topics[i].Name); t != nil {
			appendReassignments(resp, t, func(p int32) bool { return slices.Contains(asked, p) })
		}
	}
	r.Respond(resp)
}

func appendReassignments(resp *message.ListPartitionReassignmentsResponse, t *image.Topic, asked func(int32) bool) {
	out := message.OngoingTopicReassignment{Name: t.Name}
	for _, p := range t.Partitions {
		if p != nil && asked(p.ID) && len(p.AddingReplicas)+len(p.RemovingReplicas) > 0 {
			out.Partitions = append(out.Partitions, message.OngoingPartitionReassignment{PartitionIndex: p.ID, Replicas: p.Replicas,
				AddingReplicas: p.AddingReplicas, RemovingReplicas: p.RemovingReplicas})
		}
	}
	if len(out.Partitions) > 0 {
		resp.Topics = append(resp.Topics, out)
	}
}
