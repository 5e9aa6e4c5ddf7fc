package txn_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
)

// shop is a broker inside the program with three orders in topic "orders", a client on it, and a consumer that has not read yet.
func shop(ctx context.Context) (cl *client.Client, c *consumer.Consumer, end func()) {
	k, err := fakebroker.New(fakebroker.Topic("orders", 1), fakebroker.Topic("invoices", 1), fakebroker.Config("group.initial.rebalance.delay.ms", "0"))
	if err != nil {
		panic(err)
	}
	cl, err = client.New(client.Cluster(k))
	if err != nil {
		panic(err)
	}
	p, _ := producer.New(cl)
	for _, v := range []string{"book", "lamp", "chair"} {
		if _, err := p.Send(ctx, producer.Record{Topic: "orders", Value: []byte(v)}); err != nil {
			panic(err)
		}
	}
	p.Close(ctx)
	c, err = consumer.New(cl, consumer.Group("billing"), consumer.Subscribe("orders"), consumer.OnReset(consumer.Earliest), consumer.WithIsolation(consumer.ReadCommitted))
	if err != nil {
		panic(err)
	}
	return cl, c, func() { c.Close(ctx); cl.Close(ctx); k.Close(ctx) }
}

// invoices prints what read_committed readers find.
func invoices(ctx context.Context, cl *client.Client, n int) {
	c, _ := consumer.New(cl, consumer.Assign("invoices", 0), consumer.StartAt(consumer.Earliest), consumer.WithIsolation(consumer.ReadCommitted))
	defer c.Close(ctx)
	for r, err := range c.Records(ctx) {
		if err == nil {
			fmt.Println(string(r.Value))
		}
		if n--; n == 0 || err != nil {
			return
		}
	}
}

// Each order becomes an invoice, exactly once.
func ExampleSession_Pipe() {
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	cl, c, end := shop(ctx)
	defer end()
	s, err := txn.New(ctx, cl, "billing-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close(context.WithoutCancel(ctx))
	err = s.Pipe(ctx, c, func(ctx context.Context, tx *txn.Tx, r consumer.Record) error {
		return tx.Submit(ctx, producer.Record{Topic: "invoices", Key: r.Key, Value: bytes.ToUpper(r.Value)}, nil)
	}, txn.CommitEvery(30*time.Second), txn.CommitRecords(3), txn.OnCommit(func(records int) {
		fmt.Println(records, "orders are billed")
		interrupt()
	}))
	fmt.Println(errors.Is(err, context.Canceled))
	invoices(context.WithoutCancel(ctx), cl, 3)
	// Output:
	// 3 orders are billed
	// true
	// BOOK
	// LAMP
	// CHAIR
}

// The handler gets many records at once, here to look all of them up with one query.
func ExampleSession_PipeBatches() {
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	cl, c, end := shop(ctx)
	defer end()
	s, err := txn.New(ctx, cl, "billing-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close(context.WithoutCancel(ctx))
	prices := func(rs []consumer.Record) []int { return []int{12, 40, 75}[:len(rs)] }
	err = s.PipeBatches(ctx, c, func(ctx context.Context, tx *txn.Tx, rs []consumer.Record) error {
		for i, price := range prices(rs) {
			if err := tx.Submit(ctx, producer.Record{Topic: "invoices", Value: fmt.Appendf(nil, "%s %d", rs[i].Value, price)}, nil); err != nil {
				return err
			}
		}
		return nil
	}, txn.CommitEvery(30*time.Second), txn.CommitRecords(3), txn.OnCommit(func(int) { interrupt() }), txn.OnAbort(func(cause error) { fmt.Println(cause) }))
	fmt.Println(errors.Is(err, context.Canceled))
	invoices(context.WithoutCancel(ctx), cl, 3)
	// Output:
	// true
	// book 12
	// lamp 40
	// chair 75
}

// A loop of one's own: what c handed out is committed with the transaction that follows, and comes again when that fails.
func ExampleSession_Consume() {
	ctx := context.Background()
	cl, c, end := shop(ctx)
	defer end()
	s, err := txn.New(ctx, cl, "billing-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close(ctx)
	stop, err := s.Consume(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	for attempt := 1; attempt <= 2; attempt++ {
		orders, err := c.Poll(ctx, 3)
		if err != nil {
			fmt.Println(err)
			return
		}
		err = s.Do(ctx, func(ctx context.Context, tx *txn.Tx) error {
			for _, r := range orders {
				if err := tx.Submit(ctx, producer.Record{Topic: "invoices", Value: r.Value}, nil); err != nil {
					return err
				}
			}
			if attempt == 1 {
				return errors.New("the printer is on fire")
			}
			return nil
		})
		fmt.Println(len(orders), err)
	}
	invoices(ctx, cl, 3)
	// Output:
	// 3 the printer is on fire
	// 3 <nil>
	// book
	// lamp
	// chair
}

// What Consume does, by hand.
func Example_intake() {
	ctx := context.Background()
	cl, c, end := shop(ctx)
	defer end()
	s, err := txn.New(ctx, cl, "billing-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close(ctx)
	in, err := c.Intake()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer in.Release()
	for _, commit := range []bool{false, true} {
		orders, err := c.Poll(ctx, 2)
		if err != nil {
			fmt.Println(err)
			return
		}
		tx, err := s.Begin(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, r := range orders {
			tx.Submit(ctx, producer.Record{Topic: "invoices", Value: r.Value}, nil) // what goes wrong shows in Commit
		}
		p, err := in.Portion()
		if err == nil {
			err = errors.Join(tx.SendOffsets(ctx, p.Group, p.Generation, p.Offsets), in.Err())
		}
		if commit {
			err = errors.Join(err, tx.Commit(ctx))
			in.Settle(p)
		} else {
			err = errors.Join(err, tx.Abort(ctx), in.Rewind(ctx))
		}
		fmt.Println(len(orders), orders[0].Offset, err)
	}
	have, err := c.Committed(ctx)
	fmt.Println(have[consumer.TopicPartition{Topic: "orders"}].At, err)
	// Output:
	// 2 0 <nil>
	// 2 0 <nil>
	// 2 <nil>
}
