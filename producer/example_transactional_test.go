package producer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire/message"
)

// What package txn does with a Transactional, in short: it gets an id and an epoch from the coordinator, begins, flushes,
// and ends. With transaction.version 2 the leaders add their partitions to the transaction themselves.
func ExampleNewTransactional() {
	cl, stop := connect()
	defer stop()
	ctx := context.Background()
	id := "billing-1"
	to := client.Coordinator(client.TransactionCoordinator, id)
	who := message.NewInitProducerIdRequest()
	who.TransactionalId, who.TransactionTimeoutMs = &id, 60_000
	resp, err := cl.Request(ctx, to, who)
	if err != nil {
		log.Fatal(err)
	}
	pid := resp.(*message.InitProducerIdResponse)

	t, err := producer.NewTransactional(cl, producer.DefaultConfig(), id, producer.Hooks{
		Enlist: func(parts []client.TopicPartition) {},
		Doomed: func(d producer.Doom) { fmt.Println("it cannot be committed:", d.Code) },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close(ctx)
	_, err = t.Send(ctx, 1, producer.Record{Topic: "orders"})
	fmt.Println(err)
	t.Begin(1, pid.ProducerId, pid.ProducerEpoch, true)
	if err := t.Submit(ctx, 1, producer.Record{Topic: "orders", Value: []byte("x")}.To(0), func(a producer.Ack, err error) { fmt.Println(a.Offset, err) }); err != nil {
		log.Fatal(err)
	}
	t.Seal()
	flushed := make(chan struct{})
	t.Flush(func() { close(flushed) })
	<-flushed
	end := &message.EndTxnRequest{TransactionalId: id, ProducerId: pid.ProducerId, ProducerEpoch: pid.ProducerEpoch, Committed: true}
	_, err = cl.Request(ctx, to, end)
	fmt.Println("committed:", err)
	// Output:
	// not written: transaction takes no more records
	// 0 <nil>
	// committed: <nil>
}
