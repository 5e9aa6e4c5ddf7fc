package client_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
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

// use sends one request to a broker for a purpose.
func use(t *testing.T, c *client.Client, broker int32, p client.Purpose) {
	t.Helper()
	_, err := c.Request(t.Context(), client.Broker(broker).Via(p), clusterRequest())
	require.NoError(t, err)
}

// coordinated answers DescribeCluster, and broker 2 as the coordinator of everything.
func coordinated(r *wiretest.Request) message.Response {
	if req, ok := r.Body.(*message.FindCoordinatorRequest); ok {
		return &message.FindCoordinatorResponse{Coordinators: []message.Coordinator{{Key: req.CoordinatorKeys[0], NodeId: 2, Host: "broker-2", Port: 9092}}}
	}
	return answerCluster(r)
}

func TestConsumerOfThreeLeadersUsesFiveConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 3, coordinated)
		peer.SetTopic("orders", 0, 1, 2, 3)
		_, err := c.AwaitTopics(t.Context(), "orders")
		require.NoError(t, err)
		for range 3 {
			for id := int32(1); id <= 3; id++ {
				use(t, c, id, client.Fetch)
				_, err = c.Request(t.Context(), client.LeaderOf("orders", id-1), clusterRequest())
				require.NoError(t, err)
			}
			_, err = c.Request(t.Context(), client.Coordinator(client.GroupCoordinator, "g"), clusterRequest())
			require.NoError(t, err)
		}
		require.Equal(t, 1+1+3, peer.Connections(0))
		require.EqualValues(t, 5, c.Metrics().Connections)
		require.Len(t, peer.Requests(wire.KeyFindCoordinator), 1)
	})
}

func TestProducerToThreeBrokersUsesFourConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 3, coordinated)
		peer.SetTopic("orders", 0, 1, 2, 3)
		_, err := c.AwaitTopics(t.Context(), "orders")
		require.NoError(t, err)
		for range 3 {
			for id := int32(1); id <= 3; id++ {
				use(t, c, id, client.Produce)
			}
		}
		require.Equal(t, 1+3, peer.Connections(0))
		require.Equal(t, 1+3, peer.Dialled())
	})
}

func TestSeedThatIsNoBrokerAddressIsGivenUpForTheBrokers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := wiretest.NewCluster(2, answerCluster)
		defer peer.Close()
		balancer := func(ctx context.Context, network, addr string) (netConn, error) {
			if addr == "balancer:9092" {
				addr = "broker-2:9092"
			}
			return peer.DialContext(ctx, network, addr)
		}
		c, err := client.New(client.Seeds("balancer:9092"), client.Dialer(balancer))
		require.NoError(t, err)
		defer c.Close(t.Context())
		_, err = c.AwaitTopics(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		require.Zero(t, peer.Connections(0))
		use(t, c, 2, client.Metadata)
		_, err = c.Request(t.Context(), client.AnyBroker(), clusterRequest())
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 1, peer.Connections(0))
	})
}

func TestConcurrentRequestsShareAConnectionInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 1, answerCluster)
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				_, err := c.Request(t.Context(), client.AnyBroker(), clusterRequest())
				require.NoError(t, err)
			})
		}
		wg.Wait()
		require.Equal(t, 1, peer.Dialled())
		last := int32(-1)
		for _, r := range peer.Requests(wire.KeyDescribeCluster) {
			require.Greater(t, r.CorrelationID, last)
			last = r.CorrelationID
		}
	})
}

// The connection that metadata came by serves the first request too, whichever broker it leads to.
func TestFirstRequestOpensNoSecondConnection(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			peer, c := start(t, 5, answerCluster, client.Jitter(seed+1))
			_, err := c.Request(t.Context(), client.AnyBroker(), clusterRequest())
			require.NoError(t, err)
			require.Equal(t, 1, peer.Dialled(), "seed %d", seed+1)
		})
	}
}

func TestGoroutinesEndWithClose(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, stopped := range []bool{false, true} {
		peer := wiretest.NewCluster(3, answerCluster)
		peer.SetTopic("orders", 0, 1, 2, 3)
		c, err := client.New(client.Cluster(peer))
		require.NoError(t, err)
		_, err = c.AwaitTopics(t.Context(), "orders")
		require.NoError(t, err)
		for id := int32(1); id <= 3; id++ {
			use(t, c, id, client.Produce)
			use(t, c, id, client.Fetch)
		}
		if stopped { // links wait for their back-off, calls for their time-out
			for id := int32(1); id <= 3; id++ {
				peer.Stop(id)
				c.Issue(id, client.Group, &client.Call{Key: wire.KeyHeartbeat, Append: message.NewHeartbeatRequest().AppendTo, Done: func(client.Reply) {}})
			}
		}
		require.NoError(t, c.Close(t.Context()))
		peer.Close()
	}
	for range 12_000 { // a goroutine that has done its last work needs a moment to be gone
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}

// A lane that was freed with an answer outstanding is waited for by nobody but Close, and that ends it.
func TestCloseEndsFreedLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 1, func(r *wiretest.Request) message.Response {
			if r.Key == wire.KeyDescribeCluster {
				return wiretest.NoAnswer
			}
			return nil
		}, client.RequestTimeout(time.Hour))
		_, err := c.AwaitTopics(t.Context())
		require.NoError(t, err)
		lane, free := c.Lane(client.Fetch)
		done := make(chan client.Reply, 1)
		c.Issue(1, lane, &client.Call{Key: wire.KeyDescribeCluster, Append: clusterRequest().AppendTo, Done: func(r client.Reply) { done <- r }})
		synctest.Wait()
		require.Equal(t, 2, peer.Connections(1))
		free()
		began := time.Now()
		require.NoError(t, c.Close(t.Context()))
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, (<-done).Err, client.ErrClosed)
	})
}

func TestCloseReturnsByTheEndOfCtx(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		stuck := func(ctx context.Context, network, addr string) (netConn, error) {
			<-release // a dial function that ignores ctx
			return nil, context.Cause(ctx)
		}
		c, err := client.New(client.Seeds("b:9092"), client.Dialer(stuck))
		require.NoError(t, err)
		c.AddTopics("orders")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, c.Close(ctx), context.DeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(began))
		close(release)
		require.NoError(t, c.Close(t.Context()))
	})
}

func TestMetadataIsRefreshedWhenItIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 1, nil)
		peer.SetTopic("orders", 1, 1)
		_, err := c.AwaitTopics(t.Context(), "orders")
		require.NoError(t, err)
		var mu sync.Mutex
		var epochs []int32
		stop := c.OnTopology(func(top *client.Topology) {
			mu.Lock()
			defer mu.Unlock()
			_, epoch, _ := top.Leader("orders", 0)
			epochs = append(epochs, epoch)
		})
		peer.SetTopic("orders", 2, 1)
		time.Sleep(301 * time.Second)
		require.Len(t, peer.Requests(wire.KeyMetadata), 2)
		peer.SetTopic("orders", 1, 1) // a broker that is behind
		c.RefreshMetadata()
		c.RefreshMetadata()
		time.Sleep(time.Second)
		n := len(peer.Requests(wire.KeyMetadata)) // one more if the second wish came while the first was being asked for
		require.True(t, n == 3 || n == 4, n)
		c.LearnLeader(wiretest.TopicID("orders"), 0, 1, 7, nil)
		synctest.Wait()
		stop()
		c.RefreshMetadata()
		time.Sleep(time.Second)
		require.Equal(t, []int32{1, 2, 7}, slices.Compact(epochs))
	})
}

func TestNewTopicsAreAskedForAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 1, nil)
		var names []string
		for i := range 30 {
			names = append(names, fmt.Sprintf("topic-%02d", i))
			peer.SetTopic(names[i], 1, 1)
		}
		asked := func() int {
			all := peer.Requests(wire.KeyMetadata)
			return len(all[len(all)-1].Body.(*message.MetadataRequest).Topics)
		}
		began := time.Now()
		_, err := c.AwaitTopics(t.Context(), names[:28]...)
		require.NoError(t, err)
		require.Equal(t, 28, asked())
		time.Sleep(100 * time.Second)
		top, err := c.AwaitTopics(t.Context(), names[28])
		require.NoError(t, err)
		require.Equal(t, 1, asked())
		require.Len(t, top.Topics(), 29, "the others are still known")
		time.Sleep(201*time.Second - time.Since(began.Add(100*time.Second)))
		require.Equal(t, 29, asked(), "an answer about one topic makes the others no younger")
	})
}

func TestHealthTellsTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, c := start(t, 2, answerCluster)
		h := c.Health(t.Context())
		require.True(t, h.OK)
		require.Equal(t, 2, h.Brokers)
		require.Equal(t, 1, h.Connections)
		require.NoError(t, h.Err)
		peer.Stop(1)
		peer.Stop(2)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		h = c.Health(ctx)
		require.False(t, h.OK)
		require.Error(t, h.Err)
		require.NotEmpty(t, h.LastError)
		require.Empty(t, h.Connected)
	})
}

func TestControllerIsAskedAgainWhenItMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		_, c := start(t, 2, func(r *wiretest.Request) message.Response {
			if r.Key != wire.KeyCreateTopics {
				return nil
			}
			if asked.Add(1) < 3 {
				return &message.CreateTopicsResponse{Topics: []message.CreatableTopicResult{{Name: "a", ErrorCode: 41}}} // NOT_CONTROLLER
			}
			return &message.CreateTopicsResponse{Topics: []message.CreatableTopicResult{{Name: "a", ErrorCode: 36}}} // TOPIC_ALREADY_EXISTS
		})
		resp, err := c.Request(t.Context(), client.Controller(), message.NewCreateTopicsRequest())
		require.NoError(t, err, "an error of one item is the caller's business")
		require.EqualValues(t, 36, resp.(*message.CreateTopicsResponse).Topics[0].ErrorCode)
		require.EqualValues(t, 3, asked.Load())
		require.EqualValues(t, 2, c.Metrics().RequestRetries)
	})
}

// Whatever ended the wait for an election is in the error of each key, with what the broker said last.
func TestElectionThatIsNotOverSaysWhatEndedTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t, 1, func(r *wiretest.Request) message.Response {
			if r.Key != wire.KeyFindCoordinator {
				return nil
			}
			return &message.FindCoordinatorResponse{Coordinators: []message.Coordinator{{Key: "g", NodeId: -1, ErrorCode: int16(errcode.CoordinatorNotAvailable)}}}
		})
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, enough)
		defer cancel()
		_, errs, err := c.Coordinators(ctx, client.GroupCoordinator, "g")
		require.NoError(t, err)
		require.ErrorIs(t, errs["g"], enough)
		require.ErrorIs(t, errs["g"], errcode.CoordinatorNotAvailable)
		began := time.Now()
		_, errs, err = c.Coordinators(t.Context(), client.GroupCoordinator, "g")
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Since(began))
		require.ErrorContains(t, errs["g"], "default.api.timeout.ms (1m0s)")
	})
}

func TestCoordinatorThatMovedIsLookedUpAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at atomic.Int32 // the brokers answer side by side
		at.Store(1)
		peer, c := start(t, 2, func(r *wiretest.Request) message.Response {
			switch req := r.Body.(type) {
			case *message.FindCoordinatorRequest:
				resp := new(message.FindCoordinatorResponse)
				if r.Version < 4 {
					resp.NodeId = at.Load()
					return resp
				}
				for _, key := range req.CoordinatorKeys {
					resp.Coordinators = append(resp.Coordinators, message.Coordinator{Key: key, NodeId: at.Load()})
				}
				return resp
			case *message.HeartbeatRequest:
				if r.Broker != at.Load() {
					return &message.HeartbeatResponse{ErrorCode: 16} // NOT_COORDINATOR
				}
				return &message.HeartbeatResponse{ErrorCode: 22} // ILLEGAL_GENERATION
			}
			return nil
		})
		heartbeat := func() {
			resp, err := c.Request(t.Context(), client.Coordinator(client.GroupCoordinator, "g"), message.NewHeartbeatRequest())
			require.ErrorContains(t, err, "ILLEGAL_GENERATION")
			require.EqualValues(t, 22, resp.(*message.HeartbeatResponse).ErrorCode, "the answer comes beside the error")
		}
		heartbeat()
		at.Store(2)
		heartbeat()
		require.Len(t, peer.Requests(wire.KeyFindCoordinator), 2)
		nodes, errs, err := c.Coordinators(t.Context(), client.TransactionCoordinator, "t1", "t2", "t3")
		require.NoError(t, err)
		require.Empty(t, errs)
		require.Len(t, nodes, 3)
		require.Len(t, peer.Requests(wire.KeyFindCoordinator), 3, "one request for all keys")
		peer.SetVersions(wire.KeyFindCoordinator, 0, 3)
		peer.Drop(1)
		peer.Drop(2)
		synctest.Wait()
		_, errs, err = c.Coordinators(t.Context(), client.TransactionCoordinator, "t4", "t5")
		require.NoError(t, err)
		require.Empty(t, errs)
		require.Len(t, peer.Requests(wire.KeyFindCoordinator), 5, "one request for each key before version 4")
	})
}
