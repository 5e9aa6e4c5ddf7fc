package producer

import (
	"context"
	"iter"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// Transactional is a producer whose records belong to transactions. It is the seam between this package and package
// txn, which owns it and coordinates the transactions; for anything else use txn.Session. A record can only be sent
// with the number of the transaction it belongs to, so that none can get in from outside of one.
//
// The owner's duties, in order: Begin when the transaction before has ended and a Flush has come back since its Seal or
// Drop; Enlisted for what Hooks.Enlist asked for, unless implicit; Seal or Drop at the end, then Flush.
type Transactional struct {
	p *Producer
}

// Hooks are how a transactional producer tells its owner. Both are required. They are called one at a time, must not
// block, and may call the methods of Transactional that do not take a ctx.
type Hooks struct {
	// Enlist: the partitions have records of the open transaction. They wait for Enlisted, unless the transaction is
	// implicit; then this comes with the first request to each, and there is nothing to do but to end the
	// transaction.
	Enlist func(parts []client.TopicPartition)
	// Doomed: a batch was not acknowledged, so the transaction cannot be committed. It takes no more records.
	Doomed func(Doom)
}

// Doom is a batch without an acknowledgement.
type Doom struct {
	client.TopicPartition
	// Outcome is NotWritten or Unknown.
	Outcome Result
	// Code is what the broker said, or Err why nothing was heard. Expired says that delivery.timeout.ms ran out; Code
	// and Err are of the last attempt then, if there was one.
	Code    errcode.Code
	Err     error
	Expired bool
	// Sequenced: the partition's sequence has a hole now, unless Outcome is NotWritten and the next transaction comes
	// in the same epoch, which takes the place again.
	Sequenced bool
}

// NewTransactional makes a producer for the transactions of one transactional id. It does no I/O.
func NewTransactional(cl *client.Client, cfg Config, id string, h Hooks) (*Transactional, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p, err := start(cl, cfg, &id, h)
	if err != nil {
		return nil, err
	}
	return &Transactional{p: p}, nil
}

// Begin opens transaction number txn, which must be above those before, under a producer id and epoch. Implicit says
// that the leaders add their partitions to it themselves (Produce from version 12 on, KIP-890). Records are taken when
// it returns.
func (t *Transactional) Begin(txn uint64, id int64, epoch int16, implicit bool) {
	l := t.p.loop
	l.control(func() {
		l.implicit = implicit
		l.event(machine.Event{Kind: machine.Begun, ID: id, Epoch: epoch, Implicit: implicit})
	})
	t.p.gate.Store(txn)
}

// Enlisted lets the records of partitions go that are part of the open transaction.
func (t *Transactional) Enlisted(parts []client.TopicPartition) {
	l := t.p.loop
	l.control(func() {
		topics := *t.p.topics.Load()
		for _, tp := range parts {
			pt := (*topics[tp.Topic].parts.Load())[tp.Partition] // it came from us
			l.event(machine.Event{Kind: machine.Enlisted, Partition: pt.m})
		}
	})
}

// Seal ends the taking of records; those that are there go on.
func (t *Transactional) Seal() { t.p.gate.Store(0) }

// Unseal undoes Seal.
func (t *Transactional) Unseal(txn uint64) { t.p.gate.Store(txn) }

// Drop ends the taking of records and gives up those that no request has carried yet, because of cause. What is on its
// way is left to its verdict; see Flush.
func (t *Transactional) Drop(cause error) {
	t.p.gate.Store(0)
	l := t.p.loop
	l.control(func() { l.event(machine.Event{Kind: machine.Dropped, Err: cause}) })
}

// Flush makes nobody linger and calls then when every record submitted before has its verdict and its callback has
// run. then must not block.
func (t *Transactional) Flush(then func()) {
	l := t.p.loop
	f := &flush{}
	f.left.Store(1)
	f.then = func() {
		l.control(func() { l.event(machine.Event{Kind: machine.Relaxed}) })
		then()
	}
	l.control(func() { l.flush(f) })
}

// Submit is Producer.Submit for a record of transaction txn.
func (t *Transactional) Submit(ctx context.Context, txn uint64, r Record, done func(Ack, error)) error {
	return t.p.submit(ctx, r, done, txn)
}

// Send is Producer.Send for a record of transaction txn.
func (t *Transactional) Send(ctx context.Context, txn uint64, r Record) (Ack, error) {
	return t.p.send(ctx, r, txn)
}

// SendAll is Producer.SendAll for records of transaction txn.
func (t *Transactional) SendAll(ctx context.Context, txn uint64, records iter.Seq[Record]) (acked int, err error) {
	return t.p.sendAll(ctx, records, txn)
}

// FlushWait is Producer.Flush.
func (t *Transactional) FlushWait(ctx context.Context) error { return t.p.Flush(ctx) }

// Warm is Producer.Warm.
func (t *Transactional) Warm(ctx context.Context, topics ...string) error {
	return t.p.Warm(ctx, topics...)
}

// Partitions is Producer.Partitions.
func (t *Transactional) Partitions(ctx context.Context, topic string) (int32, error) {
	return t.p.Partitions(ctx, topic)
}

// Config is Producer.Config.
func (t *Transactional) Config() Config { return t.p.Config() }

// Close is Producer.Close.
func (t *Transactional) Close(ctx context.Context) error {
	t.Seal()
	return t.p.Close(ctx)
}

// boundVersions keeps a request of a transaction to the versions whose leaders do with it what the coordinator expects.
func (l *loop) boundVersions(call *client.Call) {
	if l.implicit {
		call.MinVersion = implicitVersion
	} else {
		call.MaxVersion = implicitVersion - 1
	}
}

// tellSession calls the hooks.
func (l *loop) tellSession(eff *machine.Effects) {
	if len(eff.Enlist) > 0 {
		parts := make([]client.TopicPartition, 0, len(eff.Enlist))
		for _, mp := range eff.Enlist {
			pt := mp.Owner.(*part)
			parts = append(parts, client.TopicPartition{Topic: pt.topic.name, Partition: pt.index})
		}
		l.p.hooks.Enlist(parts)
	}
	for i := range eff.Doomed {
		d := &eff.Doomed[i]
		l.p.gate.Store(0)
		pt := d.Partition.Owner.(*part)
		l.p.hooks.Doomed(Doom{TopicPartition: client.TopicPartition{Topic: pt.topic.name, Partition: pt.index},
			Outcome: d.Outcome, Code: d.Code, Err: d.Err, Expired: d.Expired, Sequenced: d.Sequenced})
	}
}
