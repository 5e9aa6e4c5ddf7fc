package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
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

	shown := os.Stdout
	r, w, err := os.Pipe()
	if err != nil {
		fmt.Println(err)
		return
	}
	os.Stdout = w
	copied := make(chan struct{})
	go func() { // interrupts when the second record is printed; ends with the pipe
		defer close(copied)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			if fmt.Fprintln(shown, lines.Text()); strings.HasPrefix(lines.Text(), "1: ") {
				interrupt()
			}
		}
	}()
	err = run(ctx, k.Addrs()[0], "greetings")
	w.Close()
	<-copied
	os.Stdout = shown
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// 0: greeting = one
	// 1: greeting = two
	// true
}
