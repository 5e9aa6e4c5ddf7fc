package groupmember_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/groupmember"
)

// One function runs for each partition that this process holds, and stops when another one gets it.
func ExampleMember_Generations() {
	k, err := fakebroker.New(fakebroker.Topic("orders", 2), fakebroker.Config("group.initial.rebalance.delay.ms", "0"))
	if err != nil {
		log.Fatal(err)
	}
	cl, err := client.New(client.Cluster(k))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer k.Close(ctx)
	defer cl.Close(ctx)

	m, err := groupmember.Join(ctx, cl, groupmember.Group("billing"), groupmember.Topics("orders"))
	if err != nil {
		log.Fatal(err)
	}
	var working sync.WaitGroup
	for g, err := range m.Generations(ctx) {
		if err != nil {
			fmt.Println("ended:", err)
			break
		}
		fmt.Println("got", g.Added)
		working.Add(len(g.Added))
		g.Go(func(ctx context.Context, tp groupmember.TopicPartition) {
			defer working.Done()
			// ... read and process from the committed offset on, until ctx ends; then commit what is done.
			done := map[groupmember.TopicPartition]groupmember.Offset{tp: groupmember.OffsetAt(42)}
			if err := m.Commit(context.WithoutCancel(ctx), done); err != nil {
				log.Print(err)
			}
		})
		working.Wait()
		offsets, err := m.Committed(ctx, g.Added...)
		fmt.Println(offsets[g.Added[0]].At, offsets[g.Added[1]].At, err)
		go m.Close(ctx)
	}
	// Output:
	// got [orders-0 orders-1]
	// 42 42 <nil>
	// ended: group member is closed
}

// owner prints what a member gets and gives.
type owner struct{ name string }

func (o owner) Assigned(a groupmember.Assignment) { fmt.Println(o.name, "assigned", a.Added) }

func (o owner) Revoked(parts []groupmember.TopicPartition, done func()) {
	fmt.Println(o.name, "revoked", parts) // stop, drain, commit, and then:
	done()
}

func (o owner) Lost(parts []groupmember.TopicPartition, cause error) {
	fmt.Println(o.name, "lost", parts, errors.Is(cause, groupmember.ErrLost))
}

// A Listener is told of everything in order, from a goroutine that may block.
func ExampleJoin() {
	k, err := fakebroker.New(fakebroker.Topic("orders", 3), fakebroker.Config("group.initial.rebalance.delay.ms", "0"))
	if err != nil {
		log.Fatal(err)
	}
	cl, err := client.New(client.Cluster(k))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer k.Close(ctx)
	defer cl.Close(ctx)

	m, err := groupmember.Join(ctx, cl, groupmember.Group("billing"), groupmember.Topics("orders"),
		groupmember.WithProtocol(groupmember.Classic), groupmember.Assignors(groupmember.CooperativeSticky()),
		groupmember.WithListener(owner{"first"}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.State(), "in generation", m.Generation().ID)
	if err := m.Close(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.State())
	// Output:
	// first assigned [orders-0 orders-1 orders-2]
	// Stable in generation 1
	// first revoked [orders-0 orders-1 orders-2]
	// Ended
}
