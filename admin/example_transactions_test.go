package admin_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// bank is a broker with a transaction of the id "billing" that is open on orders-0.
func bank() (k *fakebroker.Cluster, adm *admin.Admin, open *txn.Tx, stop func()) {
	k, err := fakebroker.New(fakebroker.Topic("orders", 2))
	if err != nil {
		panic(err)
	}
	adm, err = admin.Dial(nil, client.Cluster(k))
	if err != nil {
		panic(err)
	}
	s, err := txn.New(ctx, adm.Client(), "billing")
	if err != nil {
		panic(err)
	}
	open, err = s.Begin(ctx)
	if err != nil {
		panic(err)
	}
	if _, err := open.Send(ctx, producer.Record{Topic: "orders", Value: []byte("book"), Timestamp: time.Unix(1_700_000_000, 0)}.To(0)); err != nil {
		panic(err)
	}
	return k, adm, open, func() { s.Close(ctx); adm.Close(ctx); k.Close(ctx) }
}

// All transactional ids of the cluster, or some.
func ExampleAdmin_ListTransactions() {
	_, adm, _, stop := bank()
	defer stop()

	rows, err := adm.ListTransactions(ctx, admin.TransactionFilter{States: []admin.TransactionState{admin.TransactionOngoing}})
	for _, t := range rows {
		fmt.Println(t.ID, t.State, "at broker", t.Coordinator)
	}
	fmt.Println(err)
	// Output:
	// billing Ongoing at broker 1
	// <nil>
}

func ExampleAdmin_DescribeTransactions() {
	k, adm, open, stop := bank()
	defer stop()

	rows, err := adm.DescribeTransactions(ctx, "billing", "unknown")
	fmt.Println(rows[0].State, rows[0].Partitions, rows[0].Timeout, rows[0].Age(time.Now()) < time.Minute)
	fmt.Println(errors.Is(err, errcode.TransactionalIdNotFound), rows[1].Err != nil)
	open.Commit(ctx) // returns when the outcome is certain; it is being written to the partitions then
	k.AwaitTransaction(ctx, "billing", fakebroker.TransactionIs(fakebroker.TransactionCompleteCommit))
	rows, err = adm.DescribeTransactions(ctx, "billing")
	fmt.Println(rows[0].Partitions, rows[0].Start.IsZero(), err)
	// Output:
	// Ongoing [orders-0] 1m0s true
	// true true
	// [] true <nil>
}

// Who has written to a partition, and which transaction holds its readers back.
func ExampleAdmin_DescribeProducers() {
	_, adm, _, stop := bank()
	defer stop()

	rows, err := adm.DescribeProducers(ctx, admin.TopicPartition{Topic: "orders", Partition: 0}, admin.TopicPartition{Topic: "orders", Partition: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range rows {
		fmt.Println(r)
	}
	p := rows[0].Producers[0]
	fmt.Println("open:", p.Open(), "since offset", p.TxnStart, "last write", p.LastTimestamp.UTC().Format(time.DateOnly))
	// Output:
	// orders-0: 1 producers
	// orders-1: 0 producers
	// open: true since offset 0 last write 2023-11-14
}

// A transaction that no coordinator knows is found and aborted; readers with read_committed go on then.
func ExampleAdmin_HangingTransactions() {
	k, adm, _, stop := bank()
	defer stop()
	k.HangTransaction(ctx, "orders", 1, time.Now().Add(-time.Hour)) // as bugs in clients and brokers have done

	rows, err := adm.HangingTransactions(ctx, admin.HangingSearch{Topics: []string{"orders"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range rows {
		fmt.Println(h.TopicPartition, "since offset", h.Producer.TxnStart, "for", h.Idle.Round(time.Hour), adm.AbortTransaction(ctx, h.AbortSpec()))
	}
	rows, err = adm.HangingTransactions(ctx, admin.HangingSearch{}) // everywhere
	fmt.Println(len(rows), err)
	// Output:
	// orders-1 since offset 0 for 1h0m0s <nil>
	// 0 <nil>
}

func ExampleAdmin_AbortTransaction() {
	k, adm, _, stop := bank()
	defer stop()
	k.HangTransaction(ctx, "orders", 1, time.Now())

	spec, err := adm.FindOpenTransaction(ctx, admin.TopicPartition{Topic: "orders", Partition: 1}, 0)
	fmt.Println(err, adm.AbortTransaction(ctx, spec))
	_, err = adm.FindOpenTransaction(ctx, admin.TopicPartition{Topic: "orders", Partition: 1}, 0)
	fmt.Println(err, errors.Is(err, admin.ErrNoTransaction))
	// Output:
	// <nil> <nil>
	// no transaction is open since offset 0 of orders-1 true
}

// Whoever has the id now can do nothing more with it, and hears why.
func ExampleAdmin_FenceProducers() {
	_, adm, open, stop := bank()
	defer stop()

	rows, err := adm.FenceProducers(ctx, "billing")
	fmt.Println(rows[0].ID, rows[0].Err, err)
	var fenced *txn.FencedError
	if errors.As(open.Commit(ctx), &fenced) {
		fmt.Println("fenced by", fenced.By)
	}
	// Output:
	// billing <nil> <nil>
	// fenced by administrator
}

// What is open under an id is aborted, whoever has it.
func ExampleAdmin_ForceTerminateTransaction() {
	_, adm, _, stop := bank()
	defer stop()

	fmt.Println(adm.ForceTerminateTransaction(ctx, "billing"))
	rows, err := adm.DescribeTransactions(ctx, "billing")
	fmt.Println(rows[0].Partitions, err)
	fmt.Println(errors.Is(adm.ForceTerminateTransaction(ctx, "biling"), errcode.TransactionalIdNotFound))
	// Output:
	// <nil>
	// [] <nil>
	// true
}
