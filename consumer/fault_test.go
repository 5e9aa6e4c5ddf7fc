package consumer_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/consumer/internal/logpeer"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// events gathers a consumer's events.
type events struct {
	mu   sync.Mutex
	list []consumer.Event
}

func (e *events) option() consumer.Option {
	return consumer.OnEvent(func(ev consumer.Event) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.list = append(e.list, ev)
	})
}

func (e *events) find(kind any) (out []consumer.Event) {
	synctest.Wait() // events come from the consumer's goroutine
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.list {
		if ev.Kind == kind {
			out = append(out, ev)
		}
	}
	return out
}

func TestLeaderMoves(t *testing.T) {
	bubble(t, 3, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		k.Append(t, "orders", 0, 10, compress.None)
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest))
		all := take(t, c, 5)
		k.MoveLeader("orders", 0, 2)
		k.Announce("orders")
		k.Append(t, "orders", 0, 10, compress.None)
		all = append(all, take(t, c, 15)...)
		// Now to a broker whose old leader is gone, so that nobody tells of the new one.
		k.MoveLeader("orders", 0, 3)
		k.Stop(2)
		k.Announce("orders")
		k.Append(t, "orders", 0, 10, compress.None)
		requireRuns(t, append(all, take(t, c, 10)...), nil)
		require.NotEmpty(t, k.Requests(23), "positions are checked with OffsetForLeaderEpoch")
	})
}

func TestBrokerThatRestartsIsFollowed(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		k.Append(t, "orders", 0, 10, compress.None)
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest))
		all := take(t, c, 10)
		k.Stop(1)
		nothing(t, c, 30*time.Second)
		k.DropSessions()
		k.Start(1)
		k.Append(t, "orders", 0, 10, compress.None)
		requireRuns(t, append(all, take(t, c, 10)...), nil)
	})
}

func TestClusterThatStaysAwayIsReportedAfterTheTimeout(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		k.Append(t, "orders", 0, 1, compress.None)
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest))
		take(t, c, 1)
		k.Stop(1)
		begin := time.Now()
		_, err := c.Poll(within(t, 10*time.Minute), 1)
		var op *client.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "orders", op.Topic)
		require.Contains(t, op.Hint, "tried further")
		require.Greater(t, op.Attempts, 5)
		require.InDelta(t, 60, time.Since(begin).Seconds(), 5)
		k.Start(1)
		k.Append(t, "orders", 0, 1, compress.None)
		require.EqualValues(t, 1, take(t, c, 1)[0].Offset)
	})
}

func TestTopicThatDoesNotExistIsReported(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		c := consume(t, k, consumer.Assign("nope", 0), consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest))
		k.Append(t, "orders", 0, 1, compress.None)
		take(t, c, 1)
		_, err := c.Poll(within(t, 10*time.Minute), 1)
		require.ErrorIs(t, err, errcode.UnknownTopicOrPartition)
		require.ErrorContains(t, err, "nope-0")
	})
}

func TestTruncationIsReportedWithItsOffsets(t *testing.T) {
	bubble(t, 2, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		for range 4 {
			k.Append(t, "orders", 0, 10, compress.None)
		}
		var ev events
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest), consumer.OnReset(consumer.Fail), ev.option())
		take(t, c, 40)
		k.Truncate("orders", 0, 20)
		k.MoveLeader("orders", 0, 2)
		k.Announce("orders")
		k.Append(t, "orders", 0, 5, compress.None)
		_, err := c.Poll(within(t, time.Minute), 1)
		require.ErrorIs(t, err, consumer.ErrTruncated)
		var cut *consumer.TruncatedError
		require.ErrorAs(t, err, &cut)
		require.Equal(t, consumer.Position{Offset: 40, Epoch: 1}, cut.From)
		require.Equal(t, consumer.Position{Offset: 20, Epoch: 1}, cut.To)
		require.Len(t, ev.find(consumer.EventTruncated), 1)
		require.ErrorIs(t, c.Partitions()[0].Halted, consumer.ErrTruncated)
		nothing(t, c, time.Minute)
		require.NoError(t, c.Seek(tp("orders", 0), consumer.AtPosition(cut.To)))
		requireRuns(t, take(t, c, 5), map[int32]int64{0: 20})
		require.NoError(t, c.Partitions()[0].Halted)
	})
}

func TestTruncationWithAResetPolicyGoesOnWhereTheLogsPart(t *testing.T) {
	bubble(t, 2, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		for range 4 {
			k.Append(t, "orders", 0, 10, compress.None)
		}
		var ev events
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest), ev.option())
		take(t, c, 40)
		k.Truncate("orders", 0, 20)
		k.MoveLeader("orders", 0, 2)
		k.Announce("orders")
		k.Append(t, "orders", 0, 5, compress.None)
		requireRuns(t, take(t, c, 5), map[int32]int64{0: 20})
		cut := ev.find(consumer.EventTruncated)
		require.Len(t, cut, 1)
		require.EqualValues(t, 40, cut[0].Old.Offset)
		require.EqualValues(t, 20, cut[0].New.Offset)
	})
}

func TestOffsetsOutOfRangeFollowThePolicy(t *testing.T) {
	for name, want := range map[string]struct {
		policy consumer.Where
		next   int64
	}{"earliest": {consumer.Earliest, 30}, "latest": {consumer.Latest, 50}, "nearest": {consumer.Nearest, 30},
		"by duration": {consumer.ByDuration(200 * 365 * 24 * time.Hour), 30}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
				k.Topic("orders", 1)
				for range 5 {
					k.Append(t, "orders", 0, 10, compress.None)
				}
				k.Change("orders", 0, func(p *logpeer.Partition) { p.LogStart = 30 })
				var ev events
				c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.AtOffset(3)), consumer.OnReset(want.policy), ev.option())
				if want.next == 50 {
					nothing(t, c, 5*time.Second)
					k.Append(t, "orders", 0, 1, compress.None)
				}
				r := take(t, c, 1)[0]
				require.Equal(t, want.next, r.Offset)
				resets := ev.find(consumer.EventReset)
				require.NotEmpty(t, resets)
				require.EqualValues(t, 3, resets[0].Old.Offset)
				require.Equal(t, "the offset is out of range", resets[0].Reason)
			})
		})
	}
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1, 1)
		k.Append(t, "orders", 0, 5, compress.None)
		k.Append(t, "orders", 1, 5, compress.None)
		c := consume(t, k, consumer.AssignAt("orders", 0, consumer.AtOffset(77)), consumer.AssignAt("orders", 1, consumer.Earliest),
			consumer.OnReset(consumer.Fail))
		n, failed := 0, 0
		for r, err := range c.Records(within(t, time.Minute)) {
			if err != nil {
				require.ErrorIs(t, err, consumer.ErrOutOfRange)
				require.Equal(t, tp("orders", 0), r.TopicPartition())
				failed++
			} else {
				n++ // the other partition goes on
			}
			if n == 5 && failed == 1 {
				break
			}
		}
	})
}

func TestFailFastEndsAtTheFirstError(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		c := consume(t, k, consumer.AssignAt("orders", 0, consumer.AtOffset(77)), consumer.OnReset(consumer.Fail), consumer.FailFast)
		n := 0
		for _, err := range c.Records(within(t, time.Minute)) {
			require.ErrorIs(t, err, consumer.ErrOutOfRange)
			n++
		}
		require.Equal(t, 1, n)
	})
}

func TestTopicCreatedAnewStopsOrIsAdopted(t *testing.T) {
	replace := func(k *logpeer.Cluster) {
		k.ReplaceTopic("orders", 1)
		k.Append(t, "orders", 0, 3, compress.None)
	}
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		k.Append(t, "orders", 0, 10, compress.None)
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest))
		take(t, c, 10)
		replace(k)
		_, err := c.Poll(within(t, 20*time.Minute), 1)
		require.ErrorIs(t, err, consumer.ErrTopicReplaced)
		require.NoError(t, c.Seek(tp("orders", 0), consumer.Earliest))
		requireRuns(t, take(t, c, 3), nil)
	})
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		k.Append(t, "orders", 0, 10, compress.None)
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest), consumer.OnTopicReplaced(consumer.Adopt))
		take(t, c, 10)
		replace(k)
		requireRuns(t, take(t, c, 3), nil)
	})
}

func TestDamagedBatchHaltsItsPartitionAfterASecondTry(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1, 1)
		k.Append(t, "orders", 0, 5, compress.None)
		b := record.NewBuilder(nil)
		b.Append(5, nil, []byte("damaged"), nil)
		bytes := append([]byte(nil), b.Seal(record.NoProducer())...)
		bytes[len(bytes)-2] ^= 1
		k.AppendBytes("orders", 0, bytes)
		k.Append(t, "orders", 0, 5, compress.None)
		k.Append(t, "orders", 1, 5, compress.None)
		c := consume(t, k, consumer.Assign("orders", 0, 1), consumer.StartAt(consumer.Earliest))
		var all []consumer.Record
		var failure error
		for r, err := range c.Records(within(t, time.Minute)) {
			if err != nil {
				failure = err
			} else {
				all = append(all, r)
			}
			if len(all) == 10 && failure != nil {
				break
			}
		}
		requireRuns(t, all, nil)
		require.ErrorIs(t, failure, consumer.ErrCorrupt)
		require.ErrorIs(t, failure, record.ErrCorrupt)
		require.ErrorContains(t, failure, "orders-0")
		nothing(t, c, time.Minute)
		require.NoError(t, c.Seek(tp("orders", 0), consumer.AtOffset(6)))
		requireRuns(t, take(t, c, 5), map[int32]int64{0: 6})
	})
}

func TestDamageOnTheWayIsCuredByTheSecondTry(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		k.Append(t, "orders", 0, 5, compress.None)
		k.Append(t, "orders", 0, 5, compress.None)
		var done atomic.Bool
		k.Hook(func(r *wiretest.Request) message.Response {
			resp := k.Answer(r)
			if f, ok := resp.(*message.FetchResponse); ok && len(f.Responses) > 0 && len(f.Responses[0].Partitions[0].Records) > 0 && done.CompareAndSwap(false, true) {
				b := f.Responses[0].Partitions[0].Records
				b[len(b)-3] ^= 1
			}
			return resp
		})
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest))
		requireRuns(t, take(t, c, 10), nil)
		require.True(t, done.Load())
	})
}

func TestBatchDamagedInsideEndsALoopOverBatchesWithAnError(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		b := record.NewBuilder(nil)
		for i := range 4 {
			b.Append(int64(i), nil, []byte("12345678"), nil)
		}
		bytes := append([]byte(nil), b.Seal(record.NoProducer())...)
		bytes[len(bytes)-15] = 0x7e // the last record's length, with a checksum that agrees
		record.Reseal(bytes, record.NoProducer())
		k.AppendBytes("orders", 0, bytes)
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest))
		n := 0
		for b, err := range c.Batches(within(t, time.Minute)) {
			if err != nil {
				require.ErrorIs(t, err, consumer.ErrCorrupt)
				break
			}
			for range b.Records() {
				n++
			}
			require.Error(t, b.Err())
		}
		require.Equal(t, 3, n, "no record twice, although the batch was fetched twice")
	})
}

func TestDecompressionIsBounded(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		b := record.NewBuilder(nil)
		b.Append(0, nil, make([]byte, 8<<20), nil)
		comp, err := compress.NewCompressor(compress.Zstd, compress.DefaultLevel)
		require.NoError(t, err)
		k.AppendBytes("orders", 0, b.SealCompressed(nil, record.NoProducer(), comp))
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest), consumer.MaxDecompressed(1<<20))
		_, err = c.Poll(within(t, time.Minute), 1)
		require.ErrorIs(t, err, compress.ErrTooLarge)
	})
}

func TestAuthorizationThatIsMissingIsReportedAndRecovers(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		k.Append(t, "orders", 0, 5, compress.None)
		var mu sync.Mutex
		denied := true
		k.Hook(func(r *wiretest.Request) message.Response {
			mu.Lock()
			defer mu.Unlock()
			req, ok := r.Body.(*message.FetchRequest)
			if !ok || !denied || len(req.Topics) == 0 {
				return nil
			}
			var d message.FetchResponsePartitionData
			d.SetDefaults()
			d.ErrorCode = int16(errcode.TopicAuthorizationFailed)
			return &message.FetchResponse{Responses: []message.FetchableTopicResponse{{TopicId: req.Topics[0].TopicId, Partitions: []message.FetchResponsePartitionData{d}}}}
		})
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest))
		begin := time.Now()
		_, err := c.Poll(within(t, time.Minute), 1)
		require.ErrorIs(t, err, errcode.TopicAuthorizationFailed)
		require.Less(t, time.Since(begin), 5*time.Second, "at once")
		var code errcode.Code
		require.True(t, errors.As(err, &code))
		mu.Lock()
		denied = false
		mu.Unlock()
		requireRuns(t, take(t, c, 5), nil)
	})
}

func TestNearestReplicaIsRead(t *testing.T) {
	bubble(t, 2, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		k.Append(t, "orders", 0, 5, compress.None)
		k.Change("orders", 0, func(p *logpeer.Partition) { p.Preferred = 2 })
		var ev events
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest), consumer.Rack("east"), ev.option())
		requireRuns(t, take(t, c, 5), nil)
		replica := ev.find(consumer.EventReplica)
		require.NotEmpty(t, replica)
		require.EqualValues(t, 2, replica[0].Broker)
		// The replica dies: reading goes on from the leader.
		k.Change("orders", 0, func(p *logpeer.Partition) { p.Preferred = -1 })
		k.Stop(2)
		k.Append(t, "orders", 0, 5, compress.None)
		requireRuns(t, take(t, c, 5), map[int32]int64{0: 5})
	})
}
