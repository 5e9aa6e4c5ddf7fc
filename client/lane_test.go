package client_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

func TestLaneIsNotHeldUpByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := wiretest.New(func(req message.Request, _ int16) message.Response {
			switch req.(type) {
			case *message.JoinGroupRequest:
				time.Sleep(time.Minute)
				return req.NewResponse()
			case *message.HeartbeatRequest:
				return req.NewResponse()
			}
			return nil
		})
		defer peer.Close()
		cl, err := client.New(client.Cluster(peer))
		require.NoError(t, err)
		defer cl.Close(t.Context())
		lane, free := cl.Lane(client.Group)
		require.Equal(t, "group-1", lane.String())
		other, freeOther := cl.Lane(client.Group)
		defer freeOther()
		require.NotEqual(t, lane, other)
		ask := func(p client.Purpose, req message.Request) time.Duration {
			began := time.Now()
			_, err := cl.Request(t.Context(), client.Broker(1).Via(p).Within(2*time.Minute), req)
			require.NoError(t, err)
			return time.Since(began)
		}
		joined := make(chan time.Duration, 1)
		go func() { joined <- ask(lane, message.NewJoinGroupRequest()) }()
		synctest.Wait()
		require.Less(t, ask(client.Group, message.NewHeartbeatRequest()), time.Second)
		require.Less(t, ask(other, message.NewHeartbeatRequest()), time.Second)
		up := peer.Connections(1)
		free()
		require.Equal(t, time.Minute, (<-joined).Truncate(time.Second), "what is under way is answered")
		synctest.Wait()
		require.Equal(t, up-1, peer.Connections(1), "then the connection goes")
		require.Len(t, peer.Requests(wire.KeyJoinGroup), 1)
	})
}
