package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/wire/message"
)

// AbortSpec names a transaction on one partition by what a marker needs.
type AbortSpec struct {
	TopicPartition
	ProducerID    int64
	ProducerEpoch int16
	// CoordinatorEpoch must not be smaller than that of the producer's last marker there; -1, which stands for none, is sent
	// as 0.
	CoordinatorEpoch int32
}

// String is the partition and the producer.
func (s AbortSpec) String() string {
	return fmt.Sprintf("%v of producer %d epoch %d", s.TopicPartition, s.ProducerID, s.ProducerEpoch)
}

// AbortTransaction writes a marker that aborts a transaction on one partition, past its coordinator. It is for hanging
// transactions alone, which have no coordinator any more: one that is alive would be torn, so take what
// HangingTransactions gives. The coordinator's own way to end one is FenceProducers. It takes brokers from 2.8 on, whose
// WriteTxnMarkers Kafka 4's clients know.
func (a *Admin) AbortTransaction(ctx context.Context, spec AbortSpec) error {
	const op = "abort the transaction on"
	partitions := []TopicPartition{spec.TopicPartition}
	errs := a.atLeaders(ctx, op, partitions, func(ctx context.Context, broker int32, some []int, errs []error) {
		req := message.NewWriteTxnMarkersRequest()
		req.Markers = []message.WritableTxnMarker{{ProducerId: spec.ProducerID, ProducerEpoch: spec.ProducerEpoch, CoordinatorEpoch: max(spec.CoordinatorEpoch, 0),
			Topics: []message.WritableTxnMarkerTopic{{Name: spec.Topic, PartitionIndexes: []int32{spec.Partition}}}}}
		resp, err := once[*message.WriteTxnMarkersResponse](ctx, a, broker, 0, req)
		if err != nil {
			setAll(errs, some, err)
			return
		}
		codes := map[TopicPartition]int16{}
		for _, m := range resp.Markers {
			for _, t := range m.Topics {
				for _, p := range t.Partitions {
					codes[TopicPartition{Topic: t.Name, Partition: p.PartitionIndex}] = p.ErrorCode
				}
			}
		}
		code, ok := codes[spec.TopicPartition]
		if !ok {
			errs[0] = leftOut(op, spec.String())
			return
		}
		errs[0] = rowError(op, spec.String(), code, nil)
	})
	return errs[0]
}

// FindOpenTransaction says what AbortTransaction needs of the transaction that is open on a partition since that offset. The
// error matches ErrNoTransaction when none is. It takes brokers from 2.8 on (KIP-664).
func (a *Admin) FindOpenTransaction(ctx context.Context, p TopicPartition, start int64) (AbortSpec, error) {
	rows, err := a.DescribeProducers(ctx, p)
	if err != nil {
		return AbortSpec{}, err
	}
	for _, s := range rows[0].Producers {
		if s.TxnStart == start && s.Open() {
			return abortSpec(p, s), nil
		}
	}
	return AbortSpec{}, fmt.Errorf("%w since offset %d of %v", ErrNoTransaction, start, p)
}

// ErrNoTransaction says that no transaction is open where one was to be aborted.
var ErrNoTransaction = errors.New("no transaction is open")

func abortSpec(p TopicPartition, s ProducerState) AbortSpec {
	return AbortSpec{TopicPartition: p, ProducerID: s.ID, ProducerEpoch: s.Epoch, CoordinatorEpoch: s.CoordinatorEpoch}
}
