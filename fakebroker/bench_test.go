package fakebroker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker"
)

// The aims of the design: at most 5 ms from New to the answer of the first produce, 20 ms for 1,000 partitions, and
// 1.2 times the bytes stored plus 20 MB of heap after a collection. Only the last is a test, for the others depend on
// the machine:
//
//	go test -run '^$' -bench . ./fakebroker

func BenchmarkStartToFirstProduce(b *testing.B) {
	one := batch(b, "x")
	var serving time.Duration
	for b.Loop() {
		began := time.Now()
		k, err := fakebroker.New(fakebroker.Topic("orders", 1))
		require.NoError(b, err)
		require.Zero(b, produce(connect(b, k), "orders", 0, append([]byte(nil), one...)).ErrorCode)
		serving += time.Since(began)
		require.NoError(b, k.Close(b.Context()))
	}
	b.ReportMetric(float64(serving.Microseconds())/1000/float64(b.N), "ms/first-produce")
}

func BenchmarkThousandPartitions(b *testing.B) {
	var creating time.Duration
	for b.Loop() {
		k, err := fakebroker.New()
		require.NoError(b, err)
		began := time.Now()
		require.NoError(b, k.CreateTopic(b.Context(), fakebroker.TopicSpec{Name: "wide", Partitions: 1000}))
		creating += time.Since(began)
		require.NoError(b, k.Close(b.Context()))
	}
	b.ReportMetric(float64(creating.Microseconds())/1000/float64(b.N), "ms/1000-partitions")
}

func BenchmarkProduce100B(b *testing.B) {
	k := fakebroker.Start(b, fakebroker.Topic("orders", 1))
	c := connect(b, k)
	one := batch(b, string(make([]byte, 100)))
	b.ReportAllocs()
	for b.Loop() {
		produce(c, "orders", 0, one)
	}
}

// store fills four partitions with batches of some size until there are about 64 MB, and returns the bytes stored and
// the heap they take after a collection.
func store(t testing.TB, k *fakebroker.Cluster, records, size int) (stored, used int64) {
	c := connect(t, k)
	before := heap()
	value := strings.Repeat("x", size)
	all := make([]string, records)
	for i := range all {
		all[i] = value
	}
	raw := batch(t, all...)
	for i := int32(0); stored < 64<<20; i++ {
		require.Zero(t, produce(c, "orders", i%4, raw).ErrorCode)
		stored += int64(len(raw))
	}
	return stored, heap() - before
}

func TestHeapStaysNearTheBytesStored(t *testing.T) {
	for name, shape := range map[string][2]int{"one large record": {1, 100_000}, "fifty small records": {50, 100}} {
		t.Run(name, func(t *testing.T) {
			k := fakebroker.Start(t, fakebroker.Topic("orders", 4))
			stored, used := store(t, k, shape[0], shape[1])
			t.Logf("%d MB stored, %d MB of heap", stored>>20, used>>20)
			require.Less(t, used, stored*12/10+20<<20)
		})
	}
}

func BenchmarkHeap64MB(b *testing.B) {
	for _, shape := range [][2]int{{1, 100_000}, {50, 100}} {
		b.Run(fmt.Sprintf("records=%d/size=%d", shape[0], shape[1]), func(b *testing.B) {
			var stored, used int64
			for b.Loop() {
				k, err := fakebroker.New(fakebroker.Topic("orders", 4))
				require.NoError(b, err)
				s, u := store(b, k, shape[0], shape[1])
				stored, used = stored+s, used+u
				require.NoError(b, k.Close(b.Context()))
			}
			b.ReportMetric(float64(used)/float64(stored), "heap/stored")
		})
	}
}
