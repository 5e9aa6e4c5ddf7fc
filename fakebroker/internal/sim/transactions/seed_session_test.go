package transactions

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker/internal/sim/clockwork"
	producing "github.com/ottla-kafka/ottla/producer/machine"
	"github.com/ottla-kafka/ottla/txn/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// node is a process with one session: the drivers of txn's machine and of the producer's, one event at a time.
type node struct {
	w     *world
	index int8
	name  string
	s     *machine.Machine
	p     *producing.Machine
	parts [2]*producing.Partition

	txnLane, groupLane *lane
	data               [3]*lane // by broker

	todo    []func() // what effects lead to, in order
	working bool
	open    bool // records of the transaction are taken
	made    int8 // records of it
	pending int  // without a verdict
	flush   int
	wakeS   time.Time
	wakeP   time.Time

	dead, over bool
	paused     bool
	backlog    []func()
	mute, deaf bool
}

// sent is a record on its way.
type sent struct{ label label }

// add starts a process.
func (w *world) add() *node {
	i := int8(len(w.nodes))
	n := &node{w: w, index: i, name: fmt.Sprintf("n%d", i), txnLane: &lane{}, groupLane: &lane{}, data: [3]*lane{1: {}, 2: {}}}
	n.s = machine.New(machine.Config{ID: seedID, Timeout: seedTimeout, RetryBackoff: 100 * time.Millisecond, RetryBackoffMax: time.Second, Seed: uint64(i)})
	n.p = producing.New(producing.Config{DeliveryTimeout: 10 * time.Second, RetryBackoff: 100 * time.Millisecond, RetryBackoffMax: time.Second, Retries: math.MaxInt32,
		MaxInFlight: 5, MaxRequestSize: 1 << 20, Idempotent: true, Transactional: true, Seed: uint64(i)})
	for part := range n.parts {
		n.parts[part] = producing.NewPartition(int32(part))
		n.produce(producing.Event{Kind: producing.LeaderChanged, Partition: n.parts[part], Leader: w.leaders[part].broker})
	}
	w.nodes = append(w.nodes, n)
	w.Note("%s starts", n.name)
	n.step(machine.Started{})
	return n
}

// do has something happen to the node, later if it is paused.
func (n *node) do(f func()) {
	switch {
	case n.dead:
	case n.paused:
		n.backlog = append(n.backlog, f)
	default:
		f()
	}
}

func (n *node) after(d time.Duration, f func()) { n.w.After(d, func() { n.do(f) }) }

// queue does f behind what is being carried out, so that effects of two machines do not get in each other's way.
func (n *node) queue(f func()) {
	n.todo = append(n.todo, f)
	if n.working {
		return
	}
	n.working = true
	for len(n.todo) > 0 {
		f := n.todo[0]
		n.todo = n.todo[1:]
		f()
	}
	n.working = false
}

func (n *node) step(ev machine.Event) { n.queue(func() { n.stepNow(ev) }) }

// stepNow steps the session and carries out what it wants, in the order of Effects.
func (n *node) stepNow(ev machine.Event) {
	w := n.w
	eff := n.s.Step(w.Now, ev)
	for _, t := range eff.Transitions {
		w.Note("%s %s -> %s: %s, producer %d/%d", n.name, t.From, t.To, t.Reason, t.ProducerID, t.Epoch)
		if !machine.Allowed(t.From, t.To) {
			w.Fail("%s may not go from %s to %s", n.name, t.From, t.To)
		}
	}
	if eff.Seal {
		n.open = false
	}
	if eff.Unseal {
		n.open = true
	}
	if eff.Drop != nil {
		n.open = false
		n.produce(producing.Event{Kind: producing.Dropped, Err: eff.Drop})
	}
	for _, tp := range eff.Enlisted {
		n.produce(producing.Event{Kind: producing.Enlisted, Partition: n.parts[tp.Partition]})
	}
	if eff.Flush != 0 {
		n.flush = eff.Flush
		n.produce(producing.Event{Kind: producing.Hurried})
	}
	if eff.Open {
		id, epoch := n.s.Producer()
		n.open, n.made = true, 0
		n.produce(producing.Event{Kind: producing.Begun, ID: id, Epoch: epoch, Implicit: n.s.Implicit()})
		n.queue(n.work)
	}
	if eff.Doomed != nil {
		w.Note("%s doomed: %v", n.name, eff.Doomed)
		w.Sometimes("transaction doomed")
		n.after(clockwork.Between(w.work, 0, 300*time.Millisecond), func() {
			if n.s.State() == machine.Doomed {
				n.step(machine.AbortAsked{Cause: errors.New("doomed")})
			}
		})
	}
	if f := eff.Finished; f != nil {
		w.Note("%s transaction %d %s: %v", n.name, f.Serial, f.Outcome, f.Err)
		w.ledger.finished(n, f)
	}
	for _, job := range eff.Done {
		w.ledger.offsetsDone(n, job)
	}
	for _, who := range eff.Find {
		n.find(who)
	}
	for _, r := range eff.Send {
		n.request(r)
	}
	n.arm()
	for _, t := range eff.Transitions {
		switch t.To {
		case machine.Ready:
			n.after(clockwork.Between(w.work, 0, 400*time.Millisecond), n.begin)
		case machine.Over:
			n.over = true
			w.Note("%s is over: %v", n.name, n.s.Err())
			w.ledger.over(n)
		}
	}
}

// begin begins the next transaction if none is open.
func (n *node) begin() {
	if n.s.State() != machine.Ready || n.s.Serial() >= 100 {
		return
	}
	n.step(machine.Checked{Implicit: n.w.level >= 2})
	n.queue(func() {
		if n.s.State() == machine.Ready {
			n.step(machine.Begun{})
		}
	})
}

// work fills a transaction with a few records, one after the other, and ends it in some way.
func (n *node) work() {
	w, serial := n.w, n.s.Serial()
	mine := func() bool { return n.s.Serial() == serial && n.s.State() == machine.InTransaction }
	count := w.work.IntN(5)
	at := time.Duration(0)
	for range count {
		at += clockwork.Between(w.work, 0, 50*time.Millisecond)
		part := w.work.IntN(2)
		n.after(at, func() {
			if mine() && n.open {
				n.submit(part)
			}
		})
	}
	at += clockwork.Between(w.work, 0, 100*time.Millisecond)
	if w.faulty && clockwork.Chance(w.work, 25) {
		at += 2 * seedTimeout // it takes too long
		w.Sometimes("a transaction that takes too long")
	}
	if clockwork.Chance(w.work, 2) {
		n.after(clockwork.Between(w.work, 0, at), func() {
			if mine() {
				n.offset()
			}
		})
	}
	abort, recall := clockwork.Chance(w.work, 4), w.faulty && clockwork.Chance(w.work, 10)
	n.after(at, func() {
		switch {
		case !mine():
		case abort:
			n.step(machine.AbortAsked{Cause: errors.New("the application says so")})
		default:
			n.step(machine.CommitAsked{})
			n.step(machine.CommitAllowed{})
		}
	})
	if recall && !abort {
		n.after(at+clockwork.Between(w.work, 0, 100*time.Millisecond), func() {
			if n.s.Serial() != serial || n.s.State() != machine.Committing {
				return
			}
			w.Sometimes("commit recalled")
			n.step(machine.CommitRecalled{})
			n.queue(func() {
				if mine() {
					n.step(machine.AbortAsked{Cause: errors.New("the caller of commit has gone")})
				}
			})
		})
	}
}

// offset gives the group an offset that nobody else gives it.
func (n *node) offset() {
	of := label{n.index, int8(n.s.Serial()), offsetLabel}
	n.w.ledger.submitted(of)
	n.step(machine.OffsetsGiven{Job: &machine.OffsetJob{Group: seedGroup, Generation: -1, Offsets: []machine.PartitionOffset{
		{TopicPartition: client.TopicPartition{Topic: "in"}, Offset: of.number(), Epoch: -1}}}})
}

// submit makes a batch of one record.
func (n *node) submit(part int) {
	of := label{n.index, int8(n.s.Serial()), n.made}
	n.made++
	n.pending++
	n.w.ledger.submitted(of)
	b := &producing.Batch{Owner: &sent{of}}
	b.Reset()
	b.Count, b.Size, b.Created = 1, 100, n.w.Now
	n.produce(producing.Event{Kind: producing.Gathered, Partition: n.parts[part], Batches: []*producing.Batch{b}})
}

func (n *node) produce(e producing.Event) { n.queue(func() { n.produceNow(e) }) }

// produceNow steps the producer and carries out what it wants.
func (n *node) produceNow(e producing.Event) {
	w := n.w
	eff := n.p.Step(w.Now, e)
	for _, v := range eff.Verdicts {
		n.pending--
		w.ledger.verdict(n, v.Batch.Owner.(*sent).label, v)
	}
	for _, r := range eff.Send {
		n.sendBatches(r)
	}
	var used []client.TopicPartition
	for _, p := range eff.Enlist {
		used = append(used, client.TopicPartition{Topic: "out", Partition: p.Owner.(int32)})
	}
	if len(used) > 0 {
		n.step(machine.PartitionsUsed{Parts: used})
	}
	for i := range eff.Doomed {
		d := eff.Doomed[i]
		err := d.Err
		if err == nil {
			err = d.Code
		}
		n.step(machine.BatchFailed{TopicPartition: client.TopicPartition{Topic: "out", Partition: d.Partition.Owner.(int32)},
			InDoubt: d.Outcome == producing.Unknown, Sequenced: d.Sequenced, Code: d.Code, Err: err})
	}
	n.queue(n.flushed)
	n.arm()
}

// flushed tells the session that nothing is without a verdict.
func (n *node) flushed() {
	if n.flush == 0 || n.pending > 0 {
		return
	}
	number := n.flush
	n.flush = 0
	n.produce(producing.Event{Kind: producing.Relaxed})
	n.step(machine.Flushed{Number: number})
}

// sendBatches makes a Produce request of batches as they are now.
func (n *node) sendBatches(r *producing.Request) {
	req, id := message.NewProduceRequest(), seedID
	req.TransactionalId, req.Acks, req.TimeoutMs = &id, -1, 5000
	t := message.TopicProduceData{Name: "out"}
	for _, b := range r.Batches {
		of := b.Owner.(*sent).label
		n.w.Note("%s sends %+v of %d/%d sequence %d", n.name, of, b.ProducerID, b.Epoch, b.BaseSequence)
		rb := record.NewBuilder(nil)
		rb.Append(n.w.Now.UnixMilli(), nil, []byte{byte(of.actor), byte(of.txn), byte(of.index)}, nil)
		records := rb.Seal(record.Stamp{ProducerID: b.ProducerID, ProducerEpoch: b.Epoch, BaseSequence: b.BaseSequence, Transactional: true})
		t.PartitionData = append(t.PartitionData, message.PartitionProduceData{Index: b.Partition().Owner.(int32), Records: append([]byte(nil), records...)})
	}
	req.TopicData = append(req.TopicData, t)
	version := int16(11)
	if n.s.Implicit() {
		version = 12
	}
	n.send(&n.data[r.Broker], r.Broker, req, version, func(resp message.Response, err error) {
		if err != nil {
			n.w.Note("%s: Produce: %v", n.name, err)
			r.Err, r.Written = err, true
		} else {
			for _, b := range r.Batches {
				r.Results = append(r.Results, result(resp.(*message.ProduceResponse), b.Partition().Owner.(int32)))
			}
		}
		n.queue(func() {
			n.produceNow(producing.Event{Kind: producing.Replied, Request: r})
			n.p.Recycle(r)
		})
	})
}

func result(resp *message.ProduceResponse, part int32) producing.Result {
	for i := range resp.Responses {
		for _, p := range resp.Responses[i].PartitionResponses {
			if p.Index == part {
				return producing.Result{Code: errcode.Code(p.ErrorCode), BaseOffset: p.BaseOffset, AppendTime: -1}
			}
		}
	}
	return producing.Result{Missing: true}
}

// request sends a request of the session.
func (n *node) request(r *machine.Request) {
	if r.Commit() {
		n.w.ledger.asked(n)
	}
	_, version, _ := wire.Versions(r.Body.Key())
	if r.MaxVersion > 0 {
		version = min(version, r.MaxVersion)
	}
	l := &n.txnLane
	if r.Coordinator.Kind == client.GroupCoordinator {
		l = &n.groupLane
	}
	n.send(l, r.Broker, r.Body, version, func(resp message.Response, err error) {
		if err != nil {
			n.step(machine.Failed{Request: r, Err: err, Written: true})
			return
		}
		n.step(machine.Answered{Request: r, Response: resp, Version: version, Broker: fmt.Sprintf("broker %d", r.Broker)})
	})
}

// find asks any broker where a coordinator is. The answer may be out of date.
func (n *node) find(who machine.Coordinator) {
	w := n.w
	n.after(w.delay(), func() {
		said := w.coord.leader
		if who.Kind == client.GroupCoordinator {
			said = w.offsets.broker
		} else if w.faulty && w.menu.moves && clockwork.Chance(w.net, 10) {
			said = 3 - said
			w.Sometimes("told the wrong coordinator")
		}
		if n.mute || n.deaf || !w.up[said] {
			n.after(w.delay(), func() { n.step(machine.CoordinatorFailed{Coordinator: who, Err: errBroken}) })
			return
		}
		n.after(w.delay(), func() { n.step(machine.CoordinatorFound{Coordinator: who, Broker: said}) })
	})
}

// arm sets the alarms for the deadlines of both machines.
func (n *node) arm() {
	if at := n.s.Deadline(); !machine.Never(at) && !at.Equal(n.wakeS) {
		n.wakeS = at
		n.after(at.Sub(n.w.Now), func() {
			if n.wakeS.Equal(at) {
				n.wakeS = time.Time{}
				n.step(machine.Woke{})
			}
		})
	}
	if at := n.p.Deadline(); !producing.Never(at) && !at.Equal(n.wakeP) {
		n.wakeP = at
		n.after(at.Sub(n.w.Now), func() {
			if n.wakeP.Equal(at) {
				n.wakeP = time.Time{}
				n.produce(producing.Event{Kind: producing.Tick})
			}
		})
	}
}
