package server

import (
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Timestamps of ListOffsets that are questions, with the version that brought them.
const (
	latestTimestamp        = -1 // high watermark, or last stable offset with read_committed
	earliestTimestamp      = -2 // log start
	maxTimestamp           = -3 // first record with the largest timestamp
	earliestLocalTimestamp = -4 // log start of what is on local disk: the same without tiered storage
	latestTieredTimestamp  = -5 // nothing is tiered: -1
	earliestPendingUpload  = -6 // nothing waits to be tiered: -1
)

var timestampSince = map[int64]int16{
	latestTimestamp: 1, earliestTimestamp: 1, maxTimestamp: 7, earliestLocalTimestamp: 8, latestTieredTimestamp: 9,
	earliestPendingUpload: 11,
}

func handleListOffsets(b *Broker, r *Request) {
	req := r.Body.(*message.ListOffsetsRequest)
	resp := message.NewListOffsetsResponse()
	req.Topics = mergeTopics(req.Topics, func(t *message.ListOffsetsTopic) string { return t.Name },
		func(into, from *message.ListOffsetsTopic) {
			into.Partitions = append(into.Partitions, from.Partitions...)
		})
	resp.Topics = make([]message.ListOffsetsTopicResponse, len(req.Topics))
	asked := timesAsked(req)
	for i := range req.Topics {
		rt, out := &req.Topics[i], &resp.Topics[i]
		out.Name = rt.Name
		out.Partitions = make([]message.ListOffsetsPartitionResponse, 0, len(rt.Partitions))
		t := b.table.named(rt.Name)
		for j := range rt.Partitions {
			rp := &rt.Partitions[j]
			op := message.ListOffsetsPartitionResponse{}
			op.SetDefaults()
			op.PartitionIndex = rp.PartitionIndex
			code := errcode.InvalidRequest
			var found storage.TimestampOffset
			switch k := (partKey{name: rt.Name, index: rp.PartitionIndex}); asked[k] {
			case 1:
				found, code = b.listOffset(r, req, t, rp)
			case 0:
				continue // answered already
			default:
				asked[k] = 0
			}
			if op.ErrorCode = int16(code); code == errcode.None {
				op.Timestamp, op.Offset = found.Timestamp, found.Offset
				if r.Version >= 4 {
					op.LeaderEpoch = found.LeaderEpoch
				}
			}
			out.Partitions = append(out.Partitions, op)
		}
	}
	r.Respond(resp)
}

// timesAsked counts how often each partition is asked for: what comes twice gets one answer, INVALID_REQUEST.
func timesAsked(req *message.ListOffsetsRequest) map[partKey]int {
	asked := make(map[partKey]int)
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			asked[partKey{name: req.Topics[i].Name, index: req.Topics[i].Partitions[j].PartitionIndex}]++
		}
	}
	return asked
}

func (b *Broker) listOffset(r *Request, req *message.ListOffsetsRequest, t *topic, rp *message.ListOffsetsPartition) (storage.TimestampOffset, errcode.Code) {
	if t.partition(rp.PartitionIndex) == nil {
		return storage.TimestampOffset{}, errcode.UnknownTopicOrPartition
	}
	if code := r.outcome.For(t.name); code != errcode.None {
		return storage.TimestampOffset{}, code
	}
	if since, ok := timestampSince[rp.Timestamp]; rp.Timestamp < 0 && (!ok || r.Version < since) {
		return storage.TimestampOffset{}, errcode.UnsupportedVersion
	}
	p, code := b.leads(t, rp.PartitionIndex)
	if code == errcode.None {
		code = p.checkEpoch(rp.CurrentLeaderEpoch)
	}
	if code != errcode.None {
		return storage.TimestampOffset{}, code
	}
	bound := storage.BoundHighWatermark
	switch {
	case req.ReplicaId >= 0:
		bound = storage.BoundLogEnd
	case req.IsolationLevel == 1:
		bound = storage.BoundStable
	}
	found, err := p.offsetFor(rp.Timestamp, bound)
	return found, storage.CodeOf(err)
}

// offsetFor answers one question about offsets. The epoch it returns is that of the record, not the current one, except
// for the latest offset, where there is no record yet.
func (p *partition) offsetFor(timestamp int64, bound storage.Bound) (storage.TimestampOffset, error) {
	none := storage.TimestampOffset{Timestamp: -1, Offset: -1, LeaderEpoch: -1}
	start, stable, high, end := p.log.Offsets()
	switch timestamp {
	case latestTimestamp:
		none.Offset, none.LeaderEpoch = high, p.state.Load().leaderEpoch
		switch bound {
		case storage.BoundStable:
			none.Offset = stable
		case storage.BoundLogEnd:
			none.Offset = end
		}
		return none, nil
	case earliestTimestamp, earliestLocalTimestamp:
		none.Offset, none.LeaderEpoch = start, p.log.EpochForOffset(start)
		return none, nil
	case maxTimestamp:
		return p.log.MaxTimestampOffset()
	case latestTieredTimestamp, earliestPendingUpload:
		return none, nil
	}
	return p.log.OffsetForTimestamp(timestamp, bound)
}
