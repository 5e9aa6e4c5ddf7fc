package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// PartitionProducers is a row of DescribeProducers: who has written to a partition lately.
type PartitionProducers struct {
	TopicPartition
	Producers []ProducerState // by producer id
	Err       error
}

// String is the partition and how many producers it knows, or what went wrong.
func (p PartitionProducers) String() string {
	if p.Err != nil {
		return fmt.Sprintf("%v: %v", p.TopicPartition, p.Err)
	}
	return fmt.Sprintf("%v: %d producers", p.TopicPartition, len(p.Producers))
}

// ProducerState is what a partition keeps of an idempotent or transactional producer, until producer.id.expiration.ms after
// its last write.
type ProducerState struct {
	ID            int64
	Epoch         int16
	LastSequence  int32     // of its last record; -1 when that was a transaction's marker
	LastTimestamp time.Time // the largest timestamp of its last batch; zero when unknown
	// CoordinatorEpoch is that of the last marker of a transaction's end; -1 when there was none.
	CoordinatorEpoch int32
	// TxnStart is the first offset of the transaction that is open here; -1 when none is. Consumers with
	// isolation.level=read_committed do not get beyond the smallest one.
	TxnStart int64
}

// Open tells that the producer has a transaction open on the partition.
func (p ProducerState) Open() bool { return p.TxnStart >= 0 }

// DescribeProducers gives the producers of partitions, in the order of asking, as their leaders know them. It takes brokers
// from 2.8 on (KIP-664).
func (a *Admin) DescribeProducers(ctx context.Context, partitions ...TopicPartition) ([]PartitionProducers, error) {
	partitions = unique(partitions)
	rows := make([]PartitionProducers, len(partitions))
	errs := a.atLeaders(ctx, "describe producers of", partitions, func(ctx context.Context, broker int32, some []int, errs []error) {
		a.producersOf(ctx, broker, partitions, some, rows, errs)
	})
	return described(ctx, partitions, rows, errs)
}

// DescribeProducersOn is DescribeProducers as one replica knows them, which may be a follower. The error of a broker that the
// cluster does not have matches client.ErrUnknownBroker. It takes brokers from 2.8 on too.
func (a *Admin) DescribeProducersOn(ctx context.Context, broker int32, partitions ...TopicPartition) ([]PartitionProducers, error) {
	partitions = unique(partitions)
	rows := make([]PartitionProducers, len(partitions))
	errs := a.rounds(ctx, len(partitions), mayChange, func(ctx context.Context, left []int, errs []error) {
		if err := a.isThere(ctx, broker); err != nil { // the client's own picture may be that of its first moment
			setAll(errs, left, err)
			return
		}
		a.producersOf(ctx, broker, partitions, left, rows, errs)
	})
	return described(ctx, partitions, rows, errs)
}

// mayChange tells that one broker may say something else later. That it has no replica of the partition is final; that there
// is no such broker is believed after a while.
func mayChange(err error, round int) bool {
	if absent := (*absentError)(nil); errors.As(err, &absent) {
		return round < unknownRounds
	}
	return !errors.Is(err, errcode.NotLeaderOrFollower) && passing(err, round)
}

// producersOf asks one broker.
func (a *Admin) producersOf(ctx context.Context, broker int32, partitions []TopicPartition, some []int, rows []PartitionProducers, errs []error) {
	req := message.NewDescribeProducersRequest()
	for _, t := range byTopic(at(partitions, some)) {
		req.Topics = append(req.Topics, message.DescribeProducersRequestTopicRequest{Name: t.name, PartitionIndexes: t.partitions})
	}
	resp, err := once[*message.DescribeProducersResponse](ctx, a, broker, 0, req)
	if err != nil {
		setAll(errs, some, err)
		return
	}
	answers := map[TopicPartition]message.PartitionResponse{}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			answers[TopicPartition{Topic: t.Name, Partition: p.PartitionIndex}] = p
		}
	}
	for _, i := range some {
		p, ok := answers[partitions[i]]
		if !ok {
			errs[i] = leftOut("describe producers of", partitions[i].String())
		} else if errs[i] = rowError("describe producers of", partitions[i].String(), p.ErrorCode, p.ErrorMessage); errs[i] == nil {
			rows[i].Producers = activeProducers(p.ActiveProducers)
		}
	}
}

func activeProducers(list []message.ProducerState) []ProducerState {
	out := make([]ProducerState, 0, len(list))
	for _, p := range list {
		s := ProducerState{ID: p.ProducerId, Epoch: int16(p.ProducerEpoch), LastSequence: p.LastSequence, CoordinatorEpoch: p.CoordinatorEpoch, TxnStart: p.CurrentTxnStartOffset}
		if p.LastTimestamp >= 0 {
			s.LastTimestamp = time.UnixMilli(p.LastTimestamp)
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(x, y ProducerState) int { return cmp.Compare(x.ID, y.ID) })
	return out
}

func described(ctx context.Context, partitions []TopicPartition, rows []PartitionProducers, errs []error) ([]PartitionProducers, error) {
	for i, err := range errs {
		rows[i].TopicPartition, rows[i].Err = partitions[i], err
	}
	return rows, outcome(ctx, errs)
}
