package client_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/client/sasl"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

func clusterRequest() message.Request { return message.NewDescribeClusterRequest() }

// answerCluster answers DescribeCluster and leaves the rest to the peer.
func answerCluster(r *wiretest.Request) message.Response {
	if r.Key == wire.KeyDescribeCluster {
		return new(message.DescribeClusterResponse)
	}
	return nil
}

func TestStoppedBrokerIsWaitedForWithinCtx(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 1, answerCluster)
		peer.Stop(1)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		_, err := c.Request(ctx, client.AnyBroker(), clusterRequest())
		require.Equal(t, 5*time.Second, time.Since(began))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		var op *client.OpError
		require.ErrorAs(t, err, &op)
		require.Contains(t, op.Hint, "nothing listens on that port")
		require.Contains(t, err.Error(), "broker-1:9092")
	})
}

func TestRequestOutlivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 2, answerCluster)
		_, err := c.Request(t.Context(), client.AnyBroker(), clusterRequest())
		require.NoError(t, err)
		peer.Stop(1)
		peer.Stop(2)
		go func() {
			time.Sleep(20 * time.Second)
			peer.Start(2)
		}()
		began := time.Now()
		_, err = c.Request(t.Context(), client.AnyBroker(), clusterRequest())
		require.NoError(t, err)
		require.Less(t, time.Since(began), 23*time.Second)
	})
}

func TestBrokerThatNeverExistedIsAnErrorAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 2, answerCluster)
		for range 2 { // with nothing known, and with a picture of the cluster that might be old
			began := time.Now()
			_, err := c.Request(t.Context(), client.Broker(7), clusterRequest())
			require.ErrorIs(t, err, client.ErrUnknownBroker)
			var op *client.OpError
			require.ErrorAs(t, err, &op)
			require.False(t, client.Retriable(err))
			require.ErrorContains(t, err, "there is no broker 7, the cluster has 1, 2")
			require.Less(t, time.Since(began), time.Second)
		}
		require.Len(t, peer.Requests(wire.KeyMetadata), 2, "one look for each request")
	})
}

func TestBrokerThatWasThereIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 2, answerCluster)
		_, err := c.Request(t.Context(), client.Broker(2), clusterRequest())
		require.NoError(t, err)
		peer.Stop(2) // metadata does not name it any more
		time.AfterFunc(20*time.Second, func() { peer.Start(2) })
		began := time.Now()
		_, err = c.Request(t.Context(), client.Broker(2), clusterRequest())
		require.NoError(t, err)
		require.InDelta(t, 20, time.Since(began).Seconds(), 3)
	})
}

func TestBrokerThatMovedIsFoundAtItsNewAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 2, answerCluster)
		_, err := c.Request(t.Context(), client.Broker(2), clusterRequest())
		require.NoError(t, err)
		peer.Move(2, "elsewhere:9099")
		peer.Drop(2)
		began := time.Now()
		_, err = c.Request(t.Context(), client.Broker(2), clusterRequest())
		require.NoError(t, err)
		require.Equal(t, "elsewhere:9099", c.Topology().Brokers[2].Addr())
		require.Less(t, time.Since(began), 3*time.Second)
	})
}

func TestAllBrokersReplacedAreFoundThroughTheSeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := wiretest.NewCluster(3, answerCluster)
		defer peer.Close()
		c, err := client.New(client.Cluster(peer), client.Jitter(1))
		require.NoError(t, err)
		defer c.Close(t.Context())
		for id, addr := range map[int32]string{1: "a:1", 2: "b:2"} { // the seeds stay, brokers answer at other names
			peer.Move(id, addr)
		}
		seed := "broker-3:9092"
		_, err = c.Request(t.Context(), client.AnyBroker(), clusterRequest())
		require.NoError(t, err)
		peer.Move(3, "c:3")
		peer.Move(1, seed)
		for id := int32(1); id <= 3; id++ {
			peer.Drop(id)
		}
		_, err = c.Request(t.Context(), client.AnyBroker(), clusterRequest())
		require.NoError(t, err)
	})
}

func TestSilentBrokerTimesOutAndTheConnectionIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 1, func(r *wiretest.Request) message.Response {
			if r.Key == wire.KeyDescribeCluster {
				return wiretest.NoAnswer
			}
			return nil
		})
		_, err := c.AwaitTopics(t.Context())
		require.NoError(t, err)
		dialled := peer.Dialled()
		replies := make(chan client.Reply, 2)
		began := time.Now()
		for range 2 {
			c.Issue(1, client.Metadata, &client.Call{Key: wire.KeyDescribeCluster, Append: clusterRequest().AppendTo, Timeout: 3 * time.Second,
				Done: func(r client.Reply) { replies <- r }})
			time.Sleep(time.Second)
		}
		first, second := <-replies, <-replies
		require.Equal(t, 3*time.Second, time.Since(began))
		require.ErrorIs(t, first.Err, client.ErrTimeout)
		require.True(t, first.Written)
		require.ErrorIs(t, second.Err, client.ErrDisconnected, "the one behind it did not time out itself")
		require.True(t, second.Written)
		require.True(t, client.Retriable(first.Err) && client.Retriable(second.Err))
		require.Equal(t, dialled, peer.Dialled())
	})
}

func TestUnreachableHostEndsAtTheSetupLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := client.New(client.Seeds("10.255.255.1:9092"), client.Dialer(blackHole), client.SetupTimeout(2*time.Second, 4*time.Second))
		require.NoError(t, err)
		defer c.Close(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err = c.AwaitTopics(ctx, "orders")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, client.ErrTimeout)
		require.Contains(t, err.Error(), "socket.connection.setup.timeout.ms")
		require.Contains(t, err.Error(), "firewall")
	})
}

func TestCloseEndsWhateverIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 1, func(r *wiretest.Request) message.Response {
			if r.Key == wire.KeyDescribeCluster {
				return wiretest.NoAnswer
			}
			return nil
		})
		_, err := c.AwaitTopics(t.Context())
		require.NoError(t, err)
		results := make(chan error, 3)
		go func() {
			_, err := c.Request(t.Context(), client.AnyBroker(), clusterRequest())
			results <- err
		}()
		go func() {
			_, err := c.AwaitTopics(t.Context(), "nowhere")
			results <- err
		}()
		synctest.Wait()
		require.NoError(t, c.Close(t.Context()))
		for range 2 {
			require.ErrorIs(t, <-results, client.ErrClosed)
		}
		_, err = c.Request(t.Context(), client.AnyBroker(), clusterRequest())
		require.ErrorIs(t, err, client.ErrClosed)
		synctest.Wait() // until the peer has noticed
		require.Zero(t, peer.Connections(0))
		require.NoError(t, c.Close(t.Context()), "Close may be called again")
	})
}

func TestHangUpWithRequestsUnderWayFailsThemInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		_, c := start(t, 1, func(r *wiretest.Request) message.Response {
			if r.Key != wire.KeyDescribeCluster {
				return nil
			}
			if n.Add(1) == 1 {
				time.Sleep(time.Second)
				return wiretest.HangUp
			}
			return new(message.DescribeClusterResponse)
		})
		_, err := c.AwaitTopics(t.Context())
		require.NoError(t, err)
		var order []int
		done := make(chan client.Reply, 5)
		for i := range 5 {
			c.Issue(1, client.Produce, &client.Call{Key: wire.KeyDescribeCluster, Append: clusterRequest().AppendTo,
				Done: func(r client.Reply) { order = append(order, i); done <- r }})
		}
		for range 5 {
			r := <-done
			require.ErrorIs(t, r.Err, client.ErrDisconnected)
			require.True(t, client.Retriable(r.Err))
		}
		require.Equal(t, []int{0, 1, 2, 3, 4}, order)
	})
}

func TestGarbageAnswersAreTypedErrors(t *testing.T) {
	for name, answer := range map[string]message.Response{
		"huge length":       wiretest.Bytes([]byte{0x7f, 0xff, 0xff, 0xff, 1, 2, 3}),
		"negative length":   wiretest.Bytes([]byte{0xff, 0xff, 0xff, 0xff}),
		"wrong correlation": wiretest.Bytes([]byte{0, 0, 0, 8, 0, 0, 9, 9, 0, 0, 0, 0}),
		"short body":        wiretest.Bytes([]byte{0, 0, 0, 5, 0, 0, 0, 0, 0}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c := start(t, 1, func(r *wiretest.Request) message.Response {
					if r.Key == wire.KeyDescribeCluster {
						return answer
					}
					return nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				_, err := c.Request(ctx, client.AnyBroker(), clusterRequest())
				require.ErrorIs(t, err, client.ErrProtocol)
				require.ErrorIs(t, err, context.DeadlineExceeded)
			})
		})
	}
}

func TestIdleCloseByTheBrokerIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := new(events)
		peer, c := start(t, 1, answerCluster, client.WithObserver(seen))
		_, err := c.Request(t.Context(), client.AnyBroker(), clusterRequest())
		require.NoError(t, err)
		time.Sleep(time.Minute)
		peer.Drop(1)
		synctest.Wait()
		require.Zero(t, c.Metrics().Connections)
		_, err = c.Request(t.Context(), client.AnyBroker(), clusterRequest())
		require.NoError(t, err)
		require.Zero(t, c.Metrics().RequestErrors)
		require.Equal(t, []error{nil}, seen.disconnects())
	})
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 1, answerCluster, client.MaxIdle(time.Minute), client.MetadataMaxAge(time.Hour))
		_, err := c.Request(t.Context(), client.AnyBroker(), clusterRequest())
		require.NoError(t, err)
		time.Sleep(59 * time.Second)
		require.Equal(t, 1, peer.Connections(0))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Zero(t, peer.Connections(0))
		_, err = c.Request(t.Context(), client.AnyBroker(), clusterRequest())
		require.NoError(t, err)
	})
}

func TestThrottledClientWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Time
		_, c := start(t, 1, func(r *wiretest.Request) message.Response {
			if r.Key != wire.KeyDescribeCluster {
				return nil
			}
			mu.Lock()
			at = append(at, time.Now())
			mu.Unlock()
			return &message.DescribeClusterResponse{ThrottleTimeMs: 1500}
		})
		for range 2 {
			_, err := c.Request(t.Context(), client.AnyBroker(), clusterRequest())
			require.NoError(t, err)
		}
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, 1500*time.Millisecond, at[1].Sub(at[0]))
		require.Equal(t, 3*time.Second, c.Metrics().Throttled)
	})
}

func TestNoResponseCallsEndWhenWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t, 1, func(r *wiretest.Request) message.Response {
			if r.Key == wire.KeyProduce {
				return wiretest.NoAnswer
			}
			return answerCluster(r)
		})
		_, err := c.AwaitTopics(t.Context())
		require.NoError(t, err)
		done := make(chan client.Reply, 1)
		c.Issue(1, client.Produce, &client.Call{Key: wire.KeyProduce, NoResponse: true, Append: message.NewProduceRequest().AppendTo,
			Done: func(r client.Reply) { done <- r }})
		r := <-done
		require.NoError(t, r.Err)
		require.True(t, r.Written)
		require.Positive(t, r.Size)
		// The connection is in step for what comes behind it.
		c.Issue(1, client.Produce, &client.Call{Key: wire.KeyDescribeCluster, Append: clusterRequest().AppendTo, Done: func(r client.Reply) { done <- r }})
		require.NoError(t, (<-done).Err)
	})
}

func TestWrongClusterIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 1, answerCluster)
		_, err := c.AwaitTopics(t.Context())
		require.NoError(t, err)
		peer.SetCluster("another-cluster")
		peer.SetTopic("orders", 0, 1)
		_, err = c.AwaitTopics(t.Context(), "orders")
		require.ErrorIs(t, err, client.ErrWrongCluster)
		require.Contains(t, err.Error(), "another-cluster")
		require.False(t, client.Retriable(err))
	})
}

func TestBrokerThatIsSomebodyElseMakesTheClientStartOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var misplaced atomic.Bool
		peer, c := start(t, 2, func(r *wiretest.Request) message.Response {
			if req, ok := r.Body.(*message.ApiVersionsRequest); ok && misplaced.Load() && req.NodeId == 2 {
				resp := new(message.ApiVersionsResponse) // KIP-1242: the client expected broker 2 here
				resp.SetDefaults()
				resp.ErrorCode = int16(errcode.RebootstrapRequired)
				return resp
			}
			return answerCluster(r)
		})
		_, err := c.Request(t.Context(), client.Broker(1), clusterRequest())
		require.NoError(t, err)
		misplaced.Store(true)
		go func() {
			time.Sleep(2 * time.Second)
			misplaced.Store(false)
		}()
		_, err = c.Request(t.Context(), client.Broker(2).Via(client.Fetch), clusterRequest())
		require.NoError(t, err)
		last := peer.Requests(wire.KeyApiVersions)
		require.Equal(t, "wiretest-cluster-000000", *last[len(last)-1].Body.(*message.ApiVersionsRequest).ClusterId)
	})
}

func TestCorrectedPasswordIsTriedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var password atomic.Value
		password.Store("wrong")
		vault := func(context.Context) (sasl.Credentials, error) {
			return sasl.Credentials{Username: "alice", Password: sasl.NewSecret(password.Load().(string))}, nil
		}
		_, c := start(t, 1, login, client.SASL(sasl.Plain(vault)))
		_, err := c.AwaitTopics(t.Context())
		require.ErrorIs(t, err, client.ErrAuth)
		password.Store("wonder")
		_, err = c.AwaitTopics(t.Context())
		require.NoError(t, err)
	})
}

func TestRetriableSortsErrors(t *testing.T) {
	for _, err := range []error{errcode.NotLeaderOrFollower, errcode.RebootstrapRequired, client.ErrTimeout, client.ErrDisconnected, io.EOF, syscall.ECONNRESET,
		&client.OpError{Op: "Fetch", Err: client.ErrDisconnected}} {
		require.True(t, client.Retriable(err), "%v", err)
	}
	for _, err := range []error{nil, errcode.TopicAuthorizationFailed, client.ErrClosed, client.ErrAuth, client.ErrWrongCluster, context.Canceled,
		context.DeadlineExceeded, errors.New("other"), &client.OpError{Op: "Fetch", Err: client.ErrAuth}} {
		require.False(t, client.Retriable(err), "%v", err)
	}
}
