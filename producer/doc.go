// Package producer sends records to Kafka: records in, acknowledged offsets out.
//
//	p, err := producer.New(cl)                     // or producer.Dial(seeds)
//	ack, err := p.Send(ctx, producer.Record{Topic: "orders", Value: v})       // waits
//	err = p.Submit(ctx, producer.Record{Topic: "orders", Value: v}, callback) // does not
//	err = p.Close(ctx)
//
// After an error one question matters, and Outcome answers it: NotWritten (send it again), or Unknown (it may be
// there). Every submitted record gets exactly one verdict, callbacks of a partition come in order, and retries
// neither reorder nor, with idempotence, which is on by default, double.
//
// # The way of a record
//
//	Submit          topic.go     find the topic, choose the partition
//	part.add        part.go      encode the record into the partition's open batch, under that partition's lock
//	loop            loop.go      one runner at a time drives the machine, which decides what is sent when
//	packer          pack.go      compresses sealed batches
//	request         request.go   writes batches from where they are, reads the answer
//	teller          verdict.go   calls the callbacks
//
// Transactional, in transactional.go, is the same for records of transactions; package txn owns those.
//
// Package machine has all decisions about sequences, retries, leaders and time, and no goroutine. Package
// internal/buffer has the memory. Package partition has the partitioners.
//
// # Who owns what
//
// An open batch belongs to its partition's lock. From gathering on it belongs to the runner of the loop. Its bytes are
// read by one connection at a time, between Issue and the call's Done, and go back to the pool only when the machine
// said Release: after the verdict and after the Done of every request that carried them, also of those that were
// given up long before. Its callbacks belong to the teller from the verdict on.
//
// Goroutines: the loop's and the teller's from New to Close, one for each batch being compressed (as many as
// processors), one while a producer id is asked for.
package producer
