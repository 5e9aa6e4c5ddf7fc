package groupmember_test

import (
	"context"
	"testing"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/wire"
)

// BenchmarkIdleHeartbeats is the CPU time of one heartbeat of an idle member, with client, broker and the memory
// transport between them: members beat as fast as they can be made to.
func BenchmarkIdleHeartbeats(b *testing.B) {
	k, err := fakebroker.New(fakebroker.Topic("orders", 8), fakebroker.Config("group.initial.rebalance.delay.ms", "0"))
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	defer k.Close(ctx)
	cl, err := client.New(client.Cluster(k))
	if err != nil {
		b.Fatal(err)
	}
	defer cl.Close(ctx)
	m, err := groupmember.Join(ctx, cl, groupmember.Group("g"), groupmember.Topics("orders"), groupmember.WithProtocol(groupmember.Classic),
		groupmember.HeartbeatInterval(time.Microsecond))
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close(ctx)
	b.ReportAllocs()
	first := k.Requests(wire.KeyHeartbeat)
	b.ResetTimer()
	if err := k.AwaitRequests(ctx, wire.KeyHeartbeat, first+int64(b.N)); err != nil {
		b.Fatal(err)
	}
}
