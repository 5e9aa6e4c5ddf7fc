package admin_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// adminOf administers anything that can be dialled; the client ends with the test.
func adminOf(t *testing.T, k client.ClusterSource, opts ...client.Option) *admin.Admin {
	t.Helper()
	a, err := admin.Dial(nil, append([]client.Option{client.Cluster(k), client.RetryBackoff(time.Millisecond, 4*time.Millisecond)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close(context.WithoutCancel(t.Context()))) })
	return a
}

// produce writes one record for each time.
func produce(t *testing.T, k *fakebroker.Cluster, topic string, partition int32, times ...time.Time) {
	t.Helper()
	cl, err := client.New(client.Cluster(k))
	require.NoError(t, err)
	defer cl.Close(t.Context())
	p, err := producer.New(cl)
	require.NoError(t, err)
	defer p.Close(t.Context())
	for _, at := range times {
		_, err := p.Send(t.Context(), producer.Record{Topic: topic, Value: []byte("v"), Timestamp: at}.To(partition))
		require.NoError(t, err)
	}
}

// peer is a scripted cluster.
func peer(t *testing.T, brokers int, script wiretest.Script) *wiretest.Peer {
	t.Helper()
	p := wiretest.NewCluster(brokers, script)
	t.Cleanup(p.Close)
	return p
}

// kafka21 is a scripted broker that speaks the versions of Apache Kafka 2.1.
func kafka21(t *testing.T, script wiretest.Script) *wiretest.Peer {
	t.Helper()
	var p *wiretest.Peer
	p = peer(t, 1, func(r *wiretest.Request) message.Response {
		req, ok := r.Body.(*message.MetadataRequest)
		if !ok {
			return script(r)
		}
		resp := p.Metadata(req)
		for i := range resp.Topics { // not known to that version
			resp.Topics[i].TopicAuthorizedOperations = math.MinInt32
		}
		return resp
	})
	most := []int16{7, 10, 4, 7, 1, 0, 4, 1, 6, 5, 2, 3, 2, 2, 2, 2, 2, 1, 2, 3, 3, 1, 1, 2, 1, 1, 1, 0, 2, 1, 1, 1, 2, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1} // by key
	for k := wire.Key(0); k < 100; k++ {
		if least, _, known := wire.BrokerVersions(k); !known {
			continue
		} else if int(k) < len(most) {
			p.SetVersions(k, least, most[k])
		} else {
			p.SetVersions(k, 0, -1)
		}
	}
	return p
}

// tp names a partition.
func tp(topic string, partition int32) admin.TopicPartition {
	return admin.TopicPartition{Topic: topic, Partition: partition}
}

// listed answers ListOffsets for every partition asked, as answer says.
func listed(req *message.ListOffsetsRequest, answer func(topic string, partition int32) (offset int64, code int16)) *message.ListOffsetsResponse {
	resp := message.NewListOffsetsResponse()
	for _, t := range req.Topics {
		out := message.ListOffsetsTopicResponse{Name: t.Name}
		for _, p := range t.Partitions {
			offset, code := answer(t.Name, p.PartitionIndex)
			out.Partitions = append(out.Partitions, message.ListOffsetsPartitionResponse{PartitionIndex: p.PartitionIndex, ErrorCode: code,
				Timestamp: -1, Offset: offset, LeaderEpoch: -1})
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}
