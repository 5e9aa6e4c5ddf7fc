package fakebroker_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// started is a cluster for an example; in a test fakebroker.Start(t, opts...) does all of this.
func started(opts ...fakebroker.Option) (ctx context.Context, k *fakebroker.Cluster, end func()) {
	ctx = context.Background()
	k, err := fakebroker.New(opts...)
	if err != nil {
		panic(err)
	}
	return ctx, k, func() { k.Close(ctx) }
}

// Data in a folder is there again for the next cluster, ours or Apache Kafka.
func ExampleDir() {
	dir, err := os.MkdirTemp("", "ottla")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx, k, _ := started(fakebroker.Dir(dir), fakebroker.Topic("orders", 2))
	send(k, "orders", 1, "one", "two")
	fmt.Println(k.Close(ctx))

	_, k, end := started(fakebroker.Dir(dir))
	defer end()
	o, err := k.Offsets("orders", 1)
	fmt.Println(o.HighWatermark, err)
	// Output:
	// <nil>
	// 2 <nil>
}

// Broker configs have Kafka's names and effects.
func ExampleConfig() {
	_, k, end := started(fakebroker.Config("message.max.bytes", "1000"), fakebroker.Topic("orders", 1))
	defer end()
	fmt.Println(send(k, "orders", 0, strings.Repeat("x", 2000)))
	// Output: MESSAGE_TOO_LARGE (10): the batch is larger than max.message.bytes of the topic
}

// A topic may bring configs along.
func ExampleTopicWith() {
	_, k, end := started(fakebroker.TopicWith(fakebroker.TopicSpec{
		Name: "small", Partitions: 1, Configs: map[string]string{"max.message.bytes": "500"},
	}))
	defer end()
	err := send(k, "small", 0, strings.Repeat("x", 600))
	fmt.Println(err == errcode.MessageTooLarge)
	// Output: true
}

// Users make every listener ask for SASL/PLAIN, TLS makes it speak TLS; both together are SASL_SSL.
func ExampleUser() {
	certificate := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, os.ErrNotExist }}
	_, k, end := started(fakebroker.User("alice", "wonder"), fakebroker.TLS(certificate),
		fakebroker.AddListener(fakebroker.Listener{}),
		fakebroker.AddListener(fakebroker.Listener{Name: "TESTS", Plain: true})) // neither, for the test itself
	defer end()
	fmt.Println(k.ListenerAddr("SASL_SSL"), k.ListenerAddr("TESTS"))
	// Output: ottla-1:9092 ottla-1:9093
}

// A second listener is found by its name; clients that come through it are told its address again.
func ExampleAddListener() {
	_, k, end := started(
		fakebroker.AddListener(fakebroker.Listener{}), // in memory
		fakebroker.AddListener(fakebroker.Listener{Name: "OUTSIDE", Addr: "127.0.0.1:0", Advertised: "kafka.test:9092"}))
	defer end()
	fmt.Println(k.Addrs(), k.ListenerAddr("OUTSIDE"))
	// Output: [ottla-1:9092] kafka.test:9092
}

// Node and cluster ids can be fixed, for tests that print them.
func ExampleNodeID() {
	_, k, end := started(fakebroker.NodeID(7), fakebroker.ClusterID("MkU3OEVBNTcwNTJENDM2Qg"))
	defer end()
	fmt.Println(k.Addrs())
	// Output: [ottla-7:9092]
}

// The broker's log goes where the test wants it.
func ExampleLogger() {
	warnings := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelWarn}))
	_, _, end := started(fakebroker.Logger(warnings), fakebroker.Topic("orders", 1))
	end()
	fmt.Println("nothing to warn of")
	// Output: nothing to warn of
}

// Settings are what options change; they print without secrets.
func ExampleNewSettings() {
	fmt.Println(fakebroker.NewSettings(fakebroker.User("alice", "wonder"), fakebroker.Topic("orders", 6), fakebroker.Config("num.partitions", "3")))
	// Output: fakebroker: data in memory, 0 listeners, TLS false, 1 users, 1 topics, properties map[num.partitions:3]
}
