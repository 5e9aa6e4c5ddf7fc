// Command consume reads a partition from its start until it is interrupted: go run ./examples/consume HOST:PORT TOPIC
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: consume HOST:PORT TOPIC")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1], os.Args[2])
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func run(ctx context.Context, broker, topic string) error {
	c, err := consumer.Dial([]string{broker}, consumer.Assign(topic, 0), consumer.StartAt(consumer.Earliest),
		consumer.Client(client.Logger(slog.Default())))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	for rec, err := range c.Records(ctx) {
		if err != nil {
			return err
		}
		fmt.Printf("%d: %s = %s\n", rec.Offset, rec.Key, rec.Value)
	}
	return nil
}
