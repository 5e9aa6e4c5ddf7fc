package server

import (
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleOffsetForLeaderEpoch says where a leader epoch ended, for readers that check whether the log was cut under them
// (KIP-320).
func handleOffsetForLeaderEpoch(b *Broker, r *Request) {
	req := r.Body.(*message.OffsetForLeaderEpochRequest)
	resp := message.NewOffsetForLeaderEpochResponse()
	resp.Topics = make([]message.OffsetForLeaderTopicResult, len(req.Topics))
	for i := range req.Topics {
		rt, out := &req.Topics[i], &resp.Topics[i]
		out.Topic = rt.Topic
		out.Partitions = make([]message.OffsetForLeaderEpochResponseEpochEndOffset, len(rt.Partitions))
		t := b.table.named(rt.Topic)
		for j := range rt.Partitions {
			rp, op := &rt.Partitions[j], &out.Partitions[j]
			op.SetDefaults()
			op.Partition = rp.Partition
			p, code := b.leads(t, rp.Partition)
			if code == errcode.None {
				if code = r.outcome.For(t.name); code == errcode.None {
					code = p.checkEpoch(rp.CurrentLeaderEpoch)
				}
			}
			if op.ErrorCode = int16(code); code == errcode.None {
				end := p.log.EndOffsetForEpoch(rp.LeaderEpoch)
				op.LeaderEpoch, op.EndOffset = end.Epoch, end.EndOffset
			}
		}
	}
	r.Respond(resp)
}
