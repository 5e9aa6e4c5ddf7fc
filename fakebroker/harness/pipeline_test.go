package harness_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/fakebroker/harness"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
)

const (
	perTransaction = 4
	transactions   = 3
	txnTimeout     = 8 * time.Second
	abortCheck     = time.Second     // transaction.abort.timed.out.transaction.cleanup.interval.ms
	patience       = 2 * time.Minute // for 3 transactions of which a broker and a worker died once
)

// setup is one way to have an exactly-once pipeline.
type setup struct {
	name string
	opts []fakebroker.Option
	cons []consumer.Option
	work func(ctx context.Context, s *txn.Session, c *consumer.Consumer) error
}

// pipeline is a broker and a worker that carries records from topic in to topic out, each once. Whenever the worker dies
// another one takes over. It lives in a bubble of virtual time.
type pipeline struct {
	*testing.T
	k       *fakebroker.Cluster
	setup   *setup
	cl      *client.Client // of the test: fills in, reads out
	p       *producer.Producer
	written int
	dark    bool // the power is cut: the next start finds what the disk has

	stop    context.CancelFunc
	workers sync.WaitGroup
	mu      sync.Mutex
	worker  *worker // at work, or being born
	born    int
	ends    []string // how workers ended that nobody killed
}

// worker is a process of the pipeline.
type worker struct {
	plug
	name string
	end  context.CancelCauseFunc
}

// runPipeline runs f in a bubble, with 3 transactions' worth of records to carry; the bubble fails if a goroutine is left.
func runPipeline(t *testing.T, s *setup, seed uint64, f func(*pipeline)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		pl := &pipeline{T: t, setup: s, stop: func() {}}
		opts := append([]fakebroker.Option{diskOf(pl, seed), fakebroker.Topic("in", 2), fakebroker.Topic("out", 2),
			fakebroker.Logger(slog.New(slog.NewTextHandler(brokerLog(), nil))),
			fakebroker.Config("group.initial.rebalance.delay.ms", "0"),
			fakebroker.Config("group.consumer.min.session.timeout.ms", "1000"), fakebroker.Config("group.consumer.session.timeout.ms", "6000"),
			fakebroker.Config("group.consumer.min.heartbeat.interval.ms", "100"), fakebroker.Config("group.consumer.heartbeat.interval.ms", "1000"),
			fakebroker.Config("transaction.abort.timed.out.transaction.cleanup.interval.ms", fmt.Sprint(abortCheck.Milliseconds())),
		}, s.opts...)
		k := fakebroker.Start(t, opts...)
		cl, err := client.New(client.Cluster(k), client.ClientID("test"))
		require.NoError(t, err)
		defer func() { require.NoError(t, cl.Close(context.Background())) }()
		p, err := producer.New(cl)
		require.NoError(t, err)
		defer func() { require.NoError(t, p.Close(context.Background())) }()
		pl.k, pl.cl, pl.p = k, cl, p
		defer pl.halt()
		pl.write(transactions * perTransaction)
		f(pl)
	})
}

// write writes n records, over the partitions in turn.
func (pl *pipeline) write(n int) {
	pl.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for range n {
		r := producer.Record{Topic: "in", Value: fmt.Appendf(nil, "record-%02d", pl.written)}
		require.NoError(pl, pl.p.Submit(ctx, r.To(int32(pl.written%2)), nil))
		pl.written++
	}
	require.NoError(pl, pl.p.Flush(ctx))
}

// begin has workers, one after the other, until halt.
func (pl *pipeline) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	pl.stop = cancel
	pl.spawn(ctx)
}

// spawn starts a worker. When it ends, or is killed, the next one starts.
func (pl *pipeline) spawn(ctx context.Context) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	mine, end := context.WithCancelCause(ctx)
	w := &worker{plug: plug{k: pl.k}, name: "worker", end: end}
	if pl.born++; pl.born > 1 {
		w.name = fmt.Sprintf("worker-%d", pl.born)
	}
	pl.worker = w
	var next sync.Once
	succeed := func() { next.Do(func() { pl.spawn(ctx) }) }
	context.AfterFunc(mine, func() {
		if errors.Is(context.Cause(mine), errPulled) {
			succeed() // beside what is left of the dead
		}
	})
	pl.workers.Go(func() {
		err := w.live(mine, pl.setup)
		if context.Cause(mine) == nil {
			pl.mu.Lock()
			pl.ends = append(pl.ends, fmt.Sprintf("%s: %v", w.name, err))
			pl.mu.Unlock()
			time.Sleep(100 * time.Millisecond) // what a supervisor would do
			succeed()
		}
		end(nil)
	})
}

// kill takes the worker's network away and lets it die.
func (pl *pipeline) kill() {
	pl.mu.Lock()
	w := pl.worker
	pl.mu.Unlock()
	w.pull()
	w.end(errPulled)
}

// live is a worker's whole life; the error says why it ended.
func (w *worker) live(ctx context.Context, s *setup) (err error) {
	cl, err := client.New(client.Cluster(w), client.ClientID(w.name))
	if err != nil {
		return err
	}
	defer cl.Close(context.Background())
	opts := append([]consumer.Option{consumer.Group("g"), consumer.Subscribe("in"), consumer.OnReset(consumer.Earliest),
		consumer.WithIsolation(consumer.ReadCommitted), consumer.SessionTimeout(6*time.Second, time.Second)}, s.cons...)
	c, err := consumer.New(cl, opts...)
	if err != nil {
		return err
	}
	defer w.closes(ctx, c.Close)
	session, err := txn.New(ctx, cl, "pipeline", txn.TransactionTimeout(txnTimeout))
	if err != nil {
		return err
	}
	defer w.closes(ctx, session.Close)
	return s.work(ctx, session, c)
}

// closes closes in good order, or in a hurry if the worker was killed.
func (w *worker) closes(ctx context.Context, f func(context.Context) error) {
	limit := 30 * time.Second
	if errors.Is(context.Cause(ctx), errPulled) {
		limit = time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_ = f(ctx) // it complains of what the faults prevented; what came out is looked at in the logs
}

// send is what the workers make of a record: one for out, to a partition that follows from its value.
func send(ctx context.Context, tx *txn.Tx, r consumer.Record) error {
	out := producer.Record{Topic: "out", Key: r.Value, Value: slices.Concat([]byte("done "), r.Value)}
	return tx.Submit(ctx, out.To(int32(r.Value[len(r.Value)-1]>>1&1)), nil)
}

// halt ends the worker in good order and lets nobody succeed it.
func (pl *pipeline) halt() {
	pl.stop()
	pl.workers.Wait()
}

// carried waits until the group has committed all that was written.
func (pl *pipeline) carried() {
	pl.Helper()
	why := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		g, err := pl.k.Group(ctx, "g")
		cancel()
		if err != nil {
			why = err.Error()
			continue
		}
		committed := int64(0)
		for _, o := range g.Offsets {
			committed += o.Offset
		}
		if committed == int64(pl.written) {
			return
		}
		why = fmt.Sprintf("committed %+v, members %+v", g.Offsets, g.Members)
	}
	pl.mu.Lock()
	defer pl.mu.Unlock()
	require.FailNow(pl, "the pipeline stands still", "%d records after %s: %s\nworkers that ended: %q", pl.written, patience, why, pl.ends)
}

// exactlyOnce looks at what came out: of each record one result, no transaction open, the group at the end.
func (pl *pipeline) exactlyOnce() {
	pl.Helper()
	time.Sleep(txnTimeout + 2*abortCheck) // whatever was left open is aborted
	result, err := harness.ExactlyOnce(context.Background(), pl.cl, "in", "out", harness.Group("g"),
		harness.OutIdentity(func(r consumer.Record) string { return string(r.Key) }))
	require.NoError(pl, err)
	require.NoError(pl, result.Err(), "workers that ended: %q", pl.ends)
	require.Equal(pl, pl.written, result.Out)
}

// inject puts a rule to work for requests of the first worker.
func (pl *pipeline) inject(r fault.Rule) *fault.Injection { return pl.k.Inject(r.Client("worker")) }
