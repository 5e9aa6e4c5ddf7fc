package fakebroker_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// send produces values with one bare request of version 12; a program uses package producer.
func send(k *fakebroker.Cluster, topic string, partition int32, values ...string) error {
	b := record.NewBuilder(nil)
	for _, v := range values {
		b.Append(time.Now().UnixMilli(), []byte("k"), []byte(v), nil)
	}
	nc, err := k.DialContext(context.Background(), "tcp", k.Addrs()[0])
	if err != nil {
		return err
	}
	defer nc.Close()
	id := "example"
	frame := wire.AppendRequestHeader(make([]byte, 4), wire.KeyProduce, 12, 1, &id)
	frame, err = produceRequest(topic, partition, -1, b.Seal(record.NoProducer())).AppendTo(frame, 12)
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	if _, err := nc.Write(frame); err != nil {
		return err
	}
	var size [4]byte
	if _, err := io.ReadFull(nc, size[:]); err != nil {
		return err
	}
	answer := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(nc, answer); err != nil {
		return err
	}
	r := wire.NewReader(answer)
	if _, err := wire.ReadResponseHeader(r, wire.KeyProduce, 12); err != nil {
		return err
	}
	var resp message.ProduceResponse
	if err := resp.ReadFrom(r, 12); err != nil {
		return err
	}
	return errcode.Code(resp.Responses[0].PartitionResponses[0].ErrorCode).Err()
}

// What is in the logs can be read without a consumer.
func ExampleCluster_Records() {
	_, k, end := started(fakebroker.Topic("orders", 1))
	defer end()
	send(k, "orders", 0, "one", "two", "three")
	records, err := k.Records("orders", 0, 1) // from offset 1
	for _, r := range records {
		fmt.Println(r.Offset, string(r.Key), string(r.Value))
	}
	fmt.Println(err)
	// Output:
	// 1 k two
	// 2 k three
	// <nil>
}

// Offsets says where a partition stands.
func ExampleCluster_Offsets() {
	_, k, end := started(fakebroker.Topic("orders", 1))
	defer end()
	send(k, "orders", 0, "one", "two")
	o, err := k.Offsets("orders", 0)
	fmt.Printf("%+v %v\n", o, err)
	_, err = k.Offsets("orders", 7)
	fmt.Println(err)
	// Output:
	// {LogStart:0 LastStable:2 HighWatermark:2 LogEnd:2} <nil>
	// fakebroker: there is no partition orders-7
}

// Metrics says which APIs were asked, and where the time of their requests went.
func ExampleCluster_Metrics() {
	ctx, k, end := started(fakebroker.Topic("orders", 1))
	defer end()
	send(k, "orders", 0, "one")
	send(k, "orders", 0, "two")
	k.AwaitRequests(ctx, wire.KeyProduce, 2) // an answer is counted when it has been written
	for _, m := range k.Metrics() {
		fmt.Println(m.Key, m.Requests, m.RequestBytes > 100, m.Local > 0, m.Throttle)
	}
	// Output: Produce 2 true true 0s
}

// A topic that a program under test makes is waited for, not slept for.
func ExampleCluster_AwaitTopic() {
	ctx, k, end := started()
	defer end()
	go k.CreateTopic(ctx, fakebroker.TopicSpec{Name: "orders", Partitions: 3})
	fmt.Println(k.AwaitTopic(ctx, "orders"))
	// Output: <nil>
}

// So are requests: here until the program has sent twice.
func ExampleCluster_AwaitRequests() {
	ctx, k, end := started(fakebroker.Topic("orders", 1))
	defer end()
	go func() {
		send(k, "orders", 0, "one")
		send(k, "orders", 0, "two")
	}()
	fmt.Println(k.AwaitRequests(ctx, wire.KeyProduce, 2), k.Requests(wire.KeyProduce))
	// Output: <nil> 2
}

// A stopped broker refuses connections; its data is there when it is started again.
func ExampleCluster_Stop() {
	ctx, k, end := started(fakebroker.Topic("orders", 1))
	defer end()
	send(k, "orders", 0, "one")
	fmt.Println(k.Stop(ctx))
	fmt.Println(errors.Is(k.AwaitTopic(ctx, "orders"), fakebroker.ErrStopped), send(k, "orders", 0, "two") != nil)
	k.Restart(ctx)
	o, err := k.Offsets("orders", 0)
	fmt.Println(o.HighWatermark, err)
	// Output:
	// <nil>
	// true true
	// 1 <nil>
}

// Killed in the middle of its work, a broker recovers what it had written.
func ExampleCluster_Crash() {
	ctx, k, end := started(fakebroker.Topic("orders", 1))
	defer end()
	send(k, "orders", 0, "one", "two") // acknowledged
	fmt.Println(k.Crash(ctx), k.Restart(ctx))
	o, err := k.Offsets("orders", 0)
	fmt.Println(o.HighWatermark, err)
	// Output:
	// <nil> <nil>
	// 2 <nil>
}

// Disconnect is a network that failed for a moment: clients have to connect again, and can.
func ExampleCluster_Disconnect() {
	_, k, end := started(fakebroker.Topic("orders", 1))
	defer end()
	fmt.Println(send(k, "orders", 0, "one"))
	k.Disconnect()
	fmt.Println(send(k, "orders", 0, "two"))
	// Output:
	// <nil>
	// <nil>
}

// Any client that lets its user give a dial function talks to the cluster without a port.
func ExampleCluster_DialContext() {
	ctx, k, end := started(fakebroker.Topic("orders", 1))
	defer end()
	lost := k.Inject(fault.Produce().LoseResponse().Times(1))
	fmt.Println(send(k, "orders", 0, "one"), lost.Hits())

	elsewhere, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer elsewhere.Close()
	conn, err := k.DialContext(ctx, "tcp", elsewhere.Addr().String())
	fmt.Println(conn != nil, err) // what is no address of the cluster is dialled as it is
	// Output:
	// EOF 1
	// true <nil>
}
