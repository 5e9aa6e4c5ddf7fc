package wiretest_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// askFor sends one request of version 4 and gives the error code of the heartbeat's answer.
func askFor(nc net.Conn, group string) string {
	id := "example"
	frame := wire.AppendRequestHeader(make([]byte, 4), wire.KeyHeartbeat, 4, 1, &id)
	frame, _ = (&message.HeartbeatRequest{GroupId: group}).AppendTo(frame, 4)
	frame[3] = byte(len(frame) - 4)
	nc.Write(frame)
	answer, err := wiretest.ReadFrame(nc)
	if err != nil {
		return "no answer: " + err.Error()
	}
	r := wire.NewReader(answer)
	wire.ReadResponseHeader(r, wire.KeyHeartbeat, 4)
	var resp message.HeartbeatResponse
	if err := resp.ReadFrom(r, 4); err != nil {
		return err.Error()
	}
	return fmt.Sprint("error code ", resp.ErrorCode)
}

// A function stands for the broker.
func ExampleNew() {
	peer := wiretest.New(func(req message.Request, version int16) message.Response {
		if beat, ok := req.(*message.HeartbeatRequest); ok && beat.GroupId == "billing" {
			return &message.HeartbeatResponse{ErrorCode: 27} // REBALANCE_IN_PROGRESS
		}
		return nil // ApiVersions and Metadata are answered by the peer itself
	})
	defer peer.Close()
	nc, err := peer.DialContext(context.Background(), "tcp", peer.Addrs()[0])
	fmt.Println(askFor(nc, "billing"), err)
	fmt.Println(peer.Requests(wire.KeyHeartbeat)[0].ClientID)
	// Output:
	// error code 27 <nil>
	// example
}

// Brokers stop, move and start again; a script sees which of them was asked.
func ExampleNewCluster() {
	peer := wiretest.NewCluster(2, func(r *wiretest.Request) message.Response {
		if r.Broker == 2 {
			return wiretest.HangUp
		}
		return r.Body.NewResponse()
	})
	defer peer.Close()
	ctx := context.Background()
	for _, addr := range peer.Addrs() {
		nc, _ := peer.DialContext(ctx, "tcp", addr)
		fmt.Println(addr, askFor(nc, "g"))
	}
	peer.Stop(1)
	_, err := peer.DialContext(ctx, "tcp", "broker-1:9092")
	fmt.Println(err)
	peer.Start(1)
	peer.Move(1, "elsewhere:9092")
	_, err = peer.DialContext(ctx, "tcp", "elsewhere:9092")
	fmt.Println(err)
	// Output:
	// broker-1:9092 error code 0
	// broker-2:9092 no answer: EOF
	// dial tcp broker-1:9092: connection refused
	// <nil>
}

// Metadata tells of the topics and versions that a test sets.
func ExamplePeer_SetTopic() {
	peer := wiretest.NewCluster(2, nil)
	defer peer.Close()
	peer.SetTopic("orders", 3, 1, -1) // partition 0 is led by broker 1 in epoch 3, partition 1 by nobody
	peer.SetVersions(wire.KeyMetadata, 0, 7)
	req := message.NewMetadataRequest()
	req.Topics = nil // all
	for _, p := range peer.Metadata(req).Topics[0].Partitions {
		fmt.Println(p.PartitionIndex, p.LeaderId, p.LeaderEpoch, p.ErrorCode)
	}
	// Output:
	// 0 1 3 0
	// 1 -1 3 5
}

// What passed through a tap is answered again without the broker it came from.
func ExampleReplay() {
	original := wiretest.New(func(req message.Request, version int16) message.Response {
		return &message.HeartbeatResponse{ErrorCode: 25}
	})
	var tap wiretest.Tap
	nc, _ := tap.Through(original.DialContext)(context.Background(), "tcp", "broker-1:9092")
	askFor(nc, "billing")
	original.Close()

	again := wiretest.NewCluster(1, wiretest.Replay(tap.Frames()))
	defer again.Close()
	nc, _ = again.DialContext(context.Background(), "tcp", "broker-1:9092")
	fmt.Println(askFor(nc, "billing"))
	// Output: error code 25
}

// Bytes stands for a broker that is none, or is broken.
func ExampleBytes() {
	peer := wiretest.New(func(req message.Request, version int16) message.Response {
		return wiretest.Bytes([]byte("HTTP/1.1 400 Bad Request\r\n"))
	})
	defer peer.Close()
	nc, _ := peer.DialContext(context.Background(), "tcp", "broker-1:9092")
	fmt.Println(askFor(nc, "g"))
	// Output: no answer: unexpected EOF
}

// Frames are made without a connection too: for golden files, or for a server of one's own.
func ExampleAppendResponse() {
	frame, err := wiretest.AppendResponse(nil, &wiretest.Request{Key: wire.KeyHeartbeat, Version: 4, CorrelationID: 7}, &message.HeartbeatResponse{ErrorCode: 22})
	fmt.Println(hex.EncodeToString(frame), err)
	// Output: 0000000c000000070000000000001600 <nil>
}
