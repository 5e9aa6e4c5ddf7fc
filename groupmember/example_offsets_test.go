package groupmember_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/groupmember"
)

// begin starts a broker and a client for an example; end ends both.
func begin(topic string, partitions int) (cl *client.Client, ctx context.Context, end func()) {
	k, err := fakebroker.New(fakebroker.Topic(topic, partitions), fakebroker.Config("group.initial.rebalance.delay.ms", "0"))
	if err != nil {
		log.Fatal(err)
	}
	if cl, err = client.New(client.Cluster(k)); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	return cl, ctx, func() { cl.Close(ctx); k.Close(ctx); cancel() }
}

// An offset is the next record to process. Only who holds a partition can commit for it.
func ExampleMember_Commit() {
	cl, ctx, end := begin("orders", 1)
	defer end()
	m, err := groupmember.Join(ctx, cl, groupmember.Group("billing"), groupmember.Topics("orders"))
	if err != nil {
		log.Fatal(err)
	}
	tp := groupmember.TopicPartition{Topic: "orders", Partition: 0}
	err = m.Commit(ctx, map[groupmember.TopicPartition]groupmember.Offset{
		tp: {At: 17, Metadata: "invoice 9"},
	})
	fmt.Println(err)
	other := groupmember.TopicPartition{Topic: "orders", Partition: 5}
	err = m.Commit(ctx, map[groupmember.TopicPartition]groupmember.Offset{other: groupmember.OffsetAt(1)})
	fmt.Println(errors.Is(err, groupmember.ErrNotOwned), err)
	fmt.Println(m.Close(ctx))
	// Output:
	// <nil>
	// true OffsetCommit orders-5: partition is not held by this member
	// <nil>
}

// Commits that wait behind each other are sent together, the newest offset of each partition.
func ExampleMember_CommitAsync() {
	cl, ctx, end := begin("orders", 1)
	defer end()
	m, err := groupmember.Join(ctx, cl, groupmember.Group("billing"), groupmember.Topics("orders"))
	if err != nil {
		log.Fatal(err)
	}
	tp := m.Assignment()[0]
	for n := range int64(100) {
		m.CommitAsync(map[groupmember.TopicPartition]groupmember.Offset{tp: groupmember.OffsetAt(n).WithEpoch(0)}, func(err error) {
			if err != nil {
				log.Print(err)
			}
		})
	}
	if err := m.Commit(ctx, map[groupmember.TopicPartition]groupmember.Offset{tp: groupmember.OffsetAt(100)}); err != nil {
		log.Fatal(err)
	}
	got, err := m.Committed(ctx, tp)
	fmt.Println(got[tp].At, err)
	m.Close(ctx)
	// Output: 100 <nil>
}

// A claim is a context for as long as a partition is held; its cause says how it ended.
func ExampleMember_Claim() {
	cl, ctx, end := begin("orders", 1)
	defer end()
	m, err := groupmember.Join(ctx, cl, groupmember.Group("billing"), groupmember.Topics("orders"))
	if err != nil {
		log.Fatal(err)
	}
	claim := m.Claim(groupmember.TopicPartition{Topic: "orders", Partition: 0})
	fmt.Println(context.Cause(claim))
	m.Stall() // nothing was processed for too long
	fmt.Println(context.Cause(claim))
	fmt.Println(m.State(), errors.Is(context.Cause(claim), groupmember.ErrLost))
	m.Resume()
	m.Close(ctx)
	// Output:
	// <nil>
	// partition lost: left the group because nothing was processed within max.poll.interval.ms
	// Stalled true
}

// Start does not wait and does no I/O; Await waits.
func ExampleStart() {
	cl, ctx, end := begin("orders", 4)
	defer end()
	m, err := groupmember.Start(cl, groupmember.Group("billing"), groupmember.Pattern("ord.*"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Await(ctx))
	fmt.Println(m.Generation().Protocol, m.Generation().MemberID != "")
	fmt.Println(m.Leave(ctx), context.Cause(m.Context()))
	// Output:
	// <nil>
	// consumer true
	// <nil> group member is closed
}
