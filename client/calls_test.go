package client_test

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t, 1, func(r *wiretest.Request) message.Response {
			if r.Key == wire.KeyDescribeCluster {
				return wiretest.NoAnswer
			}
			return nil
		}, func(c *client.Config) { c.MaxQueued = 3 })
		_, err := c.AwaitTopics(t.Context())
		require.NoError(t, err)
		var refused error
		for range 4 {
			c.Issue(1, client.Fetch, &client.Call{Key: wire.KeyDescribeCluster, Append: clusterRequest().AppendTo, Done: func(r client.Reply) { refused = r.Err }})
		}
		require.ErrorIs(t, refused, client.ErrQueueFull)
		require.ErrorContains(t, refused, "Config.MaxQueued")
	})
}

// A broker that metadata names at this very moment is either not known yet or asked: the client is not closed.
func TestBrokerThatBecomesKnownMeanwhile(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			_, c := start(t, 2, answerCluster)
			c.AddTopics("orders")
			for done := make(chan client.Reply, 1); ; {
				c.Issue(2, client.Fetch, &client.Call{Key: wire.KeyDescribeCluster, Append: clusterRequest().AppendTo, Done: func(r client.Reply) { done <- r }})
				if r := <-done; r.Err == nil {
					return
				} else if !errors.Is(r.Err, client.ErrUnknownBroker) {
					t.Fatal(r.Err)
				}
				runtime.Gosched()
			}
		})
	}
}

func TestEncodingErrorEndsOneCallOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t, 1, answerCluster)
		_, err := c.AwaitTopics(t.Context())
		require.NoError(t, err)
		done := make(chan client.Reply, 2)
		broken := errors.New("no such field")
		c.Issue(1, client.Fetch, &client.Call{Key: wire.KeyDescribeCluster, Done: func(r client.Reply) { done <- r },
			Append: func(dst []byte, version int16) ([]byte, error) { return nil, broken }})
		c.Issue(1, client.Fetch, &client.Call{Key: wire.KeyDescribeCluster, Append: clusterRequest().AppendTo, Done: func(r client.Reply) { done <- r }})
		first, second := <-done, <-done
		require.ErrorIs(t, first.Err, broken)
		require.False(t, first.Written)
		require.NoError(t, second.Err)
	})
}

func TestUnsupportedRequestNamesBothRanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 1, answerCluster)
		peer.SetVersions(wire.KeyDescribeCluster, 0, 0)
		_, err := c.Request(t.Context(), client.AnyBroker().Versions(1, 2), clusterRequest())
		require.ErrorIs(t, err, client.ErrUnsupportedVersion)
		require.ErrorContains(t, err, "the broker speaks 0 to 0")
		peer.SetVersions(wire.KeyDescribeCluster, 0, -1)
		peer.Drop(1)
		synctest.Wait()
		_, err = c.Request(t.Context(), client.AnyBroker(), clusterRequest())
		require.ErrorContains(t, err, "does not know DescribeCluster")
	})
}
