package machine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/producer/machine"
)

// The machine against a model of a broker, in virtual time, with faults at chosen requests. What must hold whatever
// happens: every batch gets exactly one verdict, verdicts of a partition come in order, an acknowledged batch is in the
// log once, a batch that was not written is not there, no batch is there twice, the log has no batch before one that
// came earlier, and buffers are released only when nothing carries them.

// fault is what happens to one request.
type fault int

const (
	fine         fault = iota
	requestLost        // the connection ends before the broker saw it
	responseLost       // the connection ends after the broker appended it
	delayed            // the answer and everything behind it takes 300 ms
	arrivesLate        // the client gives up the connection; the request reaches the broker 250 ms later all the same
	notLeader          // refused, and led by the other broker from now on
	movesAfter         // appended, answered NOT_LEADER_OR_FOLLOWER, and led by the other broker, which has it
	timedOut           // appended, answered REQUEST_TIMED_OUT
	fewReplicas        // refused with NOT_ENOUGH_REPLICAS
	tooFew             // appended, answered NOT_ENOUGH_REPLICAS_AFTER_APPEND
	tooLarge           // refused with MESSAGE_TOO_LARGE
	forgotten          // the broker lost all producer state
	denied             // refused for good
	invalid            // refused with INVALID_RECORD
	faults
)

// world is the client's driver, the network and the brokers.
type world struct {
	t      *testing.T
	m      *machine.Machine
	now    time.Time
	parts  []*simPart
	conns  map[int32]*simConn
	todo   []timed // network events, in order of time
	fault  func(request int) fault
	count  int // requests so far
	late   int // requests still to arrive late
	nextID int64
	open   map[*machine.Batch]bool // not released
	trace  []string
}

type timed struct {
	at time.Time
	n  int
	do func()
}

// simConn is one connection: answers come in order, and when it ends all of them are lost.
type simConn struct {
	epoch    int
	pending  []*machine.Request
	lastDone time.Time
}

// simPart is a partition with its log, the same on every broker.
type simPart struct {
	p        *machine.Partition
	leader   int32
	epoch    int32
	log      []string
	producer map[int64]*producerState
	strict   bool // as brokers before Kafka 2.5: an unknown producer must begin at 0; later ones take anything
	sent     []*simBatch
}

type producerState struct {
	epoch int16
	last  []written
}

type written struct {
	first, count int32
	offset       int64
}

type simBatch struct {
	b       *machine.Batch
	records []string
	outcome machine.Outcome
	told    bool
}

func newWorld(t *testing.T, parts int, cfg machine.Config, f func(int) fault) *world {
	w := &world{
		t: t, m: machine.New(cfg), now: time.Unix(0, 0), fault: f, nextID: 100,
		conns: map[int32]*simConn{1: {}, 2: {}}, open: map[*machine.Batch]bool{},
	}
	for i := range parts {
		sp := &simPart{leader: 1, producer: map[int64]*producerState{}, strict: cfg.Seed%2 == 1}
		sp.p = machine.NewPartition(sp)
		w.parts = append(w.parts, sp)
		w.step(machine.Event{Kind: machine.LeaderChanged, Partition: sp.p, Leader: 1})
		_ = i
	}
	return w
}

func (w *world) after(d time.Duration, do func()) {
	w.todo = append(w.todo, timed{w.now.Add(d), len(w.todo), do})
	slices.SortStableFunc(w.todo, func(a, b timed) int { return a.at.Compare(b.at) })
}

// submit seals a batch of n records in a partition.
func (w *world) submit(part, n int) {
	sp := w.parts[part]
	sb := &simBatch{}
	for i := range n {
		sb.records = append(sb.records, fmt.Sprintf("p%d/%d.%d", part, len(sp.sent), i))
	}
	sp.sent = append(sp.sent, sb)
	w.seal(sp, sb)
}

func (w *world) seal(sp *simPart, sb *simBatch) {
	sb.b = w.batch(sb)
	w.step(machine.Event{Kind: machine.Gathered, Partition: sp.p, Batches: []*machine.Batch{sb.b}})
}

func (w *world) batch(sb *simBatch) *machine.Batch {
	b := &machine.Batch{Owner: sb}
	b.Reset()
	b.Count, b.Size, b.Created = int32(len(sb.records)), 100*len(sb.records), w.now
	w.open[b] = true
	return b
}

// run lets time pass until nothing is left to happen.
func (w *world) run(until time.Time) {
	for steps := 0; ; steps++ {
		require.Less(w.t, steps, 100_000, "no end\n%v", w.trace)
		next := w.m.Deadline()
		if len(w.todo) > 0 && w.todo[0].at.Before(next) {
			next = w.todo[0].at
		}
		if next.After(until) {
			w.now = until
			return
		}
		if next.After(w.now) {
			w.now = next
		}
		if len(w.todo) > 0 && !w.todo[0].at.After(w.now) {
			do := w.todo[0].do
			w.todo = w.todo[1:]
			do()
			continue
		}
		w.step(machine.Event{Kind: machine.Tick})
	}
}

func (w *world) step(events ...machine.Event) {
	for len(events) > 0 {
		e := w.m.Step(w.now, events...)
		events = nil
		require.Empty(w.t, e.Seal)
		for _, v := range e.Verdicts {
			w.verdict(v)
		}
		for _, b := range e.Split {
			events = append(events, w.divide(b))
		}
		for _, r := range e.Send {
			w.send(r)
		}
		if e.InitProducerID {
			w.nextID++
			id := w.nextID
			w.after(time.Millisecond, func() {
				w.step(machine.Event{Kind: machine.ProducerIDReceived, ID: id})
			})
		}
		if e.Refresh {
			w.after(20*time.Millisecond, w.refresh)
		}
		for _, b := range slices.Concat(e.Release, e.Discard) {
			require.True(w.t, w.open[b], "released twice")
			delete(w.open, b)
			for _, c := range w.conns {
				for _, r := range c.pending {
					require.NotContains(w.t, r.Batches, b, "released while a request carries it")
				}
			}
		}
	}
}

func (w *world) refresh() {
	for _, sp := range w.parts {
		w.step(machine.Event{Kind: machine.LeaderChanged, Partition: sp.p, Leader: sp.leader, LeaderEpoch: sp.epoch})
	}
}

func (w *world) divide(b *machine.Batch) machine.Event {
	whole := b.Owner.(*simBatch)
	sp := w.partOf(b)
	if whole.told { // it expired in the same step
		sp = &simPart{sent: []*simBatch{whole}}
	}
	half := len(whole.records) / 2
	first, second := &simBatch{records: whole.records[:half]}, &simBatch{records: whole.records[half:]}
	at := slices.Index(sp.sent, whole)
	sp.sent = slices.Replace(sp.sent, at, at+1, first, second)
	first.b, second.b = w.batch(first), w.batch(second)
	first.b.Created, second.b.Created = b.Created, b.Created
	return machine.Event{Kind: machine.Divided, Batch: b, Batches: []*machine.Batch{first.b, second.b}}
}

func (w *world) partOf(b *machine.Batch) *simPart { return b.Partition().Owner.(*simPart) }

func (w *world) verdict(v machine.Verdict) {
	sb := v.Batch.Owner.(*simBatch)
	sp := w.partOf(v.Batch)
	require.False(w.t, sb.told, "second verdict for %v", sb.records)
	sb.told, sb.outcome = true, v.Outcome
	for _, earlier := range sp.sent[:slices.Index(sp.sent, sb)] {
		require.True(w.t, earlier.told, "verdict of %v before that of %v\n%v", sb.records, earlier.records, w.trace)
	}
	w.trace = append(w.trace, fmt.Sprintf("%v verdict %v %v %v", w.now.UnixMilli(), sb.records, v.Outcome, v.Code))
}

// wire is what a request says, copied when it is sent: the batch may have other sequences when it arrives late.
type wire struct {
	sp    *simPart
	id    int64
	epoch int16
	seq   int32
	recs  []string
}

func (w *world) send(r *machine.Request) {
	var frame []wire
	seen := map[*simPart]bool{}
	for _, b := range r.Batches {
		sp := w.partOf(b)
		require.False(w.t, seen[sp], "two batches of a partition in one request")
		seen[sp] = true
		require.True(w.t, w.open[b], "sent after release")
		frame = append(frame, wire{sp, b.ProducerID, b.Epoch, b.BaseSequence, b.Owner.(*simBatch).records})
	}
	w.count++
	f := w.fault(w.count)
	if f == arrivesLate && w.late > 0 {
		f = requestLost // two of them can fill a gap behind our back; see the package comment
	}
	for _, x := range frame {
		w.trace = append(w.trace, fmt.Sprintf("%v #%d to %d fault %d: %v id %d epoch %d seq %d", w.now.UnixMilli(), w.count, r.Broker, f, x.recs, x.id, x.epoch, x.seq))
	}
	c := w.conns[r.Broker]
	c.pending = append(c.pending, r)
	epoch := c.epoch
	d := 2 * time.Millisecond
	if f == delayed {
		d = 300 * time.Millisecond
	}
	if at := w.now.Add(d); at.Before(c.lastDone) { // one request of a connection at a time
		d = c.lastDone.Sub(w.now)
	}
	c.lastDone = w.now.Add(d)
	if f == arrivesLate {
		w.late++
		w.after(250*time.Millisecond, func() {
			w.late--
			w.broker(r.Broker, fine, frame)
		})
	}
	w.after(d, func() {
		if c.epoch != epoch {
			return // the connection ended before it came to this
		}
		switch f {
		case requestLost, arrivesLate:
			w.cut(c)
			return
		case responseLost:
			w.broker(r.Broker, f, frame)
			w.cut(c)
			return
		}
		r.Results = w.broker(r.Broker, f, frame)
		c.pending = slices.DeleteFunc(c.pending, func(x *machine.Request) bool { return x == r })
		w.step(machine.Event{Kind: machine.Replied, Request: r})
		w.m.Recycle(r)
	})
}

// cut ends a connection: everything on it is lost, in order.
func (w *world) cut(c *simConn) {
	c.epoch++
	c.lastDone = w.now
	lost := c.pending
	c.pending = nil
	for _, r := range lost {
		r.Err, r.Written = fmt.Errorf("connection lost"), true
		w.step(machine.Event{Kind: machine.Replied, Request: r})
		w.m.Recycle(r)
	}
}

func simConfig() machine.Config {
	return machine.Config{
		Linger: 5 * time.Millisecond, DeliveryTimeout: 5 * time.Second, RetryBackoff: 50 * time.Millisecond,
		RetryBackoffMax: 200 * time.Millisecond, Retries: 1 << 30, MaxInFlight: 5, MaxRequestSize: 1500, Idempotent: true, Seed: 1,
	}
}

// workload submits eight batches to each of two partitions, some at once, some later.
func workload(w *world) {
	for i := range 8 {
		for p := range w.parts {
			w.submit(p, 1+(i+p)%4)
		}
		if i%3 == 2 {
			w.run(w.now.Add(time.Duration(i) * time.Millisecond))
		}
	}
	w.run(w.now.Add(30 * time.Second))
}

// TestSingleFaults puts every fault at every step.
func TestSingleFaults(t *testing.T) {
	for f := fine; f < faults; f++ {
		for at := 1; at <= 32; at++ {
			cfg := simConfig()
			cfg.Seed = uint64(at) // kinds of brokers alternate
			at := (at + 1) / 2
			w := newWorld(t, 2, cfg, func(n int) fault {
				if n == at {
					return f
				}
				return fine
			})
			workload(w)
			w.check()
			for _, sp := range w.parts {
				for _, sb := range sp.sent {
					if f != denied && f != invalid && f != tooLarge {
						require.Equal(t, machine.Acked, sb.outcome, "fault %d at %d: %v", f, at, sb.records)
					}
				}
			}
		}
	}
}

// TestFaultPairs puts two faults at every pair of near steps.
func TestFaultPairs(t *testing.T) {
	for f := requestLost; f < faults; f++ {
		for g := requestLost; g < faults; g++ {
			for at := 1; at <= 6; at++ {
				for gap := 1; gap <= 3; gap++ {
					w := newWorld(t, 1, simConfig(), func(n int) fault {
						switch n {
						case at:
							return f
						case at + gap:
							return g
						}
						return fine
					})
					workload(w)
					w.check()
				}
			}
		}
	}
}

// TestRandomFaults draws a fault for one request in three, and a delivery timeout that runs out now and then.
func TestRandomFaults(t *testing.T) {
	seeds := 300
	if testing.Short() {
		seeds = 50
	}
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(uint64(seed), 7))
		cfg := simConfig()
		cfg.Seed = uint64(seed)
		cfg.DeliveryTimeout = time.Duration(20+rnd.IntN(800)) * time.Millisecond
		cfg.MaxInFlight = 1 + rnd.IntN(5)
		w := newWorld(t, 1+rnd.IntN(3), cfg, func(int) fault {
			if rnd.IntN(3) == 0 {
				return fault(rnd.IntN(int(faults)))
			}
			return fine
		})
		for range 30 {
			w.submit(rnd.IntN(len(w.parts)), 1+rnd.IntN(4))
			if rnd.IntN(3) == 0 {
				w.run(w.now.Add(time.Duration(rnd.IntN(60)) * time.Millisecond))
			}
		}
		w.run(w.now.Add(60 * time.Second))
		if t.Failed() {
			return
		}
		w.checkSeed(seed)
	}
}

func (w *world) checkSeed(seed int) {
	defer func() {
		if w.t.Failed() {
			w.t.Logf("seed %d", seed)
		}
	}()
	w.check()
}
