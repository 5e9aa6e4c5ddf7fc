// Command group reads a topic as a member of a consumer group until it is interrupted; run it twice to see the partitions
// divided: go run ./examples/group HOST:PORT GROUP TOPIC
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
	if len(os.Args) != 4 {
		log.Fatal("usage: group HOST:PORT GROUP TOPIC")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1], os.Args[2], os.Args[3], func(_ context.Context, rec consumer.Record) error {
		fmt.Printf("%d: %s = %s\n", rec.Offset, rec.Key, rec.Value)
		return nil
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func run(ctx context.Context, broker, group, topic string, handle func(context.Context, consumer.Record) error) error {
	c, err := consumer.Dial([]string{broker}, consumer.Group(group), consumer.Subscribe(topic), consumer.OnReset(consumer.Earliest),
		consumer.Client(client.Logger(slog.Default())))
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	return c.Run(ctx, handle) // a record is done when handle returns nil; only what is done is committed
}
