package server

import (
	"context"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/record"
)

// A HangingTransaction is open in a partition, and no transaction coordinator knows of it.
type HangingTransaction struct {
	ProducerID    int64
	ProducerEpoch int16
	StartOffset   int64 // of its one record
}

// HangTransaction appends a record of a new producer's transaction without telling any coordinator, as brokers did by
// mistake before KIP-890: nobody is going to end it. since is the record's time, by which tools judge how long it hangs.
func (b *Broker) HangTransaction(ctx context.Context, topic string, index int32, since time.Time) (HangingTransaction, error) {
	fail := func(err error) (HangingTransaction, error) {
		return HangingTransaction{}, fmt.Errorf("hang a transaction in %s-%d: %w", topic, index, err)
	}
	if image.Internal(topic) {
		return fail(fmt.Errorf("%w: a coordinator keeps its state there", errcode.InvalidTopicException))
	}
	p, code := b.leads(b.table.named(topic), index)
	if code != errcode.None {
		return fail(code)
	}
	id, err := b.newProducerID(ctx)
	if err != nil {
		return fail(err)
	}
	r := record.NewBuilder(nil)
	r.Append(since.UnixMilli(), []byte("hanging"), []byte("hanging"), nil)
	batch := r.Seal(record.Stamp{ProducerID: id, Transactional: true})
	state := p.state.Load()
	info, err := p.log.AppendTransactional(batch, state.leaderEpoch, storage.FromClient, storage.Verification{}, time.Now())
	if err != nil {
		return fail(err)
	}
	p.advance(info.Bytes)
	b.waiting.Check(p)
	return HangingTransaction{ProducerID: id, StartOffset: info.FirstOffset}, nil
}

func (b *Broker) newProducerID(ctx context.Context) (int64, error) {
	type answer struct {
		id   int64
		code errcode.Code
	}
	a, err := wait(ctx, func(done func(answer)) {
		b.producers.next(b, func(id int64, code errcode.Code) { done(answer{id, code}) })
	})
	if err != nil {
		return 0, err
	}
	return a.id, a.code.Err()
}
