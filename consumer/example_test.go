package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/consumer/internal/logpeer"
	"github.com/ottla-kafka/ottla/wire/record"
)

// start is a cluster with topic "fruit": three records in partition 0 and one in partition 1. Programs have a broker;
// the examples have this.
func start() *logpeer.Cluster {
	k := logpeer.New(nil, 1)
	k.Topic("fruit", 1, 1)
	for p, names := range [][]string{{"apple", "pear", "plum"}, {"lime"}} {
		b := record.NewBuilder(nil)
		for i, name := range names {
			b.Append(int64(1000*i), []byte{byte('a' + i)}, []byte(name), nil)
		}
		k.AppendBytes("fruit", int32(p), append([]byte(nil), b.Seal(record.NoProducer())...))
	}
	return k
}

func connect(k *logpeer.Cluster) *client.Client {
	cl, err := client.New(client.Cluster(k))
	if err != nil {
		panic(err)
	}
	return cl
}

func Example() {
	k := start()
	defer k.Close()
	ctx := context.Background()
	cl := connect(k)
	defer cl.Close(ctx)
	c, err := consumer.New(cl, consumer.Assign("fruit", 0), consumer.StartAt(consumer.Earliest))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)
	for r, err := range c.Records(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s-%d %d: %s=%s\n", r.Topic, r.Partition, r.Offset, r.Key, r.Value)
		if r.Offset == 2 {
			break
		}
	}
	// Output:
	// fruit-0 0: a=apple
	// fruit-0 1: b=pear
	// fruit-0 2: c=plum
}

func ExampleDial() {
	k := start()
	defer k.Close()
	ctx := context.Background()
	// client.Cluster(k) makes it work here; usually the seeds are enough, and options such as client.TLS go there.
	c, err := consumer.Dial([]string{"localhost:9092"}, consumer.Client(client.Cluster(k)), consumer.Assign("fruit", 1),
		consumer.StartAt(consumer.Earliest), consumer.LowLatency)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx) // ends the client too
	rs, err := c.Poll(ctx, 1)
	fmt.Println(string(rs[0].Value), err)
	// Output: lime <nil>
}

func ExampleConsumer_Records() {
	k := start()
	defer k.Close()
	ctx := context.Background()
	cl := connect(k)
	defer cl.Close(ctx)
	c, _ := consumer.New(cl, consumer.Assign("fruit", 0), consumer.StartAt(consumer.Earliest))
	defer c.Close(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for r, err := range c.Records(ctx) {
		if err != nil {
			fmt.Println(err) // the end of ctx; nothing is lost by it
			break
		}
		fmt.Println(r.Timestamp().UTC().Format("05.0"), string(r.Value))
		if string(r.Value) == "plum" {
			cancel() // as a signal would, in a program
		}
	}
	// Output:
	// 00.0 apple
	// 01.0 pear
	// 02.0 plum
	// context canceled
}

func ExampleNew() {
	k := start()
	defer k.Close()
	ctx := context.Background()
	cl := connect(k) // one client for everything: connections and memory are shared
	defer cl.Close(ctx)
	for p := range int32(2) {
		c, err := consumer.New(cl, consumer.Assign("fruit", p), consumer.StartAt(consumer.Latest))
		fmt.Println(c != nil, err)
		c.Close(ctx) // before the client
	}
	_, err := consumer.New(cl, consumer.Assign("fruit", 0), consumer.MaxDecompressed(0))
	fmt.Println(err)
	// Output:
	// true <nil>
	// true <nil>
	// consumer: max.decompressed.batch.bytes=0: must be from 1 to 2147483647
}

func ExampleConsumer_OffsetsForTimes() {
	k := start()
	defer k.Close()
	ctx := context.Background()
	cl := connect(k)
	defer cl.Close(ctx)
	c, _ := consumer.New(cl)
	defer c.Close(ctx)
	tp := consumer.TopicPartition{Topic: "fruit", Partition: 0}
	found, err := c.OffsetsForTimes(ctx, map[consumer.TopicPartition]time.Time{tp: time.UnixMilli(500)})
	fmt.Println(found[tp].Offset, found[tp].TimestampMs, err)
	// Output: 1 1000 <nil>
}

func ExampleAny() {
	k := start()
	defer k.Close()
	ctx := context.Background()
	cl := connect(k)
	defer cl.Close(ctx)
	// As a Java service's file has it.
	_, cfg, _ := consumer.FromProperties(map[string]string{"value.deserializer": "org.apache.kafka.common.serialization.StringDeserializer"})
	cfg.Assigned = []consumer.Assignment{{TopicPartition: consumer.TopicPartition{Topic: "fruit", Partition: 1}, Start: consumer.Earliest}}
	c, _ := consumer.NewFromConfig(cl, cfg)
	defer c.Close(ctx)
	any, _ := consumer.Any(c)
	for r, err := range any.Records(ctx) {
		fmt.Printf("%T %T %v %v\n", r.Key, r.Value, r.Value, err)
		break
	}
	// Output: []uint8 string lime <nil>
}

func ExampleOnEvent() {
	k := start()
	defer k.Close()
	ctx := context.Background()
	cl := connect(k)
	defer cl.Close(ctx)
	c, _ := consumer.New(cl, consumer.AssignAt("fruit", 1, consumer.AtOffset(70)), consumer.OnReset(consumer.Earliest),
		consumer.OnEvent(func(e consumer.Event) {
			if e.Kind == consumer.EventReset {
				fmt.Println(e.TopicPartition, e.Old.Offset, "->", e.New.Offset, e.Reason)
			}
		}))
	defer c.Close(ctx)
	rs, _ := c.Poll(ctx, 1)
	fmt.Println(string(rs[0].Value))
	// Output:
	// fruit-1 70 -> 0 the offset is out of range
	// lime
}

func ExampleConsumer_Batches() {
	k := start()
	defer k.Close()
	ctx := context.Background()
	cl := connect(k)
	defer cl.Close(ctx)
	c, _ := consumer.New(cl, consumer.AssignAt("fruit", 0, consumer.AtOffset(1)))
	defer c.Close(ctx)
	for b, err := range c.Batches(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("offsets %d to %d, codec %s\n", b.FirstOffset, b.LastOffset, b.Codec)
		for r := range b.Records() {
			fmt.Println(r.Offset, string(r.Value))
		}
		break
	}
	// Output:
	// offsets 0 to 2, codec none
	// 1 pear
	// 2 plum
}

func ExampleConsumer_Poll() {
	k := start()
	defer k.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cl := connect(k)
	defer cl.Close(ctx)
	c, _ := consumer.New(cl, consumer.Assign("fruit", 0), consumer.StartAt(consumer.At(time.UnixMilli(900))))
	defer c.Close(ctx)
	rs, err := c.Poll(ctx, 10)
	fmt.Println(len(rs), err)
	fmt.Println(string(rs[0].Value), rs[0].Timestamp().UTC().Format(time.TimeOnly))
	// Output:
	// 2 <nil>
	// pear 00:00:01
}

func ExampleConsumer_Seek() {
	k := start()
	defer k.Close()
	ctx := context.Background()
	cl := connect(k)
	defer cl.Close(ctx)
	c, _ := consumer.New(cl, consumer.Assign("fruit", 0), consumer.StartAt(consumer.Earliest))
	defer c.Close(ctx)
	n := 0
	for r, err := range c.Records(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(r.Value))
		if n++; n == 2 {
			c.Seek(r.TopicPartition(), consumer.Earliest) // the next record is the first again
		}
		if n == 3 {
			break
		}
	}
	// Output:
	// apple
	// pear
	// apple
}

func ExampleConsumer_Pause() {
	k := start()
	defer k.Close()
	ctx := context.Background()
	cl := connect(k)
	defer cl.Close(ctx)
	c, _ := consumer.New(cl, consumer.Assign("fruit", 0, 1), consumer.StartAt(consumer.Earliest))
	defer c.Close(ctx)
	c.Pause(consumer.TopicPartition{Topic: "fruit", Partition: 0})
	rs, err := c.Poll(ctx, 10)
	fmt.Println(len(rs), string(rs[0].Value), err)
	// Output: 1 lime <nil>
}

func ExampleConsumer_Add() {
	k := start()
	defer k.Close()
	ctx := context.Background()
	cl := connect(k)
	defer cl.Close(ctx)
	c, _ := consumer.New(cl)
	defer c.Close(ctx)
	c.Add(consumer.Assignment{TopicPartition: consumer.TopicPartition{Topic: "fruit", Partition: 1}, Start: consumer.Earliest})
	rs, _ := c.Poll(ctx, 10)
	fmt.Println(string(rs[0].Value))
	for _, p := range c.Partitions() {
		fmt.Println(p, "lag", p.Lag())
	}
	// Output:
	// lime
	// fruit-1 position 1 end 1 lag 0
}

func ExampleConsumer_EndOffsets() {
	k := start()
	defer k.Close()
	ctx := context.Background()
	cl := connect(k)
	defer cl.Close(ctx)
	c, _ := consumer.New(cl)
	defer c.Close(ctx)
	tp := consumer.TopicPartition{Topic: "fruit", Partition: 0}
	begin, _ := c.BeginningOffsets(ctx, tp)
	end, _ := c.EndOffsets(ctx, tp)
	at, _ := c.OffsetsForTimes(ctx, map[consumer.TopicPartition]time.Time{tp: time.UnixMilli(1500)})
	fmt.Println(begin[tp], end[tp], at[tp].Offset)
	// Output: 0 3 2
}

func ExampleConsumer_Lag() {
	k := start()
	defer k.Close()
	ctx := context.Background()
	cl := connect(k)
	defer cl.Close(ctx)
	c, _ := consumer.New(cl, consumer.Assign("fruit", 0), consumer.StartAt(consumer.Earliest))
	defer c.Close(ctx)
	c.Poll(ctx, 1)
	lag, err := c.Lag(ctx)
	fmt.Println(lag, err)
	// Output: map[fruit-0:2] <nil>
}

func ExampleNewTyped() {
	k := start()
	defer k.Close()
	ctx := context.Background()
	cl := connect(k)
	defer cl.Close(ctx)
	c, _ := consumer.New(cl, consumer.Assign("fruit", 0), consumer.StartAt(consumer.Earliest))
	defer c.Close(ctx)
	length := func(_ string, _ consumer.Headers, data []byte) (int, error) {
		if len(data) == 5 {
			return 0, errors.New("no fruit of five letters")
		}
		return len(data), nil
	}
	typed, _ := consumer.NewTyped(c, consumer.String, length)
	for r, err := range typed.Records(ctx) {
		fmt.Println(r.Key, r.Value, err)
		if r.Raw.Offset == 1 {
			break
		}
	}
	// Output:
	// a 0 fruit-0 offset 0: decoding the value: no fruit of five letters
	// b 4 <nil>
}

func ExampleFromProperties() {
	_, c, err := consumer.FromProperties(map[string]string{
		"bootstrap.servers": "localhost:9092", "fetch.min.bytes": "1024", "auto.offset.reset": "earliest", "isolation.level": "read_committed",
	})
	fmt.Println(c.MinBytes, c.Reset, c.Isolation, err)
	_, _, err = consumer.FromProperties(map[string]string{"fetch.min.byte": "1024"})
	fmt.Println(err)
	// Output:
	// 1024 earliest read_committed <nil>
	// fetch.min.byte: is not a configuration key of this client; did you mean fetch.min.bytes?
}
