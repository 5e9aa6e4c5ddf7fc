package fakebroker_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// openTransaction starts a cluster with an open transaction of "billing"; tests use clients for that.
func openTransaction(opts ...fakebroker.Option) *fakebroker.Cluster {
	k, err := fakebroker.New(append(opts, fakebroker.Topic("invoices", 3))...)
	if err != nil {
		panic(err)
	}
	id := "billing"
	if _, err := exchangeOnce(k, 4, &message.FindCoordinatorRequest{KeyType: 1, CoordinatorKeys: []string{id}}); err != nil {
		panic(err)
	}
	who := message.NewInitProducerIdRequest()
	who.TransactionalId, who.TransactionTimeoutMs = &id, 60_000
	p, err := exchangeOnce(k, 5, who)
	if err != nil {
		panic(err)
	}
	pid := p.(*message.InitProducerIdResponse)
	add := &message.AddPartitionsToTxnRequest{V3AndBelowTransactionalId: id, V3AndBelowProducerId: pid.ProducerId, V3AndBelowProducerEpoch: pid.ProducerEpoch,
		V3AndBelowTopics: []message.AddPartitionsToTxnTopic{{Name: "invoices", Partitions: []int32{1}}}}
	if _, err := exchangeOnce(k, 3, add); err != nil {
		panic(err)
	}
	return k
}

// endTransaction commits what openTransaction has opened.
func endTransaction(k *fakebroker.Cluster) {
	end := &message.EndTxnRequest{TransactionalId: "billing", ProducerId: 0, ProducerEpoch: 0, Committed: true}
	if _, err := exchangeOnce(k, 5, end); err != nil {
		panic(err)
	}
}

// What a test may want to know of a transaction.
func ExampleCluster_Transaction() {
	ctx, k := context.Background(), openTransaction()
	defer k.Close(ctx)
	t, err := k.Transaction(ctx, "billing")
	fmt.Println(t.State, t.Partitions, t.ProducerEpoch, t.Timeout, err)
	t, err = k.Transaction(ctx, "nobody")
	fmt.Println(t.State, err)
	// Output:
	// Ongoing [{invoices 1}] 0 1m0s <nil>
	// Dead <nil>
}

func ExampleCluster_Transactions() {
	ctx, k := context.Background(), openTransaction()
	defer k.Close(ctx)
	all, err := k.Transactions(ctx)
	for _, t := range all {
		fmt.Println(t.ID, t.State)
	}
	fmt.Println(err)
	// Output:
	// billing Ongoing
	// <nil>
}

// A test waits until a transaction is committed, markers and all, instead of sleeping.
func ExampleCluster_AwaitTransaction() {
	ctx, k := context.Background(), openTransaction()
	defer k.Close(ctx)
	endTransaction(k)
	t, err := k.AwaitTransaction(ctx, "billing", fakebroker.TransactionCommits(1))
	fmt.Println(t.State, t.Commits, t.Aborts, err)
	// Output: CompleteCommit 1 0 <nil>
}

// What happens to a worker whose transaction takes too long is a matter of one line.
func ExampleCluster_ExpireTransaction() {
	ctx, k := context.Background(), openTransaction()
	defer k.Close(ctx)
	fmt.Println(k.ExpireTransaction(ctx, "billing"))
	t, err := k.AwaitTransaction(ctx, "billing", fakebroker.TransactionIs(fakebroker.TransactionCompleteAbort))
	fmt.Println(t.ProducerEpoch, t.TimeOuts, err)
	fmt.Println(errors.Is(k.ExpireTransaction(ctx, "billing"), errcode.InvalidTxnState))
	// Output:
	// <nil>
	// 1 1 <nil>
	// true
}

// The coordinator forgets what is not in its log, and nothing else.
func ExampleCluster_ReloadTransactionCoordinator() {
	ctx, k := context.Background(), openTransaction()
	defer k.Close(ctx)
	fmt.Println(k.ReloadTransactionCoordinator(ctx, "billing"))
	t, err := k.Transaction(ctx, "billing")
	fmt.Println(t.State, t.Partitions, err)
	// Output:
	// <nil>
	// Ongoing [{invoices 1}] <nil>
}

func ExampleTransactionIs() {
	ctx, k := context.Background(), openTransaction()
	defer k.Close(ctx)
	_, err := k.AwaitTransaction(ctx, "billing", fakebroker.TransactionIs(fakebroker.TransactionOngoing))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleTransactionHas() {
	ctx, k := context.Background(), openTransaction()
	defer k.Close(ctx)
	t, err := k.AwaitTransaction(ctx, "billing", fakebroker.TransactionHas("invoices", 1))
	fmt.Println(len(t.Partitions), err)
	// Output: 1 <nil>
}

func ExampleTransactionCommits() {
	ctx, k := context.Background(), openTransaction()
	defer k.Close(ctx)
	endTransaction(k)
	_, err := k.AwaitTransaction(ctx, "billing", fakebroker.TransactionCommits(1))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleTransactionAborts() {
	ctx, k := context.Background(), openTransaction()
	defer k.Close(ctx)
	_ = k.ExpireTransaction(ctx, "billing")
	_, err := k.AwaitTransaction(ctx, "billing", fakebroker.TransactionAborts(1))
	fmt.Println(err)
	// Output: <nil>
}

// Clients meet clusters that were upgraded from Apache Kafka 3 and still have the older protocol of transactions.
func ExampleFeature() {
	ctx, k := context.Background(), openTransaction(fakebroker.Feature("transaction.version", 1))
	defer k.Close(ctx)
	resp, err := exchangeOnce(k, 4, &message.ApiVersionsRequest{ClientSoftwareName: "example", ClientSoftwareVersion: "1"})
	for _, f := range resp.(*message.ApiVersionsResponse).FinalizedFeatures {
		if f.Name == "transaction.version" {
			fmt.Println(f.Name, f.MaxVersionLevel, err)
		}
	}
	// Output: transaction.version 1 <nil>
}
