package server

import (
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// notHosted is Apache Kafka's text for a partition that this broker does not lead.
const notHosted = "This server does not host this topic-partition."

// handleDescribeProducers lists the producer ids that partitions remember (KIP-664).
func handleDescribeProducers(b *Broker, r *Request) {
	req := r.Body.(*message.DescribeProducersRequest)
	resp := message.NewDescribeProducersResponse()
	resp.Topics = make([]message.TopicResponse, len(req.Topics))
	for i := range req.Topics {
		rt, out := &req.Topics[i], &resp.Topics[i]
		out.Name = rt.Name
		out.Partitions = make([]message.PartitionResponse, len(rt.PartitionIndexes))
		t := b.table.named(rt.Name)
		for j, index := range rt.PartitionIndexes {
			op := &out.Partitions[j]
			op.SetDefaults()
			op.PartitionIndex = index
			p, code := b.leads(t, index)
			if op.ErrorCode = int16(code); code != errcode.None {
				if t == nil { // an unknown partition of a known topic gets none
					text := notHosted
					op.ErrorMessage = &text
				}
				continue
			}
			op.ActiveProducers = activeProducers(p)
		}
	}
	r.Respond(resp)
}

func activeProducers(p *partition) []message.ProducerState {
	var all []message.ProducerState
	for _, a := range p.log.ActiveProducers() {
		all = append(all, message.ProducerState{
			ProducerId:            a.ProducerID,
			ProducerEpoch:         int32(a.ProducerEpoch),
			LastSequence:          a.LastSequence,
			LastTimestamp:         a.LastTimestamp,
			CoordinatorEpoch:      a.CoordinatorEpoch,
			CurrentTxnStartOffset: a.TxnStartOffset,
		})
	}
	return all
}
