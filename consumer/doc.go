// Package consumer reads records from a Kafka cluster.
//
// A Consumer reads the partitions that it is assigned, from several brokers at once, and hands out their records
// in the order of each partition. It fetches ahead while the application works, within fetch.max.bytes,
// max.partition.fetch.bytes and the client's memory budget.
//
//	cl, err := client.New(client.Seeds("localhost:9092"))
//	c, err := consumer.New(cl, consumer.Assign("orders", 0, 1, 2), consumer.StartAt(consumer.Earliest))
//	defer c.Close(ctx)
//	for r, err := range c.Records(ctx) {
//		if err != nil {
//			return err
//		}
//		handle(r.Key, r.Value)
//	}
//
// Records yields one record at a time, Batches one batch as it lies in the log, Poll a slice. All three go on
// where the last one stopped: breaking out of a loop, or the end of ctx, loses and repeats nothing. Keys, values
// and headers point into the bytes that came from the broker; they stay valid for ever and must not be written to.
//
// An error in a loop is about one partition, an *client.OpError that names it, unless ctx ended or the consumer
// was closed; the other partitions go on if the loop does (see FailFast). A partition whose error stays (a
// truncated log, a topic created anew, an offset that is gone under the policy Fail, damaged data) is halted until
// Seek. Everything that passes by itself, such as a broker that is away, is tried again and reported only when it
// lasts for default.api.timeout.ms.
//
// A newcomer reads consumer/machine first: it decides everything and does nothing. consumer/internal/fetch does
// what it says. This package is the face: configuration (config.go, properties.go), reading (records.go,
// batches.go, poll.go), steering (assign.go, seek.go), asking (offsets.go), types (typed.go, decoder.go).
package consumer
