package storage

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
)

// benchBatch is a produced batch of about a MiB, of records of n bytes.
func benchBatch(n int) ([]byte, int) {
	records := make([]string, (1<<20-1000)/(n+20))
	for i := range records {
		records[i] = strings.Repeat("x", n)
	}
	return produced{values: records}.bytes(), len(records)
}

func benchFS(b *testing.B, disk bool) vfs.FS {
	if disk {
		b.Chdir(b.TempDir())
		return vfs.OSFS{}
	}
	return vfs.NewMem()
}

func BenchmarkAppend(b *testing.B) {
	for _, disk := range []bool{false, true} {
		for _, size := range []int{100, 1000} {
			b.Run(fmt.Sprintf("disk=%v/record=%d", disk, size), func(b *testing.B) {
				l := openTest(b, benchFS(b, disk), DefaultLogConfig())
				batch, n := benchBatch(size)
				mine := make([]byte, len(batch))
				b.SetBytes(int64(len(batch)))
				b.ReportAllocs()
				for b.Loop() {
					copy(mine, batch)
					if _, err := l.AppendAsLeader(mine, 0, FromClient, t0); err != nil {
						b.Fatal(err)
					}
					if l.Size() > 1<<30 {
						b.StopTimer()
						require.NoError(b, l.TruncateFullyAndStartAt(0, t0))
						b.StartTimer()
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/record")
			})
		}
	}
}

func BenchmarkAppendSmallBatches(b *testing.B) {
	l := openTest(b, vfs.NewMem(), DefaultLogConfig())
	batch := produced{values: []string{strings.Repeat("x", 100)}}.bytes()
	mine := make([]byte, len(batch))
	b.ReportAllocs()
	for b.Loop() {
		copy(mine, batch)
		if _, err := l.AppendAsLeader(mine, 0, FromClient, t0); err != nil {
			b.Fatal(err)
		}
		if l.Size() > 1<<29 {
			require.NoError(b, l.TruncateFullyAndStartAt(0, t0))
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for _, disk := range []bool{false, true} {
		for _, kind := range []string{"head", "tail"} {
			b.Run(fmt.Sprintf("disk=%v/%s", disk, kind), func(b *testing.B) {
				l := openTest(b, benchFS(b, disk), DefaultLogConfig())
				batch := produced{values: []string{strings.Repeat("x", 100)}}.bytes()
				for range 100_000 {
					_, err := l.AppendAsLeader(append([]byte(nil), batch...), 0, FromClient, t0)
					require.NoError(b, err)
				}
				from := int64(1)
				if kind == "tail" {
					from = l.LogEndOffset() - 3
				}
				b.ReportAllocs()
				for b.Loop() {
					d, err := l.Read(from, 1<<20, BoundLogEnd, true)
					if err != nil || d.Records.Len == 0 {
						b.Fatal(err)
					}
					d.Records.Release()
				}
			})
		}
	}
}

func BenchmarkCreateThousandLogs(b *testing.B) {
	for _, disk := range []bool{false, true} {
		b.Run(fmt.Sprintf("disk=%v", disk), func(b *testing.B) {
			fs := benchFS(b, disk)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				m, err := NewManager(ManagerOptions{FS: fs, Dirs: []string{fmt.Sprint("data", i)}, ClusterID: "c", NodeID: 1,
					NewUUID: func() wire.UUID { return testUUID(3) }}, t0)
				require.NoError(b, err)
				for p := range int32(1000) {
					l, err := m.Create(TopicPartition{"orders", p}, testUUID(1), DefaultLogConfig(), t0)
					require.NoError(b, err)
					require.NoError(b, l.AssignEpochStart(0))
				}
			}
		})
	}
}

func TestHeapIsAboutTheBytesStored(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	before := heap()
	fs := vfs.NewMem()
	l := openTest(t, fs, DefaultLogConfig())
	batch := produced{values: []string{strings.Repeat("x", 1000)}}.bytes()
	for range 20_000 {
		_, err := l.AppendAsLeader(append([]byte(nil), batch...), 0, FromClient, t0)
		require.NoError(t, err)
	}
	grown := heap() - before
	require.Less(t, grown, l.Size()*115/100+1<<20)
	runtime.KeepAlive(fs)
}
