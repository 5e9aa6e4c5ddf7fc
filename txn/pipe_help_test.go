package txn_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
	"github.com/ottla-kafka/ottla/wire/message"
)

// plant is a broker with a topic "in" and a topic "out", in virtual time. Its pipes copy from one to the other.
type plant struct {
	t     *testing.T
	k     *fakebroker.Cluster
	cl    *client.Client // of the test itself
	parts int32
	wrote int
}

func inPlant(t *testing.T, level int16, parts int32, f func(t *testing.T, p *plant)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Feature("transaction.version", level), fakebroker.Topic("in", int(parts)), fakebroker.Topic("out", 2),
			fakebroker.TopicWith(fakebroker.TopicSpec{Name: "small", Partitions: 1, Configs: map[string]string{"max.message.bytes": "1000"}}),
			fakebroker.Config("group.initial.rebalance.delay.ms", "0"))
		f(t, &plant{t: t, k: k, cl: connect(t, k), parts: parts})
	})
}

// write puts n more numbers into "in".
func (p *plant) write(n int) {
	p.t.Helper()
	pr, err := producer.New(p.cl)
	require.NoError(p.t, err)
	for range n {
		require.NoError(p.t, pr.Submit(p.t.Context(), producer.Record{Topic: "in", Value: fmt.Append(nil, p.wrote)}.To(int32(p.wrote)%p.parts), nil))
		p.wrote++
	}
	require.NoError(p.t, pr.Close(context.Background()))
}

// worker is a pipe with all that belongs to it.
type worker struct {
	cl     *client.Client
	c      *consumer.Consumer
	s      *txn.Session
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // of Pipe, with ended

	mu      sync.Mutex
	dead    bool
	conns   []net.Conn
	commits int
	aborts  []error
}

// reader makes a consumer of group "g" on a client whose connections can be cut.
func (p *plant) reader(protocol string, opts ...consumer.Option) *worker {
	w := &worker{ended: make(chan struct{})}
	w.cl = connect(p.t, p.k, client.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := p.k.DialContext(ctx, network, addr)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if w.dead {
			conn.Close()
			return nil, net.ErrClosed
		}
		w.conns = append(w.conns, conn)
		return conn, nil
	}))
	c, err := consumer.New(w.cl, append([]consumer.Option{consumer.Group("g"), consumer.Subscribe("in"), consumer.OnReset(consumer.Earliest), consumer.WithIsolation(consumer.ReadCommitted),
		consumer.GroupProtocol(protocol), consumer.SessionTimeout(10*time.Second, 300*time.Millisecond)}, opts...)...)
	require.NoError(p.t, err)
	w.c = c
	p.t.Cleanup(w.kill) // a test that failed must not leave anything working: in virtual time that would go on for ever
	return w
}

// start runs a pipe, copy unless there is another handler.
func (p *plant) start(id, protocol string, handle func(context.Context, *txn.Tx, consumer.Record) error, opts ...txn.PipeOption) *worker {
	w := p.reader(protocol)
	return p.pipe(w, id, handle, opts...)
}

func (p *plant) pipe(w *worker, id string, handle func(context.Context, *txn.Tx, consumer.Record) error, opts ...txn.PipeOption) *worker {
	p.t.Helper()
	s, err := txn.New(p.t.Context(), w.cl, id)
	require.NoError(p.t, err)
	w.s = s
	if handle == nil {
		handle = passOn
	}
	opts = append([]txn.PipeOption{
		txn.OnCommit(func(int) { w.mu.Lock(); w.commits++; w.mu.Unlock() }),
		txn.OnAbort(func(err error) { w.mu.Lock(); w.aborts = append(w.aborts, err); w.mu.Unlock() }),
	}, opts...)
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	go func() { // ends with ctx, or earlier
		defer close(w.ended)
		w.err = s.Pipe(ctx, w.c, handle, opts...)
	}()
	return w
}

// passOn is the handler of most tests.
func passOn(ctx context.Context, tx *txn.Tx, r consumer.Record) error {
	return tx.Submit(ctx, producer.Record{Topic: "out", Value: r.Value}.To(r.Partition%2), nil)
}

// stop ends a worker in good order.
func (w *worker) stop(t *testing.T) {
	w.cancel()
	<-w.ended
	w.close(t)
}

func (w *worker) close(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, w.s.Close(ctx))
	require.NoError(t, w.c.Close(ctx))
}

// kill cuts a worker off for good, as if its machine had gone. What is left of it in this process ends.
func (w *worker) kill() {
	w.mu.Lock()
	w.dead = true
	for _, c := range w.conns {
		c.Close()
	}
	w.mu.Unlock()
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if w.cancel != nil {
		w.cancel()
	}
	_ = w.c.Close(gone)
	if w.s != nil {
		_ = w.s.Close(gone)
	}
}

func (w *worker) committed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.commits
}

func (w *worker) aborted() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.aborts)
}

// once waits until everything that was written has come out, and checks that it came once, and that the lag is zero.
func (p *plant) once() {
	p.t.Helper()
	p.await(p.wrote)
	p.idle()
	seen := map[string]int{}
	for _, v := range p.outcome() {
		seen[v]++
		require.Equal(p.t, 1, seen[v], "value %s", v)
	}
	require.Len(p.t, seen, p.wrote)
}

// await waits until so many records have come out.
func (p *plant) await(n int) {
	p.t.Helper()
	c, err := consumer.New(p.cl, consumer.Assign("out", 0, 1), consumer.StartAt(consumer.Earliest), consumer.WithIsolation(consumer.ReadCommitted))
	require.NoError(p.t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for got := 0; got < n; {
		rs, err := c.Poll(ctx, 0)
		require.NoError(p.t, err, "%d of %d have come out", got, n)
		got += len(rs)
	}
	require.NoError(p.t, c.Close(context.Background()))
}

// idle waits until the group's lag is zero.
func (p *plant) idle() {
	p.t.Helper()
	for range 1000 {
		if p.lag() == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	require.Zero(p.t, p.lag(), "lag")
}

func (p *plant) lag() (lag int64) {
	p.t.Helper()
	req := message.NewOffsetFetchRequest()
	topic := message.OffsetFetchRequestTopics{Name: "in"}
	for i := range p.parts {
		topic.PartitionIndexes = append(topic.PartitionIndexes, i)
	}
	req.Groups = []message.OffsetFetchRequestGroup{{GroupId: "g", MemberEpoch: -1, Topics: []message.OffsetFetchRequestTopics{topic}}}
	resp, err := p.cl.Request(p.t.Context(), client.Coordinator(client.GroupCoordinator, "g").Versions(8, 9), req)
	require.NoError(p.t, err)
	for _, part := range resp.(*message.OffsetFetchResponse).Groups[0].Topics[0].Partitions {
		o, err := p.k.Offsets("in", part.PartitionIndex)
		require.NoError(p.t, err)
		lag += o.LastStable - max(part.CommittedOffset, 0)
	}
	return lag
}

// outcome is all that read_committed readers see in "out".
func (p *plant) outcome() (out []string) {
	p.t.Helper()
	c, err := consumer.New(p.cl, consumer.Assign("out", 0, 1), consumer.StartAt(consumer.Earliest), consumer.WithIsolation(consumer.ReadCommitted),
		consumer.Fetching(1, 10*time.Millisecond))
	require.NoError(p.t, err)
	defer c.Close(context.Background())
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		rs, err := c.Poll(ctx, 0)
		cancel()
		if err != nil {
			require.ErrorIs(p.t, err, context.DeadlineExceeded)
			return out
		}
		for _, r := range rs {
			out = append(out, string(r.Value))
		}
	}
}

// everyWay runs a test for each transaction.version and group protocol.
func everyWay(t *testing.T, f func(t *testing.T, level int16, protocol string)) {
	for _, level := range levels {
		for _, protocol := range []string{"classic", "consumer"} {
			t.Run(fmt.Sprintf("transaction.version %d, %s", level, protocol), func(t *testing.T) { f(t, level, protocol) })
		}
	}
}
