package fakebroker_test

import (
	"crypto/tls"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

func TestEachListenerLeadsBackToItself(t *testing.T) {
	server, client := certificates(t)
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1), fakebroker.TLS(server), fakebroker.User("alice", "secret"),
		fakebroker.Listen("127.0.0.1:0"),
		fakebroker.AddListener(fakebroker.Listener{Name: "INSIDE", Plain: true}),
		fakebroker.AddListener(fakebroker.Listener{Addr: "127.0.0.1:0", Plain: true, Advertised: "broker.example:1234"}))
	secure, inside, outside := k.ListenerAddr("SASL_SSL"), k.ListenerAddr("INSIDE"), k.ListenerAddr("PLAINTEXT")
	require.Equal(t, []string{secure}, k.Addrs())
	require.Equal(t, "broker.example:1234", outside)
	require.Empty(t, k.ListenerAddr("SSL"))

	where := func(c *rawClient) string {
		resp := call[*message.MetadataResponse](c, 9, message.NewMetadataRequest())
		require.Len(t, resp.Brokers, 1)
		return fmt.Sprintf("%s:%d", resp.Brokers[0].Host, resp.Brokers[0].Port)
	}
	conn, err := k.DialContext(t.Context(), "tcp", inside)
	require.NoError(t, err)
	defer conn.Close()
	require.Equal(t, inside, where(&rawClient{t: t, conn: conn}))

	raw, err := k.DialContext(t.Context(), "tcp", secure)
	require.NoError(t, err)
	c := &rawClient{t: t, conn: tls.Client(raw, client)}
	defer c.conn.Close()
	call[*message.SaslHandshakeResponse](c, 1, &message.SaslHandshakeRequest{Mechanism: "PLAIN"})
	auth := call[*message.SaslAuthenticateResponse](c, 2, &message.SaslAuthenticateRequest{AuthBytes: []byte("\x00alice\x00secret")})
	require.Zero(t, auth.ErrorCode)
	require.Equal(t, secure, where(c))
}

func TestInjectedErrorsAreAnswersOfTheirAPI(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
	c := connect(t, k)
	name := "orders"
	for key, req := range map[wire.Key]struct {
		version int16
		body    message.Request
	}{
		wire.KeyMetadata:        {12, &message.MetadataRequest{Topics: []message.MetadataRequestTopic{{Name: &name}}}},
		wire.KeyCreateTopics:    {7, &message.CreateTopicsRequest{Topics: []message.CreatableTopic{{Name: "new", NumPartitions: 1, ReplicationFactor: 1}}}},
		wire.KeyDeleteTopics:    {6, &message.DeleteTopicsRequest{Topics: []message.DeleteTopicState{{Name: &name}}}},
		wire.KeyInitProducerId:  {4, &message.InitProducerIdRequest{ProducerId: -1, ProducerEpoch: -1}},
		wire.KeyDescribeCluster: {0, message.NewDescribeClusterRequest()},
		wire.KeyListOffsets: {7, &message.ListOffsetsRequest{ReplicaId: -1, Topics: []message.ListOffsetsTopic{{Name: name,
			Partitions: []message.ListOffsetsPartition{{CurrentLeaderEpoch: -1, Timestamp: -1}}}}}},
		wire.KeyProduce: {12, produceRequest(name, 0, -1, batch(t, "x"))},
		wire.KeyFetch:   {12, fetchRequest(name, 0, 0)},
	} {
		in := k.Inject(fault.On(key).Error(errcode.RequestTimedOut))
		resp := req.body.NewResponse()
		c.send(req.version, req.body)
		c.receive(req.version, resp)
		tree := fmt.Sprint(asTree(t, resp, req.version))
		require.Contains(t, tree, "errorCode:7", "%s", key)
		in.Remove()
	}
	require.NoError(t, k.AwaitTopic(t.Context(), "orders"), "nothing was applied")
}
