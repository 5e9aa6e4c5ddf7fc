package admin_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

func TestCreatedTopicTellsWhatItGot(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Config("num.partitions", "4"))
	a := adminOf(t, k)
	rows, err := a.CreateTopics(t.Context(),
		admin.NewTopic{Name: "placed", Assignment: map[int32][]int32{1: {1}, 0: {1}}},
		admin.NewTopic{Name: "defaults"},
		admin.NewTopic{Name: "configured", Partitions: 2, Replicas: 1, Configs: map[string]string{"retention.ms": "1000", "cleanup.policy": "compact"}})
	require.NoError(t, err)
	require.Len(t, rows, 3)
	for i, want := range []struct {
		name       string
		partitions int
	}{{"placed", 2}, {"defaults", 4}, {"configured", 2}} {
		require.Equal(t, want.name, rows[i].Name, "rows are in the order of asking")
		require.Equal(t, want.partitions, rows[i].Partitions)
		require.Equal(t, 1, rows[i].Replicas)
		require.False(t, rows[i].ID.IsZero())
	}
	require.Equal(t, "compact", rows[2].Configs["cleanup.policy"])
	require.Equal(t, "1000", rows[2].Configs["retention.ms"])
	require.NotEmpty(t, rows[2].Configs["segment.bytes"], "defaults are there too")
}

// A call of which some rows failed has an error, and the rows say which and why in the broker's words.
func TestFailedRowsDoNotKeepOthersFromBeingCreated(t *testing.T) {
	a := adminOf(t, fakebroker.Start(t, fakebroker.Topic("old", 1)))
	rows, err := a.CreateTopics(t.Context(), admin.NewTopic{Name: "old"}, admin.NewTopic{Name: "new"}, admin.NewTopic{Name: "bad name"},
		admin.NewTopic{Name: "unknown-config", Configs: map[string]string{"retention.bits": "1"}}, admin.NewTopic{Name: "many", Partitions: 1, Replicas: 1 << 20})
	require.ErrorIs(t, err, errcode.TopicAlreadyExists)
	require.ErrorIs(t, err, errcode.InvalidTopicException)
	require.ErrorIs(t, err, errcode.InvalidConfig)
	require.ErrorIs(t, err, errcode.InvalidReplicationFactor)
	require.ErrorContains(t, err, "Topic 'old' already exists.")
	require.ErrorContains(t, err, "retention.bits")
	require.NoError(t, rows[1].Err)
	var row *admin.Error
	require.ErrorAs(t, rows[0].Err, &row)
	require.Equal(t, "create topic", row.Op)
	require.Equal(t, "old", row.What)
	require.Equal(t, -1, rows[2].Partitions)
	topics, err := a.ListTopics(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"new", "old"}, names(topics))
}

func names(topics []admin.Topic) (list []string) {
	for _, t := range topics {
		list = append(list, t.Name)
	}
	return list
}

func TestValidationCreatesNothing(t *testing.T) {
	a := adminOf(t, fakebroker.Start(t, fakebroker.Topic("old", 1)))
	rows, err := a.ValidateTopics(t.Context(), admin.NewTopic{Name: "new", Partitions: 3})
	require.NoError(t, err)
	require.Equal(t, 3, rows[0].Partitions)
	_, err = a.ValidateTopics(t.Context(), admin.NewTopic{Name: "old"})
	require.ErrorIs(t, err, errcode.TopicAlreadyExists)
	_, err = a.ValidatePartitions(t.Context(), admin.MorePartitions{Topic: "old", Total: 9})
	require.NoError(t, err)
	topics, err := a.ListTopics(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"old"}, names(topics))
	require.Len(t, topics[0].Partitions, 1)
}

func TestDescribedTopicsKeepTheOrderOfAsking(t *testing.T) {
	a := adminOf(t, fakebroker.Start(t, fakebroker.Topic("a", 2), fakebroker.Topic("b", 1)))
	rows, err := a.DescribeTopics(t.Context(), "b", "missing", "a", "b")
	require.ErrorIs(t, err, errcode.UnknownTopicOrPartition)
	require.Equal(t, []string{"b", "missing", "a"}, names(rows))
	require.Error(t, rows[1].Err)
	require.Len(t, rows[2].Partitions, 2)
	p := rows[2].Partitions[1]
	require.Equal(t, int32(1), p.ID)
	require.Equal(t, int32(1), p.Leader)
	require.Equal(t, []int32{1}, p.ISR)
	require.False(t, p.UnderReplicated())
	require.True(t, p.UnderMinISR(2))
	require.Equal(t, 1, rows[2].Replicas())
	none, err := a.DescribeTopics(t.Context())
	require.NoError(t, err)
	require.Empty(t, none, "no names are not all names")
}

// More partitions than fit in one answer come in pages.
func TestLargeTopicsAreDescribedWhole(t *testing.T) {
	a := adminOf(t, fakebroker.Start(t, fakebroker.Topic("wide", 45), fakebroker.Topic("z", 3), fakebroker.Config("max.request.partition.size.limit", "10")))
	rows, err := a.DescribeTopics(t.Context(), "z", "wide")
	require.NoError(t, err)
	require.Len(t, rows[0].Partitions, 3)
	require.Len(t, rows[1].Partitions, 45)
	for i, p := range rows[1].Partitions {
		require.Equal(t, int32(i), p.ID)
	}
}

func TestDeletingTopicsTwiceFailsOnce(t *testing.T) {
	a := adminOf(t, fakebroker.Start(t, fakebroker.Topic("a", 1), fakebroker.Topic("b", 1)))
	rows, err := a.DeleteTopics(t.Context(), "b", "missing", "a", "b")
	require.ErrorIs(t, err, errcode.UnknownTopicOrPartition)
	require.Len(t, rows, 3)
	require.NoError(t, rows[0].Err)
	require.False(t, rows[0].ID.IsZero())
	require.ErrorContains(t, rows[1].Err, "missing")
	require.NoError(t, rows[2].Err)
	left, err := a.ListTopics(t.Context())
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestPartitionsGrowAndNeverShrink(t *testing.T) {
	a := adminOf(t, fakebroker.Start(t, fakebroker.Topic("a", 2)))
	_, err := a.CreatePartitions(t.Context(), admin.MorePartitions{Topic: "a", Total: 3}, admin.MorePartitions{Topic: "missing", Total: 3})
	require.ErrorIs(t, err, errcode.UnknownTopicOrPartition)
	rows, err := a.CreatePartitions(t.Context(), admin.MorePartitions{Topic: "a", Total: 5, Assignment: [][]int32{{1}, {1}}})
	require.NoError(t, err)
	require.Equal(t, "a", rows[0].Topic)
	_, err = a.CreatePartitions(t.Context(), admin.MorePartitions{Topic: "a", Total: 1})
	require.ErrorIs(t, err, errcode.InvalidPartitions)
	topics, err := a.DescribeTopics(t.Context(), "a")
	require.NoError(t, err)
	require.Len(t, topics[0].Partitions, 5)
}

// Rows that the controller's quota holds up are asked for again, without those that got through (KIP-599).
func TestThrottledRowsAreAskedForAgain(t *testing.T) {
	var mu sync.Mutex
	asked := [][]string{}
	p := peer(t, 1, func(r *wiretest.Request) message.Response {
		req, ok := r.Body.(*message.CreateTopicsRequest)
		if !ok {
			return nil
		}
		resp, list := message.NewCreateTopicsResponse(), []string{}
		for i, topic := range req.Topics {
			list = append(list, topic.Name)
			row := message.CreatableTopicResult{Name: topic.Name, NumPartitions: 1, ReplicationFactor: 1}
			if i > 0 {
				row.ErrorCode, row.ErrorMessage = int16(errcode.ThrottlingQuotaExceeded), new("The throttling quota has been exceeded.")
			}
			resp.Topics = append([]message.CreatableTopicResult{row}, resp.Topics...)
		}
		mu.Lock()
		asked = append(asked, list)
		mu.Unlock()
		return resp
	})
	rows, err := adminOf(t, p).CreateTopics(t.Context(), admin.NewTopic{Name: "a"}, admin.NewTopic{Name: "b"}, admin.NewTopic{Name: "c"})
	require.NoError(t, err)
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, [][]string{{"a", "b", "c"}, {"b", "c"}, {"c"}}, asked)
	require.Equal(t, "c", rows[2].Name)
	require.Equal(t, 1, rows[2].Partitions)
}

// A broker that is not the controller is left for the one that is.
func TestControllerIsFollowed(t *testing.T) {
	var p *wiretest.Peer
	var controller atomic.Int32 // the brokers answer side by side
	controller.Store(1)
	p = peer(t, 2, func(r *wiretest.Request) message.Response {
		switch req := r.Body.(type) {
		case *message.MetadataRequest:
			resp := p.Metadata(req)
			resp.ControllerId = controller.Load()
			return resp
		case *message.DeleteTopicsRequest:
			code := errcode.None
			if r.Broker != 2 {
				controller.Store(2)
				code = errcode.NotController
			}
			return &message.DeleteTopicsResponse{Responses: []message.DeletableTopicResult{{Name: req.Topics[0].Name, ErrorCode: int16(code)}}}
		}
		return nil
	})
	_, err := adminOf(t, p).DeleteTopics(t.Context(), "a")
	require.NoError(t, err)
	asked := p.Requests(wire.KeyDeleteTopics)
	require.Equal(t, int32(1), asked[0].Broker)
	require.Equal(t, int32(2), asked[len(asked)-1].Broker)
}

func TestLostAnswersAndDroppedConnectionsAreTriedAgain(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
	a := adminOf(t, k)
	for _, rule := range []fault.Rule{
		fault.CreateTopics().DropConnection().Times(2),
		fault.Metadata().LoseResponse().Times(1),
		fault.ListOffsets().LoseResponse().Times(1),
		fault.ListOffsets().Error(errcode.NotLeaderOrFollower).Times(2),
		fault.On(wire.KeyDeleteRecords).LoseResponse().Times(1),
	} {
		k.Inject(rule)
	}
	_, err := a.CreateTopics(t.Context(), admin.NewTopic{Name: "new"})
	require.NoError(t, err)
	_, err = a.ListOffsets(t.Context(), admin.Latest, tp("orders", 0), tp("new", 0))
	require.NoError(t, err)
	_, err = a.DeleteRecords(t.Context(), map[admin.TopicPartition]int64{tp("orders", 0): admin.AllRecords})
	require.NoError(t, err)
}

func TestTopicIsAwaitedUntilItHasLeaders(t *testing.T) {
	var p *wiretest.Peer
	var asked atomic.Int32 // by the administrator: the client itself asks for no topic
	p = peer(t, 1, func(r *wiretest.Request) message.Response {
		if req, ok := r.Body.(*message.MetadataRequest); ok && len(req.Topics) > 0 {
			require.False(t, req.AllowAutoTopicCreation, "waiting for a topic does not create it")
			switch asked.Add(1) {
			case 2:
				p.SetTopic("late", 0, 1, -1)
			case 4:
				p.SetTopic("late", 1, 1, 1)
			}
		}
		return nil
	})
	require.NoError(t, adminOf(t, p).AwaitTopic(t.Context(), "late"))
	require.EqualValues(t, 4, asked.Load())
}

// What waits says what it was waiting for when ctx or default.api.timeout.ms ends it.
func TestWaitingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		a := adminOf(t, k)
		began := time.Now()
		err := a.AwaitTopic(t.Context(), "never")
		require.ErrorIs(t, err, client.ErrTimeout)
		require.ErrorIs(t, err, errcode.UnknownTopicOrPartition)
		require.InDelta(t, 60, time.Since(began).Seconds(), 1, "default.api.timeout.ms")

		gone := errors.New("the user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(gone) })
		err = a.AwaitTopic(ctx, "never")
		require.ErrorIs(t, err, gone)
		require.ErrorIs(t, err, errcode.UnknownTopicOrPartition)
	})
}

func TestClosedAdminRefuses(t *testing.T) {
	k := fakebroker.Start(t)
	a, err := admin.Dial(k.Addrs(), client.Dialer(k.DialContext))
	require.NoError(t, err)
	_, err = a.ListTopics(t.Context())
	require.NoError(t, err)
	require.NoError(t, a.Close(t.Context()))
	require.NoError(t, a.Close(t.Context()))
	_, err = a.ListTopics(t.Context())
	require.ErrorIs(t, err, client.ErrClosed)
	_, err = a.ListOffsets(t.Context(), admin.Latest, tp("orders", 0))
	require.ErrorIs(t, err, client.ErrClosed)
	_, err = a.ListGroups(t.Context(), admin.GroupFilter{})
	require.ErrorIs(t, err, client.ErrClosed)
	_, err = a.Lag(t.Context(), "g")
	require.ErrorIs(t, err, client.ErrClosed)

	_, err = admin.Dial(nil)
	require.ErrorContains(t, err, "bootstrap.servers")
}

// An Admin on somebody's client leaves it open.
func TestCloseLeavesABorrowedClientOpen(t *testing.T) {
	cl, err := client.New(client.Cluster(fakebroker.Start(t)))
	require.NoError(t, err)
	defer cl.Close(t.Context())
	a := admin.New(cl)
	require.NoError(t, a.Close(t.Context()))
	_, err = a.ListTopics(t.Context())
	require.NoError(t, err)
	require.Same(t, cl, a.Client())
}
