package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
)

func Example() {
	k, err := fakebroker.New(fakebroker.Listen("127.0.0.1:0"), fakebroker.Topic("greetings", 1),
		fakebroker.Config("group.initial.rebalance.delay.ms", "0"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer k.Close(context.Background())
	p, err := producer.Dial(k.Addrs())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close(context.Background())

	// Each run is a member of its own: it goes on where the one before it stopped.
	for _, values := range [][]string{{"one", "two"}, {"three"}} {
		ctx, interrupt := context.WithCancel(context.Background())
		for _, value := range values {
			p.Send(ctx, producer.Record{Topic: "greetings", Key: []byte("greeting"), Value: []byte(value)})
		}
		last := values[len(values)-1]
		err := run(ctx, k.Addrs()[0], "readers", "greetings", func(_ context.Context, rec consumer.Record) error {
			fmt.Printf("%d: %s\n", rec.Offset, rec.Value)
			if string(rec.Value) == last {
				interrupt()
			}
			return nil
		})
		fmt.Println(errors.Is(err, context.Canceled))
	}
	// Output:
	// 0: one
	// 1: two
	// true
	// 2: three
	// true
}
