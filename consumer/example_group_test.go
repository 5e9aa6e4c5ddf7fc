package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
)

// broker is a broker inside the program, with topic "orders" of two partitions: o1 and o2 in the first, o3 in the second.
// end ends it and the client.
func broker(ctx context.Context) (cl *client.Client, end func()) {
	k, err := fakebroker.New(fakebroker.Topic("orders", 2), fakebroker.Topic("orders-dead", 1), fakebroker.Config("group.initial.rebalance.delay.ms", "0"))
	if err != nil {
		panic(err)
	}
	cl, err = client.New(client.Cluster(k))
	if err != nil {
		panic(err)
	}
	p, _ := producer.New(cl)
	for i, at := range []int32{0, 0, 1} {
		if _, err := p.Send(ctx, producer.Record{Topic: "orders", Value: fmt.Append(nil, "o", i+1)}.To(at)); err != nil {
			panic(err)
		}
	}
	p.Close(ctx)
	return cl, func() { cl.Close(ctx); k.Close(ctx) }
}

func Example_group() {
	ctx := context.Background()
	cl, end := broker(ctx)
	defer end()
	c, err := consumer.New(cl, consumer.Group("billing"), consumer.Subscribe("orders"), consumer.OnReset(consumer.Earliest))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)
	n := 0
	for r, err := range c.Records(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(r.Value)) // a record is done when the loop asks for the next one
		if n++; n == 3 {
			break
		}
	}
	fmt.Println(c.Commit(ctx)) // the last one is done too
	// Unordered output:
	// o1
	// o2
	// o3
	// <nil>
}

func ExampleConsumer_Run() {
	ctx := context.Background()
	cl, end := broker(ctx)
	defer end()
	c, _ := consumer.New(cl, consumer.Group("billing"), consumer.Subscribe("orders"), consumer.OnReset(consumer.Earliest))
	defer c.Close(ctx)
	enough := errors.New("enough for an example")
	ctx, cancel := context.WithCancelCause(ctx)
	var n atomic.Int64
	err := c.Run(ctx, func(ctx context.Context, r consumer.Record) error {
		fmt.Println(string(r.Value))
		if n.Add(1) == 3 {
			cancel(enough)
		}
		return nil // done; what is done without a gap is committed
	}, consumer.Concurrency(8))
	fmt.Println(err)
	for tp, o := range committed(c, 0) {
		fmt.Println(tp, "goes on at", o.At)
	}
	// Unordered output:
	// o1
	// o2
	// o3
	// enough for an example
	// orders-0 goes on at 2
}

// committed asks what the group has of one partition.
func committed(c *consumer.Consumer, partition int32) map[consumer.TopicPartition]consumer.Offset {
	found, err := c.Committed(context.Background(), consumer.TopicPartition{Topic: "orders", Partition: partition})
	if err != nil {
		fmt.Println(err)
	}
	return found
}

func ExampleDeadLetter() {
	ctx := context.Background()
	cl, end := broker(ctx)
	defer end()
	c, _ := consumer.New(cl, consumer.Group("billing"), consumer.Subscribe("orders"), consumer.OnReset(consumer.Earliest))
	defer c.Close(ctx)
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	go c.Run(run, func(ctx context.Context, r consumer.Record) error {
		if string(r.Value) == "o2" {
			return errors.New("no such customer")
		}
		return nil
	}, consumer.Retry(3, time.Millisecond, time.Second), consumer.DeadLetter("orders-dead"))

	dead, _ := consumer.New(cl, consumer.Assign("orders-dead", 0), consumer.StartAt(consumer.Earliest))
	defer dead.Close(ctx)
	for r, err := range dead.Records(ctx) {
		if err != nil {
			fmt.Println(err)
			break
		}
		why, _ := r.Headers.Last(consumer.HeaderDeadMessage)
		tries, _ := r.Headers.Last(consumer.HeaderDeadCount)
		fmt.Printf("%s: %s (%s attempts)\n", r.Value, why, tries)
		break
	}
	// Output: o2: no such customer (3 attempts)
}

func ExampleConsumer_Serve() {
	ctx := context.Background()
	cl, end := broker(ctx)
	defer end()
	c, _ := consumer.New(cl, consumer.Group("billing"), consumer.Subscribe("orders"), consumer.OnReset(consumer.Earliest))
	served := make(chan error)
	var seen atomic.Int64
	go func() {
		served <- c.Serve(ctx, func(ctx context.Context, claim *consumer.Claim) error {
			n := 0
			for _, err := range claim.Records(ctx) { // ends by itself when the partition is given up
				if err != nil {
					return err
				}
				n++
				if seen.Add(1) == 3 {
					go c.Close(context.Background())
				}
			}
			fmt.Println(claim.TopicPartition(), n, context.Cause(claim.Ending()))
			return nil
		})
	}()
	fmt.Println(<-served)
	c.Close(ctx)
	// Unordered output:
	// orders-0 2 the consumer is closed
	// orders-1 1 the consumer is closed
	// the consumer is closed
}

func ExampleConsumer_CommitRecords() {
	ctx := context.Background()
	cl, end := broker(ctx)
	defer end()
	c, _ := consumer.New(cl, consumer.Group("billing"), consumer.Subscribe("orders"), consumer.OnReset(consumer.Earliest), consumer.ManualCommit)
	defer c.Close(ctx)
	for r, err := range c.Records(ctx) {
		if err == nil && string(r.Value) == "o1" {
			fmt.Println(c.CommitRecords(ctx, r))
			break
		}
	}
	fmt.Println(committed(c, 0)[consumer.TopicPartition{Topic: "orders", Partition: 0}].At)
	// Output:
	// <nil>
	// 1
}

func ExampleConsumer_CommitOffsets() {
	ctx := context.Background()
	cl, end := broker(ctx)
	defer end()
	c, _ := consumer.New(cl, consumer.Group("billing"), consumer.Subscribe("orders"), consumer.OnReset(consumer.Earliest), consumer.ManualCommit)
	defer c.Close(ctx)
	rs, _ := c.Poll(ctx, 1)
	tp := rs[0].TopicPartition()
	err := c.CommitOffsets(ctx, map[consumer.TopicPartition]consumer.Offset{tp: {At: 1, Metadata: "batch 17"}})
	found, _ := c.Committed(ctx, tp)
	fmt.Println(found[tp].At, found[tp].Metadata, err)
	err = c.CommitOffsets(ctx, map[consumer.TopicPartition]consumer.Offset{{Topic: "orders", Partition: 7}: consumer.OffsetAt(1)})
	fmt.Println(errors.Is(err, consumer.ErrNotOwned))
	// Output:
	// 1 batch 17 <nil>
	// true
}

// Assigned partitions whose offsets are kept in a group: no member, no rebalance.
func ExampleGroup_assign() {
	ctx := context.Background()
	cl, end := broker(ctx)
	defer end()
	for range 2 { // the second one goes on where the first one stopped
		c, _ := consumer.New(cl, consumer.Group("billing"), consumer.Assign("orders", 0), consumer.OnReset(consumer.Earliest))
		rs, err := c.Poll(ctx, 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(rs[0].Value), c.Commit(ctx))
		c.Close(ctx)
	}
	// Output:
	// o1 <nil>
	// o2 <nil>
}

func ExampleOnAssigned() {
	ctx := context.Background()
	cl, end := broker(ctx)
	defer end()
	var c *consumer.Consumer
	c, _ = consumer.New(cl, consumer.Group("billing"), consumer.Subscribe("orders"),
		consumer.OnAssigned(func(_ context.Context, parts []consumer.TopicPartition) {
			for _, tp := range parts { // offsets of our own, kept elsewhere
				c.Seek(tp, consumer.AtOffset(int64(1-tp.Partition)))
			}
		}),
		consumer.OnRevoked(func(_ context.Context, parts []consumer.TopicPartition) { fmt.Println("given up:", parts) }))
	n := 0
	for r := range c.Records(ctx) {
		fmt.Println(string(r.Value))
		if n++; n == 2 {
			break
		}
	}
	c.Close(ctx)
	// Unordered output:
	// o2
	// o3
	// given up: [orders-0 orders-1]
}

func ExampleConsumer_Membership() {
	ctx := context.Background()
	cl, end := broker(ctx)
	defer end()
	c, _ := consumer.New(cl, consumer.Group("billing"), consumer.Subscribe("orders"), consumer.OnReset(consumer.Earliest), consumer.GroupProtocol("classic"))
	defer c.Close(ctx)
	for n := 0; n < 3; {
		rs, _ := c.Poll(ctx, 0)
		n += len(rs)
	}
	c.Commit(ctx)
	m := c.Membership()
	fmt.Println(m.Group, m.State, m.Generation.ID)
	for _, claim := range m.Claims {
		fmt.Println(claim)
	}
	// Output:
	// billing Stable 1
	// orders-0 reading done 2 committed 2 waiting 0
	// orders-1 reading done 1 committed 1 waiting 0
}
