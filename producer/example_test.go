package producer_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/producer/partition"
	"github.com/ottla-kafka/ottla/wire/compress"
)

// connect makes a broker with a topic of two partitions and a client on it, for the examples.
func connect() (cl *client.Client, stop func()) {
	k, err := fakebroker.New(fakebroker.Topic("orders", 2))
	if err != nil {
		log.Fatal(err)
	}
	if cl, err = client.New(client.Cluster(k)); err != nil {
		log.Fatal(err)
	}
	return cl, func() {
		cl.Close(context.Background())
		k.Close(context.Background())
	}
}

func Example() {
	cl, stop := connect()
	defer stop()
	ctx := context.Background()
	p, err := producer.New(cl)
	if err != nil {
		log.Fatal(err)
	}
	ack, err := p.Send(ctx, producer.Record{Topic: "orders", Key: []byte("42"), Value: []byte("book")})
	fmt.Println(ack.Topic, ack.Offset, err)
	fmt.Println(p.Close(ctx))
	// Output:
	// orders 0 <nil>
	// <nil>
}

func ExampleNew() {
	cl, stop := connect()
	defer stop()
	p, err := producer.New(cl, producer.Linger(20*time.Millisecond), producer.Compression(compress.Zstd), producer.Durable)
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close(context.Background())
	fmt.Println(p.Config().DeliveryTimeout, p.Config().Compression)
	// Output: 10m0s zstd
}

func ExampleNew_mistakes() {
	cl, stop := connect()
	defer stop()
	_, err := producer.New(cl, producer.Idempotent(true), producer.RequireAcks(producer.AcksLeader), producer.DeliveryTimeout(time.Second))
	fmt.Println(err)
	// Output:
	// acks=1: idempotence needs acks=all; set it, or enable.idempotence=false
	// delivery.timeout.ms=1s: must be at least linger.ms + request.timeout.ms, which is 5ms + 30s
}

func ExampleDial() {
	k, err := fakebroker.New(fakebroker.Topic("orders", 2))
	if err != nil {
		log.Fatal(err)
	}
	defer k.Close(context.Background())
	p, err := producer.Dial(k.Addrs(), producer.Client(client.Dialer(k.DialContext)))
	if err != nil {
		log.Fatal(err)
	}
	_, err = p.Send(context.Background(), producer.Record{Topic: "orders", Value: []byte("book")})
	fmt.Println(err, p.Close(context.Background()))
	// Output: <nil> <nil>
}

func ExampleNewFromConfig() {
	_, cfg, err := producer.FromProperties(map[string]string{
		"bootstrap.servers": "broker1:9092",
		"linger.ms":         "50",
		"value.serializer":  "org.apache.kafka.common.serialization.StringSerializer",
	})
	if err != nil {
		log.Fatal(err)
	}
	cl, stop := connect()
	defer stop()
	p, err := producer.NewFromConfig(cl, cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close(context.Background())
	orders, _ := producer.Any(p, "orders")
	_, err = orders.Send(context.Background(), nil, "book")
	fmt.Println(cfg.Linger, err)
	// Output: 50ms <nil>
}

func ExampleFromProperties() {
	_, _, err := producer.FromProperties(map[string]string{
		"linger":            "5",
		"partitioner.class": "org.apache.kafka.clients.producer.internals.DefaultPartitioner",
	})
	fmt.Println(err)
	// Output:
	// linger: is not a configuration key of this client; did you mean linger.ms?
	// partitioner.class=org.apache.kafka.clients.producer.internals.DefaultPartitioner: was removed in Kafka 4.0 (KIP-794); leave partitioner.class out, which does the same: murmur2 of the key, sticky without one
}

func ExampleProducer_Submit() {
	cl, stop := connect()
	defer stop()
	ctx := context.Background()
	p, _ := producer.New(cl)
	for _, v := range []string{"book", "lamp", "chair"} {
		err := p.Submit(ctx, producer.Record{Topic: "orders", Value: []byte(v)}.To(1), func(a producer.Ack, err error) {
			fmt.Println(v, a.Offset, err)
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	p.Close(ctx)
	// Output:
	// book 0 <nil>
	// lamp 1 <nil>
	// chair 2 <nil>
}

func ExampleProducer_TrySubmit() {
	cl, stop := connect()
	defer stop()
	ctx := context.Background()
	p, _ := producer.New(cl, producer.BufferMemory(64<<10), producer.Linger(time.Hour), producer.DeliveryTimeout(2*time.Hour))
	defer p.Close(ctx)
	if err := p.Warm(ctx, "orders"); err != nil {
		log.Fatal(err)
	}
	var err error
	for err == nil {
		err = p.TrySubmit(producer.Record{Topic: "orders", Value: make([]byte, 3000)}.To(0), nil)
	}
	fmt.Println(errors.Is(err, producer.ErrBufferFull), producer.Outcome(err))
	// Output: true not written
}

func ExampleProducer_SendAll() {
	cl, stop := connect()
	defer stop()
	ctx := context.Background()
	p, _ := producer.New(cl)
	defer p.Close(ctx)
	n, err := p.SendAll(ctx, slices.Values([]producer.Record{
		{Topic: "orders", Value: []byte("book")},
		{Topic: "orders", Value: []byte("lamp")},
	}))
	fmt.Println(n, err)
	// Output: 2 <nil>
}

func ExampleProducer_Flush() {
	cl, stop := connect()
	defer stop()
	ctx := context.Background()
	p, _ := producer.New(cl, producer.Linger(time.Minute))
	defer p.Close(ctx)
	p.Submit(ctx, producer.Record{Topic: "orders", Value: []byte("book")}, func(producer.Ack, error) { fmt.Println("written") })
	fmt.Println(p.Flush(ctx))
	// Output:
	// written
	// <nil>
}

func ExampleOutcome() {
	cl, stop := connect()
	defer stop()
	ctx := context.Background()
	p, _ := producer.New(cl)
	defer p.Close(ctx)
	_, err := p.Send(ctx, producer.Record{Topic: "orders", Value: make([]byte, 2<<20)})
	switch producer.Outcome(err) {
	case producer.Acked:
		fmt.Println("it is there")
	case producer.NotWritten:
		fmt.Println("it is not there:", errors.Is(err, producer.ErrRecordTooLarge))
	case producer.Unknown:
		fmt.Println("it may be there")
	}
	// Output: it is not there: true
}

func ExampleRecord_To() {
	r := producer.Record{Topic: "orders", Value: []byte("book")}
	_, chosen := r.Partition()
	partition, ok := r.To(0).Partition()
	fmt.Println(chosen, partition, ok)
	// Output: false 0 true
}

func ExampleNewTyped() {
	cl, stop := connect()
	defer stop()
	ctx := context.Background()
	p, _ := producer.New(cl)
	defer p.Close(ctx)
	type order struct{ Item string }
	orders := producer.NewTyped(p, "orders", producer.Int64, producer.JSON[order])
	ack, err := orders.Send(ctx, 42, order{"book"})
	fmt.Println(ack.Offset, err)
	// Output: 0 <nil>
}

func ExamplePartitioner() {
	cl, stop := connect()
	defer stop()
	ctx := context.Background()
	p, _ := producer.New(cl, producer.Partitioner(partition.RoundRobin()))
	defer p.Close(ctx)
	for range 4 {
		ack, _ := p.Send(ctx, producer.Record{Topic: "orders"})
		fmt.Println(ack.Partition)
	}
	// Output:
	// 0
	// 1
	// 0
	// 1
}

type stamp struct{}

func (stamp) OnSend(_ context.Context, r *producer.Record) error {
	r.Headers = append(r.Headers, producer.Header{Key: "sent-by", Value: []byte("example")})
	return nil
}

func (stamp) OnEnd(a producer.Ack, err error) { fmt.Println("ended", a.Topic, a.Offset, err) }

func ExampleIntercept() {
	cl, stop := connect()
	defer stop()
	ctx := context.Background()
	p, _ := producer.New(cl, producer.Intercept(stamp{}))
	defer p.Close(ctx)
	p.Send(ctx, producer.Record{Topic: "orders", Value: []byte("book")})
	// Output: ended orders 0 <nil>
}

func ExampleProducer_Send() {
	cl, stop := connect()
	defer stop()
	p, _ := producer.New(cl)
	defer p.Close(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ack, err := p.Send(ctx, producer.Record{Topic: "orders", Value: []byte("book"), Headers: []producer.Header{{Key: "shop", Value: []byte("7")}}}.To(1))
	fmt.Println(ack.Partition, ack.Offset, err)
	// Output: 1 0 <nil>
}

func ExampleProducer_Close() {
	k, _ := fakebroker.New(fakebroker.Topic("orders", 1))
	cl, _ := client.New(client.Cluster(k))
	defer cl.Close(context.Background())
	p, _ := producer.New(cl)
	p.Warm(context.Background(), "orders")
	k.Close(context.Background()) // the broker is gone for good
	p.Submit(context.Background(), producer.Record{Topic: "orders", Value: []byte("book")}, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	var lost *producer.LostError
	if errors.As(p.Close(ctx), &lost) {
		fmt.Println("not written:", lost.NotWritten, "unknown:", lost.Unknown)
	}
	// Output: not written: 1 unknown: 0
}

func ExampleProducer_Warm() {
	cl, stop := connect()
	defer stop()
	ctx := context.Background()
	p, _ := producer.New(cl)
	defer p.Close(ctx)
	fmt.Println(p.Warm(ctx, "orders"))
	n, _ := p.Partitions(ctx, "orders")
	fmt.Println(n, p.TrySubmit(producer.Record{Topic: "orders", Value: []byte("book")}, nil))
	// Output:
	// <nil>
	// 2 <nil>
}

func ExampleAny() {
	cl, stop := connect()
	defer stop()
	ctx := context.Background()
	p, _ := producer.New(cl, func(c *producer.Config) { c.KeyFormat, c.ValueFormat = producer.FormatInt64, producer.FormatJSON })
	defer p.Close(ctx)
	orders, _ := producer.Any(p, "orders")
	_, err := orders.Send(ctx, 42, map[string]any{"item": "book"})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleJSON() {
	b, null, err := producer.JSON(nil, map[string]int{"n": 1})
	fmt.Println(string(b), null, err)
	// Output: {"n":1} false <nil>
}
