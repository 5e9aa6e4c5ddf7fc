package main

import (
	"context"
	"fmt"

	"github.com/ottla-kafka/ottla/fakebroker"
)

func Example() {
	ctx := context.Background()
	k, err := fakebroker.New(fakebroker.Listen("127.0.0.1:0"), fakebroker.Topic("greetings", 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer k.Close(ctx)

	if err := run(ctx, k.Addrs()[0], "greetings"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// one is at offset 0 of partition 0
	// two is at offset 1 of partition 0
	// three is at offset 2 of partition 0
}
