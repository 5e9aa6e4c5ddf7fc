package harness_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire/message"
)

const (
	topic     = "orders"
	session   = 10 * time.Second
	rebalance = 30 * time.Second
)

// protocol is a way in which groups distribute.
type protocol struct {
	name string
	opts []consumer.Option
}

var protocols = []protocol{
	{"eager", []consumer.Option{consumer.GroupProtocol("classic"), consumer.Assignors("sticky")}},
	{"cooperative", []consumer.Option{consumer.GroupProtocol("classic"), consumer.Assignors("cooperative-sticky")}},
	{"KIP-848", []consumer.Option{consumer.GroupProtocol("consumer")}},
}

// fleet is a broker and the members of group "g", in a bubble.
type fleet struct {
	*testing.T
	k       *fakebroker.Cluster
	cl      *client.Client // writes
	p       *producer.Producer
	way     protocol
	members []*member
	written int
	rough   bool // requests may hang: Close cannot always commit
	faults  []*fault.Injection
	ledger  ledger
}

// member is a process with one consumer.
type member struct {
	f       *fleet
	cl      *client.Client
	c       *consumer.Consumer
	done    chan error
	crashed bool
}

// run runs f with a fleet, in virtual time; the bubble fails if a goroutine is left.
func run(t *testing.T, way protocol, partitions int, f func(*fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic(topic, partitions), fakebroker.Config("group.initial.rebalance.delay.ms", "0"),
			fakebroker.Config("group.consumer.min.session.timeout.ms", "1000"), fakebroker.Config("group.consumer.session.timeout.ms", fmt.Sprint(session.Milliseconds())),
			fakebroker.Config("group.consumer.min.heartbeat.interval.ms", "100"), fakebroker.Config("group.consumer.heartbeat.interval.ms", "1000"))
		cl, err := client.New(client.Cluster(k))
		require.NoError(t, err)
		p, err := producer.New(cl)
		require.NoError(t, err)
		fl := &fleet{T: t, k: k, cl: cl, p: p, way: way}
		f(fl)
		for _, m := range fl.members {
			m.stop()
		}
		require.NoError(t, p.Close(context.Background()))
		require.NoError(t, cl.Close(context.Background()))
	})
}

// start starts a member that processes with a handler; nil only notes.
func (f *fleet) start(handle func(context.Context, consumer.Record) error, opts ...consumer.Option) *member {
	f.Helper()
	cl, err := client.New(client.Cluster(f.k), client.ClientID(fmt.Sprintf("member-%d", len(f.members))))
	require.NoError(f, err)
	opts = append(append([]consumer.Option{consumer.Group("g"), consumer.Subscribe(topic), consumer.OnReset(consumer.Earliest), consumer.AutoCommit(time.Second),
		consumer.SessionTimeout(session, time.Second), consumer.MaxPollInterval(rebalance, consumer.Leave)}, f.way.opts...), opts...)
	c, err := consumer.New(cl, opts...)
	require.NoError(f, err)
	m := &member{f: f, cl: cl, c: c, done: make(chan error, 1)}
	f.members = append(f.members, m)
	if handle == nil {
		handle = func(ctx context.Context, r consumer.Record) error {
			time.Sleep(time.Millisecond)
			if ctx.Err() == nil {
				f.ledger.add(r)
			}
			return ctx.Err()
		}
	}
	go func() { m.done <- c.Run(context.Background(), handle) }() // ends with stop or crash
	return m
}

// stop ends a member in good order.
func (m *member) stop() {
	m.f.Helper()
	if !m.crashed {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		err := m.c.Close(ctx)
		if m.f.rough && err != nil {
			m.f.Logf("Close, with faults at work: %v", err)
		} else {
			require.NoError(m.f, err)
		}
		err = <-m.done
		require.True(m.f, err == nil || errors.Is(err, consumer.ErrClosed), "Run: %v", err)
		require.NoError(m.f, m.cl.Close(context.Background()))
	}
	for i, other := range m.f.members {
		if other == m {
			m.f.members = append(m.f.members[:i:i], m.f.members[i+1:]...)
		}
	}
}

// crash takes a member's network away for good: nothing is said to anybody.
func (m *member) crash() {
	require.NoError(m.f, m.cl.Close(context.Background()))
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = m.c.Close(ctx) // it complains of what could not be committed
	<-m.done
	m.crashed = true
	m.stop()
}

// write writes n records, spread over the partitions.
func (f *fleet) write(n int) {
	f.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for range n {
		f.written++
		require.NoError(f, f.p.Submit(ctx, producer.Record{Topic: topic, Key: fmt.Append(nil, "key-", f.written%53), Value: fmt.Append(nil, f.written)}, nil))
	}
	require.NoError(f, f.p.Flush(ctx))
}

// inject puts a fault rule to work until faults end.
func (f *fleet) inject(r fault.Rule) { f.faults = append(f.faults, f.k.Inject(r)) }

// grow adds a partition.
func (f *fleet) grow(to int32) {
	f.Helper()
	req := message.NewCreatePartitionsRequest()
	req.Topics, req.TimeoutMs = []message.CreatePartitionsTopic{{Name: topic, Count: to}}, 30000
	resp, err := f.cl.Request(context.Background(), client.Controller(), req)
	require.NoError(f, err)
	require.Zero(f, resp.(*message.CreatePartitionsResponse).Results[0].ErrorCode)
}

// settled waits until each partition is with one member, and each member has some.
func (f *fleet) settled(partitions int, within time.Duration) {
	f.Helper()
	var why string
	for end := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		if why = f.unsettled(partitions); why == "" {
			return
		}
		if time.Now().After(end) {
			g, err := f.k.Group(context.Background(), "g")
			require.FailNow(f, "not at rest", "within %s: %s\n%+v %v", within, why, g, err)
		}
	}
}

func (f *fleet) unsettled(partitions int) string {
	owner := map[consumer.TopicPartition]int{}
	for i, m := range f.members {
		s := m.c.Membership()
		if s.State.String() != "Stable" {
			return fmt.Sprintf("member %d is %s", i, s.State)
		}
		if len(s.Claims) == 0 && len(f.members) <= partitions {
			return fmt.Sprintf("member %d has nothing", i)
		}
		for _, c := range s.Claims {
			if c.State != "reading" {
				return c.String()
			}
			if other, taken := owner[c.TopicPartition]; taken {
				return fmt.Sprintf("%s is with %d and %d", c.TopicPartition, other, i)
			}
			owner[c.TopicPartition] = i
		}
	}
	if len(owner) != partitions {
		return fmt.Sprintf("%d of %d partitions have an owner", len(owner), partitions)
	}
	return ""
}

// ledger notes what was processed.
type ledger struct {
	mu       sync.Mutex
	times    map[consumer.TopicPartition]map[int64]int
	distinct int
	repeats  int
}

func (l *ledger) add(r consumer.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.times == nil {
		l.times = map[consumer.TopicPartition]map[int64]int{}
	}
	t := l.times[r.TopicPartition()]
	if t == nil {
		t = map[int64]int{}
		l.times[r.TopicPartition()] = t
	}
	if t[r.Offset]++; t[r.Offset] > 1 {
		l.repeats++
	} else {
		l.distinct++
	}
}

func (l *ledger) counts() (distinct, repeats int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.distinct, l.repeats
}

// committedIsProcessed checks that no committed offset has passed a record that nobody has processed.
func (f *fleet) committedIsProcessed() {
	f.Helper()
	g, err := f.k.Group(context.Background(), "g")
	if err != nil {
		return // the broker is away, or loads
	}
	f.ledger.mu.Lock()
	defer f.ledger.mu.Unlock()
	for _, o := range g.Offsets {
		tp := consumer.TopicPartition{Topic: o.Topic, Partition: o.Partition}
		for i := range o.Offset {
			require.Positive(f, f.ledger.times[tp][i], "offset %d of %s is committed, %d was not processed", o.Offset, tp, i)
		}
	}
}
