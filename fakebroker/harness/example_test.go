package harness_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/harness"
	"github.com/ottla-kafka/ottla/fakebroker/history"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
)

// start starts a cluster with records in topic in.
func start(records ...string) (*fakebroker.Cluster, *client.Client, func()) {
	ctx := context.Background()
	k, err := fakebroker.New(fakebroker.Topic("in", 2), fakebroker.Topic("out", 2), fakebroker.Config("group.initial.rebalance.delay.ms", "0"))
	if err != nil {
		panic(err)
	}
	cl, err := client.New(client.Cluster(k))
	if err != nil {
		panic(err)
	}
	write(cl, "in", records...)
	return k, cl, func() {
		_ = cl.Close(ctx)
		_ = k.Close(ctx)
	}
}

func write(cl *client.Client, topic string, values ...string) {
	p, err := producer.New(cl)
	if err != nil {
		panic(err)
	}
	for i, v := range values {
		r := producer.Record{Topic: topic, Value: []byte(v)}
		if err := p.Submit(context.Background(), r.To(int32(i%2)), nil); err != nil {
			panic(err)
		}
	}
	if err := p.Close(context.Background()); err != nil {
		panic(err)
	}
}

// tb stands for the *testing.T of a test.
type tb struct{}

func (tb) Helper()                           {}
func (tb) Context() context.Context          { return context.Background() }
func (tb) Fatalf(format string, args ...any) { fmt.Printf("FAIL: "+format+"\n", args...) }
func (tb) Logf(format string, args ...any)   { fmt.Printf(format+"\n", args...) }

// A test of a pipeline ends with one line that proves it. It may have killed workers and restarted the broker before.
func ExampleCheckExactlyOnce() {
	k, cl, stop := start("a", "b", "c", "d")
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	s, _ := txn.New(ctx, cl, "upper")
	c, _ := consumer.New(cl, consumer.Group("g"), consumer.Subscribe("in"), consumer.OnReset(consumer.Earliest), consumer.WithIsolation(consumer.ReadCommitted))
	n := 0
	_ = s.Pipe(ctx, c, func(ctx context.Context, tx *txn.Tx, r consumer.Record) error {
		return tx.Submit(ctx, producer.Record{Topic: "out", Key: r.Key, Value: bytes.ToUpper(r.Value)}, nil)
	}, txn.OnCommit(func(records int) {
		if n += records; n == 4 {
			cancel() // the test has seen enough
		}
	}))
	_, _ = c.Close(context.Background()), s.Close(context.Background())

	harness.CheckExactlyOnce(tb{}, k, "in", "out", harness.Group("g"),
		harness.OutIdentity(func(r consumer.Record) string { return strings.ToLower(string(r.Value)) }))
	// Output:
	// CheckExactlyOnce: in → out: in 4 · out 4 · duplicates 0 · lost 0
}

// What is wrong is said with where it lies.
func ExampleExactlyOnce() {
	_, cl, stop := start("a", "b", "c")
	defer stop()
	write(cl, "out", "a", "c", "a", "x")
	r, err := harness.ExactlyOnce(context.Background(), cl, "in", "out")
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.Count(r.Err().Error(), "\n"), "findings:", r)
	// Output:
	// 3 findings: in 3 · out 4 · duplicates 1 · lost 1 · unexpected 1
}

// A pipeline that makes several records of one, or none.
func ExampleExpect() {
	_, cl, stop := start("to be", "or", "not to be", "")
	defer stop()
	write(cl, "out", "to", "be", "or", "not", "to", "be")
	r, err := harness.ExactlyOnce(context.Background(), cl, "in", "out", harness.AnyOrder(),
		harness.Expect(func(in consumer.Record) []string { return strings.Fields(string(in.Value)) }))
	fmt.Println(r, r.Err(), err)
	// Output:
	// in 4 · out 6 · duplicates 0 · lost 0 <nil> <nil>
}

// Seeds is a cluster that runs elsewhere.
func ExampleSeeds() {
	cluster := harness.Seeds("kafka-1:9092", "kafka-2:9092")
	fmt.Println(cluster.Addrs())
	// harness.CheckExactlyOnce(t, cluster, "in", "out", harness.Group("billing"), harness.Client(client.TLS(...)))

	// Output:
	// [kafka-1:9092 kafka-2:9092]
}

// A history of what a producer and a consumer did, and what follows from it.
func ExampleRecord() {
	_, cl, stop := start()
	defer stop()
	ctx := context.Background()
	log := history.New()

	shop := harness.Record(log, "shop")
	p, _ := producer.New(cl)
	for _, v := range []string{"a", "b", "c"} {
		r := producer.Record{Topic: "in", Value: []byte(v)}
		_, _ = shop.Send(ctx, p, r.To(0))
	}
	_ = p.Close(ctx)

	reader := harness.Record(log, "reader")
	c, _ := consumer.New(cl, append(reader.Consumer("", consumer.ReadCommitted), consumer.Assign("in", 0), consumer.StartAt(consumer.Earliest), consumer.Fetching(1, 10*time.Millisecond))...)
	for n := 0; n < 3; {
		list, _ := c.Poll(ctx, 0)
		n += len(list)
	}
	_ = c.Close(ctx)

	report, err := history.Check(log, history.Drained("in"))
	fmt.Println(report, err)
	// Output:
	// 6 operations: 3 sends, 3 records read, 0 transactions committed, 0 aborted, 0 open; no anomalies <nil>
}

// The same for a pipeline: its transactions, what it processed in each, and the offsets that went with them.
func ExampleRecorder_Pipe() {
	_, cl, stop := start("a", "b", "c", "d")
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	log := history.New()
	w := harness.Record(log, "worker-1")
	s, _ := txn.New(ctx, cl, "upper")
	c, _ := consumer.New(cl, append(w.Consumer("g", consumer.ReadCommitted), consumer.Subscribe("in"), consumer.OnReset(consumer.Earliest))...)
	n := 0
	_ = w.Pipe(ctx, s, c, func(ctx context.Context, tx *harness.Tx, r consumer.Record) error {
		return tx.Submit(ctx, producer.Record{Topic: "out", Value: r.Value}, nil)
	}, txn.OnCommit(func(records int) {
		if n += records; n == 4 {
			cancel()
		}
	}))
	_, _ = c.Close(context.Background()), s.Close(context.Background())
	report, err := history.Check(log)
	fmt.Println(report.Sends, "sends,", report.Reads, "reads, aborted", report.Aborted, report.Err(), err)
	// Output:
	// 4 sends, 4 reads, aborted 0 <nil> <nil>
}
