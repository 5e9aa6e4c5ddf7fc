package consumer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/consumer/internal/logpeer"
	"github.com/ottla-kafka/ottla/wire/compress"
)

func TestSeekInsideALoopTakesEffectAtTheNextRecord(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		k.Append(t, "orders", 0, 30, compress.None)
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest))
		var offsets []int64
		for r, err := range c.Records(within(t, time.Minute)) {
			require.NoError(t, err)
			offsets = append(offsets, r.Offset)
			p, ok := c.Position(r.TopicPartition())
			require.True(t, ok)
			require.Equal(t, r.Offset+1, p.Offset)
			switch len(offsets) {
			case 3:
				require.NoError(t, c.Seek(r.TopicPartition(), consumer.AtOffset(20)))
				p, _ := c.Position(r.TopicPartition())
				require.EqualValues(t, 20, p.Offset)
			case 5:
				require.NoError(t, c.SeekToBeginning())
			}
			if len(offsets) == 7 {
				break
			}
		}
		require.Equal(t, []int64{0, 1, 2, 20, 21, 0, 1}, offsets)
		require.NoError(t, c.SeekToEnd())
		nothing(t, c, time.Second)
		k.Append(t, "orders", 0, 1, compress.None)
		require.EqualValues(t, 30, take(t, c, 1)[0].Offset)
		require.ErrorIs(t, c.Seek(tp("orders", 9), consumer.Earliest), consumer.ErrNotAssigned)
		require.ErrorContains(t, c.Seek(tp("orders", 0), consumer.Nearest), "is a reset policy")
		require.Error(t, c.Seek(tp("orders", 0), consumer.Where{}))
	})
}

func TestPauseKeepsWhatIsBuffered(t *testing.T) {
	bubble(t, 2, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1, 2)
		k.Append(t, "orders", 0, 10, compress.Gzip)
		k.Append(t, "orders", 1, 10, compress.Gzip)
		c := consume(t, k, consumer.Assign("orders", 0, 1), consumer.StartAt(consumer.Earliest))
		var all []consumer.Record
		paused := int32(-1)
		for r, err := range c.Records(within(t, time.Minute)) {
			require.NoError(t, err)
			require.NotEqual(t, paused, r.Partition)
			all = append(all, r)
			if len(all) == 4 {
				paused = r.Partition
				require.NoError(t, c.Pause(r.TopicPartition()))
			}
			if len(all) == 14 {
				break
			}
		}
		nothing(t, c, 5*time.Second)
		k.Append(t, "orders", paused, 5, compress.None)
		nothing(t, c, 5*time.Second)
		require.NoError(t, c.Resume(tp("orders", paused)))
		requireRuns(t, append(all, take(t, c, 11)...), nil)
	})
}

func TestAssignmentChangesWhileReading(t *testing.T) {
	bubble(t, 2, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1, 2)
		k.Topic("bills", 2)
		for p := range int32(2) {
			k.Append(t, "orders", p, 10, compress.None)
		}
		k.Append(t, "bills", 0, 10, compress.None)
		c := consume(t, k, consumer.StartAt(consumer.Earliest))
		nothing(t, c, time.Second)
		require.NoError(t, c.Add(consumer.Assignment{TopicPartition: tp("orders", 0)}))
		requireRuns(t, take(t, c, 10), nil)
		require.NoError(t, c.Assign(consumer.Assignment{TopicPartition: tp("orders", 0)},
			consumer.Assignment{TopicPartition: tp("bills", 0), Start: consumer.AtOffset(8)}))
		for _, r := range take(t, c, 2) {
			require.Equal(t, "bills", r.Topic)
			require.GreaterOrEqual(t, r.Offset, int64(8))
		}
		k.Append(t, "orders", 0, 2, compress.None)
		requireRuns(t, take(t, c, 2), map[int32]int64{0: 10})
		require.NoError(t, c.Remove(tp("orders", 0)))
		k.Append(t, "orders", 0, 2, compress.None)
		nothing(t, c, 5*time.Second)
		require.Len(t, c.Partitions(), 1)
		require.NoError(t, c.Unassign())
		require.Empty(t, c.Partitions())
		require.ErrorContains(t, c.Add(consumer.Assignment{TopicPartition: tp("", 0)}), "no topic name")
	})
}

func TestRemoveInsideALoopHandsOutNoMoreOfThePartition(t *testing.T) {
	bubble(t, 2, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1, 2)
		for range 5 {
			k.Append(t, "orders", 0, 10, compress.None)
			k.Append(t, "orders", 1, 10, compress.None)
		}
		c := consume(t, k, consumer.Assign("orders", 0, 1), consumer.StartAt(consumer.Earliest))
		gone := int32(-1)
		n := 0
		for r, err := range c.Records(within(t, time.Minute)) {
			require.NoError(t, err)
			require.NotEqual(t, gone, r.Partition)
			if n++; n == 13 {
				gone = r.Partition
				require.NoError(t, c.Remove(r.TopicPartition()))
			}
			if p, _ := c.Position(tp("orders", 1-gone)); gone >= 0 && p.Offset == 50 {
				break
			}
		}
	})
}

func TestOffsetsAreAskedFromTheLeaders(t *testing.T) {
	bubble(t, 3, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1, 2, 3)
		for p := range int32(3) {
			k.Append(t, "orders", p, 10*int(p+1), compress.None)
		}
		k.Change("orders", 1, func(p *logpeer.Partition) { p.LogStart = 4 })
		c := consume(t, k)
		all := []consumer.TopicPartition{tp("orders", 0), tp("orders", 1), tp("orders", 2)}
		begin, err := c.BeginningOffsets(within(t, time.Minute), all...)
		require.NoError(t, err)
		require.Equal(t, map[consumer.TopicPartition]int64{all[0]: 0, all[1]: 4, all[2]: 0}, begin)
		end, err := c.EndOffsets(within(t, time.Minute), all...)
		require.NoError(t, err)
		require.Equal(t, map[consumer.TopicPartition]int64{all[0]: 10, all[1]: 20, all[2]: 30}, end)
		at, err := c.OffsetsForTimes(within(t, time.Minute), map[consumer.TopicPartition]time.Time{
			all[0]: time.UnixMilli(7), all[1]: time.UnixMilli(19), all[2]: time.UnixMilli(30)})
		require.NoError(t, err)
		require.Equal(t, map[consumer.TopicPartition]consumer.OffsetAndTime{all[0]: {7, 7, 1}, all[1]: {19, 19, 1}}, at)
		_, err = c.OffsetsForTimes(within(t, time.Minute), map[consumer.TopicPartition]time.Time{all[0]: time.Unix(-1, 0)})
		require.ErrorContains(t, err, "before 1970")
		// A leader that moved is found.
		k.MoveLeader("orders", 0, 2)
		k.Announce("orders")
		end, err = c.EndOffsets(within(t, time.Minute), all[0])
		require.NoError(t, err)
		require.EqualValues(t, 10, end[all[0]])
		// A partition that does not exist is named.
		_, err = c.EndOffsets(within(t, 5*time.Second), tp("orders", 17))
		require.ErrorContains(t, err, "orders-17")
		_, err = c.EndOffsets(within(t, 5*time.Second), tp("nope", 0))
		require.ErrorContains(t, err, "nope")
	})
}

func TestStartPositions(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1, 1, 1, 1, 1)
		for p := range int32(5) {
			k.Append(t, "orders", p, 100, compress.None)
		}
		c := consume(t, k, consumer.AssignAt("orders", 0, consumer.Earliest), consumer.AssignAt("orders", 1, consumer.AtOffset(97)),
			consumer.AssignAt("orders", 2, consumer.At(time.UnixMilli(98))), consumer.AssignAt("orders", 3, consumer.At(time.UnixMilli(5000))),
			consumer.Assign("orders", 4))
		requireRuns(t, take(t, c, 100+3+2), map[int32]int64{1: 97, 2: 98})
		nothing(t, c, 5*time.Second) // where 3 and 4 start is asked for beside the fetches, perhaps behind one that waits
		k.Append(t, "orders", 3, 1, compress.None)
		k.Append(t, "orders", 4, 1, compress.None)
		requireRuns(t, take(t, c, 2), map[int32]int64{3: 100, 4: 100})
	})
}

func TestPausedPartitionDoesNotHoldTheMemoryOfOthers(t *testing.T) {
	bubble(t, 2, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1, 2)
		for range 40 {
			k.Append(t, "orders", 0, 10, compress.None)
			k.Append(t, "orders", 1, 10, compress.None)
		}
		c := consumeWith(t, k, []client.Option{client.MemoryBudget(2000)}, consumer.Assign("orders", 0, 1),
			consumer.StartAt(consumer.Earliest), consumer.MaxBytes(1000, 1000))
		all := take(t, c, 1)
		paused := all[0].TopicPartition()
		require.NoError(t, c.Pause(paused))
		all = append(all, take(t, c, 400)...)
		nothing(t, c, time.Minute)
		require.NoError(t, c.Resume(paused))
		requireRuns(t, append(all, take(t, c, 399)...), nil)
	})
}
