// Command produce writes three records to a topic: go run ./examples/produce HOST:PORT TOPIC
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/ottla-kafka/ottla/producer"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: produce HOST:PORT TOPIC")
	}
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, broker, topic string) error {
	p, err := producer.Dial([]string{broker})
	if err != nil {
		return err
	}
	defer p.Close(ctx)
	for _, value := range []string{"one", "two", "three"} {
		ack, err := p.Send(ctx, producer.Record{Topic: topic, Key: []byte("greeting"), Value: []byte(value)})
		if err != nil {
			return err
		}
		fmt.Printf("%s is at offset %d of partition %d\n", value, ack.Offset, ack.Partition)
	}
	return nil
}
