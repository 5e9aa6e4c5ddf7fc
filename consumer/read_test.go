package consumer_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/consumer/internal/logpeer"
	"github.com/ottla-kafka/ottla/wire/compress"
)

func TestReadsPartitionsOfSeveralBrokersInOrder(t *testing.T) {
	bubble(t, 3, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1, 2, 3, 1)
		codecs := []compress.Codec{compress.None, compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd}
		for i := range 20 {
			for p := range int32(4) {
				k.Append(t, "orders", p, 1+i, codecs[i%len(codecs)])
			}
		}
		c := consume(t, k, consumer.Assign("orders", 0, 1, 2, 3), consumer.StartAt(consumer.Earliest))
		requireRuns(t, take(t, c, 4*210), nil)
		// What is written later comes as well, and costs no more than the wait for it.
		k.Append(t, "orders", 2, 5, compress.None)
		requireRuns(t, take(t, c, 5), map[int32]int64{2: 210})
		nothing(t, c, 10*time.Second)
	})
}

func TestOneConnectionForMetadataAndOneForEachLeader(t *testing.T) {
	bubble(t, 3, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1, 2, 3, 1, 2, 3)
		for p := range int32(6) {
			k.Append(t, "orders", p, 3, compress.None)
		}
		c := consume(t, k, consumer.Assign("orders", 0, 1, 2, 3, 4, 5), consumer.StartAt(consumer.Earliest))
		take(t, c, 18)
		time.Sleep(5 * time.Second)
		require.Equal(t, 1+3, k.Connections(0), "1 for metadata, 3 to fetch; no group")
		require.Equal(t, 3, k.Sessions(), "one fetch session for each broker")
	})
}

func TestQuestionsAboutOffsetsDoNotWaitBehindFetches(t *testing.T) {
	bubble(t, 3, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1, 2, 3)
		for p := range int32(3) {
			k.Append(t, "orders", p, 3, compress.None)
		}
		c := consume(t, k, consumer.Assign("orders", 0, 1, 2), consumer.StartAt(consumer.Earliest), consumer.Fetching(1, time.Minute))
		take(t, c, 9)
		time.Sleep(5 * time.Second) // three fetches are held back
		require.Equal(t, 1+3, k.Connections(0))
		begin := time.Now()
		lag, err := c.Lag(within(t, time.Minute))
		require.NoError(t, err)
		require.Len(t, lag, 3)
		_, err = c.BeginningOffsets(within(t, time.Minute), tp("orders", 0), tp("orders", 2))
		require.NoError(t, err)
		require.Zero(t, time.Since(begin))
		require.Equal(t, 1+3+2, k.Connections(0), "one leader is the broker that metadata comes from")
	})
}

func TestBreakingOutOfALoopLosesAndRepeatsNothing(t *testing.T) {
	bubble(t, 2, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1, 2)
		for p := range int32(2) {
			for range 10 {
				k.Append(t, "orders", p, 7, compress.Lz4)
			}
		}
		c := consume(t, k, consumer.Assign("orders", 0, 1), consumer.StartAt(consumer.Earliest))
		var all []consumer.Record
		for len(all) < 140 {
			switch len(all) % 3 {
			case 0:
				all = append(all, take(t, c, 1)...)
			case 1:
				rs, err := c.Poll(within(t, time.Minute), 4)
				require.NoError(t, err)
				require.LessOrEqual(t, len(rs), 4)
				all = append(all, rs...)
			default:
				for b, err := range c.Batches(within(t, time.Minute)) {
					require.NoError(t, err)
					for r := range b.Records() {
						all = append(all, r)
					}
					break
				}
			}
		}
		requireRuns(t, all, nil)
	})
}

func TestCtxEndsALoopAndConsumesNothing(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		k.Append(t, "orders", 0, 100, compress.None)
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest))
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		var got []consumer.Record
		var last error
		for r, err := range c.Records(ctx) {
			if err != nil {
				last = err
				continue
			}
			got = append(got, r)
			if len(got) == 10 {
				cancel(why)
				synctest.Wait() // ctx tells others of its end from a goroutine of its own
			}
		}
		require.ErrorIs(t, last, why)
		require.Len(t, got, 10)
		p, ok := c.Position(tp("orders", 0))
		require.True(t, ok)
		require.EqualValues(t, 10, p.Offset)
		_, err := c.Poll(ctx, 5)
		require.ErrorIs(t, err, why)
		requireRuns(t, append(got, take(t, c, 90)...), nil)
	})
}

func TestCloseEndsALoop(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		k.Append(t, "orders", 0, 10, compress.None)
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest))
		n := 0
		var last error
		go func() {
			time.Sleep(3 * time.Second)
			_ = c.Close(context.Background())
		}()
		for _, err := range c.Records(context.Background()) {
			if err != nil {
				last = err
				break
			}
			n++
		}
		require.Equal(t, 10, n)
		require.ErrorIs(t, last, consumer.ErrClosed)
		require.ErrorIs(t, c.Seek(tp("orders", 0), consumer.Earliest), consumer.ErrClosed)
		require.ErrorIs(t, c.Add(consumer.Assignment{TopicPartition: tp("orders", 0)}), consumer.ErrClosed)
		_, err := c.Poll(context.Background(), 1)
		require.ErrorIs(t, err, consumer.ErrClosed)
		require.NoError(t, c.Close(context.Background()), "again")
	})
}

func TestOnlyOneReads(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		k.Append(t, "orders", 0, 2, compress.None)
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest))
		for _, err := range c.Records(within(t, time.Minute)) {
			require.NoError(t, err)
			_, err := c.Poll(context.Background(), 1)
			require.ErrorIs(t, err, consumer.ErrBusy)
			for _, err := range c.Batches(context.Background()) {
				require.ErrorIs(t, err, consumer.ErrBusy)
			}
			break
		}
		take(t, c, 1)
	})
}

func TestBatchesShowTheLogAsItIs(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		k.Append(t, "orders", 0, 5, compress.Zstd)
		k.Append(t, "orders", 0, 3, compress.None)
		c := consume(t, k, consumer.AssignAt("orders", 0, consumer.AtOffset(2)))
		var batches []consumer.Batch
		for b, err := range c.Batches(within(t, time.Minute)) {
			require.NoError(t, err)
			batches = append(batches, b)
			if len(batches) == 2 {
				break
			}
		}
		require.EqualValues(t, 0, batches[0].FirstOffset)
		require.EqualValues(t, 4, batches[0].LastOffset)
		require.Equal(t, 5, batches[0].Count)
		require.Equal(t, compress.Zstd, batches[0].Codec)
		require.EqualValues(t, 8, batches[0].HighWatermark)
		for range 2 { // a batch can be gone through again, and is valid for ever
			var rs []consumer.Record
			for _, b := range batches {
				for r := range b.Records() {
					rs = append(rs, r)
				}
				require.NoError(t, b.Err())
			}
			requireRuns(t, rs, map[int32]int64{0: 2})
			require.Len(t, rs, 6)
		}
		p, _ := c.Position(tp("orders", 0))
		require.EqualValues(t, 8, p.Offset)
	})
}

func TestLagAndMetrics(t *testing.T) {
	bubble(t, 2, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1, 2)
		k.Append(t, "orders", 0, 50, compress.None)
		k.Append(t, "orders", 1, 20, compress.None)
		c := consume(t, k, consumer.Assign("orders", 0, 1), consumer.StartAt(consumer.Earliest))
		take(t, c, 50)
		synctest.Wait() // both positions are known
		lag, err := c.Lag(within(t, time.Minute))
		require.NoError(t, err)
		require.EqualValues(t, 20, lag[tp("orders", 0)]+lag[tp("orders", 1)])
		take(t, c, 20)
		nothing(t, c, time.Second)
		m := c.Client().Metrics()
		require.EqualValues(t, 70, m.FetchedRecords)
		require.Positive(t, m.FetchedBytes)
		require.Positive(t, m.FetchLatency.Count)
		require.Len(t, m.Lag, 2)
		require.EqualValues(t, 0, m.Lag[0].Lag)
		for _, p := range c.Partitions() {
			require.EqualValues(t, 0, p.Lag(), p.String())
			require.Zero(t, p.BufferedBytes)
			require.NoError(t, p.Halted)
		}
	})
}
