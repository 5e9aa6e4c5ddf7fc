package partition_test

import (
	"fmt"

	"github.com/ottla-kafka/ottla/producer/partition"
)

var orders = &partition.Topic{Name: "orders", Partitions: 4, Available: []int32{0, 1, 3}}

// Kafka's default: a key always goes to the same partition, available or not; records without one stay together.
func ExamplePartitioner() {
	fmt.Println(partition.Default.Partition(orders, []byte("alice"), nil))
	fmt.Println(partition.Default.Partition(orders, nil, nil) == partition.Sticky)
	fmt.Println(partition.IgnoreKeys.Partition(orders, []byte("alice"), nil) == partition.Sticky)
	// Output:
	// 1
	// true
	// true
}

// A function is a partitioner.
func ExampleFunc() {
	byLength := partition.Func(func(t *partition.Topic, key, _ []byte) int32 { return int32(len(key)) % t.Partitions })
	fmt.Println(byLength.Partition(orders, []byte("alice"), nil))
	// Output: 1
}

// Round robin goes over the partitions that have a leader.
func ExampleRoundRobin() {
	p := partition.RoundRobin()
	for range 4 {
		fmt.Print(p.Partition(orders, nil, nil), " ")
	}
	// Output: 0 1 3 0
}

// Partitions with shorter queues are drawn more often.
func ExampleNext() {
	count := map[int32]int{}
	for i := range 100 {
		count[partition.Next([]partition.Load{{Partition: 0, Queued: 3}, {Partition: 1}, {Partition: 2, Stalled: true}}, float64(i)/100, true, "")]++
	}
	fmt.Println(count)
	// Output: map[0:20 1:80]
}
