package transaction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// bench is a machine with what a runtime does around it: a log, tickets, time, and producer ids when they are needed.
type bench struct {
	t       testing.TB
	m       *Machine
	now     time.Time
	epoch   int32       // of the coordinator
	log     [][2][]byte // keys and values
	orders  []Markers   // all that were given, by number
	next    int64       // producer id
	tickets coordinator.Ticket
	got     map[coordinator.Ticket]coordinator.Reply
	refuse  errcode.Code                // for the next append
	wait    time.Duration               // Patience
	waits   map[coordinator.Ticket]bool // requests that it keeps
	printf  func(format string, args ...any)
}

func newBench(t testing.TB, level int16, configs map[string]string) *bench {
	b := &bench{t: t, now: time.UnixMilli(1_000_000), next: 1000, got: make(map[coordinator.Ticket]coordinator.Reply), waits: make(map[coordinator.Ticket]bool), printf: func(string, ...any) {}}
	c, err := config.NewLayers(map[string]string{"node.id": "1", "process.roles": "broker,controller", "controller.listener.names": "CONTROLLER"})
	require.NoError(t, err)
	if len(configs) > 0 {
		all := map[string]string{"node.id": "1", "process.roles": "broker,controller", "controller.listener.names": "CONTROLLER"}
		for k, v := range configs {
			all[k] = v
		}
		c, err = config.NewLayers(all)
		require.NoError(t, err)
	}
	b.m = b.machine(Environment{Level: level, Config: c})
	b.run(func(out *coordinator.Result) { b.m.Loaded(b.now, out) })
	return b
}

func (b *bench) machine(e Environment) *Machine {
	return New(Options{
		Environment: e, CoordinatorEpoch: b.epoch, Patience: b.wait, Incarnation: int64(b.epoch),
		SendMarkers: func(m Markers) {
			b.printf("! order %d: %s of %s by %d/%d version %d coordinator %d in %v", len(b.orders), outcome(m.Commit), m.ID,
				m.Producer.ID, m.Producer.Epoch, m.Version, m.CoordinatorEpoch, m.Partitions)
			b.orders = append(b.orders, m)
		},
		AskProducerID: func(_ string, n NeedsProducerID) { b.ask(n.With(b.producerID())) },
	})
}

func outcome(commit bool) string {
	if commit {
		return "commit"
	}
	return "abort"
}

func (b *bench) producerID() int64 {
	id := b.next
	b.next++
	b.printf("? producer id %d", id)
	return id
}

// ask serves one request, as often as it needs producer ids, and prints the last answer.
func (b *bench) ask(body any) coordinator.Reply {
	for {
		b.tickets++
		ticket := b.tickets
		b.run(func(out *coordinator.Result) {
			b.m.Handle(b.now, coordinator.Request{Ticket: ticket, Body: body}, out)
		})
		reply, ok := b.got[ticket]
		if !ok {
			require.NotEmpty(b.t, b.m.parked, "%T was not answered", body)
			b.printf("= waits, as %d", ticket)
			b.waits[ticket] = true
			return coordinator.Reply{}
		}
		delete(b.got, ticket)
		if need, ok := reply.Response.(NeedsProducerID); ok {
			body = need.With(b.producerID())
			continue
		}
		b.answer(reply)
		return reply
	}
}

func (b *bench) answer(r coordinator.Reply) {
	switch a := r.Response.(type) {
	case nil:
		b.printf("= %s", r.Code.Name())
	case Producer:
		b.printf("= %d/%d", a.ID, a.Epoch)
	case []errcode.Code:
		names := make([]string, len(a))
		for i := range a {
			names[i] = a[i].Name()
		}
		b.printf("= %s", strings.Join(names, " "))
	case message.DescribeTransactionsResponseTransactionState:
		b.printf("= %s %d/%d timeout %d start %s %v", a.TransactionState, a.ProducerId, a.ProducerEpoch, a.TransactionTimeoutMs,
			b.at(a.TransactionStartTimeMs), a.Topics)
	case []message.ListTransactionsResponseTransactionState:
		for i := range a {
			b.printf("= %s %s %d", a[i].TransactionalId, a[i].TransactionState, a[i].ProducerId)
		}
	case *View, []*View:
		b.printf("= %+v", a)
	default:
		b.t.Fatalf("%T is no answer", a)
	}
}

// at is a time of the log as the time since the bench began.
func (b *bench) at(ms int64) string {
	if ms < 0 {
		return "-"
	}
	return fmt.Sprint(time.Duration(ms-1_000_000) * time.Millisecond)
}

// run carries out a result as the runtime does: append, replay, replies, effects, and what Written adds.
func (b *bench) run(f func(out *coordinator.Result)) {
	var out, more coordinator.Result
	f(&out)
	if code := b.refuse; len(out.Records) > 0 && code != errcode.None {
		b.refuse = errcode.None
		for _, r := range out.Replies {
			b.reply(coordinator.Reply{Ticket: r.Ticket, Code: code})
		}
		return
	}
	for i := range out.Records {
		b.append(&out.Records[i])
	}
	for _, r := range out.Replies {
		b.reply(r)
	}
	for _, f := range out.Written {
		f(b.now, &more)
	}
	for _, f := range out.Committed {
		f()
	}
	if len(more.Records)+len(more.Replies)+len(more.Written)+len(more.Committed) > 0 {
		b.run(func(out *coordinator.Result) { *out = more })
	}
}

func (b *bench) reply(r coordinator.Reply) {
	_, twice := b.got[r.Ticket]
	require.False(b.t, twice, "answered twice")
	if b.waits[r.Ticket] {
		delete(b.waits, r.Ticket)
		b.printf("%d:", r.Ticket)
		b.answer(r)
		return
	}
	b.got[r.Ticket] = r
}

// append writes a record in its bytes and replays what can be read of them.
func (b *bench) append(r *coordinator.Record) {
	key, err := logrecord.AppendKey(nil, r.Key)
	require.NoError(b.t, err)
	id := r.Key.(*logrecord.TransactionLogKey).TransactionalId
	var value []byte
	if r.Value != nil {
		value, err = logrecord.AppendValue(nil, r.Value, r.Version)
		require.NoError(b.t, err)
		v := r.Value.(*logrecord.TransactionLogValue)
		parts := "null"
		if v.TransactionPartitions != nil {
			parts = strings.ReplaceAll(fmt.Sprint(v.TransactionPartitions), " []}", "}")
		}
		b.printf("+ %s v%d %s %d/%d previous %d next %d timeout %d start %s updated %s client %d %s", id, r.Version, State(v.TransactionStatus),
			v.ProducerId, v.ProducerEpoch, v.PreviousProducerId, v.NextProducerId, v.TransactionTimeoutMs,
			b.at(v.TransactionStartTimestampMs), b.at(v.TransactionLastUpdateTimestampMs), v.ClientTransactionVersion, parts)
	} else {
		b.printf("+ %s gone", id)
	}
	b.log = append(b.log, [2][]byte{key, value})
	b.replay(b.m, len(b.log)-1)
}

func (b *bench) replay(m *Machine, i int) {
	key, err := logrecord.ReadKey(logrecord.TransactionLog, b.log[i][0])
	require.NoError(b.t, err)
	value, _, err := logrecord.ReadValue(logrecord.TransactionLog, key.APIKey(), b.log[i][1])
	require.NoError(b.t, err)
	require.NoError(b.t, m.Replay(int64(i), key, value))
}

// pass lets time pass, with every tick at its time.
func (b *bench) pass(d time.Duration) {
	end := b.now.Add(d)
	for {
		due := b.m.Deadline()
		if due.IsZero() || due.After(end) {
			break
		}
		if due.After(b.now) {
			b.now = due
		}
		b.run(func(out *coordinator.Result) { b.m.Tick(b.now, out) })
	}
	b.now = end
}

// setEpoch makes an epoch the newest in the log.
func (b *bench) setEpoch(id string, epoch int16) {
	t := *b.m.txns[id]
	t.epoch = epoch
	b.append(&coordinator.Record{Key: &logrecord.TransactionLogKey{TransactionalId: id}, Value: t.record(b.m.env.Level), Version: recordVersion(b.m.env.Level)})
}

// reload replays the log into a new machine, as the coordinator of the next epoch.
func (b *bench) reload() {
	b.run(func(out *coordinator.Result) { b.m.Drop(errcode.NotCoordinator, out) })
	b.epoch++
	b.m = b.machine(b.m.env)
	for i := range b.log {
		b.replay(b.m, i)
	}
	b.run(func(out *coordinator.Result) { b.m.Loaded(b.now, out) })
}

// requireReplays requires that the log holds all that the machine knows but what it does not keep.
func (b *bench) requireReplays() {
	b.t.Helper()
	n := New(Options{Environment: b.m.env})
	for i := range b.log {
		b.replay(n, i)
	}
	require.Equal(b.t, b.m.open, n.open)
	require.Equal(b.t, b.m.sorted(), n.sorted())
	for id, t := range b.m.txns {
		want := *t
		want.lastEpoch, want.counts = noProducerEpoch, counts{}
		require.Equal(b.t, want, *n.txns[id])
	}
}

// states are ways to each state of an id "x" whose producer is 1000.
var states = map[State]func(b *bench){
	Empty:          func(b *bench) { b.init("x") },
	Ongoing:        func(b *bench) { b.init("x"); b.add("x") },
	PrepareCommit:  func(b *bench) { b.init("x"); b.add("x"); b.end("x", true) },
	PrepareAbort:   func(b *bench) { b.init("x"); b.add("x"); b.end("x", false) },
	CompleteCommit: func(b *bench) { b.init("x"); b.add("x"); b.end("x", true); b.complete() },
	CompleteAbort:  func(b *bench) { b.init("x"); b.add("x"); b.end("x", false); b.complete() },
}

func (b *bench) producer(id string) Producer {
	t := b.m.txns[id]
	return Producer{t.producerID, t.epoch}
}

func (b *bench) init(id string) Producer {
	r := b.ask(InitProducerID{ID: id, TimeoutMs: 60_000, Expected: NoProducer, NewProducerID: noProducerID})
	return r.Response.(Producer)
}

func (b *bench) add(id string) {
	require.Equal(b.t, errcode.None, b.ask(AddPartitions{ID: id, Producer: b.producer(id), Partitions: []TopicPartition{{"t", 0}}, Version: b.client()}).Code)
}

// client is the version of a client of the machine's time.
func (b *bench) client() int16 {
	if b.m.env.Level >= 2 {
		return 2
	}
	return 0
}

func (b *bench) end(id string, commit bool) {
	r := EndTxn{ID: id, Producer: b.producer(id), Commit: commit, Version: b.client(), NewProducerID: noProducerID}
	require.Equal(b.t, errcode.None, b.ask(r).Code)
}

// complete has the markers of the last order written.
func (b *bench) complete() {
	require.Equal(b.t, errcode.None, b.ask(b.orders[len(b.orders)-1].Written()).Code)
}

// sortedKeys lists the keys of a map in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
