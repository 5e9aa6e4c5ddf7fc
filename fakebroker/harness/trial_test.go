package harness_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/fakebroker/harness"
	"github.com/ottla-kafka/ottla/fakebroker/history"
	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
)

const (
	trialRecords = 48               // that the pipeline has to carry
	trialLedger  = 30               // transactions of the ledger's writer
	trialTimeout = 6 * time.Second  // transaction.timeout.ms
	trialSession = 5 * time.Second  // of group members
	trialLimit   = 90 * time.Second // for everything to be done, once nothing goes wrong any more
)

// A trial is one run of a workload on a broker, in virtual time, under the faults of one seed:
//
//	shop    writes in, idempotently, or in transactions some of which it aborts
//	w0 w1   carry in to out, in transactions; members of group g; they are killed and started again
//	ledger  writes transactions to a topic of its own, and aborts some
//	tail    reads everything as read_committed all the time, in small fetches; late begins somewhere in between
//	raw     does so without a consumer, by single requests
//
// Everything they do is in a history.Log. When the faults are over and everything is done, or nothing moves any more, the
// logs are read to their ends, and everybody who can find something wrong is asked.
type trial struct {
	seed    uint64
	bugs    bug.Set
	style   style // how the pipeline is written
	level   int16 // transaction.version
	classic bool  // the group's protocol

	k       *fakebroker.Cluster
	cl      *client.Client // of the test itself: no fault strikes it
	log     *history.Log
	load    context.Context // ends when everything is done
	running sync.WaitGroup

	mu       sync.Mutex
	findings []string
	lives    map[string]*life
	rules    []*fault.Injection
	story    []string
	absent   bool // the broker is away
	calm     bool // nothing goes wrong any more
}

// random is one stream of the seed's chance: drawing from one leaves the others as they are.
func (tr *trial) random(stream string) *rand.Rand {
	h := uint64(14695981039346656037)
	for _, c := range []byte(stream) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(tr.seed, h))
}

// tell notes what happened, for who reads a failure.
func (tr *trial) tell(format string, args ...any) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.story = append(tr.story, time.Now().Format("04:05.000 ")+fmt.Sprintf(format, args...))
}

// find notes something that must not happen.
func (tr *trial) find(format string, args ...any) {
	tr.tell("FOUND "+format, args...)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.findings = append(tr.findings, fmt.Sprintf(format, args...))
}

// runTrial runs a trial and returns it with its findings.
func runTrial(t *testing.T, seed uint64, s style, bugs bug.Set) *trial {
	t.Helper()
	tr := &trial{seed: seed, bugs: bugs, style: s, log: history.New(), lives: map[string]*life{}}
	r := tr.random("setup")
	tr.level, tr.classic = int16(1+r.IntN(2)), r.IntN(2) == 0
	if *trialLevel > 0 {
		tr.level = int16(*trialLevel)
	}
	synctest.Test(t, func(t *testing.T) { tr.run(t, r) })
	return tr
}

func (tr *trial) run(t *testing.T, r *rand.Rand) {
	small := map[string]string{"segment.ms": fmt.Sprint([]int{3000, 10000, 604800000}[r.IntN(3)]), "index.interval.bytes": "64"}
	var err error
	tr.k, err = fakebroker.New(fakebroker.Logger(slog.New(slog.DiscardHandler)), func(s *fakebroker.Settings) { s.Bugs = tr.bugs },
		fakebroker.Feature("transaction.version", tr.level),
		fakebroker.TopicWith(fakebroker.TopicSpec{Name: "in", Partitions: 2, Configs: small}),
		fakebroker.TopicWith(fakebroker.TopicSpec{Name: "out", Partitions: 2, Configs: small}),
		fakebroker.TopicWith(fakebroker.TopicSpec{Name: "ledger", Partitions: 2, Configs: small}),
		fakebroker.Config("offsets.topic.num.partitions", "2"), fakebroker.Config("transaction.state.log.num.partitions", "2"),
		fakebroker.Config("group.initial.rebalance.delay.ms", "0"),
		fakebroker.Config("group.min.session.timeout.ms", "1000"),
		fakebroker.Config("group.consumer.min.session.timeout.ms", "1000"), fakebroker.Config("group.consumer.session.timeout.ms", fmt.Sprint(trialSession.Milliseconds())),
		fakebroker.Config("group.consumer.min.heartbeat.interval.ms", "100"), fakebroker.Config("group.consumer.heartbeat.interval.ms", "1000"),
		fakebroker.Config("transaction.abort.timed.out.transaction.cleanup.interval.ms", "1000"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tr.k.Close(context.Background()) }()
	if tr.cl, err = client.New(client.Cluster(tr.k), client.ClientID("test")); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tr.cl.Close(context.Background()) }()
	load, stop := context.WithCancel(context.Background())
	tr.load = load
	tr.start()
	tr.misfortunes()
	tr.heal()
	tr.awaitDone()
	stop()
	tr.running.Wait()
	tr.judge()
}

// start starts everybody.
func (tr *trial) start() {
	tr.keep("shop", tr.shop())
	tr.keep("ledger", tr.ledger())
	for _, id := range []string{"w0", "w1"} {
		tr.keep(id, tr.worker(id))
	}
	tr.keep("tail", tr.reader(0))
	tr.keep("raw", tr.rawReader())
	tr.keep("late", tr.reader(time.Duration(2+tr.random("late").IntN(15))*time.Second))
}

// inject puts a rule to work, until heal.
func (tr *trial) inject(r fault.Rule) {
	i := tr.k.Inject(r)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.rules = append(tr.rules, i)
}

// heal ends everything that goes wrong.
func (tr *trial) heal() {
	tr.tell("heal")
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.calm = true
	for _, i := range tr.rules {
		i.Remove()
	}
}

// isCalm reports whether nothing goes wrong any more.
func (tr *trial) isCalm() bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.calm
}

// awaitDone waits until the writers have written, the group has committed everything, and no transaction is open.
func (tr *trial) awaitDone() {
	why := ""
	for end := time.Now().Add(trialLimit); time.Now().Before(end); time.Sleep(250 * time.Millisecond) {
		if why = tr.undone(); why == "" {
			tr.tell("done")
			return
		}
	}
	tr.find("stands still: %s", why)
}

func (tr *trial) undone() string {
	for _, name := range []string{"shop", "ledger"} {
		if !tr.isOver(name) {
			return name + " has not written everything"
		}
	}
	for _, topic := range []string{"in", "out", "ledger"} {
		for p := range int32(2) {
			if o, err := tr.k.Offsets(topic, p); err != nil || o.LastStable != o.HighWatermark {
				return fmt.Sprintf("a transaction is open in %s-%d: %+v %v", topic, p, o, err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	g, err := tr.k.Group(ctx, "g")
	if err != nil {
		return err.Error()
	}
	committed := map[int32]int64{}
	for _, o := range g.Offsets {
		committed[o.Partition] = o.Offset
	}
	for p := range int32(2) {
		// The group is done when nothing that its members can see lies behind its offset.
		left, err := tr.visibleFrom("in", p, max(committed[p], 0))
		if err != nil {
			return err.Error()
		}
		if left {
			return fmt.Sprintf("group g has records of in-%d left, from offset %d: %+v", p, committed[p], g.Members)
		}
	}
	return ""
}

// judge asks everybody who can find something wrong.
func (tr *trial) judge() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tr.drain(ctx)
	report, err := history.Check(tr.log, history.Drained("in", "out", "ledger"))
	if err != nil {
		tr.find("history: %v", err)
		return
	}
	for _, a := range report.Anomalies {
		tr.find("%s", a)
	}
	for _, topic := range []string{"in", "out", "ledger"} {
		for p := range int32(2) {
			tr.audit(ctx, topic, p)
		}
	}
	r, err := harness.ExactlyOnce(ctx, tr.cl, "in", "out", harness.Within(0), harness.OutIdentity(func(r consumer.Record) string {
		return strings.TrimPrefix(string(r.Value), "done ")
	}))
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		tr.find("%v", err)
	}
}

// drain reads everything once more, from the beginnings to the ends.
func (tr *trial) drain(ctx context.Context) {
	rec := harness.Record(tr.log, "drain")
	var assign []consumer.Option
	ends := map[consumer.TopicPartition]int64{}
	for _, topic := range []string{"in", "out", "ledger"} {
		assign = append(assign, consumer.Assign(topic, 0, 1))
		for p := range int32(2) {
			if o, err := tr.k.Offsets(topic, p); err == nil {
				ends[consumer.TopicPartition{Topic: topic, Partition: p}] = o.LastStable
			}
		}
	}
	opts := append(rec.Consumer("", consumer.ReadCommitted), consumer.StartAt(consumer.Earliest), consumer.Fetching(1, 10*time.Millisecond), consumer.MaxBytes(1500, 700))
	c, err := consumer.New(tr.cl, append(opts, assign...)...)
	if err != nil {
		tr.find("drain: %v", err)
		return
	}
	defer func() { _ = c.Close(ctx) }()
	for slices.ContainsFunc(c.Partitions(), func(p consumer.PartitionState) bool { return p.Position < ends[p.TopicPartition] }) {
		if ctx.Err() != nil {
			tr.find("drain: %v: %v, wanted %v", context.Cause(ctx), c.Partitions(), ends)
			return
		}
		quick, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		_, _ = c.Poll(quick, 0) // an error that stays ends with ctx
		cancel()
	}
}

// summary is the findings in a line: their kinds.
func (tr *trial) summary() string {
	var kinds []string
	for _, f := range tr.findings {
		kind, _, _ := strings.Cut(f, ":")
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(kinds, ", ")
}
