package groupmember_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/groupmember/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// fleet is members of one group on a broker in memory, in virtual time.
type fleet struct {
	*testing.T
	k          *fakebroker.Cluster
	members    []*groupmember.Member
	diaries    []*diary
	clients    []*client.Client
	partitions int
}

func (f *fleet) join(opts ...groupmember.Option) *groupmember.Member {
	m := f.start(opts...)
	require.NoError(f, m.Await(f.Context()))
	return m
}

func (f *fleet) start(opts ...groupmember.Option) *groupmember.Member {
	cl, err := client.New(client.Cluster(f.k), client.Jitter(uint64(len(f.clients)+1)), client.AutoCreateTopics(false))
	require.NoError(f, err)
	d := &diary{}
	opts = append([]groupmember.Option{groupmember.Group("g"), groupmember.Topics("orders"), groupmember.WithListener(d)}, opts...)
	m, err := groupmember.Start(cl, opts...)
	require.NoError(f, err)
	f.members, f.diaries, f.clients = append(f.members, m), append(f.diaries, d), append(f.clients, cl)
	return m
}

// shares are the numbers of partitions that the members have; it fails when one has two owners.
func (f *fleet) shares() (out []int) {
	var all []groupmember.TopicPartition
	for _, m := range f.members {
		out = append(out, len(m.Assignment()))
		all = append(all, m.Assignment()...)
	}
	n := len(all)
	slices.SortFunc(all, machine.ComparePartitions)
	require.Len(f, slices.Compact(all), n, "a partition has two owners")
	return out
}

func (f *fleet) close() {
	ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
	defer cancel()
	for i, m := range f.members {
		require.NoError(f, m.Close(ctx))
		require.NoError(f, f.clients[i].Close(ctx))
	}
	require.NoError(f, f.k.Close(ctx))
}

// ways are the protocols and assignors that every test of a fleet runs with.
var ways = map[string][]groupmember.Option{
	"eager":       {groupmember.Assignors(groupmember.Range())},
	"cooperative": {groupmember.Assignors(groupmember.CooperativeSticky())},
	"consumer":    {groupmember.WithProtocol(groupmember.Consumer)},
}

func withFleet(t *testing.T, test func(f *fleet, way []groupmember.Option, eager bool)) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, err := fakebroker.New(fakebroker.Topic("orders", 6))
				require.NoError(t, err)
				f := &fleet{T: t, k: k}
				defer f.close()
				test(f, way, name == "eager")
			})
		})
	}
}

func TestFleetSharesPartitions(t *testing.T) {
	withFleet(t, func(f *fleet, way []groupmember.Option, eager bool) {
		for range 3 {
			f.join(way...)
		}
		time.Sleep(20 * time.Second)
		require.Equal(f, []int{2, 2, 2}, f.shares())
		for _, d := range f.diaries {
			d.take()
		}
		require.NoError(f, f.members[1].Close(f.Context()))
		time.Sleep(20 * time.Second)
		require.ElementsMatch(f, []int{3, 0, 3}, f.shares())
		if !eager {
			for _, i := range []int{0, 2} {
				for _, line := range f.diaries[i].take() {
					require.Contains(f, line, "assigned", "nobody gives up anything for what another one leaves behind")
				}
			}
		}
		for _, m := range []*groupmember.Member{f.members[0], f.members[2]} {
			offsets := map[groupmember.TopicPartition]groupmember.Offset{}
			for i, tp := range m.Assignment() {
				offsets[tp] = groupmember.Offset{At: int64(i) + 7, Metadata: "m"}.WithEpoch(0)
			}
			require.NoError(f, m.Commit(f.Context(), offsets))
			got, err := f.members[0].Committed(f.Context(), m.Assignment()...)
			require.NoError(f, err)
			require.Equal(f, offsets, got, "with epoch and text")
		}
	})
}

func TestCrashedMemberIsReplacedAfterItsSession(t *testing.T) {
	withFleet(t, func(f *fleet, way []groupmember.Option, _ bool) {
		f.join(way...)
		f.join(way...)
		time.Sleep(20 * time.Second)
		require.Equal(f, []int{3, 3}, f.shares())
		require.NoError(f, f.clients[1].Close(f.Context())) // no good-bye: the network is gone
		time.Sleep(time.Minute + 10*time.Second)
		require.Equal(f, groupmember.Ended, f.members[1].State())
		require.Equal(f, []int{6, 0}, f.shares())
	})
}

func TestStaticMemberComesBackWithoutARebalance(t *testing.T) {
	withFleet(t, func(f *fleet, way []groupmember.Option, _ bool) {
		f.join(append(way, groupmember.InstanceID("one"))...)
		b := f.join(append(way, groupmember.InstanceID("two"))...)
		time.Sleep(20 * time.Second)
		had := b.Assignment()
		require.Len(f, had, 3)
		f.diaries[0].take()
		require.NoError(f, b.Close(f.Context()))
		time.Sleep(5 * time.Second)
		again := f.join(append(way, groupmember.InstanceID("two"))...)
		time.Sleep(20 * time.Second)
		require.Equal(f, had, again.Assignment())
		require.Empty(f, f.diaries[0].take(), "the other member noticed nothing")
	})
}

func TestNewPartitionsAreShared(t *testing.T) {
	withFleet(t, func(f *fleet, way []groupmember.Option, _ bool) {
		m := f.join(append(way, groupmember.Topics("later"))...)
		require.Len(f, m.Assignment(), 6)
		createTopic(f, f.clients[0], "later", 2)
		time.Sleep(6 * time.Minute) // metadata.max.age.ms
		require.Len(f, m.Assignment(), 8, fmt.Sprint(m.Assignment()))
	})
}

func TestPatternIsMatchedByMemberOrCoordinator(t *testing.T) {
	withFleet(t, func(f *fleet, way []groupmember.Option, _ bool) {
		m := f.join(append(way, func(c *groupmember.Config) { c.Topics, c.Pattern = nil, "ord.*|log-[0-9]" })...)
		time.Sleep(10 * time.Second)
		require.Len(f, m.Assignment(), 6)
		createTopic(f, f.clients[0], "log-1", 2)
		createTopic(f, f.clients[0], "a-log-1", 2)
		time.Sleep(11 * time.Minute) // the coordinator looks every ten minutes (group.consumer.regex.batch.refresh.max.interval.ms and metadata)
		require.Len(f, m.Assignment(), 8, fmt.Sprint(m.Assignment()))
		require.NoError(f, m.SubscribePattern("log-.*"))
		time.Sleep(30 * time.Second)
		require.Len(f, m.Assignment(), 2, fmt.Sprint(m.Assignment()))
		require.NoError(f, m.Subscribe("a-log-1", "orders"))
		time.Sleep(30 * time.Second)
		require.Len(f, m.Assignment(), 8, fmt.Sprint(m.Assignment()))
	})
}

func TestUpgradeOfAGroupWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, err := fakebroker.New(fakebroker.Topic("orders", 6))
		require.NoError(t, err)
		f := &fleet{T: t, k: k}
		defer f.close()
		f.join(groupmember.Assignors(groupmember.CooperativeSticky()))
		f.join(groupmember.WithProtocol(groupmember.Auto))
		require.Equal(t, groupmember.Consumer, f.members[1].Generation().Protocol)
		time.Sleep(30 * time.Second)
		require.Equal(t, []int{3, 3}, f.shares())
		require.NoError(t, f.members[1].Close(t.Context()))
		time.Sleep(20 * time.Second)
		require.Equal(t, []int{6, 0}, f.shares())
	})
}

func createTopic(f *fleet, cl *client.Client, name string, partitions int32) {
	req := message.NewCreateTopicsRequest()
	req.Topics, req.TimeoutMs = []message.CreatableTopic{{Name: name, NumPartitions: partitions, ReplicationFactor: 1}}, 10_000
	_, err := cl.Request(f.Context(), client.Controller(), req)
	require.NoError(f, err)
}

func TestOffsetOfADeletedTopicIsNotCommittedForItsSuccessor(t *testing.T) {
	withFleet(t, func(f *fleet, way []groupmember.Option, _ bool) {
		m, cl := f.join(way...), f.clients[0]
		time.Sleep(10 * time.Second)
		old := cl.Topology().Topic("orders").ID
		offset := func(n int64, id wire.UUID) map[groupmember.TopicPartition]groupmember.Offset {
			return map[groupmember.TopicPartition]groupmember.Offset{tp("orders", 0): groupmember.OffsetAt(n).WithTopicID(id)}
		}
		require.NoError(f, m.Commit(f.Context(), offset(50, old)))
		del := message.NewDeleteTopicsRequest()
		name := "orders"
		del.Topics, del.TopicNames, del.TimeoutMs = []message.DeleteTopicState{{Name: &name}}, nil, 10_000
		_, err := cl.Request(f.Context(), client.Controller().Versions(6, 0), del)
		require.NoError(f, err)
		createTopic(f, cl, "orders", 6)
		require.Error(f, m.Commit(f.Context(), offset(60, old)), "at once")
		time.Sleep(6 * time.Minute)
		require.NotEqual(f, old, cl.Topology().Topic("orders").ID)
		require.ErrorIs(f, m.Commit(f.Context(), offset(60, old)), errcode.UnknownTopicId, "and when the member knows")
		got, err := m.Committed(f.Context(), tp("orders", 0))
		require.NoError(f, err)
		require.Empty(f, got)
		require.NoError(f, m.Commit(f.Context(), offset(1, wire.UUID{})))
	})
}
