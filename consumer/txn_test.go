package consumer_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/consumer/internal/logpeer"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/record"
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
