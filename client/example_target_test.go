package client_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// coordinatedBy2 says that broker 2 coordinates every group but "closed".
func coordinatedBy2(r *wiretest.Request) message.Response {
	switch req := r.Body.(type) {
	case *message.FindCoordinatorRequest:
		resp := new(message.FindCoordinatorResponse)
		for _, key := range req.CoordinatorKeys {
			c := message.Coordinator{Key: key, NodeId: 2, Host: "broker-2", Port: 9092}
			if key == "closed" {
				c = message.Coordinator{Key: key, NodeId: -1, ErrorCode: int16(errcode.GroupAuthorizationFailed)}
			}
			resp.Coordinators = append(resp.Coordinators, c)
		}
		return resp
	case *message.DescribeGroupsRequest, *message.DescribeClusterRequest, *message.ListOffsetsRequest:
		return r.Body.NewResponse()
	}
	return nil
}

// A target says which broker a request is for; the client finds it, and finds it again when it moved.
func ExampleTarget() {
	ctx, peer, c, end := connected(3, coordinatedBy2)
	defer end()
	peer.SetTopic("orders", 0, 3)
	for _, to := range []client.Target{
		client.Broker(1),
		client.Coordinator(client.GroupCoordinator, "billing").Within(time.Minute), // may be held back that long
		client.LeaderOf("orders", 0).Via(client.Metadata),                          // over another connection
	} {
		req := message.Request(message.NewDescribeClusterRequest())
		c.Request(ctx, to, req)
		asked := peer.Requests(req.Key())
		fmt.Printf("%v: broker %d\n", to, asked[len(asked)-1].Broker)
	}
	// Output:
	// broker 1: broker 1
	// the group coordinator of "billing": broker 2
	// the leader of orders-0: broker 3
}

// Many coordinators are found with one request where the broker allows it.
func ExampleClient_Coordinators() {
	ctx, peer, c, end := connected(2, coordinatedBy2)
	defer end()
	nodes, errs, err := c.Coordinators(ctx, client.GroupCoordinator, "billing", "audit", "closed")
	fmt.Println(nodes["billing"].Addr(), nodes["audit"].Addr(), err)
	fmt.Println(errors.Is(errs["closed"], errcode.GroupAuthorizationFailed))
	fmt.Println(len(peer.Requests(wire.KeyFindCoordinator)))
	c.ForgetCoordinator(client.GroupCoordinator, "audit") // after an answer that says it moved
	// Output:
	// broker-2:9092 broker-2:9092 <nil>
	// true
	// 1
}

// Retriable tells whether waiting may help.
func ExampleRetriable() {
	for _, err := range []error{errcode.NotLeaderOrFollower, syscall.ECONNREFUSED, errcode.TopicAuthorizationFailed, client.ErrAuth, context.Canceled} {
		fmt.Println(client.Retriable(err), err)
	}
	// Output:
	// true NOT_LEADER_OR_FOLLOWER (6): the broker is not the leader, or not a follower, of the partition
	// true connection refused
	// false TOPIC_AUTHORIZATION_FAILED (29): the principal may not do this with the topic
	// false login refused
	// false context canceled
}

// A request that the broker is too old for names both sides' versions.
func ExampleVersionError() {
	ctx, peer, c, end := connected(1, answerCluster)
	defer end()
	peer.SetVersions(wire.KeyDescribeCluster, 0, 0)
	_, err := c.Request(ctx, client.AnyBroker().Versions(1, 2), message.NewDescribeClusterRequest())
	var v *client.VersionError
	fmt.Println(errors.As(err, &v), errors.Is(err, client.ErrUnsupportedVersion))
	fmt.Println(v)
	// Output:
	// true true
	// DescribeCluster is needed in version 1 to 2, the broker speaks 0 to 0
}

// A body with large parts is written from where they are: AppendVec instead of Append.
func ExampleVec() {
	var v client.Vec
	v.B = wire.AppendInt32(v.B, 7)
	v.Ref(make([]byte, 100_000)) // stays where it is; belongs to the call until Done has run
	v.B = wire.AppendInt32(v.B, 8)
	fmt.Println(v.Len(), len(v.B))
	// Output: 100008 8
}
