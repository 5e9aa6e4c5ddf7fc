// Command pipeline reads a topic, writes each record in capitals to another one, exactly once, until it is interrupted; run
// it twice with different ids to see the work divided: go run ./examples/pipeline HOST:PORT ID GROUP IN OUT
package main

import (
	"bytes"
	"context"
	"errors"
	"log"
	"log/slog"
	"os"
	"os/signal"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
)

func main() {
	if len(os.Args) != 6 {
		log.Fatal("usage: pipeline HOST:PORT ID GROUP IN OUT")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

// run works until ctx ends. id is the transactional.id: one for each worker, the same one after a restart.
func run(ctx context.Context, broker, id, group, in, out string) error {
	c, err := consumer.Dial([]string{broker}, consumer.Group(group), consumer.Subscribe(in), consumer.OnReset(consumer.Earliest),
		consumer.WithIsolation(consumer.ReadCommitted))
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	s, err := txn.Dial(ctx, []string{broker}, id, txn.Client(client.Logger(slog.Default())))
	if err != nil {
		return err
	}
	defer s.Close(context.WithoutCancel(ctx))
	return s.Pipe(ctx, c, func(ctx context.Context, tx *txn.Tx, r consumer.Record) error {
		return tx.Submit(ctx, producer.Record{Topic: out, Key: r.Key, Value: bytes.ToUpper(r.Value)}, nil)
	})
}
