package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/client/sasl"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// A client is made without I/O and closed with a limit.
func ExampleNew() {
	cluster := wiretest.NewCluster(3, nil) // stands for a real one; client.Seeds takes addresses
	defer cluster.Close()
	cluster.SetTopic("orders", 0, 1, 2, 3)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := client.New(client.Cluster(cluster), client.ClientID("billing"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)

	top, err := c.AwaitTopics(ctx, "orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range top.Topic("orders").Partitions {
		fmt.Printf("orders-%d is led by %s\n", p.ID, top.Brokers[p.Leader].Addr())
	}
	// Output:
	// orders-0 is led by broker-1:9092
	// orders-1 is led by broker-2:9092
	// orders-2 is led by broker-3:9092
}

// Everything that is wrong is reported at once, by Kafka's names.
func ExampleNew_invalid() {
	_, err := client.New(client.Seeds("kafka://broker:9092"), client.RequestTimeout(0))
	fmt.Println(err)
	// Output:
	// bootstrap.servers=kafka://broker:9092: must be host:port without a scheme; write broker:9092 and choose security.protocol for TLS or SASL
	// request.timeout.ms=0s: must be more than zero
}

// Java properties are taken as they are; what cannot be is refused with the reason.
func ExampleProperties() {
	_, err := client.New(client.Properties(map[string]string{
		"bootstrap.servers":        "broker:9092",
		"reconnect.backoff.ms":     "20",
		"ssl.engine.factory.class": "com.example.Factory",
		"metadata.max.age":         "60000",
	}))
	fmt.Println(err)
	// Output:
	// metadata.max.age: is not a configuration key of this client; did you mean metadata.max.age.ms?
	// ssl.engine.factory.class=com.example.Factory: names a Java class; pass a *tls.Config to client.TLS instead
}

// Request finds the broker and tries again until it is answered, ctx ends or default.api.timeout.ms has passed.
func ExampleClient_Request() {
	cluster := wiretest.New(func(req message.Request, version int16) message.Response {
		if create, ok := req.(*message.CreateTopicsRequest); ok {
			return &message.CreateTopicsResponse{Topics: []message.CreatableTopicResult{{Name: create.Topics[0].Name, NumPartitions: 3}}}
		}
		return nil
	})
	defer cluster.Close()
	ctx := context.Background()
	c, _ := client.New(client.Cluster(cluster))
	defer c.Close(ctx)

	req := message.NewCreateTopicsRequest()
	req.Topics = []message.CreatableTopic{{Name: "orders", NumPartitions: 3, ReplicationFactor: -1}}
	resp, err := c.Request(ctx, client.Controller(), req)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, topic := range resp.(*message.CreateTopicsResponse).Topics {
		fmt.Println(topic.Name, topic.NumPartitions)
	}
	// Output: orders 3
}

// Issue is one attempt that does not block.
func ExampleClient_Issue() {
	cluster := wiretest.New(func(req message.Request, version int16) message.Response {
		if req.Key() == wire.KeyHeartbeat {
			return new(message.HeartbeatResponse)
		}
		return nil
	})
	defer cluster.Close()
	ctx := context.Background()
	c, _ := client.New(client.Cluster(cluster))
	defer c.Close(ctx)
	c.AwaitTopics(ctx) // no topics: only the brokers

	done := make(chan client.Reply)
	c.Issue(1, client.Group, &client.Call{
		Key:    wire.KeyHeartbeat,
		Append: message.NewHeartbeatRequest().AppendTo,
		Done:   func(r client.Reply) { go func() { done <- r }() },
	})
	r := <-done
	fmt.Println(r.Err, r.Written, len(r.Body) > 0)
	// Output: <nil> true true
}

// Errors say what, where, why and what to do.
func ExampleOpError() {
	cluster := wiretest.New(func(req message.Request, version int16) message.Response {
		return wiretest.Bytes([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	})
	defer cluster.Close()
	ctx := context.Background()
	c, _ := client.New(client.Cluster(cluster))
	defer c.Close(ctx)

	_, err := c.AwaitTopics(ctx, "orders")
	var op *client.OpError
	if errors.As(err, &op) {
		fmt.Println(op.Op, "at", op.Broker)
		fmt.Println("hint:", op.Hint)
	}
	fmt.Println("worth waiting:", client.Retriable(err))
	// Output:
	// Metadata at seed broker-1:9092
	// hint: this port speaks HTTP, not Kafka: check host and port (a REST proxy, a schema registry or a metrics port?)
	// worth waiting: false
}

// Credentials come from a function, so that they can change without a restart.
func ExampleSASL() {
	vault := func(ctx context.Context) (sasl.Credentials, error) {
		return sasl.Credentials{Username: "alice", Password: sasl.NewSecret("wonder")}, nil
	}
	cfg := client.DefaultConfig()
	for _, opt := range []client.Option{client.Seeds("broker:9093"), client.TLS(nil), client.SASL(sasl.Plain(vault))} {
		opt(&cfg)
	}
	fmt.Println(cfg.Validate(), cfg.Security)
	for _, line := range strings.Split(cfg.String(), "\n") {
		if strings.HasPrefix(line, "sasl.") {
			fmt.Println(line)
		}
	}
	// Output:
	// <nil> SASL_SSL
	// sasl.mechanism=PLAIN
	// sasl.jaas.config=[redacted]
}

// A budget bounds memory; whoever waits is served in order, within his ctx.
func ExampleBudget() {
	b := client.NewBudget(100)
	fmt.Println(b.TryAcquire(80), b.TryAcquire(30))
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	fmt.Println(b.Acquire(ctx, 30))
	b.Release(80)
	fmt.Println(b.Acquire(context.Background(), 30))
	// Output:
	// true false
	// memory budget: 80 of 100 bytes are held, 30 more were wanted: context deadline exceeded
	// <nil>
}
