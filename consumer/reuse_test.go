package consumer_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/consumer/internal/logpeer"
	"github.com/ottla-kafka/ottla/wire/compress"
)

const reuseParts = 4

// reusing makes a consumer with ReuseMemory, and a log whose answers are large enough for it: some hundred KiB each.
func reusing(t *testing.T, k *logpeer.Cluster) *consumer.Consumer {
	k.Topic("orders", 1, 2, 1, 2)
	options := []consumer.Option{consumer.StartAt(consumer.Earliest), consumer.MaxBytes(400<<10, 150<<10), consumer.ReuseMemory}
	for p := range int32(reuseParts) {
		for i := range 12 {
			codec := compress.None
			if i%4 == 3 {
				codec = compress.Lz4
			}
			k.Append(t, "orders", p, 1500+100*i, codec)
		}
		options = append(options, consumer.Assign("orders", p))
	}
	return consume(t, k, options...)
}

// whole tells whether a record is what was written; that is asked once more when something has had time to overwrite it.
func whole(r *consumer.Record) bool {
	return string(r.Value) == string(logpeer.Value(r.Topic, r.Partition, r.Offset)) && len(r.Key) == 1 && r.Key[0] == byte(r.Offset)
}

// TestReusedMemoryLeavesTheRecordInHandAlone seeks, pauses, breaks off and waits at random: whatever happens, a record is
// whole until the loop comes back.
func TestReusedMemoryLeavesTheRecordInHandAlone(t *testing.T) {
	for seed := range uint64(2) {
		bubble(t, 2, func(t *testing.T, k *logpeer.Cluster) {
			c, rnd := reusing(t, k), rand.New(rand.NewPCG(seed, 7))
			ctx := within(t, time.Hour)
			var all []consumer.TopicPartition
			for p := range int32(reuseParts) {
				all = append(all, tp("orders", p))
			}
			next := map[int32]int64{}
			var last consumer.Record
			for n := 0; n < 30_000; {
				for r, err := range c.Records(ctx) {
					require.NoError(t, err)
					if next[r.Partition] != r.Offset || !whole(&r) {
						require.Fail(t, "not the record that is next", "%v offset %d, next is %d: %q", r.TopicPartition(), r.Offset, next[r.Partition], r.Value)
					}
					if next[r.Partition]++; next[r.Partition] == k.End("orders", r.Partition) {
						require.NoError(t, c.Seek(r.TopicPartition(), consumer.AtOffset(0)))
						next[r.Partition] = 0
					}
					if n++; n%1000 != 0 {
						continue
					}
					p := all[rnd.IntN(reuseParts)]
					switch rnd.IntN(5) {
					case 0:
						require.NoError(t, c.Resume(all...))
						require.NoError(t, c.Pause(p))
					case 1:
						require.NoError(t, c.Resume(all...))
					case 2:
						require.NoError(t, c.Seek(p, consumer.AtOffset(0)))
						next[p.Partition] = 0
					}
					time.Sleep(time.Duration(rnd.IntN(2)) * time.Second) // answers come meanwhile
					require.True(t, whole(&r))
					if last = r; rnd.IntN(3) == 0 {
						break
					}
				}
				require.NoError(t, c.Resume(all...))
				time.Sleep(time.Second)
				require.True(t, whole(&last), "after a break, until the next call")
			}
		})
	}
}

func TestReusedMemoryLeavesTheBatchInHandAlone(t *testing.T) {
	bubble(t, 2, func(t *testing.T, k *logpeer.Cluster) {
		c := reusing(t, k)
		n := 0
		for b, err := range c.Batches(within(t, time.Hour)) {
			require.NoError(t, err)
			time.Sleep(time.Second)
			for range 2 {
				for r := range b.Records() {
					require.True(t, r.Offset >= b.FirstOffset && whole(&r))
				}
				require.NoError(t, b.Err())
			}
			if n++; n == 12*reuseParts {
				break
			}
		}
	})
}

func TestReusedMemoryIsNotThatOfPoll(t *testing.T) {
	bubble(t, 2, func(t *testing.T, k *logpeer.Cluster) {
		c := reusing(t, k)
		var all []consumer.Record
		for len(all) < 30_000 {
			rs, err := c.Poll(within(t, time.Minute), 700)
			require.NoError(t, err)
			all = append(all, rs...)
			for r, err := range c.Records(within(t, time.Minute)) { // out of the same answers
				require.NoError(t, err)
				require.True(t, whole(&r))
				r.Key, r.Value = append([]byte(nil), r.Key...), append([]byte(nil), r.Value...)
				if all = append(all, r); len(all)%50 == 0 {
					break
				}
			}
		}
		requireRuns(t, all, nil)
	})
}

// allocated is how many bytes a loop over n records of 1 KiB allocates for each.
func allocated(t *testing.T, opts ...consumer.Option) float64 {
	const n = 40_000
	k := logpeer.New(t, 1)
	k.Topic("orders", 1)
	fill(k, "orders", 400, 1024)
	c := consume(t, k, append(opts, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest))...)
	endless(t, c, 1000, n-1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	endless(t, c, n, n-1)
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / n
}

func TestReusedMemoryIsNotAllocated(t *testing.T) {
	fresh, reused := allocated(t), allocated(t, consumer.ReuseMemory)
	// The peer allocates its answers in this process too, in both cases.
	require.Greater(t, fresh-reused, 800.0, "bytes for each record: %.0f without, %.0f with ReuseMemory", fresh, reused)
}

func BenchmarkRecords1024Reuse(b *testing.B) { benchmark(b, 1024, consumer.ReuseMemory) }

func TestReusedMemoryEndsWithTheConsumer(t *testing.T) {
	bubble(t, 2, func(t *testing.T, k *logpeer.Cluster) {
		c := reusing(t, k)
		for r, err := range c.Records(within(t, time.Minute)) {
			require.NoError(t, err)
			require.NoError(t, c.Close(context.Background()))
			require.True(t, whole(&r))
			break
		}
		time.Sleep(time.Second) // fetches that were in flight hold theirs until they are answered
		used, _ := c.Client().Budget().Used()
		require.Zero(t, used)
	})
}
