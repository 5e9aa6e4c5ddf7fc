package fetch

import (
	"fmt"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// decodeFetch turns an answer into an event. Records stay where they are in the body.
func (d *Driver) decodeFetch(f *machine.Fetch, r client.Reply, owner *charge) (machine.FetchReceived, []client.Node, error) {
	var resp message.FetchResponse
	if err := resp.ReadFrom(wire.NewReader(r.Body), r.Version); err != nil {
		return machine.FetchReceived{}, nil, fmt.Errorf("answer to Fetch v%d of %d bytes: %w", r.Version, len(r.Body), err)
	}
	ev := machine.FetchReceived{Broker: f.Broker, Code: errcode.Code(resp.ErrorCode), SessionID: resp.SessionId}
	n := 0
	for i := range resp.Responses {
		n += len(resp.Responses[i].Partitions)
	}
	ev.Parts = make([]machine.FetchedPart, 0, n)
	for i := range resp.Responses {
		t := &resp.Responses[i]
		for j := range t.Partitions {
			ev.Parts = append(ev.Parts, d.part(t, &t.Partitions[j], owner))
		}
	}
	var nodes []client.Node
	for _, e := range resp.NodeEndpoints {
		n := client.Node{ID: e.NodeId, Host: e.Host, Port: e.Port}
		if e.Rack != nil {
			n.Rack = *e.Rack
		}
		nodes = append(nodes, n)
	}
	return ev, nodes, nil
}

// part is one partition of an answer.
func (d *Driver) part(t *message.FetchableTopicResponse, p *message.FetchResponsePartitionData, owner *charge) machine.FetchedPart {
	out := machine.FetchedPart{
		TopicPartition: machine.TopicPartition{Topic: t.Topic, Partition: p.PartitionIndex}, TopicID: t.TopicId,
		Code: errcode.Code(p.ErrorCode), HighWatermark: p.HighWatermark, LastStable: p.LastStableOffset, LogStart: p.LogStartOffset,
		Preferred: p.PreferredReadReplica, Owner: owner,
		Leader: machine.Leader{Broker: p.CurrentLeader.LeaderId, Epoch: p.CurrentLeader.LeaderEpoch},
	}
	if p.DivergingEpoch.Epoch >= 0 || p.DivergingEpoch.EndOffset >= 0 {
		out.Diverging = &machine.EpochEnd{Epoch: p.DivergingEpoch.Epoch, End: p.DivergingEpoch.EndOffset, Consumed: d.consumed(out.Topic, p.PartitionIndex, t.TopicId)}
	}
	if len(p.AbortedTransactions) > 0 {
		out.Aborted = make([]machine.Aborted, len(p.AbortedTransactions))
		for i, a := range p.AbortedTransactions {
			out.Aborted[i] = machine.Aborted{ProducerID: a.ProducerId, FirstOffset: a.FirstOffset}
		}
	}
	if len(p.Records) > 0 {
		out.Records, out.Next, out.Broken = scan(p.Records)
	}
	return out
}

// consumed is how far the application has come in a partition; unknown is -1.
func (d *Driver) consumed(topic string, partition int32, id wire.UUID) machine.Position {
	if topic == "" {
		if t := d.cl.Topology().TopicByID(id); t != nil {
			topic = t.Name
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.cells[machine.TopicPartition{Topic: topic, Partition: partition}]; c != nil {
		return c.Position()
	}
	return machine.Position{Offset: -1, Epoch: -1}
}

// decodeOffsets turns the answer of a ListOffsets request into an event.
func decodeOffsets(l *machine.Lookup, r client.Reply) machine.OffsetsReceived {
	ev := machine.OffsetsReceived{Lookup: l, Err: r.Err}
	if r.Err != nil {
		return ev
	}
	var resp message.ListOffsetsResponse
	if err := resp.ReadFrom(wire.NewReader(r.Body), r.Version); err != nil {
		ev.Err = fmt.Errorf("answer to ListOffsets v%d of %d bytes: %w", r.Version, len(r.Body), err)
		return ev
	}
	found := map[machine.TopicPartition]machine.FoundOffset{}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			found[machine.TopicPartition{Topic: t.Name, Partition: p.PartitionIndex}] = machine.FoundOffset{
				Code: errcode.Code(p.ErrorCode), Offset: p.Offset, Epoch: p.LeaderEpoch}
		}
	}
	for _, p := range l.Parts {
		f, ok := found[p.TopicPartition]
		if !ok {
			f.Code = errcode.UnknownServerError // it was asked for: an answer without it is no answer
		}
		ev.Found = append(ev.Found, f)
	}
	return ev
}

// decodeEpochs turns the answer of an OffsetForLeaderEpoch request into an event.
func (d *Driver) decodeEpochs(l *machine.Lookup, r client.Reply) machine.EpochEndsReceived {
	ev := machine.EpochEndsReceived{Lookup: l, Err: r.Err}
	if r.Err != nil {
		return ev
	}
	var resp message.OffsetForLeaderEpochResponse
	if err := resp.ReadFrom(wire.NewReader(r.Body), r.Version); err != nil {
		ev.Err = fmt.Errorf("answer to OffsetForLeaderEpoch v%d of %d bytes: %w", r.Version, len(r.Body), err)
		return ev
	}
	ends := map[machine.TopicPartition]machine.EpochEnd{}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			ends[machine.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = machine.EpochEnd{
				Code: errcode.Code(p.ErrorCode), Epoch: p.LeaderEpoch, End: p.EndOffset}
		}
	}
	for _, p := range l.Parts {
		e, ok := ends[p.TopicPartition]
		if !ok {
			e.Code = errcode.UnknownServerError
		}
		e.Consumed = d.consumed(p.Topic, p.Partition, wire.UUID{})
		ev.Ends = append(ev.Ends, e)
	}
	return ev
}
