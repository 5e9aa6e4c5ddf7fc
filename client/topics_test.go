package client_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

func TestUnknownTopicIsNamedAtTheEndOfCtx(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 1, nil, client.AutoCreateTopics(false))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := c.AwaitTopics(ctx, "ordres")
		require.ErrorIs(t, err, client.ErrUnknownTopic)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var op *client.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "ordres", op.Topic)
		require.Contains(t, op.Hint, "allow.auto.create.topics=false")
		n := len(peer.Requests(wire.KeyMetadata))
		require.True(t, n > 5 && n < 25, "attempts back off: %d", n)
	})
}

func TestTopicThatStaysUnknownNamesTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t, 1, nil)
		began := time.Now()
		_, err := c.AwaitTopics(t.Context(), "ordres")
		require.Equal(t, time.Minute, time.Since(began))
		require.ErrorIs(t, err, client.ErrUnknownTopic)
		require.ErrorContains(t, err, "default.api.timeout.ms (1m0s)")
	})
}

func TestTopicThatAppearsIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 1, nil)
		go func() {
			time.Sleep(3 * time.Second)
			peer.SetTopic("late", 0, 1)
		}()
		top, err := c.AwaitTopics(t.Context(), "late")
		require.NoError(t, err)
		require.NotNil(t, top.Topic("late"))
	})
}

func TestForbiddenTopicFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var peer *wiretest.Peer
		peer, c := start(t, 1, func(r *wiretest.Request) message.Response {
			req, ok := r.Body.(*message.MetadataRequest)
			if !ok {
				return nil
			}
			resp := peer.Metadata(req)
			for i := range resp.Topics {
				resp.Topics[i].ErrorCode = int16(errcode.TopicAuthorizationFailed)
			}
			return resp
		})
		_, err := c.AwaitTopics(t.Context(), "secret")
		require.ErrorIs(t, err, errcode.TopicAuthorizationFailed)
		require.Contains(t, err.Error(), "Describe")
	})
}

func TestOfflinePartitionDoesNotStopTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 2, nil)
		peer.SetTopic("orders", 0, 1, -1)
		began := time.Now()
		top, err := c.AwaitTopics(t.Context(), "orders")
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(began), time.Second)
		_, _, ok := top.Leader("orders", 1)
		require.False(t, ok)
	})
}
