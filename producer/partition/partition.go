// Package partition chooses partitions for records: Kafka's default (murmur2 of the key, uniform sticky
// without one, KIP-480 and KIP-794), round robin, random, and whatever a function of the user's says.
//
//	partition.go  the interface and the stateless choices
//	sticky.go     which partition records without a key stay at, and for how long
package partition

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/ottla-kafka/ottla/wire/hash"
)

// Sticky is what a Partitioner returns to leave the choice to the uniform sticky partitioner, which keeps
// records without a key together in one partition until a batch is full.
const Sticky int32 = -1

// Topic is what a Partitioner may know of a topic. It is immutable and shared.
type Topic struct {
	Name string
	// Partitions is how many there are; the answer lies below it.
	Partitions int32
	// Available lists the partitions that have a leader, in order; it may be empty during an outage.
	Available []int32
}

// Partitioner chooses the partition of a record. It is called by many goroutines at once, for each record that
// names no partition itself, and must be quick. The slices are the record's own: read them only.
type Partitioner interface {
	// Partition returns a number from 0 to t.Partitions-1, or Sticky.
	Partition(t *Topic, key, value []byte) int32
}

// Func makes a Partitioner of a function.
type Func func(t *Topic, key, value []byte) int32

// Partition calls f.
func (f Func) Partition(t *Topic, key, value []byte) int32 { return f(t, key, value) }

// Default is Kafka's choice for producers: murmur2 of the key over all partitions, available or not, so that
// a key stays where it is; sticky for records whose key is null. An empty key is a key.
var Default Partitioner = Func(func(t *Topic, key, _ []byte) int32 {
	if key == nil {
		return Sticky
	}
	return hash.Partition(key, t.Partitions)
})

// IgnoreKeys is sticky for every record (partitioner.ignore.keys).
var IgnoreKeys Partitioner = Func(func(*Topic, []byte, []byte) int32 { return Sticky })

// Random gives each record a partition of its own, drawn from the available ones.
var Random Partitioner = Func(func(t *Topic, _, _ []byte) int32 {
	return pick(t, rand.Uint32())
})

// RoundRobin gives each record of a topic the next available partition, keys or not
// (org.apache.kafka.clients.producer.RoundRobinPartitioner). Each call makes a new one with counters of its own.
func RoundRobin() Partitioner { return new(roundRobin) }

type roundRobin struct {
	counters sync.Map // topic name -> *atomic.Uint32
}

func (r *roundRobin) Partition(t *Topic, _, _ []byte) int32 {
	c, ok := r.counters.Load(t.Name)
	if !ok {
		c, _ = r.counters.LoadOrStore(t.Name, new(atomic.Uint32))
	}
	return pick(t, c.(*atomic.Uint32).Add(1)-1)
}

// pick takes one of the available partitions, or of all when none is.
func pick(t *Topic, n uint32) int32 {
	if len(t.Available) == 0 {
		return int32(n % uint32(t.Partitions))
	}
	return t.Available[n%uint32(len(t.Available))]
}
