package server

import (
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleDeleteRecords moves log starts forward. The answer is the low watermark, the lowest log start of all live
// replicas: on one node its own, so there is nothing to wait for.
func handleDeleteRecords(b *Broker, r *Request) {
	req := r.Body.(*message.DeleteRecordsRequest)
	resp := message.NewDeleteRecordsResponse()
	req.Topics = mergeTopics(req.Topics, func(t *message.DeleteRecordsTopic) string { return t.Name },
		func(into, from *message.DeleteRecordsTopic) {
			into.Partitions = append(into.Partitions, from.Partitions...)
		})
	resp.Topics = make([]message.DeleteRecordsTopicResult, len(req.Topics))
	for i := range req.Topics {
		rt, out := &req.Topics[i], &resp.Topics[i]
		out.Name = rt.Name
		rt.Partitions = lastOfEach(rt.Partitions, func(p *message.DeleteRecordsPartition) int32 { return p.PartitionIndex })
		out.Partitions = make([]message.DeleteRecordsPartitionResult, len(rt.Partitions))
		t := b.table.named(rt.Name)
		for j := range rt.Partitions {
			rp, op := &rt.Partitions[j], &out.Partitions[j]
			op.PartitionIndex = rp.PartitionIndex
			low, code := b.deleteRecords(r, t, rp)
			op.LowWatermark, op.ErrorCode = low, int16(code)
		}
	}
	b.kickUpkeep() // whole segments below the new log start go
	r.Respond(resp)
}

func (b *Broker) deleteRecords(r *Request, t *topic, rp *message.DeleteRecordsPartition) (int64, errcode.Code) {
	if t.partition(rp.PartitionIndex) == nil {
		return -1, errcode.UnknownTopicOrPartition
	}
	if code := r.outcome.For(t.name); code != errcode.None {
		return -1, code
	}
	if image.Internal(t.name) {
		return -1, errcode.InvalidTopicException
	}
	p, code := b.leads(t, rp.PartitionIndex)
	if code != errcode.None {
		return -1, code
	}
	if !t.config.Load().log.CleanupDelete {
		return -1, errcode.PolicyViolation
	}
	low, err := p.log.DeleteRecordsTo(rp.Offset)
	if err != nil {
		return -1, storage.CodeOf(err)
	}
	b.waiting.Check(p)
	return low, errcode.None
}
