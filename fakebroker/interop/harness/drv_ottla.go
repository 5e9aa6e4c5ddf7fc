//go:build harness

package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
	"github.com/ottla-kafka/ottla/wire/compress"
)

func init() {
	register("ottla", ottla{})
	register("ottla-poll", ottla{poll: true})
	register("ottla-batches", ottla{batches: true})
	register("ottla-reuse", ottla{reuse: true})
	register("ottla-batches-reuse", ottla{batches: true, reuse: true})
}

// ottla is our client; the fields say how it consumes.
type ottla struct{ poll, batches, reuse bool }

// Pipeline is Session.Pipe, and PipeBatches for ottla-batches.
func (d ottla) Pipeline(o Opts, every time.Duration, target int64, st *PipeStats) error {
	cl, err := client.New(client.Seeds(o.Bootstrap))
	if err != nil {
		return err
	}
	defer cl.Close(context.Background())
	c, err := consumer.New(cl, consumer.Group(o.Group), consumer.Subscribe(o.Topic), consumer.StartAt(consumer.Earliest),
		consumer.WithIsolation(consumer.ReadCommitted))
	if err != nil {
		return err
	}
	defer c.Close(context.Background())
	codec, err := compress.Parse(o.Codec)
	if err != nil {
		return err
	}
	ctx, stop := context.WithDeadline(context.Background(), st.Deadline)
	defer stop()
	s, err := txn.New(ctx, cl, "tx-"+o.Group, txn.Producer(producer.Linger(o.Linger), producer.Compression(codec), producer.BatchSize(500_000)))
	if err != nil {
		return err
	}
	defer s.Close(context.Background())
	opts := []txn.PipeOption{txn.CommitEvery(every), txn.OnAbort(func(error) { st.Aborted++ }), txn.OnCommit(func(n int) {
		if n == 0 {
			return
		}
		st.Records += int64(n)
		st.Txns++
		if st.Last = time.Now(); st.Records >= target {
			stop()
		}
	})}
	one := func(ctx context.Context, tx *txn.Tx, r *consumer.Record) error {
		return tx.Submit(ctx, producer.Record{Topic: o.OutTopic, Key: r.Key, Value: transform(r.Value)}, nil)
	}
	if d.batches {
		err = s.PipeBatches(ctx, c, func(ctx context.Context, tx *txn.Tx, rs []consumer.Record) error {
			if st.First.IsZero() {
				st.First = time.Now()
			}
			for i := range rs {
				if err := one(ctx, tx, &rs[i]); err != nil {
					return err
				}
			}
			return nil
		}, opts...)
	} else {
		err = s.Pipe(ctx, c, func(ctx context.Context, tx *txn.Tx, r consumer.Record) error {
			if st.First.IsZero() {
				st.First = time.Now()
			}
			return one(ctx, tx, &r)
		}, opts...)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

type ottlaProducer struct {
	p       *producer.Producer
	topic   string
	sent    int64
	ok, bad atomic.Int64
	done    func(producer.Ack, error)
}

// inFlight is how many records may wait for their acknowledgement, as for the other clients. The producer itself counts
// bytes (buffer.memory), so the driver counts.
const inFlight = 100_000

// NewProducer honours the harness: acks=all, idempotent, batches below 1 MB. The buffer has room for 100,000 records of
// 100 B and for every partition's chunk to be half full.
func (ottla) NewProducer(o Opts) (Producer, error) {
	codec := compress.None
	if o.Codec != "" {
		var err error
		if codec, err = compress.Parse(o.Codec); err != nil {
			return nil, err
		}
	}
	p, err := producer.Dial([]string{o.Bootstrap}, producer.Linger(o.Linger), producer.Compression(codec),
		producer.BatchSize(500_000), producer.BufferMemory(int64(10<<20+o.Parts*16<<10)))
	if err != nil {
		return nil, err
	}
	b := &ottlaProducer{p: p, topic: o.Topic}
	b.done = func(_ producer.Ack, err error) {
		if err != nil {
			b.bad.Add(1)
		} else {
			b.ok.Add(1)
		}
	}
	return b, nil
}

func (b *ottlaProducer) Produce(k, v []byte) error {
	if b.sent++; b.sent%256 == 0 {
		for b.sent-b.ok.Load()-b.bad.Load() > inFlight-256 {
			time.Sleep(50 * time.Microsecond)
		}
	}
	return b.p.Submit(context.Background(), producer.Record{Topic: b.topic, Key: k, Value: v}, b.done)
}

func (b *ottlaProducer) ProduceSync(k, v []byte) error {
	b.sent++
	ack, err := b.p.Send(context.Background(), producer.Record{Topic: b.topic, Key: k, Value: v})
	b.done(ack, err)
	return err
}

func (b *ottlaProducer) Flush() error              { return b.p.Flush(context.Background()) }
func (b *ottlaProducer) Acked() (ok, failed int64) { return b.ok.Load(), b.bad.Load() }

func (b *ottlaProducer) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	b.p.Close(ctx)
}

type ottlaConsumer struct {
	cl  *client.Client
	c   *consumer.Consumer
	how ottla
}

// NewConsumer reads all partitions from the start. Groups have a scenario of their own, which is not supported yet.
func (d ottla) NewConsumer(o Opts) (Consumer, error) {
	if o.Group != "" {
		return nil, ErrUnsupported
	}
	cl, err := client.New(client.Seeds(o.Bootstrap))
	if err != nil {
		return nil, err
	}
	parts := make([]int32, o.Parts)
	for i := range parts {
		parts[i] = int32(i)
	}
	opts := []consumer.Option{consumer.Assign(o.Topic, parts...), consumer.StartAt(consumer.Earliest)}
	if d.reuse {
		opts = append(opts, consumer.ReuseMemory) // the harness keeps nothing of a record
	}
	if o.LowLat {
		opts = append(opts, consumer.LowLatency)
	}
	c, err := consumer.New(cl, opts...)
	if err != nil {
		return nil, errors.Join(err, cl.Close(context.Background()))
	}
	return &ottlaConsumer{cl, c, d}, nil
}

// pollSlice is how many records one Poll of the harness takes: it looks at the clock between polls.
const pollSlice = 100_000

func (c *ottlaConsumer) Poll(d time.Duration, fn func(int32, int64, []byte, []byte)) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var n int
	var err error
	switch {
	case c.how.poll:
		n, err = c.slices(ctx, fn)
	case c.how.batches:
		n, err = c.batches(ctx, fn)
	default:
		n, err = c.records(ctx, fn)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return n, err
}

func (c *ottlaConsumer) records(ctx context.Context, fn func(int32, int64, []byte, []byte)) (n int, err error) {
	for r, err := range c.c.Records(ctx) {
		if err != nil {
			return n, err
		}
		fn(r.Partition, r.Offset, r.Key, r.Value)
		if n++; n >= pollSlice {
			break
		}
	}
	return n, nil
}

func (c *ottlaConsumer) slices(ctx context.Context, fn func(int32, int64, []byte, []byte)) (int, error) {
	rs, err := c.c.Poll(ctx, 10_000)
	for i := range rs {
		fn(rs[i].Partition, rs[i].Offset, rs[i].Key, rs[i].Value)
	}
	return len(rs), err
}

func (c *ottlaConsumer) batches(ctx context.Context, fn func(int32, int64, []byte, []byte)) (n int, err error) {
	for b, err := range c.c.Batches(ctx) {
		if err != nil {
			return n, err
		}
		for r := range b.Records() {
			fn(r.Partition, r.Offset, r.Key, r.Value)
			n++
		}
		if err := b.Err(); err != nil || n >= pollSlice {
			return n, err
		}
	}
	return n, nil
}

func (c *ottlaConsumer) Close() {
	c.c.Close(context.Background())
	c.cl.Close(context.Background())
}
