package fakebroker_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// exchange is one request and its answer over a connection of its own; tests of clients use those instead.
func exchangeOnce(k *fakebroker.Cluster, version int16, req message.Request) (message.Response, error) {
	conn, err := k.DialContext(context.Background(), "tcp", k.Addrs()[0])
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	client := "example"
	b := wire.AppendRequestHeader(make([]byte, 4), req.Key(), version, 1, &client)
	if b, err = req.AppendTo(b, version); err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	if _, err := conn.Write(b); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(conn, answer); err != nil {
		return nil, err
	}
	r := wire.NewReader(answer)
	if _, err := wire.ReadResponseHeader(r, req.Key(), version); err != nil {
		return nil, err
	}
	resp := req.NewResponse()
	return resp, resp.ReadFrom(r, version)
}

// groupOfOne starts a cluster with a group that has one member.
func groupOfOne() *fakebroker.Cluster {
	k, err := fakebroker.New(fakebroker.Topic("orders", 3))
	if err != nil {
		panic(err)
	}
	for _, req := range []message.Request{
		&message.FindCoordinatorRequest{CoordinatorKeys: []string{"billing"}},
		consumerJoin("billing", "member-1", "orders"),
	} {
		version := int16(1)
		if req.Key() == wire.KeyFindCoordinator {
			version = 4
		}
		if _, err := exchangeOnce(k, version, req); err != nil {
			panic(err)
		}
	}
	return k
}

// A test waits for its consumers to have their partitions instead of sleeping.
func ExampleCluster_AwaitGroup() {
	k := groupOfOne()
	defer k.Close(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	g, err := k.AwaitGroup(ctx, "billing", fakebroker.GroupIs("Stable"), fakebroker.GroupHas(1))
	fmt.Println(g.State, g.Members[0].ID, g.Members[0].Assigned, err)
	// Output: Stable member-1 [{orders 0} {orders 1} {orders 2}] <nil>
}

// The history says why a group has rebalanced.
func ExampleCluster_Group() {
	k := groupOfOne()
	defer k.Close(context.Background())
	ctx := context.Background()
	fmt.Println(k.ExpireSession(ctx, "billing", "member-1"))
	g, err := k.Group(ctx, "billing")
	for _, e := range g.History {
		fmt.Printf("%s %q\n", e.Cause, e.Member)
	}
	fmt.Println(g.State, err)
	// Output:
	// <nil>
	// member joined "member-1"
	// balanced ""
	// session timeout "member-1"
	// Empty <nil>
}

func ExampleCluster_Groups() {
	k := groupOfOne()
	defer k.Close(context.Background())
	fmt.Println(k.Groups(context.Background()))
	// Output: [billing] <nil>
}

func ExampleCluster_ForceRebalance() {
	k := groupOfOne()
	defer k.Close(context.Background())
	ctx := context.Background()
	fmt.Println(k.ForceRebalance(ctx, "billing"))
	g, err := k.AwaitGroup(ctx, "billing", fakebroker.GroupSaw(fakebroker.RebalanceForced))
	fmt.Println(g.Generation, err)
	fmt.Println(k.ForceRebalance(ctx, "nobody"))
	// Output:
	// <nil>
	// 3 <nil>
	// fakebroker: group nobody: GROUP_ID_NOT_FOUND (69): the group does not exist
}

func ExampleCluster_FenceMember() {
	k := groupOfOne()
	defer k.Close(context.Background())
	ctx := context.Background()
	fmt.Println(k.FenceMember(ctx, "billing", "member-1"))
	g, err := k.Group(ctx, "billing")
	fmt.Println(len(g.Members), err)
	// Output:
	// <nil>
	// 0 <nil>
}

func ExampleCluster_ExpireSession() {
	k := groupOfOne()
	defer k.Close(context.Background())
	fmt.Println(k.ExpireSession(context.Background(), "billing", "stranger"))
	// Output: fakebroker: group billing: UNKNOWN_MEMBER_ID (25): the coordinator does not know the member
}

// What is in __consumer_offsets comes back.
func ExampleCluster_ReloadCoordinator() {
	k := groupOfOne()
	defer k.Close(context.Background())
	ctx := context.Background()
	fmt.Println(k.ReloadCoordinator(ctx, "billing"))
	g, err := k.AwaitGroup(ctx, "billing", fakebroker.GroupHas(1))
	fmt.Println(g.Members[0].ID, err)
	// Output:
	// <nil>
	// member-1 <nil>
}

// Checks are functions of a group; tests may write their own beside them.
func ExampleGroupIs() {
	g := &fakebroker.Group{State: "Stable"}
	fmt.Println(fakebroker.GroupIs("Stable")(g), fakebroker.GroupIs("Empty")(g))
	// Output: true false
}

func ExampleGroupHas() {
	g := &fakebroker.Group{Members: make([]fakebroker.GroupMember, 2)}
	fmt.Println(fakebroker.GroupHas(2)(g))
	// Output: true
}

func ExampleGroupSaw() {
	g := &fakebroker.Group{History: []fakebroker.GroupEvent{{Cause: fakebroker.MemberJoined}}}
	fmt.Println(fakebroker.GroupSaw(fakebroker.MemberJoined)(g), fakebroker.GroupSaw(fakebroker.SessionTimeout)(g))
	// Output: true false
}

func ExampleGroupCommitted() {
	committed := fakebroker.GroupOffset{Offset: 100}
	committed.Topic, committed.Partition = "orders", 2
	g := &fakebroker.Group{Offsets: []fakebroker.GroupOffset{committed}}
	fmt.Println(fakebroker.GroupCommitted("orders", 2, 100)(g), fakebroker.GroupCommitted("orders", 2, 101)(g))
	// Output: true false
}
