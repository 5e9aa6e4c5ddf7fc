package logpeer

import (
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

func (c *Cluster) listOffsets(r *wiretest.Request, req *message.ListOffsetsRequest) message.Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	resp := &message.ListOffsetsResponse{}
	for _, t := range req.Topics {
		out := message.ListOffsetsTopicResponse{Name: t.Name}
		for _, p := range t.Partitions {
			d := c.listOffset(r, req, t.Name, p)
			if r.Version < 4 {
				d.LeaderEpoch = -1
			}
			out.Partitions = append(out.Partitions, d)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

func (c *Cluster) listOffset(r *wiretest.Request, req *message.ListOffsetsRequest, name string, q message.ListOffsetsPartition) message.ListOffsetsPartitionResponse {
	var d message.ListOffsetsPartitionResponse
	d.SetDefaults()
	d.PartitionIndex = q.PartitionIndex
	p, code := c.led(r.Broker, name, q.PartitionIndex, q.CurrentLeaderEpoch)
	if d.ErrorCode = int16(code); code != errcode.None {
		return d
	}
	limit := p.end
	if req.IsolationLevel == 1 {
		limit = p.stable()
	}
	switch q.Timestamp {
	case -1:
		d.Offset, d.LeaderEpoch = limit, p.Epoch
	case -2:
		d.Offset, d.LeaderEpoch = p.LogStart, p.Epoch
	default:
		d.Offset, d.Timestamp = p.firstSince(q.Timestamp, limit)
		if d.Offset >= 0 {
			d.LeaderEpoch = p.Epoch
		}
	}
	return d
}

// firstSince is the first record with that timestamp or a later one.
func (p *Partition) firstSince(timestamp, limit int64) (offset, at int64) {
	for _, b := range p.batches {
		if b.maxTime < timestamp || b.next <= p.LogStart {
			continue
		}
		it, err := record.Open(b.bytes, record.ReadOptions{})
		if err != nil {
			return -1, -1
		}
		for rec := range it.All() {
			if rec.Timestamp >= timestamp && rec.Offset < limit {
				return rec.Offset, rec.Timestamp
			}
		}
	}
	return -1, -1
}

func (c *Cluster) epochEnds(r *wiretest.Request, req *message.OffsetForLeaderEpochRequest) message.Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	resp := &message.OffsetForLeaderEpochResponse{}
	for _, t := range req.Topics {
		out := message.OffsetForLeaderTopicResult{Topic: t.Topic}
		for _, q := range t.Partitions {
			var d message.OffsetForLeaderEpochResponseEpochEndOffset
			d.SetDefaults()
			d.Partition = q.Partition
			p, code := c.led(r.Broker, t.Topic, q.Partition, q.CurrentLeaderEpoch)
			if d.ErrorCode = int16(code); code == errcode.None {
				d.LeaderEpoch, d.EndOffset = p.endOf(q.LeaderEpoch)
			}
			out.Partitions = append(out.Partitions, d)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// led finds a partition that the broker leads.
func (c *Cluster) led(broker int32, name string, partition, epoch int32) (*Partition, errcode.Code) {
	t := c.find(name, wire.UUID{})
	if t == nil || int(partition) >= len(t.parts) {
		return nil, errcode.UnknownTopicOrPartition
	}
	p := t.parts[partition]
	if p.Leader != broker {
		return nil, errcode.NotLeaderOrFollower
	}
	return p, p.checkEpoch(epoch)
}
