// Package driver runs a controller: it owns the one goroutine, inbox and timer around the pure machine, and connects it
// with the metadata log below and the broker above.
//
//	Submit ─► inbox ─► controller.Handle ─► raft.Append ─► image.Apply ─► publish ─► done
//	           one goroutine, in this order, one request after the other
//
// # Map
//
//   - options.go   what a Driver is made of
//   - open.go      first start (format, bootstrap) and every start (checkpoint, log, next epoch)
//   - driver.go    the loop, Submit, Start, Close
//   - propose.go   one request from proposal to answer
//   - register.go  registration of this process's broker, and its way out
//   - inbox.go     what waits for the goroutine
//   - describe_quorum.go   DescribeQuorum, the one request that is not the machine's
//   - checkpoint.go  when the image is written to a checkpoint
//   - log.go       storage.Log as the quorum's log
//
// # Order
//
// A response leaves after its records are committed, applied, and published to the broker: whoever is told of a topic
// finds it there. Records are applied once, when they are appended; with a quorum of several voters what is appended but
// not committed stays in a queue, and losing the leadership drops it and goes back to the committed image, which costs
// nothing because images are values.
//
// # What differs from a controller of Apache Kafka
//
// With one node in one process there are no heartbeats to miss, so no broker is fenced by a timeout. NoOp records are
// written only if metadata.max.idle.interval.ms is set: nobody follows this log.
package driver
