package consumer_test

import (
	"context"
	"fmt"

	"github.com/ottla-kafka/ottla/consumer"
)

// A loop that is done with a record before it asks for the next one needs half the CPU time with ReuseMemory. What is to
// live longer is copied: a string made of a value is a copy.
func ExampleReuseMemory() {
	k := start()
	defer k.Close()
	ctx := context.Background()
	cl := connect(k)
	defer cl.Close(ctx)
	c, err := consumer.New(cl, consumer.Assign("fruit", 0), consumer.StartAt(consumer.Earliest), consumer.ReuseMemory)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)
	var names []string
	for r, err := range c.Records(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if names = append(names, string(r.Value)); r.Offset == 2 {
			break
		}
	}
	fmt.Println(names)
	// Output: [apple pear plum]
}
