package history

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALogIsBounded(t *testing.T) {
	l := New(Limit(3))
	p := l.Process("w")
	call := p.Send("orders", "a")
	p.Poll(ReadCommitted, Read{Value: "a"}, Read{Value: "b"}, Read{Value: "c"}) // does not fit
	p.Send("orders", "b").OK(0, 1)                                              // not taken either: the log has a hole by now
	call.OK(0, 0)
	require.Equal(t, 1, l.Len())
	require.Equal(t, OK, l.Ops()[0].Outcome)
	_, err := Check(l)
	require.ErrorIs(t, err, ErrFull)
}

func TestLongValuesKeepTheirIdentity(t *testing.T) {
	l := New()
	p := l.Process("w")
	long := strings.Repeat("x", 1000)
	p.Send("orders", long+"1").OK(0, 0)
	p.Send("orders", long+"2").OK(0, 1)
	tp := TopicPartition{"orders", 0}
	p.Poll(ReadCommitted, Read{tp, 0, long + "1"}, Read{tp, 1, long + "2"})
	require.Len(t, l.Ops()[0].Value, maxValue)
	r, err := Check(l, Drained("orders"))
	require.NoError(t, err)
	require.NoError(t, r.Err())
}

func TestTheFirstCertainOutcomeStays(t *testing.T) {
	l := New()
	call := l.Process("w").Send("orders", "a")
	call.Info(errors.New("no answer"))
	call.OK(0, 7)
	call.Fail(errors.New("late"))
	o := l.Ops()[0]
	require.Equal(t, OK, o.Outcome)
	require.EqualValues(t, 7, o.Offset)
	require.Empty(t, o.Err)
}

func TestReportsSayTheFirstOfEachKindAndCountTheRest(t *testing.T) {
	l := New()
	p := l.Process("w")
	for i := range 12 {
		p.Poll(ReadCommitted, Read{TopicPartition{"orders", 0}, int64(i), fmt.Sprint(i % 2)})
	}
	r, err := Check(l)
	require.NoError(t, err)
	require.Equal(t, 10, r.Count[Duplicate])
	require.Len(t, r.Anomalies, maxShown)
	require.Contains(t, r.Err().Error(), "duplicate: 5 more")
	require.True(t, r.Has(Duplicate))
	require.False(t, r.Has(Torn))
}

func TestALogIsForManyGoroutines(t *testing.T) {
	l := New()
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			p := l.Process(fmt.Sprint("w", w))
			for i := range 100 {
				tx := p.Begin()
				tx.Send("orders", fmt.Sprint(w, "-", i)).OK(int32(w), int64(i))
				tx.Commit().OK()
				if i == 50 {
					if _, err := Check(l); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	r, err := Check(l)
	require.NoError(t, err)
	require.NoError(t, r.Err())
	require.Equal(t, 800, r.Committed)
}

// long is a pipeline's history of n records in transactions of ten.
func long(n int) *Log {
	l := New()
	shop, w, reader := l.Process("shop"), l.Process("worker"), l.Process("reader")
	in, out := TopicPartition{"in", 0}, TopicPartition{"out", 0}
	var tx *Txn
	var reads []Read
	for i := range int64(n) {
		value := fmt.Sprint("value-", i)
		shop.Send("in", value).OK(0, i)
		w.Poll(ReadCommitted, Read{in, i, value})
		if i%10 == 0 {
			tx, reads = w.Begin(), nil
		}
		tx.Processed("g", in, i)
		at := i + i/10
		tx.Send("out", value).OK(0, at)
		reads = append(reads, Read{out, at, value})
		if i%10 == 9 {
			tx.CommitOffsets("g", Offset{in, i + 1}).OK()
			tx.Commit().OK()
			reader.Poll(ReadCommitted, reads...)
			reader.FetchedOffsets("g", Offset{in, i + 1})
		}
	}
	return l
}

func TestALongHistoryIsCheckedInLinearTime(t *testing.T) {
	r, err := Check(long(20_000), Drained("in", "out")) // quadratic, it would take minutes
	require.NoError(t, err)
	require.NoError(t, r.Err())
	require.Equal(t, 2000, r.Committed)
}

func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		l := long(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := Check(l, Drained("in", "out")); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(l.len), "ns/op-in-log")
		})
	}
}

func BenchmarkLog(b *testing.B) {
	l := New(Limit(1 << 30))
	p := l.Process("w")
	b.ReportAllocs()
	for b.Loop() {
		p.Send("orders", "value").OK(0, 1)
	}
}
