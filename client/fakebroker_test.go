package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/client/sasl"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

func endOffsets(topic string) message.Request {
	req := message.NewListOffsetsRequest()
	req.ReplicaId = -1
	req.Topics = []message.ListOffsetsTopic{{Name: topic, Partitions: []message.ListOffsetsPartition{{CurrentLeaderEpoch: -1, Timestamp: -1}}}}
	return req
}

func TestRealBrokerIsUsedInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 3))
		c, err := client.New(client.Cluster(k), client.Jitter(1))
		require.NoError(t, err)
		defer c.Close(context.Background())
		top, err := c.AwaitTopics(t.Context(), "orders")
		require.NoError(t, err)
		require.Len(t, top.Topic("orders").Partitions, 3)
		require.False(t, top.Topic("orders").ID.IsZero())
		resp, err := c.Request(t.Context(), client.LeaderOf("orders", 0), endOffsets("orders"))
		require.NoError(t, err)
		require.Zero(t, resp.(*message.ListOffsetsResponse).Topics[0].Partitions[0].Offset)
		require.Equal(t, 2, k.Connections())

		require.NoError(t, k.Stop(t.Context()))
		go func() {
			time.Sleep(15 * time.Second)
			k.Restart(context.Background())
		}()
		began := time.Now()
		_, err = c.Request(t.Context(), client.LeaderOf("orders", 0), endOffsets("orders"))
		require.NoError(t, err)
		require.Less(t, time.Since(began), 18*time.Second)
	})
}

func TestLostAndDroppedAnswersAreAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		c, err := client.New(client.Cluster(k), client.RequestTimeout(5*time.Second))
		require.NoError(t, err)
		defer c.Close(context.Background())
		for _, rule := range []fault.Rule{
			fault.ListOffsets().DropConnection().Times(1),
			fault.ListOffsets().LoseResponse().Times(1),
			fault.ListOffsets().Hang().Times(1),
			fault.ListOffsets().Delay(2 * time.Second).Times(1),
			fault.Metadata().DropConnection().Times(2),
		} {
			k.Inject(rule)
			c.RefreshMetadata()
			_, err = c.Request(t.Context(), client.LeaderOf("orders", 0), endOffsets("orders"))
			require.NoError(t, err, "%v", rule)
		}
	})
}

func TestRealBrokerCreatesTopicsOnlyWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t)
		shy, err := client.New(client.Cluster(k), client.AutoCreateTopics(false))
		require.NoError(t, err)
		defer shy.Close(context.Background())
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err = shy.AwaitTopics(ctx, "fresh")
		require.ErrorIs(t, err, client.ErrUnknownTopic)
		require.ErrorIs(t, err, errcode.UnknownTopicOrPartition)
		c, err := client.New(client.Cluster(k))
		require.NoError(t, err)
		defer c.Close(context.Background())
		_, err = c.AwaitTopics(t.Context(), "fresh")
		require.NoError(t, err)
	})
}

func TestRealBrokerChecksLoginsOverTLS(t *testing.T) {
	cert, ca, _ := certificate(t, "127.0.0.1")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	k := fakebroker.Start(t, fakebroker.Listen("127.0.0.1:0"), fakebroker.TLS(&tls.Config{Certificates: []tls.Certificate{cert}}), fakebroker.User("alice", "wonder"))
	conf := client.TLS(&tls.Config{RootCAs: roots})
	c, err := client.New(client.Seeds(k.Addrs()...), conf, client.SASL(sasl.PlainUser("alice", sasl.NewSecret("wonder"))))
	require.NoError(t, err)
	defer c.Close(context.Background())
	_, err = c.Request(t.Context(), client.AnyBroker(), message.NewDescribeClusterRequest())
	require.NoError(t, err)

	err = failure(t, k.Addrs()[0], conf, client.SASL(sasl.PlainUser("alice", sasl.NewSecret("wrong"))))
	require.ErrorIs(t, err, client.ErrAuth)
	require.ErrorContains(t, err, "sasl.jaas.config")
	require.NotContains(t, err.Error(), "wrong")
	err = failure(t, k.Addrs()[0], client.SASL(sasl.PlainUser("alice", sasl.NewSecret("wonder"))))
	require.ErrorContains(t, err, "this port speaks TLS")
	err = failure(t, k.Addrs()[0], conf)
	require.ErrorContains(t, err, "SASL login")
}

func TestEveryAPIOfTheBrokerIsNegotiated(t *testing.T) {
	k := fakebroker.Start(t)
	c, err := client.New(client.Cluster(k))
	require.NoError(t, err)
	defer c.Close(context.Background())
	req := message.NewApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "test", "1" // as Apache Kafka, it refuses empty ones
	resp, err := c.Request(t.Context(), client.AnyBroker(), req)
	require.NoError(t, err)
	for _, v := range resp.(*message.ApiVersionsResponse).ApiKeys {
		require.True(t, wire.Key(v.ApiKey).Valid(), v.ApiKey)
	}
}
