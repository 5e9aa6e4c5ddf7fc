// Package history takes down what the clients of a Kafka cluster did and saw, and finds in it what must not happen: records
// lost, doubled, reordered, read though their transaction was aborted, transactions of which a part took effect, offsets
// committed past what was processed, partitions with two owners. It says nothing about how clients work inside and needs
// none of this project's: whoever can say what was sent, acknowledged, read and committed can use it, against any cluster.
//
//	log := history.New()
//	w := log.Process("worker-1")                        // a recorder for each process
//
//	call := w.Send("orders", "order-17")                // before the producer has it
//	ack, err := p.Send(ctx, rec)
//	if err == nil { call.OK(ack.Partition, ack.Offset) } else { call.Info(err) }
//
//	w.Poll(history.ReadCommitted, reads...)             // what a consumer handed out
//
//	tx := w.Begin()                                     // a transaction
//	tx.Processed("billing", input, offset)              // on whose behalf
//	call = tx.Send("invoices", "invoice-17")
//	tx.CommitOffsets("billing", history.Offset{input, offset + 1}).OK()
//	commit := tx.Commit()                               // then OK, Fail or Info
//
//	report, err := history.Check(log, history.Drained("orders", "invoices"))
//	if err == nil { err = report.Err() }                // names each anomaly, with the operations that show it
//
// For this project's own producer, consumer and transactions, package fakebroker/harness has ready-made recorders.
//
// # What makes the checks fast and the findings certain
//
// Kafka tells offsets, so the order of all writes of a partition is known; nothing has to be searched, and every check is
// linear in the length of the log, but for sorting (a million operations take some seconds). For that, values must say
// who they are: what is to be in a topic once has a value that nothing else there has, and each try of it the same.
//
// A finding is a proof: it holds whatever happened to operations whose outcome nobody knows. So outcomes decide how much is
// seen. OK: it was done. Fail: it was not, and never will be. Info: nobody knows. When in doubt, say Info. A transaction
// whose commit is Info is taken for committed as soon as anything of it was read, and all of it is then asked for.
//
// # What is allowed
//
// Kafka lets writes of transactions interleave (G0), leaves gaps in offsets (markers, aborted records, compaction), and
// lets a member see a jump, forward or back, where it was assigned a partition anew or has moved its position. None of this
// is an anomaly, nor is a record processed twice outside of transactions, which is what at-least-once means. Not judged are
// topics that are compacted or lose their oldest records while they are read: there, losses are meant.
//
// # Map
//
//	op.go          what an operation is
//	log.go         the log, its limit, calls that end
//	process.go     the recorders: Process, Txn
//	report.go      what can be found, and how it is said
//	check.go       Check, and what the log says by partition and by transaction
//	check_reads.go check_offsets.go check_order.go check_groups.go check_circles.go   the checks
//
// The tests are scripts: anomalies_test.go has the smallest history for each finding, allowed_test.go those that look odd
// and are right.
package history
