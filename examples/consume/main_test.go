package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire"
)

func Example() {
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	k, err := fakebroker.New(fakebroker.Listen("127.0.0.1:0"), fakebroker.Topic("greetings", 1))
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
	for _, value := range []string{"one", "two"} {
		p.Send(ctx, producer.Record{Topic: "greetings", Key: []byte("greeting"), Value: []byte(value)})
	}
	p.Close(ctx)

	go func() { // the second fetch is answered after half a second without records, when those of the first are printed
		k.AwaitRequests(ctx, wire.KeyFetch, 2)
		interrupt()
	}()
	err = run(ctx, k.Addrs()[0], "greetings")
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// 0: greeting = one
	// 1: greeting = two
	// true
}
