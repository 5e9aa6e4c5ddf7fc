package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

const (
	// transactionsTopic is where the transaction coordinators keep their state.
	transactionsTopic = "__transaction_state"
	// transactionFeature is the feature whose level says which protocol of transactions holds.
	transactionFeature = "transaction.version"
	// endPatience is how long a request waits for the transaction before it to be ended: what clients would wait before they
	// ask again.
	endPatience = 20 * time.Millisecond
)

// transactions are the transaction coordinators of this broker.
//
//	handler ──askTransactions──► Runtime ──► transaction.Machine
//	   ▲                            ▲  │            │ SendMarkers (decided, committed)
//	   │ NeedsProducerID: with a    │  ▼            ▼
//	   └── new id of the block ──── │ the log    markerSender ──► partitions' leaders, until all have them
//	                                └──────────────── MarkersWritten ──┘
type transactions struct {
	coordinators
	markers      *markerSender
	environment  atomic.Pointer[transaction.Environment] // of machines that are made from now on
	incarnations atomic.Int64                            // counts machines
}

func newTransactions(b *Broker) *transactions {
	t := &transactions{coordinators: coordinators{topic: transactionsTopic, partitions: "transaction.state.log.num.partitions"}}
	t.markers = newMarkerSender(b, t)
	t.environment.Store(&transaction.Environment{Level: b.Image().Feature(transactionFeature), Config: b.Config()})
	t.start(b, logrecord.TransactionLog, "transaction.state.log.load.buffer.size", func(partition, epoch int32) coordinator.Shard {
		return transaction.New(transaction.Options{
			Environment:      *t.environment.Load(),
			CoordinatorEpoch: epoch,
			Incarnation:      t.incarnations.Add(1),
			Patience:         endPatience,
			SendMarkers:      func(m transaction.Markers) { t.markers.send(partition, m) },
			AskProducerID:    func(_ string, need transaction.NeedsProducerID) { t.giveProducerID(partition, need) },
			Changed:          t.changed,
			Bugs:             b.opts.Bugs,
		})
	})
	return t
}

// follow tells the coordinators what a new image brings: configs and the feature level first, then which partitions they
// have.
func (t *transactions) follow(img *image.Image, changes []image.TopicChange) {
	e := transaction.Environment{Level: img.Feature(transactionFeature), Config: t.b.Config()}
	if old := t.environment.Load(); e != *old {
		t.environment.Store(&e)
		t.runtime.Tell(e)
	}
	t.lead(changes, t.markers.drop)
}

func (t *transactions) close() {
	t.runtime.Close()
	t.markers.close()
	t.awaiting.Close()
}

// askTransactions hands a request to the coordinator of a transactional id and its answer to done, which must not block.
func (b *Broker) askTransactions(id string, body any, done func(answer any, code errcode.Code)) {
	b.transactions.ask(b.transactions.partitionOf(id), body, done)
}

// ask asks the coordinator of a partition. When it needs a new producer id it gets one, and the request comes again.
func (t *transactions) ask(partition int32, body any, done func(answer any, code errcode.Code)) {
	t.runtime.Submit(partition, coordinator.Request{Body: body}, func(answer any, code errcode.Code) {
		need, ok := answer.(transaction.NeedsProducerID)
		if !ok {
			done(answer, code)
			return
		}
		t.b.producers.next(t.b, func(producerID int64, code errcode.Code) {
			if code != errcode.None {
				done(nil, code)
				return
			}
			t.ask(partition, need.With(producerID), done)
		})
	})
}

// giveProducerID carries on what a machine does of its own accord. If it fails, the machine's next check repeats it.
func (t *transactions) giveProducerID(partition int32, need transaction.NeedsProducerID) {
	t.b.producers.next(t.b, func(producerID int64, code errcode.Code) {
		if code == errcode.None {
			t.ask(partition, need.With(producerID), func(any, errcode.Code) {})
		}
	})
}

// Transaction returns a transactional id as its coordinator sees it, of state Dead when there is none. While the
// coordinator is loading, or not here, the error is its code.
func (b *Broker) Transaction(ctx context.Context, id string) (*transaction.View, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if !b.transactions.exist() {
		return &transaction.View{ID: id, State: transaction.Dead, ProducerID: -1, ProducerEpoch: -1}, nil
	}
	v, err := b.commandTransaction(ctx, id, transaction.Inspect{ID: id})
	if err != nil {
		return nil, err
	}
	return v.(*transaction.View), nil
}

// Transactions returns all transactional ids that this broker coordinates, by id. While a partition is loading its ids
// would be missing, and the error is COORDINATOR_LOAD_IN_PROGRESS.
func (b *Broker) Transactions(ctx context.Context) ([]*transaction.View, error) {
	answers, err := b.transactions.askAll(ctx, coordinator.Request{Body: transaction.InspectAll{}})
	if err != nil {
		return nil, err
	}
	var all []*transaction.View
	for _, a := range answers {
		if a.Code != errcode.None {
			return nil, a.Code
		}
		all = append(all, a.Response.([]*transaction.View)...)
	}
	slices.SortFunc(all, func(a, b *transaction.View) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

// TimeOutTransaction aborts the open transaction of an id as if its timeout had passed.
func (b *Broker) TimeOutTransaction(ctx context.Context, id string) error {
	_, err := b.commandTransaction(ctx, id, transaction.TimeOut{ID: id, Producer: transaction.NoProducer, NewProducerID: -1})
	return err
}

func (b *Broker) commandTransaction(ctx context.Context, id string, body any) (any, error) {
	return waitForCoordinator(ctx, func(done func(any, errcode.Code)) { b.askTransactions(id, body, done) })
}

// AwaitTransaction returns when check says so of a transactional id, with what it was then.
func (b *Broker) AwaitTransaction(ctx context.Context, id string, check func(*transaction.View) bool) (*transaction.View, error) {
	v, err := awaitKey(ctx, &b.transactions.coordinators, id, func() (*transaction.View, error) { return b.Transaction(ctx, id) }, check)
	if err != nil {
		state := transaction.Dead
		if v != nil {
			state = v.State
		}
		return v, fmt.Errorf("await transaction %s, which is %s: %w", id, state, err)
	}
	return v, nil
}

// ReloadTransactions has the coordinator of a transactional id resign and load its log again.
func (b *Broker) ReloadTransactions(ctx context.Context, id string) error {
	return b.transactions.reload(ctx, id)
}
