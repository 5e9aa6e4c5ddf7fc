package history_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/history"
)

var orders = history.TopicPartition{Topic: "orders", Partition: 0}

// clock is a clock for examples, whose times do not matter.
func clock() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// The textbook mistake: a worker aborts its transaction on an error and polls on, instead of going back to where the group
// stands. Its first record is never processed, and the commit of the second hides that.
func Example() {
	log := history.New(history.Clock(clock))
	shop, worker := log.Process("shop"), log.Process("worker")
	for i := range int64(2) {
		call := shop.Send("orders", fmt.Sprint("order-", i))
		call.OK(0, i)
	}
	worker.Assigned("billing", history.Offset{TopicPartition: orders, Offset: 0})
	for i := range int64(2) {
		worker.Poll(history.ReadCommitted, history.Read{TopicPartition: orders, Offset: i, Value: fmt.Sprint("order-", i)})
		tx := worker.Begin()
		tx.Processed("billing", orders, i)
		if i == 0 {
			tx.Abort().OK()
			continue
		}
		tx.CommitOffsets("billing", history.Offset{TopicPartition: orders, Offset: i + 1}).OK()
		tx.Commit().OK()
	}
	report, err := history.Check(log)
	fmt.Println(report, err)
	// Output:
	// 12 operations: 2 sends, 2 records read, 1 transactions committed, 1 aborted, 0 open
	// committed beyond processed: group billing committed past orders-0@0, which nobody has processed
	//        0 12:00:00.000 shop send orders-0@0 "order-0" ok
	//        3 12:00:00.000 worker poll read_committed orders-0@0="order-0"
	//       10 12:00:00.000 worker commit offsets T2 group billing orders-0@2
	//       11 12:00:00.000 worker commit T2 ok <nil>
}

// A send that failed for an unknown reason may have been written or not; Check accepts both, but not twice.
func ExampleProcess_Send() {
	log := history.New(history.Clock(clock))
	w := log.Process("worker")
	w.Send("orders", "order-1").Info(errors.New("connection lost"))
	w.Poll(history.ReadUncommitted, history.Read{TopicPartition: orders, Offset: 0, Value: "order-1"})
	report, _ := history.Check(log)
	fmt.Println(report)
	w.Poll(history.ReadUncommitted, history.Read{TopicPartition: orders, Offset: 1, Value: "order-1"})
	report, _ = history.Check(log)
	fmt.Println(report.Findings())
	// Output:
	// 2 operations: 1 sends, 1 records read, 0 transactions committed, 0 aborted, 0 open; no anomalies
	// [duplicate]
}

// Drained says that the readers have read everything: what they did not see is lost.
func ExampleDrained() {
	log := history.New(history.Clock(clock))
	w := log.Process("worker")
	call := w.Send("orders", "order-1")
	call.OK(0, 0)
	report, _ := history.Check(log)
	fmt.Println(report.Err())
	report, _ = history.Check(log, history.Drained("orders"))
	fmt.Println(report.Err())
	// Output:
	// <nil>
	// history: 1 operations: 1 sends, 0 records read, 0 transactions committed, 0 aborted, 0 open
	// unseen: "order-1" was acknowledged at orders-0@0 and is not there
	//        0 12:00:00.000 worker send orders-0@0 "order-1" ok
}

// A log is bounded; once it is full, Check does not judge.
func ExampleLimit() {
	log := history.New(history.Limit(1))
	w := log.Process("worker")
	w.Send("orders", "order-1")
	w.Send("orders", "order-2")
	_, err := history.Check(log)
	fmt.Println(log.Len(), errors.Is(err, history.ErrFull))
	// Output: 1 true
}

// A transaction takes effect as a whole, or not at all.
func ExampleTxn() {
	log := history.New(history.Clock(clock))
	w := log.Process("worker")
	tx := w.Begin()
	for p := range int32(2) {
		call := tx.Send("invoices", fmt.Sprint("invoice-", p))
		call.OK(p, 0)
	}
	tx.Commit().OK()
	w.Poll(history.ReadCommitted, history.Read{TopicPartition: history.TopicPartition{Topic: "invoices", Partition: 1}, Offset: 0, Value: "invoice-1"})
	report, _ := history.Check(log, history.Drained("invoices"))
	fmt.Println(report.Findings())
	// Output: [torn transaction]
}
