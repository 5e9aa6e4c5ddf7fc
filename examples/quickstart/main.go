// Command quickstart sends the lines of files through Kafka and proves that they came back whole: every line is a record
// keyed by its file, compressed with zstd and spread over six partitions; the files are rebuilt from what the consumer
// read and their SHA-256 sums compared.
//
//	go run ./examples/quickstart                            the repository's own files, through an embedded broker
//	go run ./examples/quickstart FILE...                    files of yours, and those in folders of yours
//	go run ./examples/quickstart -bootstrap localhost:9092  through a real cluster
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire/compress"
)

func main() {
	bootstrap := flag.String("bootstrap", "", "HOST:PORT,... of a Kafka cluster; without it a broker is started in this process")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: quickstart [flags] [FILE...]\n\nFiles, and those in folders, go through Kafka line by line and are compared with what comes out; without names, the repository's own.\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *bootstrap, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// run sends the files, reads them back and prints the verdict. An error means that something failed or differs.
func run(ctx context.Context, w io.Writer, bootstrap string, names []string) error {
	in, err := newInput(names)
	if err != nil {
		return err
	}
	brokers, stop, err := cluster(bootstrap, in.bytes)
	if err != nil {
		return err
	}
	defer stop()
	cl, err := client.New(brokers, client.ClientID("quickstart"))
	if err != nil {
		return err
	}
	defer cl.Close(context.WithoutCancel(ctx))
	if bootstrap != "" {
		if err := answers(ctx, cl, bootstrap); err != nil {
			return err
		}
	}

	topic := fmt.Sprintf("quickstart-%d", time.Now().UnixNano())
	adm := admin.New(cl)
	if err := create(ctx, adm, cl, admin.NewTopic{Name: topic, Partitions: 6}); err != nil {
		return err
	}
	defer adm.DeleteTopics(context.WithoutCancel(ctx), topic)

	start := time.Now()
	if err := send(ctx, cl, topic, in); err != nil {
		return err
	}
	out, err := receive(ctx, cl, topic, in)
	if err != nil {
		return err
	}
	defer out.remove()
	same := out.identical(in)
	fmt.Fprintf(w, "in %d · out %d · files identical %d/%d · %s\n", in.lines, out.lines, same, len(in.files), rate(in.bytes, time.Since(start)))
	if same != len(in.files) || out.lines != in.lines {
		return fmt.Errorf("%d of %d files differ, %d lines sent, %d read", len(in.files)-same, len(in.files), in.lines, out.lines)
	}
	return nil
}

// hello is how long a cluster may take to answer for the first time. Later questions have default.api.timeout.ms.
var hello = 10 * time.Second

// answers waits for the first answer of a cluster: an address may be wrong.
func answers(ctx context.Context, cl *client.Client, bootstrap string) error {
	soon, cancel := context.WithTimeoutCause(ctx, hello, fmt.Errorf("at %s for %s", bootstrap, hello))
	defer cancel()
	return cl.Health(soon).Err
}

// create makes a topic. Brokers before 2.4 want to be told how many replicas it has.
func create(ctx context.Context, adm *admin.Admin, cl *client.Client, topic admin.NewTopic) error {
	_, err := adm.CreateTopics(ctx, topic)
	if errors.Is(err, client.ErrUnsupportedVersion) {
		topic.Replicas = min(3, len(cl.Topology().Brokers))
		_, err = adm.CreateTopics(ctx, topic)
	}
	return err
}

// send produces every line and returns when all of them are acknowledged.
func send(ctx context.Context, cl *client.Client, topic string, in *input) error {
	p, err := producer.New(cl, producer.HighThroughput, producer.Compression(compress.Zstd))
	if err != nil {
		return err
	}
	defer p.Close(ctx)
	_, err = p.SendAll(ctx, in.records(topic))
	return errors.Join(in.err, err)
}

// receive reads everything that is in the topic, be it more or less than was sent.
func receive(ctx context.Context, cl *client.Client, topic string, in *input) (*output, error) {
	c, err := consumer.New(cl, consumer.Assign(topic, 0, 1, 2, 3, 4, 5), consumer.StartAt(consumer.Earliest))
	if err != nil {
		return nil, err
	}
	defer c.Close(ctx)
	left, err := stored(ctx, c) // how many records that is
	if err != nil {
		return nil, err
	}
	out, err := newOutput(in.bytes)
	if err != nil {
		return nil, err
	}
	for rec, err := range c.Records(ctx) {
		if err == nil {
			err = out.write(rec.Partition, rec.Key, rec.Value)
		}
		if err != nil {
			return nil, errors.Join(err, out.remove())
		}
		if left--; left == 0 {
			break
		}
	}
	return out, nil
}
