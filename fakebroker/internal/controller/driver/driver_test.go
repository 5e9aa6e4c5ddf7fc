package driver

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// uuids returns a source of distinct ids that is the same in every run.
func uuids() func() wire.UUID {
	n := uint64(0)
	return func() (u wire.UUID) {
		n++
		binary.BigEndian.PutUint64(u[:], 0xa0a0_0000_0000_4000)
		binary.BigEndian.PutUint64(u[8:], 0x8000_0000_0000_0000+n)
		return u
	}
}

var ids = uuids()

func options(t testing.TB, fsys vfs.FS, properties map[string]string) Options {
	layers, err := config.NewLayers(properties)
	require.NoError(t, err)
	return Options{FS: fsys, Dir: "/data", NodeID: 1, ClusterID: "AAECAwQFBgcICQoLDA0ODw", DirectoryID: wire.UUID{1, 2, 3},
		Config: layers, NewUUID: ids}
}

// node is a driver with the images that it published.
type node struct {
	*Driver
	t      testing.TB
	newest atomic.Pointer[image.Image] // published last
	epoch  int64
}

func (n *node) img() *image.Image { return n.newest.Load() }

func start(t testing.TB, o Options, previousEpoch int64) *node {
	d, err := Open(o)
	require.NoError(t, err)
	n := &node{Driver: d, t: t}
	d.Start(func(img *image.Image, _ *image.Delta) { n.newest.Store(img) })
	n.epoch, err = d.Register(context.Background(), Registration{
		BrokerID: 1, Listeners: []Endpoint{{Name: "PLAINTEXT", Host: "127.0.0.1", Port: 9092}},
		Directories: []wire.UUID{o.DirectoryID}, PreviousBrokerEpoch: previousEpoch})
	require.NoError(t, err)
	return n
}

// do submits and waits; the published image may be looked at afterwards.
func (n *node) do(req message.Request) message.Response {
	resp, err := n.ask(context.Background(), req)
	require.NoError(n.t, err)
	return resp
}

func (n *node) create(name string, partitions int32, configs ...message.CreatableTopicConfig) message.CreatableTopicResult {
	resp := n.do(&message.CreateTopicsRequest{Topics: []message.CreatableTopic{
		{Name: name, NumPartitions: partitions, ReplicationFactor: 1, Configs: configs}}})
	return resp.(*message.CreateTopicsResponse).Topics[0]
}

func TestANewClusterHasApacheKafkasFeaturesAndOneActiveBroker(t *testing.T) {
	n := start(t, options(t, vfs.NewMem(), nil), -1)
	levels, _ := n.img().Features()
	require.Equal(t, map[string]int16{"metadata.version": 33, "eligible.leader.replicas.version": 1, "group.version": 1,
		"share.version": 2, "streams.version": 1, "transaction.version": 2}, levels)
	require.Equal(t, map[string]string{"min.insync.replicas": "1"}, n.img().Configs(config.Resource{Type: config.BrokerResource}))
	b := n.img().Broker(1)
	require.True(t, b.Active())
	require.Equal(t, n.epoch, b.Epoch)
	require.NoError(t, n.Close())
}

// TestARestartReplaysToTheSameImage is invariant R9: the image that was published last equals the one that a restart
// builds from checkpoint and log.
func TestARestartReplaysToTheSameImage(t *testing.T) {
	for _, c := range []struct {
		name       string
		properties map[string]string
	}{
		{"from the log", nil},
		{"from checkpoints", map[string]string{"metadata.log.max.record.bytes.between.snapshots": "600"}},
		{"in small segments", map[string]string{"metadata.log.segment.bytes": "8388608", "internal.metadata.log.segment.bytes": "3000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := vfs.NewMem()
			n := start(t, options(t, fsys, c.properties), -1)
			value := "compact"
			for i := range 10 {
				require.Zero(t, n.create(fmt.Sprint("topic-", i), 3, message.CreatableTopicConfig{Name: "cleanup.policy", Value: &value}).ErrorCode)
			}
			id := n.img().Topic("topic-4").ID
			n.do(&message.DeleteTopicsRequest{TopicNames: []string{"topic-3"}, Topics: []message.DeleteTopicState{{TopicId: id}}})
			n.do(&message.CreatePartitionsRequest{Topics: []message.CreatePartitionsTopic{{Name: "topic-5", Count: 7}}})
			n.do(&message.AllocateProducerIdsRequest{BrokerId: 1, BrokerEpoch: n.epoch})
			last := n.img()
			require.NoError(t, n.Close())

			d, err := Open(options(t, fsys, c.properties))
			require.NoError(t, err)
			got := d.Image()
			require.Equal(t, 8, got.TopicCount())
			require.Len(t, got.Topic("topic-5").Partitions, 7)
			require.EqualValues(t, 1000, got.NextProducerID())
			require.NotNil(t, got.Broker(1))
			require.True(t, got.Broker(1).Fenced, "closing is a controlled shutdown")
			require.Equal(t, image.NoLeader, got.Topic("topic-5").Partition(0).Leader)
			require.Equal(t, []int32{1}, got.Topic("topic-5").Partition(0).ELR)
			require.Equal(t, d.quorum.Leader().Epoch, int32(2), "each start leads a new epoch")
			require.NoError(t, d.Close())

			n = start(t, options(t, fsys, c.properties), n.epoch)
			want := last.Topic("topic-5").Partition(0)
			p := n.img().Topic("topic-5").Partition(0)
			require.Equal(t, int32(1), p.Leader)
			require.Equal(t, []int32{1}, p.ISR)
			require.Empty(t, p.ELR)
			require.Zero(t, p.LeaderRecoveryState, "after a clean stop the leader has everything")
			require.Equal(t, want.LeaderEpoch+2, p.LeaderEpoch, "to nobody and back")
			live := content(t, n.img())
			n.crash()
			d, err = Open(options(t, fsys, c.properties))
			require.NoError(t, err)
			require.Equal(t, live, content(t, d.Image()))
			require.NoError(t, d.Close())
		})
	}
}

// content is everything in an image but who its controller is: Open registers a new incarnation.
func content(t *testing.T, img *image.Image) (values []string) {
	for rec := range img.Records() {
		if _, ok := rec.Record.(*logrecord.RegisterControllerRecord); ok {
			continue
		}
		value, err := rec.AppendValue(nil)
		require.NoError(t, err)
		values = append(values, string(value))
	}
	return values
}

// crash ends the goroutine without any of Close's records.
func (n *node) crash() {
	done := make(chan struct{})
	n.inbox.post(func() { n.failed = true; close(done) })
	<-done
	require.NoError(n.t, n.Close())
}

func TestAfterAnUncleanStopTheLastLeaderIsElectedUncleanly(t *testing.T) {
	fsys := vfs.NewMem()
	n := start(t, options(t, fsys, nil), -1)
	n.create("orders", 1)
	n.crash()
	n = start(t, options(t, fsys, nil), -1)
	p := n.img().Topic("orders").Partition(0)
	require.Equal(t, int32(1), p.Leader)
	require.Equal(t, []int32{1}, p.ISR)
	require.Equal(t, int8(1), p.LeaderRecoveryState)
	require.NoError(t, n.Close())
}

func TestCheckpointsComeByTimeToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := vfs.NewMem()
		n := start(t, options(t, fsys, map[string]string{"metadata.log.max.snapshot.interval.ms": "60000"}), -1)
		n.create("orders", 1)
		time.Sleep(61 * time.Second)
		synctest.Wait()
		infos, err := fsys.List("/data/__cluster_metadata-0")
		require.NoError(t, err)
		var checkpoints []string
		for _, i := range infos {
			if strings.HasSuffix(i.Name, ".checkpoint") {
				checkpoints = append(checkpoints, i.Name)
			}
		}
		offset, epoch := n.img().Offset()
		require.Equal(t, []string{"00000000000000000000-0000000000.checkpoint", fmt.Sprintf("%020d-%010d.checkpoint", offset+1, epoch)}, checkpoints)
		require.NoError(t, n.Close())
	})
}

func TestNoOpRecordsComeWhenAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, options(t, vfs.NewMem(), map[string]string{"metadata.max.idle.interval.ms": "500"}), -1)
		before, _ := n.img().Offset()
		time.Sleep(1600 * time.Millisecond)
		synctest.Wait()
		after, _ := n.img().Offset()
		require.EqualValues(t, 3, after-before)
		require.NoError(t, n.Close())
	})
}

func TestRequestsAreAnsweredAfterClose(t *testing.T) {
	n := start(t, options(t, vfs.NewMem(), nil), -1)
	require.NoError(t, n.Close())
	_, err := n.ask(context.Background(), &message.CreateTopicsRequest{})
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, n.Close())
}

func TestNothingIsAskedUnderAContextThatHasEnded(t *testing.T) {
	n := start(t, options(t, vfs.NewMem(), nil), -1)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	before, _ := n.img().Offset()
	_, err := n.Register(ended, Registration{BrokerID: 1})
	require.ErrorIs(t, err, context.Canceled)
	n.do(&message.DescribeQuorumRequest{}) // comes after whatever was asked
	after, _ := n.img().Offset()
	require.Equal(t, before, after)
	require.NoError(t, n.Close())
}

func ExampleOpen() {
	layers, err := config.NewLayers(nil)
	if err != nil {
		panic(err)
	}
	d, err := Open(Options{FS: vfs.NewMem(), Dir: "/data", NodeID: 1, Config: layers, NewUUID: ids})
	if err != nil {
		panic(err)
	}
	d.Start(func(img *image.Image, delta *image.Delta) {
		for _, c := range delta.Topics() {
			fmt.Println("created", c.Name(), "with", len(c.New.Partitions), "partitions")
		}
	})
	if _, err := d.Register(context.Background(), Registration{BrokerID: 1, PreviousBrokerEpoch: -1}); err != nil {
		panic(err)
	}
	created := make(chan bool)
	d.Submit(&message.CreateTopicsRequest{Topics: []message.CreatableTopic{{Name: "orders", NumPartitions: 6, ReplicationFactor: 1}}},
		func(message.Response, error) { close(created) })
	<-created
	if err := d.Close(); err != nil {
		panic(err)
	}
	// Output: created orders with 6 partitions
}

func BenchmarkCreateThousandPartitions(b *testing.B) {
	n := start(b, options(b, vfs.NewMem(), nil), -1)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		if n.create(fmt.Sprint("topic-", i), 1000).ErrorCode != 0 {
			b.Fatal("not created")
		}
	}
	require.NoError(b, n.Close())
}

func BenchmarkOpenAndRegister(b *testing.B) {
	for b.Loop() {
		n := start(b, options(b, vfs.NewMem(), nil), -1)
		require.NoError(b, n.Close())
	}
}
