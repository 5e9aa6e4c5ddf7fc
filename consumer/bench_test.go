package consumer_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/consumer/internal/logpeer"
	"github.com/ottla-kafka/ottla/wire/record"
)

// fill writes batches of 100 records of that size.
func fill(k *logpeer.Cluster, topic string, batches, size int) {
	b := record.NewBuilder(nil)
	value := make([]byte, size)
	for i := range 100 {
		b.Append(int64(i), nil, value, nil)
	}
	sealed := b.Seal(record.NoProducer())
	for range batches {
		k.AppendBytes(topic, 0, append([]byte(nil), sealed...))
	}
}

// endless reads n records, from the start again at the end of the log.
func endless(t testing.TB, c *consumer.Consumer, n int, last int64) {
	for r, err := range c.Records(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if n--; n <= 0 {
			return
		}
		if r.Offset == last {
			if err := c.SeekToBeginning(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func benchmark(b *testing.B, size int, opts ...consumer.Option) {
	const batches = 2000
	k := logpeer.New(b, 1)
	k.Topic("orders", 1)
	fill(k, "orders", batches, size)
	c := consume(b, k, append(opts, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest))...)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	endless(b, c, b.N, batches*100-1)
}

func BenchmarkRecords100(b *testing.B)  { benchmark(b, 100) }
func BenchmarkRecords1024(b *testing.B) { benchmark(b, 1024) }

func TestIterationAllocatesNothingPerRecord(t *testing.T) {
	const n = 200_000
	k := logpeer.New(t, 1)
	k.Topic("orders", 1)
	fill(k, "orders", n/100, 100)
	c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest))
	endless(t, c, 100, n)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	endless(t, c, n-100, n)
	runtime.ReadMemStats(&after)
	perRecord := float64(after.Mallocs-before.Mallocs) / n
	require.Less(t, perRecord, 0.05, "what is allocated is for answers, and here also for the peer that sends them")
}
