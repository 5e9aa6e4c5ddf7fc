package hash_test

import (
	"fmt"

	"github.com/ottla-kafka/ottla/wire/hash"
)

// Records with this key go to partition 1 of 6, whichever client sends them.
func ExamplePartition() {
	fmt.Println(hash.Partition([]byte("key"), 6))
	// Output: 1
}

// The coordinator of a group leads this partition of __consumer_offsets.
func ExampleCoordinatorPartition() {
	fmt.Println(hash.CoordinatorPartition("key", 50))
	// Output: 29
}

func ExampleMurmur2() {
	h := hash.Murmur2([]byte("a"))
	fmt.Println(int32(h), hash.ToPositive(h))
	// Output: -1563381124 584102524
}

func ExampleJavaString() {
	fmt.Println(hash.JavaString("😀"))
	// Output: 1772899
}

func ExampleCRC32C() {
	fmt.Println(hash.CRC32C([]byte{0xbf}))
	// Output: 3195739580
}
