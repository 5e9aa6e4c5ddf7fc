package machine_test

import (
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/client/machine"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Waits double up to the most; the same seed varies them in the same way.
func ExampleBackoff() {
	b := machine.Backoff{First: 100 * time.Millisecond, Most: time.Second}
	for failures := range 6 {
		fmt.Print(b.Exact(failures), " ")
	}
	one, two := machine.NewRand(1), machine.NewRand(1)
	fmt.Println(b.After(3, &one) == b.After(3, &two))
	// Output: 100ms 100ms 200ms 400ms 800ms 1s true
}

// A topology is merged from answers, and never goes back to an older leader epoch.
func ExampleTopology_Merge() {
	name := "orders"
	answer := func(leader, epoch int32) *message.MetadataResponse {
		return &message.MetadataResponse{Topics: []message.MetadataResponseTopic{{Name: &name,
			Partitions: []message.MetadataResponsePartition{{LeaderId: leader, LeaderEpoch: epoch}}}}}
	}
	every := func(string) bool { return true }
	top := machine.NewTopology().Merge(time.Unix(1, 0), answer(1, 5), every)
	top = top.Merge(time.Unix(2, 0), answer(2, 6), every)
	top = top.Merge(time.Unix(3, 0), answer(1, 5), every) // from a broker that is behind
	fmt.Println(top.Leader(name, 0))
	// Output: 2 6 true
}

// Wishes for metadata are one wish, and attempts keep their distance.
func ExampleRefresh() {
	now := time.Unix(1000, 0)
	r := machine.Refresh{MaxAge: 5 * time.Minute, Backoff: machine.Backoff{First: 100 * time.Millisecond, Most: time.Second}}
	r.Want()
	r.Want()
	fmt.Println(r.IsDue(now))
	r.Started(now)
	r.Succeeded(now, true, true)
	fmt.Println(r.IsDue(now), r.IsDue(now.Add(5*time.Minute)))
	// Output:
	// true
	// false true
}

// What answers a connection is a Kafka broker, or somebody else.
func ExampleFrameLength() {
	fmt.Println(machine.FrameLength([]byte{0, 0, 1, 0}, 1<<20))
	_, err := machine.FrameLength([]byte("HTTP"), 1<<20)
	fmt.Println(err)
	// Output:
	// 256 <nil>
	// an HTTP answer came instead of a Kafka answer (read as length 1213486160)
}
