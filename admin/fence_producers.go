package admin

import (
	"context"
	"math"
	"sync"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/message"
)

// FencedProducer is a row of FenceProducers.
type FencedProducer struct {
	ID            string // the transactional id
	ProducerID    int64  // that a producer starting now would have
	ProducerEpoch int16  // likewise
	Err           error
}

// FenceProducers makes whoever uses these transactional ids now unable to go on: each gets a new epoch, as if another
// producer had started under the id, and its open transaction is aborted. The call returns when that is done. An id that
// nobody has used is created.
func (a *Admin) FenceProducers(ctx context.Context, ids ...string) ([]FencedProducer, error) {
	ids = unique(ids)
	rows := make([]FencedProducer, len(ids))
	errs := a.atCoordinators(ctx, client.TransactionCoordinator, ids, func(ctx context.Context, at client.Node, some []int, errs []error) {
		var wg sync.WaitGroup
		for _, i := range some {
			wg.Go(func() { rows[i], errs[i] = a.fence(ctx, at.ID, ids[i]) }) // ends with its request
		}
		wg.Wait()
	})
	for i, err := range errs {
		rows[i].ID, rows[i].Err = ids[i], err
	}
	return rows, outcome(ctx, errs)
}

// fence starts a producer under the id, which never writes. While the transaction that it finds is being aborted the
// coordinator says CONCURRENT_TRANSACTIONS, which passes.
func (a *Admin) fence(ctx context.Context, broker int32, id string) (FencedProducer, error) {
	req := message.NewInitProducerIdRequest()
	req.TransactionalId, req.TransactionTimeoutMs = &id, a.fencingTimeout()
	resp, err := once[*message.InitProducerIdResponse](ctx, a, broker, 0, req)
	if err != nil {
		return FencedProducer{}, err
	}
	return FencedProducer{ProducerID: resp.ProducerId, ProducerEpoch: resp.ProducerEpoch}, rowError("fence the producer of", id, resp.ErrorCode, nil)
}

// fencingTimeout is the transaction.timeout.ms that a fenced id has from then on, until its next producer says its own: no
// transaction is opened under it. Kafka's Admin has its request.timeout.ms here too.
func (a *Admin) fencingTimeout() int32 {
	return int32(min(max(a.cl.Config().RequestTimeout.Milliseconds(), 1), math.MaxInt32))
}

// ForceTerminateTransaction aborts whatever is open under a transactional id, a transaction that was prepared for a two-phase
// commit included (KIP-939), and fences its producer. It is FenceProducers for one id that exists: for one that does not,
// nothing is created, and the error matches errcode.TransactionalIdNotFound where the broker can tell (from 3.0 on).
func (a *Admin) ForceTerminateTransaction(ctx context.Context, id string) error {
	if _, err := a.DescribeTransactions(ctx, id); err != nil && !unsupported(err) {
		return err
	}
	_, err := a.FenceProducers(ctx, id)
	return err
}
