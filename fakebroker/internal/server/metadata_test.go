package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// threeBrokers: 1 is alive, 2 is fenced, 3 is alive but has no listener INTERNAL; 4 is not registered.
func threeBrokers(t *testing.T) *image.Image {
	d := image.NewDelta(image.Empty())
	add := func(r image.Record) { require.NoError(t, d.Apply(0, 1, r)) }
	for id := int32(1); id <= 3; id++ {
		b := &image.Broker{ID: id, Fenced: id == 2, Endpoints: []image.Endpoint{{Listener: "PLAINTEXT", Host: "h", Port: uint16(id)}}}
		if id != 3 {
			b.Endpoints = append(b.Endpoints, image.Endpoint{Listener: "INTERNAL", Host: "i", Port: uint16(id)})
		}
		add(b.Record(image.MetadataVersionLatest))
	}
	topic := wire.UUID{15: 7}
	add(image.Record{Record: &logrecord.TopicRecord{Name: "t", TopicId: topic}})
	for n, leader := range []int32{1, 2, 3, -1} {
		p := image.Partition{ID: int32(n), Replicas: []int32{1, 2, 3}, ISR: []int32{1, 3}, Leader: leader, Directories: make([]wire.UUID, 3)}
		add(p.Record(topic, image.MetadataVersionLatest))
	}
	return d.Image()
}

func TestLeadersThatCannotBeNamed(t *testing.T) {
	img := threeBrokers(t)
	codes := func(listener string, version int16) (codes []errcode.Code, leaders []int32) {
		v := metadataView{image: img, listener: listener, version: version}
		for _, p := range v.topic(img.Topic("t")).Partitions {
			codes, leaders = append(codes, errcode.Code(p.ErrorCode)), append(leaders, p.LeaderId)
		}
		return codes, leaders
	}
	c, l := codes("PLAINTEXT", 13)
	require.Equal(t, []errcode.Code{errcode.None, errcode.LeaderNotAvailable, errcode.None, errcode.LeaderNotAvailable}, c)
	require.Equal(t, []int32{1, -1, 3, -1}, l)
	c, _ = codes("INTERNAL", 13)
	require.Equal(t, errcode.ListenerNotFound, c[2])
	c, _ = codes("INTERNAL", 5)
	require.Equal(t, errcode.LeaderNotAvailable, c[2])
	c, _ = codes("PLAINTEXT", 0)
	require.Equal(t, errcode.ReplicaNotAvailable, c[0], "version 0 cannot list offline replicas")
}

func TestReplicasThatAreDownAreOffline(t *testing.T) {
	img := threeBrokers(t)
	v := metadataView{image: img, listener: "INTERNAL", version: 13}
	p := v.partition(img.Topic("t").Partition(0))
	require.Equal(t, []int32{2, 3}, p.OfflineReplicas)
	require.Equal(t, []int32{1, 2, 3}, p.ReplicaNodes)
	v.version = 0
	p = v.partition(img.Topic("t").Partition(0))
	require.Equal(t, []int32{1}, p.ReplicaNodes)
	brokers, controller := v.brokers()
	require.Len(t, brokers, 1)
	require.Equal(t, int32(1), controller)
}
