package admin_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// What a broker has said for good stays as it is when ctx ends while others are still asked.
func TestVerdictsOutliveTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := peer(t, 3, func(r *wiretest.Request) message.Response {
			req, ok := r.Body.(*message.ListOffsetsRequest)
			switch {
			case !ok:
				return nil
			case r.Broker == 3:
				return wiretest.NoAnswer
			}
			return listed(req, func(string, int32) (int64, int16) {
				if r.Broker == 1 {
					return -1, int16(errcode.TopicAuthorizationFailed)
				}
				return 7, 0
			})
		})
		p.SetTopic("orders", 0, 1, 2, 3)
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(enough) })
		rows, err := adminOf(t, p).ListOffsets(ctx, admin.Latest, tp("orders", 0), tp("orders", 1), tp("orders", 2))
		require.ErrorIs(t, err, enough)
		require.ErrorIs(t, err, errcode.TopicAuthorizationFailed)
		require.ErrorIs(t, rows[0].Err, errcode.TopicAuthorizationFailed)
		require.NotErrorIs(t, rows[0].Err, enough)
		require.NoError(t, rows[1].Err)
		require.EqualValues(t, 7, rows[1].Offset)
		require.ErrorIs(t, rows[2].Err, enough)
	})
}

// A broker that leaves the cluster while all are asked is not waited for: what it coordinated is at the others by then, which
// are asked again.
func TestBrokersThatLeaveAreNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *wiretest.Peer
		var left atomic.Bool
		p = peer(t, 2, func(r *wiretest.Request) message.Response {
			switch req := r.Body.(type) {
			case *message.MetadataRequest:
				resp := p.Metadata(req)
				if left.Load() {
					resp.Brokers = slices.DeleteFunc(resp.Brokers, func(b message.MetadataResponseBroker) bool { return b.NodeId == 2 })
				}
				return resp
			case *message.ListGroupsRequest, *message.ListTransactionsRequest:
				if r.Broker == 2 {
					time.AfterFunc(time.Second, func() { left.Store(true) })
					return wiretest.HangUp
				}
				ids, groups, txns := []string{"c"}, message.NewListGroupsResponse(), message.NewListTransactionsResponse()
				if left.Load() {
					ids = []string{"a", "b", "c"} // what the other one had
				}
				for _, id := range ids {
					groups.Groups = append(groups.Groups, message.ListedGroup{GroupId: id})
					txns.TransactionStates = append(txns.TransactionStates, message.ListTransactionsResponseTransactionState{TransactionalId: id})
				}
				if r.Key == wire.KeyListGroups {
					return groups
				}
				return txns
			}
			return nil
		})
		a := adminOf(t, p)
		began := time.Now()
		groups, err := a.ListGroups(t.Context(), admin.GroupFilter{})
		require.NoError(t, err)
		require.Len(t, groups, 3)
		require.Less(t, time.Since(began), 10*time.Second)
		left.Store(false)
		began = time.Now()
		txns, err := a.ListTransactions(t.Context(), admin.TransactionFilter{})
		require.NoError(t, err)
		require.Len(t, txns, 3)
		require.Less(t, time.Since(began), 10*time.Second)
	})
}

// A client that knows no broker yet is no reason to say that there is none of that id: its first metadata may take its time.
func TestOneReplicaIsWaitedForWhileTheClientStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *wiretest.Peer
		p = peer(t, 2, func(r *wiretest.Request) message.Response {
			switch req := r.Body.(type) {
			case *message.MetadataRequest:
				time.Sleep(4 * time.Second)
				return p.Metadata(req)
			case *message.DescribeProducersRequest:
				return &message.DescribeProducersResponse{Topics: []message.TopicResponse{{Name: "orders", Partitions: []message.PartitionResponse{{}}}}}
			}
			return nil
		})
		p.SetTopic("orders", 0, 1)
		_, err := adminOf(t, p).DescribeProducersOn(t.Context(), 2, tp("orders", 0))
		require.NoError(t, err)
		began := time.Now()
		rows, err := adminOf(t, p).DescribeProducersOn(t.Context(), 7, tp("orders", 0))
		require.ErrorIs(t, err, client.ErrUnknownBroker)
		require.ErrorContains(t, rows[0].Err, "there is no broker 7, the cluster has 1, 2")
		require.Less(t, time.Since(began), 40*time.Second)
	})
}
