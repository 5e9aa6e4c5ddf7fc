package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/purgatory"
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/hash"
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

// transactions are the transaction coordinators of this broker: it coordinates the transactional ids of those partitions
// of __transaction_state that it leads.
//
//	handler ──askTransactions──► Runtime ──► transaction.Machine
//	   ▲                            ▲  │            │ SendMarkers (decided, committed)
//	   │ NeedsProducerID: with a    │  ▼            ▼
//	   └── new id of the block ──── │ the log    markerSender ──► partitions' leaders, until all have them
//	                                └──────────────── MarkersWritten ──┘
type transactions struct {
	b            *Broker
	runtime      *coordinator.Runtime
	markers      *markerSender
	environment  atomic.Pointer[transaction.Environment]
	awaiting     *purgatory.Purgatory[string] // AwaitTransaction, by transactional id
	changes      atomic.Int64                 // counts changes of transactions
	incarnations atomic.Int64                 // counts machines
}

func newTransactions(b *Broker) *transactions {
	t := &transactions{b: b, awaiting: purgatory.New[string]()}
	t.markers = newMarkerSender(b, t)
	t.environment.Store(&transaction.Environment{Level: b.Image().Feature(transactionFeature), Config: b.Config()})
	t.runtime = coordinator.New(coordinator.Options{
		Log:    logrecord.TransactionLog,
		Writer: &coordinatorLog{b: b, topic: transactionsTopic},
		Logger: b.log,
		NewShard: func(_, epoch int32) coordinator.Shard {
			return transaction.New(transaction.Options{
				Environment:      *t.environment.Load(),
				CoordinatorEpoch: epoch,
				Incarnation:      t.incarnations.Add(1),
				Patience:         endPatience,
				SendMarkers:      t.markers.send,
				AskProducerID:    t.askProducerID,
				Changed:          t.changed,
				Bugs:             b.opts.Bugs,
			})
		},
	})
	return t
}

func (t *transactions) changed(id string) {
	t.changes.Add(1)
	t.awaiting.Check(id)
}

// follow tells the coordinators what a new image brings: configs and the feature level first, then which partitions they
// have. It is called like coordinators.follow.
func (t *transactions) follow(img *image.Image, delta *image.Delta, changes []image.TopicChange) {
	e := transaction.Environment{Level: img.Feature(transactionFeature), Config: t.b.Config()}
	if old := t.environment.Load(); e != *old {
		t.environment.Store(&e)
		t.runtime.SubmitAll(coordinator.Request{Body: e}, func(map[int32]coordinator.Reply) {})
	}
	for _, c := range changes {
		if c.Name() != transactionsTopic {
			continue
		}
		if c.New == nil {
			for i := range c.Old.Partitions {
				t.resign(int32(i))
			}
			continue
		}
		for _, i := range c.Partitions() {
			if p := c.New.Partition(i); p != nil && p.Leader == t.b.opts.NodeID {
				t.runtime.Elect(i, p.LeaderEpoch)
			} else {
				t.resign(i)
			}
		}
	}
}

func (t *transactions) resign(partition int32) {
	t.runtime.Resign(partition)
	t.markers.drop(partition)
}

func (t *transactions) close() {
	t.runtime.Close()
	t.markers.close()
	t.awaiting.Close()
}

// partitionOf is the partition whose leader coordinates a transactional id.
func (t *transactions) partitionOf(id string) int32 {
	n := int32(t.b.Config().Int("transaction.state.log.num.partitions"))
	if topic := t.b.Image().Topic(transactionsTopic); topic != nil {
		n = int32(len(topic.Partitions))
	}
	return hash.CoordinatorPartition(id, n)
}

// askTransactions hands a request to the coordinator of a transactional id and its answer to done, which must not block.
// When the coordinator needs a new producer id it gets one, and the request comes again.
func (b *Broker) askTransactions(id string, req coordinator.Request, done func(answer any, code errcode.Code)) {
	t := b.transactions
	t.runtime.Submit(t.partitionOf(id), req, func(answer any, code errcode.Code) {
		need, ok := answer.(transaction.NeedsProducerID)
		if !ok {
			done(answer, code)
			return
		}
		b.producers.next(b, func(producerID int64, code errcode.Code) {
			if code != errcode.None {
				done(nil, code)
				return
			}
			req.Body = need.With(producerID)
			b.askTransactions(id, req, done)
		})
	})
}

// askProducerID carries on what a machine does of its own accord. If it fails, the machine's next check repeats it.
func (t *transactions) askProducerID(id string, need transaction.NeedsProducerID) {
	t.b.producers.next(t.b, func(producerID int64, code errcode.Code) {
		if code == errcode.None {
			t.b.askTransactions(id, coordinator.Request{Body: need.With(producerID)}, func(any, errcode.Code) {})
		}
	})
}

// Transaction returns a transactional id as its coordinator sees it, of state Dead when there is none. While the
// coordinator is loading, or not here, the error is its code.
func (b *Broker) Transaction(ctx context.Context, id string) (*transaction.View, error) {
	if b.Image().Topic(transactionsTopic) == nil {
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
	answered := make(chan map[int32]coordinator.Reply, 1)
	b.transactions.runtime.SubmitAll(coordinator.Request{Body: transaction.InspectAll{}},
		func(answers map[int32]coordinator.Reply) { answered <- answers })
	select {
	case answers := <-answered:
		var all []*transaction.View
		for _, a := range answers {
			if a.Code != errcode.None {
				return nil, a.Code
			}
			all = append(all, a.Response.([]*transaction.View)...)
		}
		slices.SortFunc(all, func(a, b *transaction.View) int { return strings.Compare(a.ID, b.ID) })
		return all, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// TimeOutTransaction aborts the open transaction of an id as if its timeout had passed.
func (b *Broker) TimeOutTransaction(ctx context.Context, id string) error {
	_, err := b.commandTransaction(ctx, id, transaction.TimeOut{ID: id, Producer: transaction.NoProducer, NewProducerID: -1})
	return err
}

func (b *Broker) commandTransaction(ctx context.Context, id string, body any) (any, error) {
	type answer struct {
		response any
		code     errcode.Code
	}
	answered := make(chan answer, 1)
	b.askTransactions(id, coordinator.Request{Body: body}, func(response any, code errcode.Code) { answered <- answer{response, code} })
	select {
	case a := <-answered:
		return a.response, a.code.Err()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// AwaitTransaction returns when check says so of a transactional id, with what it was then.
func (b *Broker) AwaitTransaction(ctx context.Context, id string, check func(*transaction.View) bool) (*transaction.View, error) {
	t := b.transactions
	for {
		seen := t.changes.Load()
		v, err := b.Transaction(ctx, id)
		if err == nil && check(v) {
			return v, nil
		}
		var code errcode.Code
		if err != nil && (!errors.As(err, &code) || !code.Retriable()) {
			return v, fmt.Errorf("await transaction %s: %w", id, err)
		}
		if err := await(ctx, t.awaiting, id, func() bool { return t.changes.Load() != seen }); err != nil {
			state := transaction.Dead
			if v != nil {
				state = v.State
			}
			return v, fmt.Errorf("await transaction %s, which is %s: %w", id, state, err)
		}
	}
}

// ReloadTransactions has the coordinator of a transactional id resign and load its log again.
func (b *Broker) ReloadTransactions(ctx context.Context, id string) error {
	done := make(chan struct{})
	b.transactions.runtime.Reload(b.transactions.partitionOf(id), func() { close(done) })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
