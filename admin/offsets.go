package admin

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/message"
)

// OffsetSpec says which offset of a partition is meant.
type OffsetSpec struct{ timestamp int64 }

// What ListOffsets can ask for.
var (
	// Latest is the offset the next record will get: the high watermark.
	Latest = OffsetSpec{-1}
	// Earliest is the first offset that is still there.
	Earliest = OffsetSpec{-2}
	// MaxTimestamp is the offset of the record with the largest timestamp (KIP-734, brokers from 3.0).
	MaxTimestamp = OffsetSpec{-3}
)

// AtTime is the first offset whose record is not older than t.
func AtTime(t time.Time) OffsetSpec { return OffsetSpec{t.UnixMilli()} }

// Offset is a row of ListOffsets.
type Offset struct {
	TopicPartition
	Offset      int64     // -1 when there is no such record
	Timestamp   time.Time // of the record; zero when the broker gave none
	LeaderEpoch int32     // of the record; -1 when unknown
	Err         error
}

// ListOffsets gives an offset of each partition, by topic and partition. It asks the leaders, each once, side by side.
func (a *Admin) ListOffsets(ctx context.Context, spec OffsetSpec, partitions ...TopicPartition) ([]Offset, error) {
	topics := map[string]bool{}
	for _, tp := range partitions {
		topics[tp.Topic] = true
	}
	names := slices.Sorted(maps.Keys(topics))
	topology, err := a.cl.AwaitTopics(ctx, names...)
	if err != nil {
		return nil, err
	}
	defer a.cl.RemoveTopics(names...)
	byLeader := map[int32][]TopicPartition{}
	var rows []Offset
	for _, tp := range partitions {
		if leader, _, ok := topology.Leader(tp.Topic, tp.Partition); ok {
			byLeader[leader] = append(byLeader[leader], tp)
		} else {
			rows = append(rows, Offset{TopicPartition: tp, Offset: -1, Err: rowError("list offsets of", tp.String(), 3, new("there is no such partition"))})
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for leader, some := range byLeader {
		wg.Go(func() { // ends with its request, which ends with ctx
			found := a.listOffsets(ctx, client.Broker(leader).Via(client.Fetch), spec, some)
			mu.Lock()
			defer mu.Unlock()
			rows = append(rows, found...)
		})
	}
	wg.Wait()
	slices.SortFunc(rows, func(x, y Offset) int {
		if c := strings.Compare(x.Topic, y.Topic); c != 0 {
			return c
		}
		return int(x.Partition) - int(y.Partition)
	})
	return rows, joinRows(rows, func(r Offset) error { return r.Err })
}

// listOffsets asks one leader; an error of the request is an error of each row.
func (a *Admin) listOffsets(ctx context.Context, to client.Target, spec OffsetSpec, some []TopicPartition) []Offset {
	req := message.NewListOffsetsRequest()
	req.ReplicaId, req.TimeoutMs = -1, timeoutMs(ctx)
	at := map[string]int{}
	for _, tp := range some {
		i, ok := at[tp.Topic]
		if !ok {
			i = len(req.Topics)
			at[tp.Topic] = i
			req.Topics = append(req.Topics, message.ListOffsetsTopic{Name: tp.Topic})
		}
		req.Topics[i].Partitions = append(req.Topics[i].Partitions,
			message.ListOffsetsPartition{PartitionIndex: tp.Partition, CurrentLeaderEpoch: -1, Timestamp: spec.timestamp})
	}
	var rows []Offset
	resp, err := request[*message.ListOffsetsResponse](ctx, a, to, req)
	if err != nil {
		for _, tp := range some {
			rows = append(rows, Offset{TopicPartition: tp, Offset: -1, LeaderEpoch: -1, Err: err})
		}
		return rows
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			tp := TopicPartition{t.Name, p.PartitionIndex}
			row := Offset{tp, p.Offset, time.Time{}, p.LeaderEpoch, rowError("list offsets of", tp.String(), p.ErrorCode, nil)}
			if p.Timestamp >= 0 {
				row.Timestamp = time.UnixMilli(p.Timestamp)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// DeletedRecords is a row of DeleteRecords.
type DeletedRecords struct {
	TopicPartition
	LowWatermark int64 // first offset that is left
	Err          error
}

// DeleteRecords deletes the records of each partition below an offset; -1 stands for the high watermark: all of them.
func (a *Admin) DeleteRecords(ctx context.Context, before map[TopicPartition]int64) ([]DeletedRecords, error) {
	var rows []DeletedRecords
	order := slices.SortedFunc(maps.Keys(before), func(x, y TopicPartition) int { return strings.Compare(x.String(), y.String()) })
	for _, tp := range order {
		req := message.NewDeleteRecordsRequest()
		req.TimeoutMs = timeoutMs(ctx)
		req.Topics = []message.DeleteRecordsTopic{{Name: tp.Topic,
			Partitions: []message.DeleteRecordsPartition{{PartitionIndex: tp.Partition, Offset: before[tp]}}}}
		row := DeletedRecords{TopicPartition: tp, LowWatermark: -1}
		resp, err := request[*message.DeleteRecordsResponse](ctx, a, client.LeaderOf(tp.Topic, tp.Partition), req)
		switch {
		case err != nil:
			row.Err = err
		case len(resp.Topics) == 1 && len(resp.Topics[0].Partitions) == 1:
			p := resp.Topics[0].Partitions[0]
			row.LowWatermark, row.Err = p.LowWatermark, rowError("delete records of", tp.String(), p.ErrorCode, nil)
		default:
			row.Err = rowError("delete records of", tp.String(), -1, new("the broker's answer leaves the partition out"))
		}
		rows = append(rows, row)
	}
	return rows, joinRows(rows, func(r DeletedRecords) error { return r.Err })
}
