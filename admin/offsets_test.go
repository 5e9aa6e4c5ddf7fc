package admin_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

func TestOffsetsAreFoundByPlaceAndTime(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 12))
	a := adminOf(t, k)
	noon := time.UnixMilli(1_700_000_000_000)
	produce(t, k, "orders", 10, noon, noon.Add(time.Hour), noon.Add(time.Minute))
	for _, c := range []struct {
		name   string
		spec   admin.OffsetSpec
		offset int64
		at     time.Time
	}{
		{"latest", admin.Latest, 3, time.Time{}},
		{"last stable", admin.LastStable, 3, time.Time{}},
		{"earliest", admin.Earliest, 0, time.Time{}},
		{"largest timestamp", admin.MaxTimestamp, 1, noon.Add(time.Hour)},
		{"by time", admin.AtTime(noon.Add(time.Second)), 1, noon.Add(time.Hour)},
		{"after the end", admin.AtTime(noon.Add(2 * time.Hour)), -1, time.Time{}},
		{"before 1970", admin.AtTime(time.UnixMilli(-2)), 0, noon},
	} {
		rows, err := a.ListOffsets(t.Context(), c.spec, tp("orders", 10), tp("orders", 2), tp("orders", 10))
		require.NoError(t, err, c.name)
		require.Len(t, rows, 2, c.name)
		require.Equal(t, tp("orders", 10), rows[0].TopicPartition, c.name)
		require.Equal(t, c.offset, rows[0].Offset, c.name)
		require.True(t, c.at.Equal(rows[0].Timestamp), "%s: %s", c.name, rows[0].Timestamp)
	}
}

func TestRecordsAreDeletedUpToAnOffset(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 12))
	a := adminOf(t, k)
	produce(t, k, "orders", 2, time.Now(), time.Now(), time.Now())
	produce(t, k, "orders", 10, time.Now(), time.Now())
	rows, err := a.DeleteRecords(t.Context(), map[admin.TopicPartition]int64{tp("orders", 10): admin.AllRecords, tp("orders", 2): 1, tp("orders", 3): 7})
	require.ErrorIs(t, err, errcode.OffsetOutOfRange)
	require.ErrorContains(t, err, "delete records of orders-3")
	require.ErrorContains(t, err, "offset 7 is not in the log")
	require.Len(t, rows, 3)
	require.Equal(t, tp("orders", 2), rows[0].TopicPartition, "2 before 10")
	require.Equal(t, []int64{1, -1, 2}, []int64{rows[0].LowWatermark, rows[1].LowWatermark, rows[2].LowWatermark})
	first, err := a.ListOffsets(t.Context(), admin.Earliest, tp("orders", 2), tp("orders", 10))
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2}, []int64{first[0].Offset, first[1].Offset})
}

// A partition that is not there is one failed row, found out within a second; the others are answered.
func TestMissingPartitionsFailAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		a, err := admin.Dial(k.Addrs(), client.Dialer(k.DialContext))
		require.NoError(t, err)
		defer a.Close(t.Context())
		began := time.Now()
		rows, err := a.ListOffsets(t.Context(), admin.Latest, tp("orders", 0), tp("orders", 5), tp("missing", 0))
		require.ErrorIs(t, err, errcode.UnknownTopicOrPartition)
		require.ErrorContains(t, err, `topic "orders" has 1 partitions, there is no partition 5`)
		require.Less(t, time.Since(began), 1500*time.Millisecond)
		require.NoError(t, rows[0].Err)
		require.Zero(t, rows[0].Offset)
		require.Error(t, rows[1].Err)
		require.Error(t, rows[2].Err)
		require.Equal(t, int64(-1), rows[2].Offset)
	})
}

// Each leader is asked once for all its partitions. Rows whose leader moved meanwhile are asked for again, alone, at the
// new one.
func TestRowsFollowTheirLeaders(t *testing.T) {
	var p *wiretest.Peer
	var moved atomic.Bool
	p = peer(t, 3, func(r *wiretest.Request) message.Response {
		switch req := r.Body.(type) {
		case *message.ListOffsetsRequest:
			return listed(req, func(topic string, partition int32) (int64, int16) {
				if r.Broker == 2 && partition == 1 && moved.CompareAndSwap(false, true) {
					p.SetTopic("orders", 1, 1, 3, 2, 1)
					return -1, int16(errcode.NotLeaderOrFollower)
				}
				return int64(100*r.Broker + partition), 0
			})
		}
		return nil
	})
	p.SetTopic("orders", 0, 1, 2, 2, 1)
	rows, err := adminOf(t, p).ListOffsets(t.Context(), admin.Latest, tp("orders", 3), tp("orders", 2), tp("orders", 1), tp("orders", 0))
	require.NoError(t, err)
	require.Equal(t, []int64{103, 202, 301, 100}, []int64{rows[0].Offset, rows[1].Offset, rows[2].Offset, rows[3].Offset})
	require.Len(t, p.Requests(wire.KeyListOffsets), 3)
}

// A leader that died is given up for the next one.
func TestRowsOfADeadLeaderAreAskedElsewhere(t *testing.T) {
	var p *wiretest.Peer
	var died atomic.Bool
	p = peer(t, 2, func(r *wiretest.Request) message.Response {
		req, ok := r.Body.(*message.DeleteRecordsRequest)
		if !ok {
			return nil
		}
		if r.Broker == 2 && died.CompareAndSwap(false, true) {
			p.SetTopic("orders", 1, 1, 1)
			return wiretest.HangUp
		}
		resp := message.NewDeleteRecordsResponse()
		for _, topic := range req.Topics {
			out := message.DeleteRecordsTopicResult{Name: topic.Name}
			for _, q := range topic.Partitions {
				out.Partitions = append(out.Partitions, message.DeleteRecordsPartitionResult{PartitionIndex: q.PartitionIndex, LowWatermark: q.Offset})
			}
			resp.Topics = append(resp.Topics, out)
		}
		return resp
	})
	p.SetTopic("orders", 0, 1, 2)
	rows, err := adminOf(t, p).DeleteRecords(t.Context(), map[admin.TopicPartition]int64{tp("orders", 0): 5, tp("orders", 1): 6})
	require.NoError(t, err)
	require.Equal(t, []int64{5, 6}, []int64{rows[0].LowWatermark, rows[1].LowWatermark})
	require.Len(t, p.Requests(wire.KeyDeleteRecords), 3)
}

// A partition without a leader is waited for.
func TestPartitionsWithoutALeaderAreWaitedFor(t *testing.T) {
	p := peer(t, 1, func(r *wiretest.Request) message.Response {
		if req, ok := r.Body.(*message.ListOffsetsRequest); ok {
			return listed(req, func(string, int32) (int64, int16) { return 7, 0 })
		}
		return nil
	})
	p.SetTopic("orders", 0, -1)
	time.AfterFunc(10*time.Millisecond, func() { p.SetTopic("orders", 1, 1) })
	rows, err := adminOf(t, p).ListOffsets(t.Context(), admin.Latest, tp("orders", 0))
	require.NoError(t, err)
	require.Equal(t, int64(7), rows[0].Offset)
}

// What a broker leaves out of its answer is an error, not a zero.
func TestMissingAnswersAreErrors(t *testing.T) {
	p := peer(t, 1, func(r *wiretest.Request) message.Response {
		if r.Key == wire.KeyMetadata {
			return nil
		}
		if _, ok := r.Body.(*message.ApiVersionsRequest); ok {
			return nil
		}
		return r.Body.NewResponse()
	})
	p.SetTopic("orders", 0, 1)
	a := adminOf(t, p)
	_, err := a.ListOffsets(t.Context(), admin.Latest, tp("orders", 0))
	require.ErrorContains(t, err, "leaves it out")
	_, err = a.DeleteRecords(t.Context(), map[admin.TopicPartition]int64{tp("orders", 0): 0})
	require.ErrorContains(t, err, "leaves it out")
	_, err = a.CreateTopics(t.Context(), admin.NewTopic{Name: "x"})
	require.ErrorContains(t, err, "leaves it out")
	_, err = a.DeleteTopics(t.Context(), "x")
	require.ErrorContains(t, err, "leaves it out")
	_, err = a.CreatePartitions(t.Context(), admin.MorePartitions{Topic: "x", Total: 1})
	require.ErrorContains(t, err, "leaves it out")
	_, err = a.DescribeTopics(t.Context(), "orders")
	require.ErrorContains(t, err, "leaves it out")
	_, err = a.DescribeConfigs(t.Context(), admin.TopicConfigs("x"))
	require.ErrorContains(t, err, "leaves it out")
	_, err = a.AlterConfigs(t.Context(), admin.ConfigChange{Resource: admin.TopicConfigs("x"), Name: "a", Value: "b"})
	require.ErrorContains(t, err, "leaves it out")
}
