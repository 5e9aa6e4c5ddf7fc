package groupmember_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// disturb does one bad or new thing to a fleet.
func (f *fleet) disturb(r *rand.Rand, way []groupmember.Option) {
	keys := []wire.Key{wire.KeyJoinGroup, wire.KeySyncGroup, wire.KeyHeartbeat, wire.KeyConsumerGroupHeartbeat, wire.KeyFindCoordinator, wire.KeyMetadata}
	key := keys[r.IntN(len(keys))]
	i := r.IntN(len(f.members))
	switch r.IntN(10) {
	case 0, 1:
		if len(f.members) < 8 {
			f.start(way...)
		}
	case 2:
		ctx, cancel := context.WithTimeout(f.Context(), 10*time.Second)
		f.members[i].Close(ctx)
		cancel()
	case 3:
		f.clients[i].Close(f.Context()) // a crash: nothing is said
	case 4:
		f.k.Inject(fault.On(key).DropConnection().Times(1 + r.IntN(5)))
	case 5:
		f.k.Inject(fault.On(key).LoseResponse().Times(1 + r.IntN(3)))
	case 6:
		f.k.Inject(fault.On(key).Delay(time.Duration(r.IntN(20)) * time.Second).Times(1 + r.IntN(3)))
	case 7:
		f.k.Disconnect()
	case 8:
		ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
		defer cancel()
		if r.IntN(2) == 0 {
			require.NoError(f, f.k.Crash(ctx))
			time.Sleep(time.Duration(r.IntN(30)) * time.Second)
		}
		require.NoError(f, f.k.Restart(ctx))
	case 9:
		f.grow(f.clients[0])
	}
}

// grow adds a partition, if the client still lives.
func (f *fleet) grow(cl *client.Client) {
	f.partitions++
	req := message.NewCreatePartitionsRequest()
	req.Topics, req.TimeoutMs = []message.CreatePartitionsTopic{{Name: "orders", Count: int32(f.partitions)}}, 10_000
	ctx, cancel := context.WithTimeout(f.Context(), 20*time.Second)
	defer cancel()
	if _, err := cl.Request(ctx, client.Controller(), req); err != nil {
		f.partitions-- // the answer may be lost: what counts is asked for at the end
	}
}

// TestChurn lets fleets go through everything at once; afterwards every partition has one owner again.
func TestChurn(t *testing.T) {
	seeds := uint64(18)
	if testing.Short() {
		seeds = 3
	}
	names := []string{"eager", "cooperative", "consumer"}
	for seed := range seeds {
		name := names[seed%3]
		t.Run(fmt.Sprintf("seed=%d-%s", seed, name), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, err := fakebroker.New(fakebroker.Topic("orders", 6))
				require.NoError(t, err)
				f := &fleet{T: t, k: k, partitions: 6}
				defer f.close()
				r := rand.New(rand.NewPCG(seed, 1))
				way := append(ways[name], groupmember.SessionTimeout(10*time.Second), groupmember.RebalanceTimeout(20*time.Second), groupmember.HeartbeatInterval(time.Second))
				f.start(way...)
				f.start(way...)
				for range 25 {
					time.Sleep(time.Duration(r.IntN(8000)) * time.Millisecond)
					f.disturb(r, way)
				}
				// The coordinator of KIP-848 has a session of its own, 45 s; new partitions are seen within
				// metadata.max.age.ms.
				time.Sleep(6*time.Minute + 2*(45+20)*time.Second)
				admin, err := client.New(client.Cluster(k))
				require.NoError(t, err)
				defer admin.Close(t.Context())
				top, err := admin.AwaitTopics(t.Context(), "orders")
				require.NoError(t, err)
				want, live := len(top.Topic("orders").Partitions), 0
				for _, m := range f.members {
					if m.State() == groupmember.Stable {
						live++
					} else {
						require.Equal(t, groupmember.Ended, m.State())
					}
				}
				if live == 0 {
					return
				}
				sum := 0
				for _, n := range f.shares() {
					sum += n
				}
				require.Equal(t, want, sum, "%d members, %v", live, f.shares())
				rebalances := int64(0)
				for _, cl := range f.clients {
					rebalances += cl.Metrics().Rebalances
				}
				t.Logf("%d partitions, shares %v, %d rebalances", want, f.shares(), rebalances)
			})
		})
	}
}
