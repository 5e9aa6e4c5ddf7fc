package consumer_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/consumer/internal/logpeer"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

func stamp(producer int64) record.Stamp {
	return record.Stamp{ProducerID: producer, BaseSequence: 0, Transactional: true}
}

// story writes a partition in which transactions of two producers overlap, and returns the offsets that a
// read_committed reader sees.
func story(t *testing.T, k *logpeer.Cluster) []int64 {
	k.Append(t, "orders", 0, 2, compress.None)                    // 0-1 outside
	k.AppendStamped(t, "orders", 0, 3, compress.None, stamp(7))   // 2-4 aborted
	k.AppendStamped(t, "orders", 0, 2, compress.Lz4, stamp(8))    // 5-6 committed
	k.AppendStamped(t, "orders", 0, 1, compress.None, stamp(7))   // 7 aborted
	k.EndTxn("orders", 0, 8, true)                                // 8
	k.AppendStamped(t, "orders", 0, 2, compress.Zstd, stamp(8))   // 9-10 aborted
	k.EndTxn("orders", 0, 7, false)                               // 11
	k.AppendStamped(t, "orders", 0, 2, compress.None, stamp(7))   // 12-13 committed
	k.EndTxn("orders", 0, 8, false)                               // 14
	k.EndTxn("orders", 0, 7, true)                                // 15
	k.AppendStamped(t, "orders", 0, 1, compress.Snappy, stamp(9)) // 16 open
	k.Append(t, "orders", 0, 1, compress.None)                    // 17 outside, behind the open one
	return []int64{0, 1, 5, 6, 12, 13}
}

func offsets(rs []consumer.Record) (out []int64) {
	for _, r := range rs {
		out = append(out, r.Offset)
	}
	return out
}

func TestReadCommittedLeavesOutWhatWasAborted(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		want := story(t, k)
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest), consumer.WithIsolation(consumer.ReadCommitted))
		require.Equal(t, want, offsets(take(t, c, len(want))))
		nothing(t, c, 5*time.Second)
		p, _ := c.Position(tp("orders", 0))
		require.EqualValues(t, 16, p.Offset, "the position moves over markers and aborted records, up to the last stable offset")
		require.EqualValues(t, 0, c.Partitions()[0].Lag(), "lag counts to the last stable offset")
		k.EndTxn("orders", 0, 9, true)
		require.Equal(t, []int64{16, 17}, offsets(take(t, c, 2)))
		end, err := c.EndOffsets(within(t, time.Minute), tp("orders", 0))
		require.NoError(t, err)
		require.EqualValues(t, 19, end[tp("orders", 0)])
	})
}

func TestReadCommittedFromTheMiddleOfATransaction(t *testing.T) {
	for from := range int64(16) {
		bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
			k.Topic("orders", 1)
			var want []int64
			for _, o := range story(t, k) {
				if o >= from {
					want = append(want, o)
				}
			}
			c := consume(t, k, consumer.AssignAt("orders", 0, consumer.AtOffset(from)), consumer.WithIsolation(consumer.ReadCommitted),
				consumer.MaxBytes(150, 150))
			if len(want) > 0 {
				require.Equal(t, want, offsets(take(t, c, len(want))), "from %d", from)
			}
			nothing(t, c, 5*time.Second)
		})
	}
}

func TestReadUncommittedSeesAllButMarkers(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		story(t, k)
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest))
		require.Equal(t, []int64{0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 12, 13, 16, 17}, offsets(take(t, c, 14)))
		k.EndTxn("orders", 0, 9, true)
		nothing(t, c, 5*time.Second)
		p, _ := c.Position(tp("orders", 0))
		require.EqualValues(t, 19, p.Offset, "also over a marker at the very end")
	})
}

// Random transactions of three producers in small answers: what is handed out is what was committed, in order, once, and the
// position reaches the last stable offset whatever stands there.
func TestReadCommittedOfRandomTransactions(t *testing.T) {
	for seed := range uint64(12) {
		bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
			rng := rand.New(rand.NewPCG(seed, 2))
			k.Topic("orders", 1)
			open := map[int64][]int64{}
			var want []int64
			for range 60 {
				id := int64(7 + rng.IntN(3))
				if len(open[id]) > 0 && rng.IntN(3) == 0 {
					commit := rng.IntN(2) == 0
					if k.EndTxn("orders", 0, id, commit); commit {
						want = append(want, open[id]...)
					}
					delete(open, id)
					continue
				}
				n := 1 + rng.IntN(3)
				base := k.AppendStamped(t, "orders", 0, n, compress.None, stamp(id))
				for i := range n {
					open[id] = append(open[id], base+int64(i))
				}
			}
			for id := int64(7); id < 10; id++ {
				k.EndTxn("orders", 0, id, false)
			}
			slices.Sort(want)
			from := int64(rng.IntN(int(k.End("orders", 0))))
			want = slices.DeleteFunc(want, func(o int64) bool { return o < from })
			c := consume(t, k, consumer.AssignAt("orders", 0, consumer.AtOffset(from)), consumer.WithIsolation(consumer.ReadCommitted),
				consumer.MaxBytes(100+rng.IntN(400), 100+rng.IntN(400)))
			if len(want) > 0 {
				require.Equal(t, want, offsets(take(t, c, len(want))), "seed %d", seed)
			}
			nothing(t, c, 5*time.Second)
			p, _ := c.Position(tp("orders", 0))
			require.Equal(t, k.End("orders", 0), p.Offset)
			require.Zero(t, c.Partitions()[0].Lag())
		})
	}
}

func TestStandstillNamesTheProducer(t *testing.T) {
	for _, answers := range []bool{true, false} {
		bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
			k.Hook(func(r *wiretest.Request) message.Response {
				req, ok := r.Body.(*message.DescribeProducersRequest)
				if !ok {
					return nil
				}
				part := message.PartitionResponse{PartitionIndex: req.Topics[0].PartitionIndexes[0]}
				if !answers {
					part.ErrorCode = int16(errcode.TopicAuthorizationFailed)
				} else {
					part.ActiveProducers = []message.ProducerState{
						{ProducerId: 7, ProducerEpoch: 1, LastTimestamp: 1000, CurrentTxnStartOffset: 3},
						{ProducerId: 9, ProducerEpoch: 4, LastTimestamp: 2000, CurrentTxnStartOffset: 2},
						{ProducerId: 5, LastTimestamp: 2000, CurrentTxnStartOffset: -1},
					}
				}
				return &message.DescribeProducersResponse{Topics: []message.TopicResponse{{Name: "orders", Partitions: []message.PartitionResponse{part}}}}
			})
			k.Topic("orders", 1)
			k.Append(t, "orders", 0, 2, compress.None)
			k.AppendStamped(t, "orders", 0, 1, compress.None, stamp(9))
			k.AppendStamped(t, "orders", 0, 1, compress.None, stamp(7))
			var told []consumer.Event
			var mu sync.Mutex
			c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest), consumer.WithIsolation(consumer.ReadCommitted),
				consumer.OnEvent(func(e consumer.Event) {
					mu.Lock()
					defer mu.Unlock()
					if e.Kind == consumer.EventStandstill {
						told = append(told, e)
					}
				}))
			take(t, c, 2)
			nothing(t, c, 59*time.Second)
			mu.Lock()
			require.Empty(t, told)
			mu.Unlock()
			nothing(t, c, 10*time.Minute)
			mu.Lock()
			defer mu.Unlock()
			require.Len(t, told, 1)
			require.Equal(t, tp("orders", 0), told[0].TopicPartition)
			require.EqualValues(t, 2, told[0].Old.Offset)
			require.EqualValues(t, 4, told[0].New.Offset)
			if !answers {
				require.EqualValues(t, -1, told[0].Open.ProducerID)
				require.ErrorIs(t, told[0].Err, errcode.TopicAuthorizationFailed)
				return
			}
			require.Equal(t, consumer.OpenTransaction{ProducerID: 9, ProducerEpoch: 4, FirstOffset: 2, LastWrite: time.UnixMilli(2000)}, *told[0].Open)
			require.Contains(t, told[0].Reason, "producer id 9 epoch 4")
		})
	}
}
