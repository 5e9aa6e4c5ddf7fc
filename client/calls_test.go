package client_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
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

// ending ends a ctx when its answer has come, before anybody has looked at that.
type ending struct {
	message.Request
	end func()
}

func (e ending) NewResponse() message.Response {
	e.end()
	return e.Request.NewResponse()
}

// What a broker has decided is the error, also when ctx ends meanwhile; the cause of that is added only where another
// attempt would have followed.
func TestVerdictOutlivesTheEndOfCtx(t *testing.T) {
	for code, again := range map[errcode.Code]bool{errcode.ClusterAuthorizationFailed: false, errcode.RequestTimedOut: true} {
		synctest.Test(t, func(t *testing.T) {
			_, c := start(t, 1, func(r *wiretest.Request) message.Response {
				if r.Key != wire.KeyDescribeCluster {
					return nil
				}
				return &message.DescribeClusterResponse{ErrorCode: int16(code)}
			})
			enough := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			_, err := c.Request(ctx, client.AnyBroker(), ending{clusterRequest(), func() { cancel(enough) }})
			require.ErrorIs(t, err, code)
			require.Equal(t, again, errors.Is(err, enough))
		})
	}
}

// enders ends a ctx when a call has ended, before its Done.
type enders struct {
	client.NopObserver
	end atomic.Pointer[context.CancelCauseFunc]
}

func (e *enders) Requested(client.RequestEvent) {
	if end := e.end.Load(); end != nil {
		(*end)(errors.New("enough"))
	}
}

// An outcome that is there when ctx ends is not thrown away.
func TestOutcomeThatIsThereIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := new(enders)
		_, c := start(t, 1, func(r *wiretest.Request) message.Response {
			if r.Key == wire.KeyDescribeCluster {
				return wiretest.NoAnswer
			}
			return nil
		}, client.WithObserver(o), func(c *client.Config) { c.MaxQueued = 1 })
		_, err := c.AwaitTopics(t.Context())
		require.NoError(t, err)
		c.Issue(1, client.Fetch, &client.Call{Key: wire.KeyDescribeCluster, Append: clusterRequest().AppendTo, Done: func(client.Reply) {}})
		synctest.Wait() // it is under way: in the writer's hands, between queue and socket, it would not count
		for range 20 {  // a choice among ready channels is made by chance
			ctx, cancel := context.WithCancelCause(t.Context())
			o.end.Store(&cancel)
			_, err = c.Request(ctx, client.Broker(1).Via(client.Fetch), clusterRequest())
			require.ErrorContains(t, err, "enough")
			require.ErrorIs(t, err, client.ErrQueueFull)
		}
		o.end.Store(nil)
	})
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
