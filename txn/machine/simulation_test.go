package machine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/txn/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// TestSimulation runs sessions against a model of a coordinator over a network that loses requests and answers, and
// delivers requests of dead connections late, long after the session has moved on. Whatever happens: what the session calls
// committed is committed as a whole, what it calls aborted is not, and no request of one transaction touches another.
func TestSimulation(t *testing.T) {
	for _, kind := range []struct {
		name     string
		implicit bool
	}{{"explicit", false}, {"implicit", true}} {
		t.Run(kind.name, func(t *testing.T) {
			committed, aborted, doubts, late, fenced := 0, 0, 0, 0, 0
			for seed := range uint64(400) {
				w := newWorld(t, seed, kind.implicit)
				w.run(150)
				committed, aborted, doubts, late = committed+w.committed, aborted+w.aborted, doubts+w.doubts, late+w.late
				fenced += w.fenced
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
			// With explicit transactions a late AddPartitionsToTxn between the end of one and the next epoch opens a
			// transaction at the coordinator, which the request for the epoch aborts, and with it the session. Nothing
			// but KIP-890 helps.
			require.LessOrEqual(t, fenced, 40)
			require.Greater(t, committed, 300)
			require.Greater(t, aborted, 300)
			require.Greater(t, doubts, 50, "commits whose caller had gone")
			require.Greater(t, late, 400, "requests carried out late")
		})
	}
}

const id = "tx"

var parts = []client.TopicPartition{{Topic: "a", Partition: 0}, {Topic: "a", Partition: 1}, {Topic: "b", Partition: 0}}

// world is one session, its user and producer, a network, and a coordinator.
type world struct {
	t    *testing.T
	rand *rand.Rand
	now  time.Time
	m    *machine.Machine
	c    coordinator
	log  []string

	serial   uint64
	used     map[client.TopicPartition]bool // enlisted or, implicitly, written to
	wants    []client.TopicPartition        // records that wait
	records  map[uint64]int                 // of each transaction, as far as they were written
	asked    map[uint64]bool                // commit was asked for
	ends     map[uint64]machine.Outcome
	flush    int
	finding  []machine.Coordinator
	air      []*machine.Request
	delayed  []func()
	revived  bool // a late request has opened a transaction that the session does not know of
	gone     bool // the user of the open transaction waits for its end no more
	job      *machine.OffsetJob
	implicit bool

	committed, aborted, doubts, late, fenced int
}

func newWorld(t *testing.T, seed uint64, implicit bool) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1000, 0), implicit: implicit,
		records: map[uint64]int{}, asked: map[uint64]bool{}, ends: map[uint64]machine.Outcome{}, used: map[client.TopicPartition]bool{}}
	w.m = machine.New(machine.Config{ID: id, Timeout: time.Hour, RetryBackoff: 100 * time.Millisecond, RetryBackoffMax: time.Second, Seed: seed})
	w.c = coordinator{w: w, epoch: -1, last: -1, open: map[client.TopicPartition]bool{}, content: map[uint64]int{}}
	w.step(machine.Started{})
	return w
}

func (w *world) say(format string, a ...any) {
	w.log = append(w.log, fmt.Sprintf(format, a...))
}

func (w *world) check(ok bool, format string, a ...any) {
	if !ok {
		for _, l := range w.log {
			w.t.Log(l)
		}
		w.t.Fatalf(format, a...)
	}
}

func (w *world) run(steps int) {
	for range steps {
		w.act()
	}
	// From here on nothing is lost any more: everything must come to an end.
	for range 400 {
		w.settle()
	}
	switch w.m.State() {
	case machine.Ready, machine.InTransaction, machine.Doomed:
	case machine.Over:
		w.check(w.revived && !w.implicit, "fenced for no reason")
		w.fenced++
	default:
		w.check(false, "stuck in %s", w.m.State())
	}
}

// act makes one thing happen.
func (w *world) act() {
	switch n := w.rand.IntN(20); {
	case n < 6:
		w.user()
	case n < 14:
		w.network()
	case n < 15 && len(w.delayed) > 0:
		i := w.rand.IntN(len(w.delayed))
		f := w.delayed[i]
		w.delayed = append(w.delayed[:i], w.delayed[i+1:]...)
		w.late++
		before := w.c.state
		f()
		w.revived = w.revived || before != "Ongoing" && w.c.state == "Ongoing"
	case n < 16 && w.m.State() == machine.InTransaction && w.rand.IntN(3) == 0:
		w.step(machine.BatchFailed{TopicPartition: parts[0], InDoubt: w.rand.IntN(2) == 0, Sequenced: true, Code: errcode.NotEnoughReplicas, Err: errcode.NotEnoughReplicas})
	default:
		w.pass()
	}
}

// settle lets the network work without losses.
func (w *world) settle() {
	w.found()
	for len(w.air) > 0 {
		r := w.air[0]
		w.air = w.air[1:]
		w.answer(r, w.c.handle(r))
	}
	w.produce()
	if w.m.State() == machine.Committing {
		w.step(machine.CommitAllowed{})
	}
	w.pass()
}

// pass lets time go on to the next deadline.
func (w *world) pass() {
	if d := w.m.Deadline(); !machine.Never(d) {
		if d.After(w.now) {
			w.now = d
		}
		w.step(machine.Woke{})
	}
}

// user begins, sends, commits, aborts, and walks away.
func (w *world) user() {
	switch w.m.State() {
	case machine.Ready:
		w.step(machine.Checked{Implicit: w.implicit})
		if w.m.State() == machine.Ready {
			w.gone, w.job = false, nil
			w.step(machine.Begun{})
		}
	case machine.InTransaction:
		switch w.rand.IntN(6) {
		case 0, 1, 2:
			w.wants = append(w.wants, parts[w.rand.IntN(len(parts))])
			w.produce()
		case 3:
			if w.job == nil {
				w.job = &machine.OffsetJob{Group: "g", MemberID: "m", Generation: 3, Offsets: []machine.PartitionOffset{{TopicPartition: parts[0], Offset: 7}}}
				w.step(machine.OffsetsGiven{Job: w.job})
			}
		case 4:
			w.asked[w.serial] = true
			w.step(machine.CommitAsked{}, machine.CommitAllowed{})
		case 5:
			w.step(machine.AbortAsked{Cause: errAborted})
		}
	case machine.Committing:
		if !w.gone && w.rand.IntN(4) == 0 {
			w.gone = true
			doubt := w.m.InDoubt()
			w.step(machine.CommitRecalled{})
			if doubt {
				w.doubts++
			} else {
				w.gone = false
				w.check(w.m.State() != machine.Committing, "a commit that nobody can know of goes on")
				delete(w.asked, w.serial)
			}
		}
	case machine.Doomed:
		w.step(machine.AbortAsked{Cause: errAborted})
	}
	w.produce()
}

var errAborted = fmt.Errorf("aborted")

// produce writes records whose partition is in the transaction, asks for the others, and answers a flush.
func (w *world) produce() {
	var rest, ask []client.TopicPartition
	for _, tp := range w.wants {
		switch {
		case w.implicit && !w.c.busy():
			w.c.write(tp)
			ask = append(ask, tp)
		case !w.implicit && w.used[tp]:
			w.c.write(tp)
		default:
			rest = append(rest, tp)
			if !w.implicit && !w.asking(tp) {
				ask = append(ask, tp)
			}
		}
	}
	w.wants = rest
	if len(ask) > 0 {
		w.step(machine.PartitionsUsed{Parts: ask})
	}
	if len(w.wants) == 0 && w.flush > 0 {
		n := w.flush
		w.flush = 0
		w.step(machine.Flushed{Number: n})
	}
}

func (w *world) asking(tp client.TopicPartition) bool {
	_, ok := w.used[tp]
	if !ok {
		w.used[tp] = false
	}
	return ok
}

// network finds coordinators and carries requests, or loses something.
func (w *world) network() {
	w.found()
	if len(w.air) == 0 {
		return
	}
	i := w.rand.IntN(len(w.air))
	r := w.air[i]
	w.air = append(w.air[:i], w.air[i+1:]...)
	n := w.rand.IntN(8)
	if init, ok := r.Body.(*message.InitProducerIdRequest); ok && init.ProducerId < 0 {
		n = 7 // the very first cannot say which epoch it replaces: one that comes late fences the session, in any client
	}
	switch n {
	case 0:
		w.say("unsent: %T", r.Body)
		w.step(machine.Failed{Request: r, Err: errAborted})
	case 1:
		w.say("lost: %T", r.Body)
		w.step(machine.Failed{Request: r, Err: errAborted, Written: true})
	case 2:
		w.say("answer lost: %T", r.Body)
		w.c.handle(r)
		w.step(machine.Failed{Request: r, Err: errAborted, Written: true})
	case 3:
		w.say("comes late: %T", r.Body)
		w.delayed = append(w.delayed, func() { w.c.handle(r) })
		w.step(machine.Failed{Request: r, Err: errAborted, Written: true})
	case 4:
		w.answer(r, w.c.refuse(r, errcode.NotCoordinator))
	default:
		w.answer(r, w.c.handle(r))
	}
}

func (w *world) found() {
	finding := w.finding
	w.finding = nil
	for _, c := range finding {
		w.step(machine.CoordinatorFound{Coordinator: c, Broker: 1})
	}
}

func (w *world) answer(r *machine.Request, resp message.Response) {
	w.say("answer: %+v", resp)
	version := int16(4)
	if w.implicit {
		version = 5
	}
	w.step(machine.Answered{Request: r, Response: resp, Version: version})
}

// step takes events to the machine and does what it says.
func (w *world) step(events ...machine.Event) {
	from := w.m.State()
	eff := w.m.Step(w.now, events...)
	for _, tr := range eff.Transitions {
		w.say("%s -> %s: %s", tr.From, tr.To, tr.Reason)
		w.check(tr.From == from && machine.Allowed(tr.From, tr.To), "%s -> %s is not in the list", tr.From, tr.To)
	}
	if eff.Drop != nil {
		w.wants = nil
	}
	for _, tp := range eff.Enlisted {
		w.used[tp] = true
	}
	if eff.Flush > 0 {
		w.flush = eff.Flush
	}
	if eff.Open {
		w.serial = w.m.Serial()
		w.used, w.wants = map[client.TopicPartition]bool{}, nil
	}
	if f := eff.Finished; f != nil {
		w.finished(f)
	}
	w.finding = append(w.finding, eff.Find...)
	w.air = append(w.air, eff.Send...)
	w.check(len(w.air) <= 2, "%d requests in the air to two coordinators", len(w.air))
}

// finished holds what the machine says about a transaction against what the coordinator did.
func (w *world) finished(f *machine.Finish) {
	w.say("transaction %d is %s: %v", f.Serial, f.Outcome, f.Err)
	before := w.ends[f.Serial]
	w.check(before == machine.Open || before == machine.InDoubt, "transaction %d ends twice", f.Serial)
	w.ends[f.Serial] = f.Outcome
	has, all := w.c.content[f.Serial], w.records[f.Serial]
	switch f.Outcome {
	case machine.Committed:
		w.committed++
		w.check(w.asked[f.Serial] && has == all, "transaction %d: %d of %d records are committed", f.Serial, has, all)
	case machine.Aborted:
		w.aborted++
		w.check(has == 0, "transaction %d: %d records are committed", f.Serial, has)
	}
}
