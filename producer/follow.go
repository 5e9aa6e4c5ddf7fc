package producer

import (
	"fmt"
	"math"
	"slices"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// What the runner does beside requests: it follows the topology, gets producer ids, flushes and gives up.

// follow takes over a new topology.
func (l *loop) follow(top *client.Topology) {
	for _, t := range *l.p.topics.Load() {
		l.learn(t, top)
	}
}

// learn brings one topic up to date and tells the machine of leaders that changed.
func (l *loop) learn(t *topic, top *client.Topology) {
	known := top.Topic(t.name)
	if known == nil || len(known.Partitions) == 0 {
		for _, pt := range *t.parts.Load() { // deleted, or nobody knows at present
			l.lead(pt, -1, -1)
		}
		return
	}
	t.grow(l.p, known)
	parts := *t.parts.Load()
	for i := range known.Partitions {
		kp := &known.Partitions[i]
		pt := parts[kp.ID]
		if l.p.rack != "" {
			rack := top.Brokers[kp.Leader].Rack
			pt.rack.Store(&rack)
		}
		l.lead(pt, kp.Leader, kp.LeaderEpoch)
	}
	for _, pt := range parts {
		if !pt.known {
			l.lead(pt, -1, -1) // metadata left it out
		}
	}
	if s := t.sticky.Load(); s != nil && s.leader < 0 {
		t.moveOn(l.p, s)
	}
}

func (l *loop) lead(pt *part, leader, epoch int32) {
	if pt.known && pt.leader == leader && pt.epoch == epoch {
		return
	}
	pt.known, pt.leader, pt.epoch = true, leader, epoch
	l.event(machine.Event{Kind: machine.LeaderChanged, Partition: pt.m, Leader: leader, LeaderEpoch: epoch})
}

// askProducerID gets one on a goroutine that ends with the producer.
func (l *loop) askProducerID() {
	p := l.p
	p.life.Add(1)
	go func() {
		defer p.life.Done()
		req := message.NewInitProducerIdRequest()
		req.TransactionalId = nil // idempotence without transactions
		req.TransactionTimeoutMs = math.MaxInt32
		resp, err := p.cl.Request(p.quit, client.AnyBroker(), req)
		e := machine.Event{Kind: machine.ProducerIDReceived, Err: err}
		if err == nil {
			r := resp.(*message.InitProducerIdResponse)
			e.ID, e.Epoch = r.ProducerId, r.ProducerEpoch
			if r.ErrorCode != 0 {
				e.Err = &client.OpError{Op: "InitProducerId", Partition: -1, Attempts: 1, Err: errcode.Code(r.ErrorCode)}
			}
		}
		e.Fatal = e.Err != nil && !client.Retriable(e.Err)
		p.loop.control(func() { p.loop.event(e) })
	}()
}

func (l *loop) noteBump(pt *part) {
	id, epoch := pt.m.Producer()
	text := fmt.Sprintf("producer id %d goes on in epoch %d", id, epoch)
	if id < 0 {
		text = "another producer id is needed"
	}
	l.p.cl.Note(client.NoteEvent{Role: "producer", Kind: "epoch-bump", Topic: pt.topic.name, Partition: pt.index, Text: text})
}

// flush counts the batches that are there and makes nobody linger; see Producer.Flush.
func (l *loop) flush(f *flush) {
	l.event(machine.Event{Kind: machine.Hurried})
	note := func(b *batch) {
		f.left.Add(1)
		b.flushes = append(b.flushes, f)
	}
	for _, t := range *l.p.topics.Load() {
		for _, pt := range *t.parts.Load() {
			pt.mu.Lock()
			if pt.open != nil {
				note(pt.open)
			}
			for _, b := range pt.sealed {
				note(b)
			}
			pt.mu.Unlock()
			pt.m.Each(func(mb *machine.Batch) { note(mb.Owner.(*batch)) })
			l.events = append(l.events, pt.gather(false, &l.gathered))
		}
	}
	// Callbacks that are due already come before this in the teller's line.
	l.p.teller.addFlush(f)
}

// abort gives up everything, counts it, and answers.
func (l *loop) abort(lost chan<- LostError) {
	var n LostError
	for _, r := range slices.Clone(l.flying) {
		l.revoke(r)
	}
	l.now()
	for _, t := range *l.p.topics.Load() {
		for _, pt := range *t.parts.Load() {
			pt.mu.Lock()
			if pt.open != nil {
				n.NotWritten += len(pt.open.entries)
			}
			for _, b := range pt.sealed {
				n.NotWritten += len(b.entries)
			}
			pt.mu.Unlock()
			pt.m.Each(func(mb *machine.Batch) {
				if mb.MaybeWritten() {
					n.Unknown += int(mb.Count)
				} else {
					n.NotWritten += int(mb.Count)
				}
			})
			l.events = append(l.events, pt.gather(false, &l.gathered))
		}
	}
	l.event(machine.Event{Kind: machine.Aborted, Err: ErrClosed})
	l.now()
	lost <- n // every verdict is in the teller's line by now
}
