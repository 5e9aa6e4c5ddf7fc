package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// AllRecords stands for the high watermark in DeleteRecords: everything that consumers can read goes.
const AllRecords int64 = -1

// DeletedRecords is a row of DeleteRecords.
type DeletedRecords struct {
	TopicPartition
	LowWatermark int64 // the first offset that is left on every replica; -1 with an error
	Err          error
}

// String is the partition, what is left of it and what went wrong.
func (d DeletedRecords) String() string {
	if d.Err != nil {
		return fmt.Sprintf("%v: %v", d.TopicPartition, d.Err)
	}
	return fmt.Sprintf("%v from %d", d.TopicPartition, d.LowWatermark)
}

// DeleteRecords deletes the records of each partition below an offset, or AllRecords. Rows are by topic and partition. It
// asks the leaders, side by side; one that moved is asked again where it is now, which does no harm: deleting is idempotent.
func (a *Admin) DeleteRecords(ctx context.Context, before map[TopicPartition]int64) ([]DeletedRecords, error) {
	partitions := slices.SortedFunc(maps.Keys(before), func(x, y TopicPartition) int {
		return cmp.Or(strings.Compare(x.Topic, y.Topic), cmp.Compare(x.Partition, y.Partition))
	})
	rows := make([]DeletedRecords, len(partitions))
	for i, tp := range partitions {
		rows[i] = DeletedRecords{TopicPartition: tp, LowWatermark: -1}
	}
	errs := a.atLeaders(ctx, "delete records of", partitions, func(ctx context.Context, broker int32, some []int, errs []error) {
		req := message.NewDeleteRecordsRequest()
		req.TimeoutMs = a.patience(ctx)
		for _, i := range some { // sorted, so the partitions of a topic follow each other
			tp := partitions[i]
			if n := len(req.Topics); n == 0 || req.Topics[n-1].Name != tp.Topic {
				req.Topics = append(req.Topics, message.DeleteRecordsTopic{Name: tp.Topic})
			}
			t := &req.Topics[len(req.Topics)-1]
			t.Partitions = append(t.Partitions, message.DeleteRecordsPartition{PartitionIndex: tp.Partition, Offset: before[tp]})
		}
		resp, err := once[*message.DeleteRecordsResponse](ctx, a, broker, 0, req)
		if err != nil {
			setAll(errs, some, err)
			return
		}
		answers := map[TopicPartition]message.DeleteRecordsPartitionResult{}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				answers[TopicPartition{Topic: t.Name, Partition: p.PartitionIndex}] = p
			}
		}
		for _, i := range some {
			p, ok := answers[partitions[i]]
			hint := ""
			if errcode.Code(p.ErrorCode) == errcode.OffsetOutOfRange {
				hint = fmt.Sprintf("offset %d is not in the log; ListOffsets says which are", before[partitions[i]])
			}
			if !ok {
				errs[i] = leftOut("delete records of", partitions[i].String())
			} else if errs[i] = rowError("delete records of", partitions[i].String(), p.ErrorCode, &hint); errs[i] == nil {
				rows[i].LowWatermark = p.LowWatermark
			}
		}
	})
	for i, err := range errs {
		rows[i].Err = err
	}
	return rows, outcome(ctx, errs)
}
