package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/wire/errcode"
)

// HangingSearch says where to look for hanging transactions. The zero value is everywhere, for those older than 15 minutes.
type HangingSearch struct {
	Topics     []string         // all their partitions
	Partitions []TopicPartition // in addition
	// Broker, unless nil, limits the search to partitions with a replica there, and asks that broker about them. One that the
	// cluster does not have is an error, which matches client.ErrUnknownBroker.
	Broker *int32
	// MaxTimeout is the longest that a transaction of the cluster may take, transaction.max.timeout.ms of its brokers: a
	// partition to which its producer has written within that time is not looked at. 0 stands for 15 minutes, that
	// configuration's default.
	MaxTimeout time.Duration
}

// HangingTransaction is a row of HangingTransactions.
type HangingTransaction struct {
	TopicPartition
	Producer        ProducerState
	TransactionalID string        // of the producer; empty when no coordinator knows it any more
	Idle            time.Duration // since its producer's last write to the partition
}

// String is the partition with the transaction's first offset, and the producer.
func (h HangingTransaction) String() string {
	return fmt.Sprintf("%v@%d of producer %d epoch %d, idle for %v", h.TopicPartition, h.Producer.TxnStart, h.Producer.ID, h.Producer.Epoch, h.Idle.Round(time.Second))
}

// AbortSpec is what AbortTransaction needs to end it.
func (h HangingTransaction) AbortSpec() AbortSpec { return abortSpec(h.TopicPartition, h.Producer) }

// hangingBatch bounds the partitions that one request asks about, as Kafka's own tool does.
const hangingBatch = 500

// HangingTransactions finds transactions that are open on a partition and of which no coordinator knows, so that nobody will
// end them: consumers with isolation.level=read_committed do not get past them, and compaction does not either. Rows are by
// partition and offset. As with Kafka's own find-hanging, a transaction hangs when no transactional id has its producer id,
// or when that id's transaction does not have the partition. What ended during the search is left out. It takes brokers from
// 3.0 on (KIP-664). Where the search failed in part, what was found comes beside the error.
func (a *Admin) HangingTransactions(ctx context.Context, search HangingSearch) ([]HangingTransaction, error) {
	partitions, err := a.searched(ctx, search)
	if err != nil {
		return nil, err
	}
	var errs []error
	var open []HangingTransaction
	for some := range slices.Chunk(partitions, hangingBatch) {
		found, err := a.openTransactions(ctx, search, some)
		open, errs = append(open, found...), append(errs, err)
	}
	open, err = a.withoutCoordinator(ctx, open)
	if err != nil {
		return nil, joinErrors(append(errs, err)) // of none is known that it hangs
	}
	open, err = a.stillOpen(ctx, search, open)
	return open, joinErrors(append(errs, err))
}

// searched are the partitions to look at.
func (a *Admin) searched(ctx context.Context, search HangingSearch) ([]TopicPartition, error) {
	if search.Broker != nil { // else it would be reassuring that nothing hangs there
		if err := a.isThere(ctx, *search.Broker); err != nil {
			return nil, err
		}
	}
	list := slices.Clone(search.Partitions)
	var topics []Topic
	var err error
	switch {
	case len(search.Topics) > 0:
		topics, err = a.DescribeTopics(ctx, search.Topics...)
	case len(list) == 0:
		topics, err = a.ListTopics(ctx)
	}
	for _, t := range topics {
		for _, p := range t.Partitions {
			if search.Broker == nil || slices.Contains(p.Replicas, *search.Broker) {
				list = append(list, TopicPartition{Topic: t.Name, Partition: p.ID})
			}
		}
	}
	return unique(list), err
}

// producers asks whom the search names.
func (a *Admin) producers(ctx context.Context, search HangingSearch, partitions []TopicPartition) ([]PartitionProducers, error) {
	if search.Broker != nil {
		return a.DescribeProducersOn(ctx, *search.Broker, partitions...)
	}
	return a.DescribeProducers(ctx, partitions...)
}

// openTransactions are those that have not been written to for long.
func (a *Admin) openTransactions(ctx context.Context, search HangingSearch, partitions []TopicPartition) (open []HangingTransaction, err error) {
	rows, err := a.producers(ctx, search, partitions)
	now := time.Now()
	for _, row := range rows {
		for _, p := range row.Producers {
			if idle := now.Sub(p.LastTimestamp); p.Open() && idle > cmp.Or(search.MaxTimeout, 15*time.Minute) {
				open = append(open, HangingTransaction{TopicPartition: row.TopicPartition, Producer: p, Idle: idle})
			}
		}
	}
	slices.SortFunc(open, func(x, y HangingTransaction) int {
		return cmp.Or(comparePartitions(x.TopicPartition, y.TopicPartition), cmp.Compare(x.Producer.TxnStart, y.Producer.TxnStart))
	})
	return open, err
}

// withoutCoordinator takes out those that a coordinator is going to end.
func (a *Admin) withoutCoordinator(ctx context.Context, open []HangingTransaction) ([]HangingTransaction, error) {
	if len(open) == 0 {
		return nil, nil
	}
	var producers []int64
	for _, h := range open {
		producers = append(producers, h.Producer.ID)
	}
	listed, err := a.ListTransactions(ctx, TransactionFilter{ProducerIDs: unique(producers)})
	if err != nil {
		return nil, err
	}
	var ids []string
	byProducer := map[int64]string{}
	for _, t := range listed {
		byProducer[t.ProducerID] = t.ID
		ids = append(ids, t.ID)
	}
	rows, _ := a.DescribeTransactions(ctx, ids...) // errors are in the rows
	known := map[string]Transaction{}
	for _, t := range rows {
		if t.Err != nil && !errors.Is(t.Err, errcode.TransactionalIdNotFound) {
			return nil, t.Err
		}
		known[t.ID] = t
	}
	var hanging []HangingTransaction
	for _, h := range open {
		h.TransactionalID = byProducer[h.Producer.ID]
		if !slices.Contains(known[h.TransactionalID].Partitions, h.TopicPartition) {
			hanging = append(hanging, h)
		}
	}
	return hanging, nil
}

// stillOpen takes out those that have ended since their partitions were asked: the coordinators were asked later.
func (a *Admin) stillOpen(ctx context.Context, search HangingSearch, hanging []HangingTransaction) ([]HangingTransaction, error) {
	var partitions []TopicPartition
	for _, h := range hanging {
		partitions = append(partitions, h.TopicPartition)
	}
	type start struct {
		TopicPartition
		producer, offset int64
	}
	now, errs := map[start]bool{}, []error(nil)
	for some := range slices.Chunk(unique(partitions), hangingBatch) {
		rows, err := a.producers(ctx, search, some)
		errs = append(errs, err)
		for _, row := range rows {
			for _, p := range row.Producers {
				now[start{row.TopicPartition, p.ID, p.TxnStart}] = p.Open()
			}
		}
	}
	return slices.DeleteFunc(hanging, func(h HangingTransaction) bool {
		return !now[start{h.TopicPartition, h.Producer.ID, h.Producer.TxnStart}]
	}), joinErrors(errs)
}
