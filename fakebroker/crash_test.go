package fakebroker_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// Killed in the middle of requests again and again, a cluster has every acknowledged record once and in order, and
// knows producers and topics from before.
func TestWrittenDataSurvivesACrash(t *testing.T) {
	for name, opts := range map[string][]fakebroker.Option{"memory": nil, "disk": {fakebroker.Dir(t.TempDir())}} {
		t.Run(name, func(t *testing.T) {
			// Small segments: some are finished and some are not when the broker dies.
			k := fakebroker.Start(t, append(opts, fakebroker.TopicWith(fakebroker.TopicSpec{
				Name: "orders", Partitions: 1, Configs: map[string]string{"segment.bytes": "1048576"}}))...)
			acked := int32(0)
			for round := range 5 {
				c := connect(t, k)
				for range 20 {
					r := produce(c, "orders", 0, sequenced(t, 4242, 0, acked, fmt.Sprintf("%010d%50000d", acked, 0)))
					require.Zero(t, r.ErrorCode)
					require.EqualValues(t, acked, r.BaseOffset)
					acked++
				}
				waits := fetchRequest("orders", 0, int64(acked)) // for data that will not come
				waits.MaxWaitMs = 3_600_000
				c.send(12, waits)
				require.NoError(t, k.Crash(t.Context()))
				require.NoError(t, k.Crash(t.Context()), "nothing to do")
				c.closed()
				_, err := k.Offsets("orders", 0)
				require.ErrorIs(t, err, fakebroker.ErrStopped)
				require.NoError(t, k.Restart(t.Context()))
				require.NoError(t, k.CreateTopic(t.Context(), fakebroker.TopicSpec{Name: fmt.Sprint("later-", round), Partitions: 1}))
			}
			again := produce(connect(t, k), "orders", 0, sequenced(t, 4242, 0, acked-1, fmt.Sprintf("%010d%50000d", acked-1, 0)))
			require.Zero(t, again.ErrorCode)
			require.EqualValues(t, acked-1, again.BaseOffset, "a duplicate is known as one after a crash")
			records, err := k.Records("orders", 0, 0)
			require.NoError(t, err)
			require.Len(t, records, int(acked))
			for i, r := range records {
				require.Equal(t, fmt.Sprintf("%010d", i), string(r.Value[:10]))
			}
		})
	}
}

func TestCrashLeavesNoWordOfACleanStop(t *testing.T) {
	dir := t.TempDir()
	clean := filepath.Join(dir, ".kafka_cleanshutdown")
	k := fakebroker.Start(t, fakebroker.Dir(dir), fakebroker.Topic("orders", 1))
	require.NoError(t, k.Crash(t.Context()))
	require.NoFileExists(t, clean)
	require.NoError(t, k.Restart(t.Context()))
	require.NoError(t, k.Stop(t.Context()))
	require.FileExists(t, clean)
	_, err := os.Stat(filepath.Join(dir, "orders-0"))
	require.NoError(t, err)
}

func TestCrashBreaksOffWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		c := connect(t, k)
		c.send(12, fetchRequest("orders", 0, 0))
		waited := make(chan error, 1)
		go func() { waited <- k.AwaitRecords(context.Background(), "orders", 0, 1) }()
		synctest.Wait()
		began := time.Now()
		require.NoError(t, k.Crash(t.Context()))
		c.closed()
		require.Error(t, <-waited)
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, k.CreateTopic(t.Context(), fakebroker.TopicSpec{Name: "x", Partitions: 1}), fakebroker.ErrStopped)
		require.NoError(t, k.Restart(t.Context()))
		require.ErrorIs(t, k.CreateTopic(t.Context(), fakebroker.TopicSpec{Name: "orders", Partitions: 1}), errcode.TopicAlreadyExists)
	})
}

func TestCrashEndsEveryGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 3 {
		k, err := fakebroker.New(fakebroker.Topic("orders", 3))
		require.NoError(t, err)
		connect(t, k)
		require.NoError(t, k.Crash(t.Context()))
		require.NoError(t, k.Close(t.Context()))
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 }, time.Minute, time.Millisecond) // one is Eventually's
}
