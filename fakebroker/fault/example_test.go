package fault_test

import (
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/wire"
)

func Example() {
	fmt.Println(fault.Produce().Topic("orders").LoseResponse().Times(1))
	fmt.Println(fault.Fetch().Nth(3).DropConnection())
	fmt.Println(fault.On(wire.KeyMetadata).Client("billing").Delay(time.Second))
	// Output:
	// Produce topic orders times 1: lose response
	// Fetch after 2 times 1: drop connection
	// Metadata client "billing": delay 1s
}
