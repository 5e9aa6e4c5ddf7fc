package fakebroker

import (
	"context"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/server"
)

// A HangingTransaction says where a transaction hangs: what an operator needs to abort it.
type HangingTransaction struct {
	ProducerID    int64
	ProducerEpoch int16
	StartOffset   int64 // of its one record
}

// HangTransaction leaves a transaction open in a partition that no coordinator knows of, as bugs in clients and brokers
// have done before KIP-890: one record of a new producer id. Consumers with read_committed stop in front of it, for ever,
// until somebody finds and aborts it:
//
//	kafka-transactions.sh find-hanging --broker-id 1
//	kafka-transactions.sh abort --topic orders --partition 0 --start-offset 4711
//
// since is the time of the record: tools take for hanging what is older than transaction.max.timeout.ms. Topics of the
// brokers themselves are refused, and partitions that do not exist.
func (k *Cluster) HangTransaction(ctx context.Context, topic string, partition int32, since time.Time) (h HangingTransaction, err error) {
	err = k.with(ctx, func(ctx context.Context, b *server.Broker) error {
		found, err := b.HangTransaction(ctx, topic, partition, since)
		if err != nil {
			return fmt.Errorf("fakebroker: %w", err)
		}
		h = HangingTransaction(found)
		return nil
	})
	return h, err
}
