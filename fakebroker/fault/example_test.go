package fault_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// A rule is a value: which requests, and what happens to them.
func Example() {
	fmt.Println(fault.Produce().Topic("orders").LoseResponse().Times(1))
	fmt.Println(fault.Fetch().Nth(3).DropConnection())
	fmt.Println(fault.On(wire.KeyMetadata).Client("billing").Delay(time.Second))
	// Output:
	// Produce topic orders times 1: lose response
	// Fetch after 2 times 1: drop connection
	// Metadata client "billing": delay 1s
}

// Every method returns a changed copy, so rules can be kept and refined.
func ExampleRule() {
	orders := fault.Produce().Topic("orders")
	slow, refused := orders.Delay(time.Second), orders.Error(errcode.NotEnoughReplicas)
	fmt.Println(slow)
	fmt.Println(refused.After(10).Times(2))
	fmt.Println(fault.Any().Client("billing").Hang())
	// Output:
	// Produce topic orders: delay 1s
	// Produce topic orders after 10 times 2: error NOT_ENOUGH_REPLICAS
	// any request client "billing": hang
}

// The functions without a key choose one API each.
func ExampleOn() {
	for _, r := range []fault.Rule{fault.On(wire.KeyFindCoordinator), fault.Produce(), fault.Fetch(), fault.Metadata(),
		fault.ListOffsets(), fault.InitProducerID(), fault.CreateTopics(), fault.Any()} {
		fmt.Println(r.DropConnection())
	}
	// Output:
	// FindCoordinator: drop connection
	// Produce: drop connection
	// Fetch: drop connection
	// Metadata: drop connection
	// ListOffsets: drop connection
	// InitProducerId: drop connection
	// CreateTopics: drop connection
	// any request: drop connection
}

// A Set is what the broker asks about each request; a broker of one's own can use it in the same way.
func ExampleSet() {
	var s fault.Set
	s.Add(fault.Produce().Topic("orders").Error(errcode.NotLeaderOrFollower).Nth(2))
	for range 3 {
		o := s.Match(fault.Point{Key: wire.KeyProduce, ClientID: "billing", Topics: func() []string { return []string{"orders", "audit"} }})
		fmt.Println(o.IsZero(), o.For("orders") == errcode.None, o.For("audit") == errcode.None)
	}
	// Output:
	// true true true
	// false false true
	// true true true
}

// A test waits until its fault has struck, instead of sleeping.
func ExampleInjection_Await() {
	var s fault.Set
	in := s.Add(fault.Fetch().LoseResponse().Times(1))
	go s.Match(fault.Point{Key: wire.KeyFetch})
	fmt.Println(in.Await(context.Background(), 1), in.Hits())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	fmt.Println(errors.Is(in.Await(ctx, 2), context.Canceled))
	in.Remove()
	fmt.Println(s.Active())
	// Output:
	// <nil> 1
	// true
	// false
}
