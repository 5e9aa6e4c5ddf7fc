// Command quickstart sends the lines of files through Kafka and proves that they came back whole: every line is a record
// keyed by its file, compressed with zstd and spread over six partitions; the files are rebuilt from what the consumer
// read and their SHA-256 sums compared.
//
//	go run ./examples/quickstart                            the repository's own files, through an embedded broker
//	go run ./examples/quickstart FILE...                    files of yours
//	go run ./examples/quickstart -bootstrap localhost:9092  through a real cluster
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire/compress"
)

func main() {
	bootstrap := flag.String("bootstrap", "", "HOST:PORT,... of a Kafka cluster; without it a broker is started in this process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *bootstrap, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// run sends the files, reads them back and prints the verdict; an error means that something failed or differs.
func run(ctx context.Context, w io.Writer, bootstrap string, names []string) error {
	in, err := newInput(names)
	if err != nil {
		return err
	}
	brokers, closeBrokers, err := cluster(bootstrap, in.bytes)
	if err != nil {
		return err
	}
	defer closeBrokers()
	cl, err := client.New(brokers, client.ClientID("quickstart"))
	if err != nil {
		return err
	}
	defer cl.Close(ctx)

	topic := fmt.Sprintf("quickstart-%d", time.Now().UnixNano())
	adm := admin.New(cl)
	if _, err := adm.CreateTopics(ctx, admin.NewTopic{Name: topic, Partitions: 6}); err != nil {
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
	rate := float64(in.bytes) / 1e6 / time.Since(start).Seconds()
	fmt.Fprintf(w, "in %d · out %d · files identical %d/%d · %.0f MB/s\n", in.lines, out.lines, same, len(in.files), rate)
	if same != len(in.files) || out.lines != in.lines {
		return fmt.Errorf("%d of %d files differ", len(in.files)-same, len(in.files))
	}
	return nil
}

// cluster gives the client its brokers: the ones named, or a broker of our own, in memory or, for large input, on disk.
func cluster(bootstrap string, bytes int64) (client.Option, func(), error) {
	if bootstrap != "" {
		return client.Seeds(strings.Split(bootstrap, ",")...), func() {}, nil
	}
	var opts []fakebroker.Option
	remove := func() {}
	if bytes > 64<<20 {
		dir, err := os.MkdirTemp("", "quickstart-broker-")
		if err != nil {
			return nil, nil, err
		}
		opts, remove = append(opts, fakebroker.Dir(dir)), func() { os.RemoveAll(dir) }
	}
	k, err := fakebroker.New(opts...)
	if err != nil {
		return nil, nil, err
	}
	return client.Cluster(k), func() { k.Close(context.Background()); remove() }, nil
}

// send produces every line and returns when all of them are acknowledged.
func send(ctx context.Context, cl *client.Client, topic string, in *input) error {
	p, err := producer.New(cl, producer.HighThroughput, producer.Compression(compress.Zstd))
	if err != nil {
		return err
	}
	defer p.Close(ctx)
	bar := newProgress("sent", in.bytes)
	defer bar.done()
	for rec, err := range in.records(topic) {
		if err != nil {
			return err
		}
		if err := p.Submit(ctx, rec, in.acknowledged); err != nil {
			return err
		}
		bar.add(len(rec.Value))
	}
	if err := p.Flush(ctx); err != nil { // waits for the last acknowledgement
		return err
	}
	return in.failure()
}

// receive reads as many records as were sent.
func receive(ctx context.Context, cl *client.Client, topic string, in *input) (*output, error) {
	out, err := newOutput()
	if err != nil {
		return nil, err
	}
	c, err := consumer.New(cl, consumer.Assign(topic, 0, 1, 2, 3, 4, 5), consumer.StartAt(consumer.Earliest))
	if err != nil {
		return nil, err
	}
	defer c.Close(ctx)
	bar := newProgress("read back", in.bytes)
	defer bar.done()
	for rec, err := range c.Records(ctx) {
		if err == nil {
			err = out.write(string(rec.Key), rec.Value)
		}
		if err != nil {
			return nil, err
		}
		bar.add(len(rec.Value))
		if out.lines == in.lines {
			break
		}
	}
	return out, ctx.Err()
}
