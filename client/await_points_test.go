package client_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// blocking are all exported calls that wait, for something of the topic "orders" and the group "billing".
var blocking = map[string]func(ctx context.Context, c *client.Client) error{
	"AwaitTopics": func(ctx context.Context, c *client.Client) error {
		_, err := c.AwaitTopics(ctx, "orders")
		return err
	},
	"Request any":         ask(client.AnyBroker()),
	"Request controller":  ask(client.Controller()),
	"Request broker":      ask(client.Broker(1)),
	"Request leader":      ask(client.LeaderOf("orders", 0)),
	"Request coordinator": ask(client.Coordinator(client.GroupCoordinator, "billing")),
	"Coordinators": func(ctx context.Context, c *client.Client) error {
		_, errs, err := c.Coordinators(ctx, client.GroupCoordinator, "billing")
		return errors.Join(err, errs["billing"])
	},
	"Health": func(ctx context.Context, c *client.Client) error { return c.Health(ctx).Err },
}

func ask(to client.Target) func(ctx context.Context, c *client.Client) error {
	return func(ctx context.Context, c *client.Client) error {
		_, err := c.Request(ctx, to, clusterRequest())
		return err
	}
}

// Wherever a call waits, the end of its ctx ends it at that moment, and the error has ctx's cause in it.
func TestCtxEndsEveryCallAtEveryAwaitPoint(t *testing.T) {
	const connect wire.Key = -1
	stuckAt := map[string]wire.Key{"connect": connect, "hello": wire.KeyApiVersions, "metadata": wire.KeyMetadata,
		"look-up": wire.KeyFindCoordinator, "request": wire.KeyDescribeCluster}
	stuck := make(map[string]int)
	for call, do := range blocking {
		for step, key := range stuckAt {
			synctest.Test(t, func(t *testing.T) {
				peer := wiretest.NewCluster(2, func(r *wiretest.Request) message.Response {
					if r.Key == key {
						return wiretest.NoAnswer
					}
					return coordinatedBy2(r)
				})
				peer.SetTopic("orders", 0, 2)
				dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
					if key == connect {
						<-ctx.Done()
						return nil, context.Cause(ctx)
					}
					return peer.DialContext(ctx, network, addr)
				}
				c, err := client.New(client.Cluster(peer), client.Dialer(dial))
				require.NoError(t, err)
				enough := errors.New("enough")
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(enough) })
				began := time.Now()
				if err = do(ctx, c); err != nil || time.Since(began) > 0 {
					stuck[call]++
					require.Equal(t, time.Second, time.Since(began), "%s at %s: %v", call, step, err)
					require.ErrorIs(t, err, enough, "%s at %s", call, step)
				}
				require.NoError(t, c.Close(t.Context()))
				peer.Close()
			})
		}
	}
	for call := range blocking {
		require.GreaterOrEqual(t, stuck[call], 3, call)
	}
}

// A ctx that has ended before the call starts nothing, whether the answer is at hand or everything is still to be asked:
// the error is its cause, and neither a connection nor a request follows. Close closes all the same.
func TestEndedCtxStartsNothing(t *testing.T) {
	enough := errors.New("enough")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	calls := maps.Clone(blocking)
	calls["Acquire"] = func(ctx context.Context, c *client.Client) error { return c.Budget().Acquire(ctx, 1) }
	for _, warm := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			peer, c := start(t, 2, coordinatedBy2)
			peer.SetTopic("orders", 0, 2)
			if warm {
				for call, do := range blocking {
					require.NoError(t, do(t.Context(), c), call)
				}
			}
			dialled, asked := peer.Dialled(), len(peer.Requests())
			for range 20 { // a choice among ready channels is made by chance
				for call, do := range calls {
					require.ErrorIs(t, do(ended, c), enough, call)
				}
			}
			synctest.Wait()
			require.Equal(t, dialled, peer.Dialled())
			require.Len(t, peer.Requests(), asked)
			used, _ := c.Budget().Used()
			require.Zero(t, used)
			if !warm {
				_, err := c.AwaitTopics(t.Context())
				require.NoError(t, err)
				require.Nil(t, c.Topology().Topic("orders"), "nobody asked for it")
			}
			if err := c.Close(ended); err != nil {
				require.ErrorIs(t, err, enough)
			}
			synctest.Wait()
			require.Zero(t, peer.Connections(0))
			for call, do := range blocking {
				require.ErrorIs(t, do(t.Context(), c), client.ErrClosed, call)
			}
		})
	}
}

// Close ends all of them too, at once.
func TestCloseEndsEveryCall(t *testing.T) {
	for call, do := range blocking {
		synctest.Test(t, func(t *testing.T) {
			peer := wiretest.NewCluster(2, func(*wiretest.Request) message.Response { return wiretest.NoAnswer })
			defer peer.Close()
			c, err := client.New(client.Cluster(peer))
			require.NoError(t, err)
			time.AfterFunc(time.Second, func() { _ = c.Close(context.Background()) })
			began := time.Now()
			require.ErrorIs(t, do(t.Context(), c), client.ErrClosed, call)
			require.Equal(t, time.Second, time.Since(began), call)
		})
	}
}
