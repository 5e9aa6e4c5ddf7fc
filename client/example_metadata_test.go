package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// connected is a client of a peer that stands for a cluster; end closes both.
func connected(brokers int, script wiretest.Script, opts ...client.Option) (ctx context.Context, peer *wiretest.Peer, c *client.Client, end func()) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	peer = wiretest.NewCluster(brokers, script)
	c, err := client.New(append([]client.Option{client.Cluster(peer)}, opts...)...)
	if err != nil {
		panic(err)
	}
	return ctx, peer, c, func() {
		c.Close(ctx)
		peer.Close()
		cancel()
	}
}

// A topic that does not exist is waited for until ctx ends: it may be about to be made.
func ExampleClient_AwaitTopics() {
	ctx, peer, c, end := connected(2, nil)
	defer end()
	peer.SetTopic("orders", 0, 1, 2)

	top, err := c.AwaitTopics(ctx, "orders")
	fmt.Println(len(top.Topic("orders").Partitions), err)
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = c.AwaitTopics(short, "ordres")
	fmt.Println(errors.Is(err, client.ErrUnknownTopic), errors.Is(err, context.DeadlineExceeded))
	c.RemoveTopics("ordres") // or it stays among the topics that every refresh asks for
	// Output:
	// 2 <nil>
	// true true
}

// Topology is a picture that does not change; a new answer makes a new one.
func ExampleClient_Topology() {
	ctx, peer, c, end := connected(2, nil)
	defer end()
	fmt.Println("before the first answer:", len(c.Topology().Brokers), "brokers")
	peer.SetTopic("orders", 7, 1, 2)
	c.AwaitTopics(ctx, "orders")
	top := c.Topology()
	leader, epoch, ok := top.Leader("orders", 1)
	fmt.Println(top.Brokers[leader].Addr(), "in epoch", epoch, ok)
	fmt.Println(top.TopicByID(top.Topic("orders").ID).Name)
	// Output:
	// before the first answer: 0 brokers
	// broker-2:9092 in epoch 7 true
	// orders
}

// Errors and logs name brokers as the client's own errors do.
func ExampleClient_BrokerName() {
	ctx, _, c, end := connected(2, nil)
	defer end()
	fmt.Println(c.BrokerName(2))
	c.AwaitTopics(ctx)
	fmt.Println(c.BrokerName(2))
	fmt.Println(c.BrokerName(-1))
	// Output:
	// broker 2
	// broker 2 (broker-2:9092)
	// seed broker-1:9092
}

// A role that keeps track of leaders is told of every change.
func ExampleClient_OnTopology() {
	ctx, peer, c, end := connected(2, nil)
	defer end()
	peer.SetTopic("orders", 0, 1)
	moved := make(chan int32, 1)
	stop := c.OnTopology(func(top *client.Topology) { // from one goroutine; must not block
		if leader, epoch, ok := top.Leader("orders", 0); ok && epoch > 0 {
			select {
			case moved <- leader:
			default:
			}
		}
	})
	defer stop()
	c.AwaitTopics(ctx, "orders")
	peer.SetTopic("orders", 1, 2)
	c.RefreshMetadata() // after an answer such as NOT_LEADER_OR_FOLLOWER
	fmt.Println("led by", <-moved)
	// Output: led by 2
}

// Answers of produce and fetch may tell the new leader (KIP-951), which saves a metadata request.
func ExampleClient_LearnLeader() {
	ctx, peer, c, end := connected(2, nil)
	defer end()
	peer.SetTopic("orders", 4, 1)
	top, _ := c.AwaitTopics(ctx, "orders")
	id := top.Topic("orders").ID
	c.LearnLeader(id, 0, 2, 5, []client.Node{{ID: 2, Host: "broker-2", Port: 9092}})
	fmt.Println(c.Topology().Leader("orders", 0))
	c.LearnLeader(id, 0, 1, 3, nil) // an older epoch: ignored
	fmt.Println(c.Topology().Leader("orders", 0))
	// Output:
	// 2 5 true
	// 2 5 true
}

// Producers and consumers add the topics they use, and remove them when they have done.
func ExampleClient_AddTopics() {
	ctx, peer, c, end := connected(1, nil)
	defer end()
	peer.SetTopic("orders", 0, 1)
	c.AddTopics("orders", "later")
	c.AwaitTopics(ctx, "orders") // already tracked
	fmt.Println(c.Topology().Topic("orders") != nil)
	c.RemoveTopics("orders", "later")
	// Output: true
}
