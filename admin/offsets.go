package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/wire/message"
)

// OffsetSpec says which offset of a partition is meant. The zero value is AtTime of 1970.
type OffsetSpec struct {
	timestamp int64 // Kafka's negative numbers stand for places
	isolation int8  // 1: read_committed
	since     int16 // the first version of ListOffsets that knows it; an older broker would take it for a time
}

// What ListOffsets can ask for.
var (
	// Latest is the offset the next record will get: the high watermark.
	Latest = OffsetSpec{timestamp: -1}
	// LastStable is the end for consumers with isolation.level=read_committed: the first offset of an open transaction,
	// the high watermark where there is none.
	LastStable = OffsetSpec{timestamp: -1, isolation: 1, since: 2}
	// Earliest is the first offset that is still there.
	Earliest = OffsetSpec{timestamp: -2}
	// MaxTimestamp is the offset of the record with the largest timestamp (KIP-734, brokers from 3.0).
	MaxTimestamp = OffsetSpec{timestamp: -3, since: 7}
	// EarliestLocal is the first offset on the leader's own disk, with tiered storage (KIP-405, brokers from 3.5).
	EarliestLocal = OffsetSpec{timestamp: -4, since: 8}
	// LatestTiered is the last offset in tiered storage (KIP-1005, brokers from 3.9); -1 when there is none.
	LatestTiered = OffsetSpec{timestamp: -5, since: 9}
)

// AtTime is the first offset whose record is not older than t. Times before 1970 stand for 1970, because negative numbers
// mean other things to brokers.
func AtTime(t time.Time) OffsetSpec { return OffsetSpec{timestamp: max(t.UnixMilli(), 0)} }

// Offset is a row of ListOffsets.
type Offset struct {
	TopicPartition
	Offset      int64     // -1 when there is no such record
	Timestamp   time.Time // of the record; zero for places that are none (Latest, Earliest)
	LeaderEpoch int32     // of the record; -1 when unknown
	Err         error
}

// String is the partition, the offset and what went wrong.
func (o Offset) String() string {
	if o.Err != nil {
		return fmt.Sprintf("%v: %v", o.TopicPartition, o.Err)
	}
	return fmt.Sprintf("%v@%d", o.TopicPartition, o.Offset)
}

// ListOffsets gives an offset of each partition. It asks the leaders, side by side; one that moved is asked again where
// it is now.
func (a *Admin) ListOffsets(ctx context.Context, spec OffsetSpec, partitions ...TopicPartition) ([]Offset, error) {
	partitions = unique(partitions)
	rows := make([]Offset, len(partitions))
	for i, tp := range partitions {
		rows[i] = Offset{TopicPartition: tp, Offset: -1, LeaderEpoch: -1}
	}
	errs := a.atLeaders(ctx, "list offsets of", partitions, func(ctx context.Context, broker int32, some []int, errs []error) {
		req := message.NewListOffsetsRequest()
		req.ReplicaId, req.IsolationLevel, req.TimeoutMs = -1, spec.isolation, a.patience(ctx)
		at := map[string]int{}
		for _, i := range some {
			t, known := at[partitions[i].Topic]
			if !known {
				t = len(req.Topics)
				at[partitions[i].Topic] = t
				req.Topics = append(req.Topics, message.ListOffsetsTopic{Name: partitions[i].Topic})
			}
			req.Topics[t].Partitions = append(req.Topics[t].Partitions,
				message.ListOffsetsPartition{PartitionIndex: partitions[i].Partition, CurrentLeaderEpoch: -1, Timestamp: spec.timestamp})
		}
		resp, err := once[*message.ListOffsetsResponse](ctx, a, broker, spec.since, req)
		if err != nil {
			setAll(errs, some, err)
			return
		}
		answers := map[TopicPartition]message.ListOffsetsPartitionResponse{}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				answers[TopicPartition{Topic: t.Name, Partition: p.PartitionIndex}] = p
			}
		}
		for _, i := range some {
			p, ok := answers[partitions[i]]
			if !ok {
				errs[i] = leftOut("list offsets of", partitions[i].String())
			} else if errs[i] = rowError("list offsets of", partitions[i].String(), p.ErrorCode, nil); errs[i] == nil {
				rows[i] = listedOffset(partitions[i], p)
			}
		}
	})
	for i, err := range errs {
		rows[i].Err = err
	}
	return rows, outcome(ctx, errs)
}

func listedOffset(tp TopicPartition, p message.ListOffsetsPartitionResponse) Offset {
	row := Offset{TopicPartition: tp, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch}
	if p.Timestamp >= 0 {
		row.Timestamp = time.UnixMilli(p.Timestamp)
	}
	return row
}
