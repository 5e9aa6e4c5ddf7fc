package client_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// start makes a peer and a client of it; both are closed at the test's end.
func start(t *testing.T, brokers int, script wiretest.Script, opts ...client.Option) (*wiretest.Peer, *client.Client) {
	t.Helper()
	peer := wiretest.NewCluster(brokers, script)
	c, err := client.New(append([]client.Option{client.Cluster(peer), client.Jitter(1)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, c.Close(ctx))
		peer.Close()
	})
	return peer, c
}

func TestFirstRequestConnectsAndFindsTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 3, nil)
		require.Zero(t, peer.Dialled(), "New opens nothing")
		resp, err := c.Request(t.Context(), client.AnyBroker(), message.NewApiVersionsRequest())
		require.NoError(t, err)
		require.NotEmpty(t, resp.(*message.ApiVersionsResponse).ApiKeys)
		require.Len(t, c.Topology().Brokers, 3)
		require.Equal(t, 1, peer.Connections(0))
	})
}

func TestAwaitTopicsGivesLeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 3, nil)
		peer.SetTopic("orders", 5, 1, 2, 3)
		top, err := c.AwaitTopics(t.Context(), "orders")
		require.NoError(t, err)
		leader, epoch, ok := top.Leader("orders", 1)
		require.True(t, ok)
		require.EqualValues(t, 2, leader)
		require.EqualValues(t, 5, epoch)
		require.Equal(t, top.Topic("orders"), top.TopicByID(wiretest.TopicID("orders")))
		require.Len(t, peer.Requests(wire.KeyMetadata), 1)
	})
}
