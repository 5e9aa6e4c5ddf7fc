package fakebroker_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

func Example() {
	k, err := fakebroker.New(fakebroker.Topic("orders", 6))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer k.Close(context.Background())
	o, err := k.Offsets("orders", 5)
	fmt.Println(k.Addrs(), o.HighWatermark, err)
	// Output: [ottla-1:9092] 0 <nil>
}

func ExampleNew_errors() {
	_, err := fakebroker.New(fakebroker.Config("message.max.byte", "1000"))
	fmt.Println(err)
	// Output: fakebroker: config: server properties: Unknown broker config name: message.max.byte (did you mean message.max.bytes?)
}

func ExampleListen() {
	k, err := fakebroker.New(fakebroker.Listen("127.0.0.1:0"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer k.Close(context.Background())
	conn, err := net.Dial("tcp", k.Addrs()[0]) // any client can
	fmt.Println(conn != nil, err)
	// Output: true <nil>
}

func ExampleCluster_CreateTopic() {
	k, err := fakebroker.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer k.Close(context.Background())
	ctx := context.Background()
	compacted := fakebroker.TopicSpec{Name: "state", Partitions: 1, Configs: map[string]string{"cleanup.policy": "compact"}}
	fmt.Println(k.CreateTopic(ctx, compacted))
	fmt.Println(k.CreateTopic(ctx, compacted))
	// Output:
	// <nil>
	// create topic "state": TOPIC_ALREADY_EXISTS (36): the topic exists already: Topic 'state' already exists.
}

func ExampleCluster_Inject() {
	k, err := fakebroker.New(fakebroker.Topic("orders", 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer k.Close(context.Background())
	lost := k.Inject(fault.Produce().Topic("orders").LoseResponse().Times(1))
	moved := k.Inject(fault.Produce().Error(errcode.NotLeaderOrFollower).Nth(2))
	// ... produce, and see what your code makes of it ...
	fmt.Println(lost.Hits(), moved.Hits())
	lost.Remove()
	// Output: 0 0
}

// A test waits for what its program is to write, and hears how far it came when it does not.
func ExampleCluster_AwaitRecords() {
	_, k, end := started(fakebroker.Topic("orders", 1))
	defer end()
	go send(k, "orders", 0, "one", "two") // the program
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(k.AwaitRecords(ctx, "orders", 0, 2))
	records, err := k.Records("orders", 0, 0)
	fmt.Println(len(records), err)
	// Output:
	// <nil>
	// 2 <nil>
}

func ExampleCluster_Restart() {
	k, err := fakebroker.New(fakebroker.Topic("orders", 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer k.Close(context.Background())
	ctx := context.Background()
	fmt.Println(k.Restart(ctx), k.AwaitTopic(ctx, "orders"))
	fmt.Println(k.Requests(wire.KeyProduce), k.Connections())
	// Output:
	// <nil> <nil>
	// 0 0
}
