package txn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// levels are the values of transaction.version that brokers have.
var levels = []int16{0, 1, 2}

// cluster starts a broker with a transaction.version and topics, and a client on it; both end with the test.
func cluster(t *testing.T, level int16, opts ...fakebroker.Option) (*fakebroker.Cluster, *client.Client) {
	k := fakebroker.Start(t, append([]fakebroker.Option{fakebroker.Feature("transaction.version", level), fakebroker.Topic("orders", 2), fakebroker.Topic("audit", 1)}, opts...)...)
	return k, connect(t, k)
}

func connect(t *testing.T, k *fakebroker.Cluster, opts ...client.Option) *client.Client {
	cl, err := client.New(append([]client.Option{client.Cluster(k), client.Jitter(1), client.RequestTimeout(3 * time.Second)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cl.Close(context.Background())) })
	return cl
}

// open makes a session that ends with the test.
func open(t *testing.T, cl *client.Client, id string, opts ...txn.Option) *txn.Session {
	s, err := txn.New(t.Context(), cl, id, opts...)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = s.Close(ctx)
	})
	return s
}

func text(topic, value string) producer.Record {
	return producer.Record{Topic: topic, Value: []byte(value)}.To(0)
}

// submit puts records into a transaction.
func submit(t *testing.T, tx *txn.Tx, topic string, values ...string) {
	for _, v := range values {
		require.NoError(t, tx.Submit(t.Context(), text(topic, v), nil))
	}
}

// committed is what read_committed readers see of partition 0 of a topic, in order.
func committed(t *testing.T, cl *client.Client, topic string) []string {
	tp := consumer.TopicPartition{Topic: topic}
	ends := stableEnd(t, cl, tp)
	c, err := consumer.New(cl, consumer.Assign(topic, 0), consumer.StartAt(consumer.Earliest), consumer.WithIsolation(consumer.ReadCommitted), consumer.Fetching(1, 10*time.Millisecond))
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	var out []string
	for slices.ContainsFunc(c.Partitions(), func(p consumer.PartitionState) bool { return p.Position < ends[tp] }) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		list, err := c.Poll(ctx, 0)
		cancel()
		if err != nil {
			require.True(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
		}
		for _, r := range list {
			out = append(out, string(r.Value))
		}
	}
	return out
}

// stableEnd is where read_committed readers end, once the markers of what has ended are written.
func stableEnd(t *testing.T, cl *client.Client, tp consumer.TopicPartition) map[consumer.TopicPartition]int64 {
	var ends [2]map[consumer.TopicPartition]int64
	for range 200 { // a transaction may be open, so not for ever
		for i, level := range []consumer.Isolation{consumer.ReadCommitted, consumer.ReadUncommitted} {
			c, err := consumer.New(cl, consumer.WithIsolation(level))
			require.NoError(t, err)
			ends[i], err = c.EndOffsets(t.Context(), tp)
			require.NoError(t, err)
			require.NoError(t, c.Close(context.Background()))
		}
		if ends[0][tp] == ends[1][tp] {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return ends[0]
}

// offsetOf is what a group has committed for orders-0, waiting for open transactions; -1 when nothing.
func offsetOf(t *testing.T, cl *client.Client, group string) int64 {
	req := message.NewOffsetFetchRequest()
	req.RequireStable = true
	req.Groups = []message.OffsetFetchRequestGroup{{GroupId: group, MemberEpoch: -1, Topics: []message.OffsetFetchRequestTopics{{Name: "orders", PartitionIndexes: []int32{0}}}}}
	for {
		resp, err := cl.Request(t.Context(), client.Coordinator(client.GroupCoordinator, group).Versions(8, 9), req)
		require.NoError(t, err)
		p := resp.(*message.OffsetFetchResponse).Groups[0].Topics[0].Partitions[0]
		if code := errcode.Code(p.ErrorCode); code != errcode.UnstableOffsetCommit {
			require.Equal(t, errcode.None, code)
			return p.CommittedOffset
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func at(offset int64) map[groupmember.TopicPartition]groupmember.Offset {
	return map[groupmember.TopicPartition]groupmember.Offset{{Topic: "orders"}: groupmember.OffsetAt(offset)}
}

// bothKinds runs a test with transactions whose partitions are added and with implicit ones; for a client versions 0 and 1
// are the same.
func bothKinds(t *testing.T, f func(t *testing.T, level int16)) {
	for _, level := range levels[1:] {
		t.Run(fmt.Sprintf("transaction.version %d", level), func(t *testing.T) { f(t, level) })
	}
}

// everyLevel runs a test for each transaction.version.
func everyLevel(t *testing.T, f func(t *testing.T, level int16)) {
	for _, level := range levels {
		t.Run(fmt.Sprintf("transaction.version %d", level), func(t *testing.T) { f(t, level) })
	}
}
