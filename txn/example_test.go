package txn_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// session makes a broker and a session on it, for the examples.
func session(opts ...txn.Option) (s *txn.Session, stop func()) {
	ctx := context.Background()
	k, err := fakebroker.New(fakebroker.Topic("orders", 2), fakebroker.Topic("audit", 1))
	if err != nil {
		log.Fatal(err)
	}
	cl, err := client.New(client.Cluster(k))
	if err != nil {
		log.Fatal(err)
	}
	if s, err = txn.New(ctx, cl, "billing-1", opts...); err != nil {
		log.Fatal(err)
	}
	return s, func() {
		s.Close(ctx)
		cl.Close(ctx)
		k.Close(ctx)
	}
}

// A transaction over two topics: readers with isolation.level=read_committed see both records or none.
func Example() {
	s, stop := session()
	defer stop()
	err := s.Do(context.Background(), func(ctx context.Context, tx *txn.Tx) error {
		if err := tx.Submit(ctx, producer.Record{Topic: "orders", Key: []byte("4711"), Value: []byte("paid")}, nil); err != nil {
			return err
		}
		return tx.Submit(ctx, producer.Record{Topic: "audit", Value: []byte("order 4711 was paid")}, nil)
	})
	out, _ := s.Last()
	fmt.Println(out, err)
	// Output: committed <nil>
}

// An id belongs to one instance and stays with it across restarts. New waits until what an older session left open has
// ended.
func ExampleNew() {
	k, err := fakebroker.New()
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer k.Close(ctx)
	cl, err := client.New(client.Cluster(k))
	if err != nil {
		log.Fatal(err)
	}
	defer cl.Close(ctx)
	s, err := txn.New(ctx, cl, "billing-1", txn.TransactionTimeout(30*time.Second), txn.Producer(producer.Linger(10*time.Millisecond)))
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close(ctx)
	fmt.Println(s.ID(), s.State(), s.Config().Timeout, s.Config().Producer.Linger, s.Client() == cl)
	// Output: billing-1 Ready 30s 10ms true
}

// Dial makes the client as well.
func ExampleDial() {
	k, err := fakebroker.New()
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer k.Close(ctx)
	s, err := txn.Dial(ctx, k.Addrs(), "billing-1", txn.Client(client.Cluster(k), client.ClientID("billing")))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Client().Config().ClientID, s.Close(ctx), s.State())
	// Output: billing <nil> Closed
}

// An error aborts: nothing of the transaction is ever seen by read_committed readers.
func ExampleSession_Do() {
	s, stop := session()
	defer stop()
	err := s.Do(context.Background(), func(ctx context.Context, tx *txn.Tx) error {
		if err := tx.Submit(ctx, producer.Record{Topic: "orders", Value: []byte("draft")}, nil); err != nil {
			return err
		}
		return errors.New("out of stock")
	})
	out, _ := s.Last()
	fmt.Println(err, "-", txn.Class(err), "-", out)
	// Output: out of stock - abortable - aborted
}

// Begin, Commit and Abort are what Do is made of.
func ExampleSession_Begin() {
	s, stop := session()
	defer stop()
	ctx := context.Background()
	tx, err := s.Begin(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.State(), tx.Outcome())
	ack, err := tx.Send(ctx, producer.Record{Topic: "orders", Value: []byte("x")}.To(1))
	fmt.Println(ack.Partition, ack.Offset, err)
	fmt.Println(tx.Commit(ctx), tx.Outcome(), s.State())
	// Output:
	// InTransaction open
	// 1 0 <nil>
	// <nil> committed Ready
}

func ExampleTx_Abort() {
	s, stop := session()
	defer stop()
	ctx := context.Background()
	tx, err := s.Begin(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := tx.Submit(ctx, producer.Record{Topic: "orders", Value: []byte("x")}, nil); err != nil {
		log.Fatal(err)
	}
	fmt.Println(tx.Abort(ctx), tx.Outcome())
	fmt.Println(errors.Is(tx.Submit(ctx, producer.Record{Topic: "orders"}, nil), txn.ErrOver))
	// Output:
	// <nil> aborted
	// true
}

// SendAll and Flush wait for the brokers; Submit with a callback does not. Commit waits for everything in any case.
func ExampleTx_SendAll() {
	s, stop := session()
	defer stop()
	err := s.Do(context.Background(), func(ctx context.Context, tx *txn.Tx) error {
		n, err := tx.SendAll(ctx, slices.Values([]producer.Record{{Topic: "orders", Value: []byte("a")}, {Topic: "orders", Value: []byte("b")}}))
		fmt.Println(n, err)
		if err := tx.Submit(ctx, producer.Record{Topic: "audit", Value: []byte("c")}, func(a producer.Ack, err error) { fmt.Println(a.Topic, a.Offset, err) }); err != nil {
			return err
		}
		return tx.Flush(ctx)
	})
	fmt.Println(err)
	// Output:
	// 2 <nil>
	// audit 0 <nil>
	// <nil>
}

// Offsets of a consumer group are part of the transaction. Session.Consume and Session.Pipe do this by themselves; the zero
// Generation is for offsets of a consumer that is in no group.
func ExampleTx_SendOffsets() {
	s, stop := session()
	defer stop()
	err := s.Do(context.Background(), func(ctx context.Context, tx *txn.Tx) error {
		if err := tx.Submit(ctx, producer.Record{Topic: "audit", Value: []byte("read up to 17")}, nil); err != nil {
			return err
		}
		return tx.SendOffsets(ctx, "auditors", groupmember.Generation{}, map[groupmember.TopicPartition]groupmember.Offset{
			{Topic: "orders", Partition: 0}: groupmember.OffsetAt(17),
		})
	})
	fmt.Println(err)
	// Output: <nil>
}

// Typed senders work within a transaction as well.
func ExampleTx_Submit_typed() {
	s, stop := session()
	defer stop()
	type order struct{ Item string }
	err := s.Do(context.Background(), func(ctx context.Context, tx *txn.Tx) error {
		orders := producer.NewTyped(tx, "orders", producer.String, producer.JSON[order])
		return orders.Submit(ctx, "4711", order{Item: "book"}, nil)
	})
	fmt.Println(err)
	// Output: <nil>
}

// Warm fetches metadata before the first transaction needs it.
func ExampleSession_Warm() {
	s, stop := session()
	defer stop()
	ctx := context.Background()
	fmt.Println(s.Warm(ctx, "orders", "audit"))
	fmt.Println(s.Partitions(ctx, "orders"))
	// Output:
	// <nil>
	// 2 <nil>
}

// Three classes of errors, and what each means. This switch is exhaustive.
func ExampleClass() {
	what := func(err error) string {
		switch txn.Class(err) {
		case txn.None:
			return "committed"
		case txn.Abortable:
			return "nothing is committed: run it again, from its beginning"
		case txn.OutcomeUnknown:
			return "nobody knows: call Commit again, or Begin, which finds out"
		default: // txn.Fenced
			return "nothing is committed, and this session is over"
		}
	}
	fmt.Println(what(nil))
	fmt.Println(what(&txn.Error{Class: txn.Abortable, Err: errcode.TransactionAbortable}))
	fmt.Println(what(&txn.Error{Class: txn.OutcomeUnknown, Err: context.DeadlineExceeded}))
	fmt.Println(what(&txn.Error{Class: txn.Fenced, Err: &txn.FencedError{By: txn.NewInstance, Code: errcode.ProducerFenced}}))
	// Output:
	// committed
	// nothing is committed: run it again, from its beginning
	// nobody knows: call Commit again, or Begin, which finds out
	// nothing is committed, and this session is over
}

// Two sessions of one id: the older one learns by whom it was replaced.
func ExampleFencedError() {
	s, stop := session()
	defer stop()
	ctx := context.Background()
	tx, err := s.Begin(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := tx.Send(ctx, producer.Record{Topic: "orders", Value: []byte("zombie")}); err != nil {
		log.Fatal(err)
	}
	heir, err := txn.New(ctx, s.Client(), s.ID())
	if err != nil {
		log.Fatal(err)
	}
	defer heir.Close(ctx)
	err = tx.Commit(ctx)
	var fenced *txn.FencedError
	fmt.Println(txn.Class(err), errors.As(err, &fenced), fenced.By)
	// Output: fenced true new instance
}

// A configuration written for the Java client.
func ExampleFromProperties() {
	of, cfg, err := txn.FromProperties(map[string]string{
		"bootstrap.servers":      "localhost:9092",
		"transactional.id":       "billing-1",
		"transaction.timeout.ms": "30000",
		"compression.type":       "zstd",
	})
	fmt.Println(of.Seeds, cfg.ID, cfg.Timeout, cfg.Producer.Compression, err)
	_, _, err = txn.FromProperties(map[string]string{"transactional.identifier": "billing-1"})
	fmt.Println(err)
	// Output:
	// [localhost:9092] billing-1 30s zstd <nil>
	// transactional.identifier: is not a configuration key of this client; did you mean transactional.id?
}

// NewFromConfig takes what FromProperties gave, or a Config of one's own.
func ExampleNewFromConfig() {
	s, stop := session()
	defer stop()
	ctx := context.Background()
	cfg := txn.DefaultConfig()
	cfg.ID = "billing-2"
	second, err := txn.NewFromConfig(ctx, s.Client(), cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Close(ctx)
	id, epoch := second.Producer()
	fmt.Println(second.ID(), id >= 0, epoch)
	// Output: billing-2 true 0
}

// What is wrong is said before anything is sent, and what is probably not meant is a warning in the log.
func ExampleConfig_Validate() {
	cfg := txn.DefaultConfig()
	cfg.Producer.Acks = producer.AcksLeader
	fmt.Println(cfg.Validate())
	cfg = txn.DefaultConfig()
	cfg.ID, cfg.Timeout = "billing-1", time.Hour
	fmt.Println(cfg.Validate(), cfg.Lint())
	// Output:
	// transactional.id: is empty; give each instance an id of its own, which it keeps across restarts
	// acks=1: idempotence needs acks=all; set it, or enable.idempotence=false
	// <nil> [transaction.timeout.ms is 1h0m0s: brokers refuse more than 15m0s unless transaction.max.timeout.ms says otherwise]
}
