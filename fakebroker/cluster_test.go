package fakebroker_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

func TestProducedRecordsAreFetched(t *testing.T) {
	for name, opts := range map[string][]fakebroker.Option{
		"memory":       nil,
		"tcp":          {fakebroker.Listen("127.0.0.1:0")},
		"disk":         {fakebroker.Dir(t.TempDir())},
		"disk and tcp": {fakebroker.Dir(t.TempDir()), fakebroker.Listen("127.0.0.1:0")},
	} {
		t.Run(name, func(t *testing.T) {
			k := fakebroker.Start(t, append(opts, fakebroker.Topic("orders", 2))...)
			c := connect(t, k)
			for i := range 10 {
				got := produce(c, "orders", 1, batch(t, fmt.Sprint("a", i), fmt.Sprint("b", i)))
				require.Zero(t, got.ErrorCode)
				require.EqualValues(t, 2*i, got.BaseOffset)
			}
			resp := call[*message.FetchResponse](c, 12, fetchRequest("orders", 1, 4))
			p := resp.Responses[0].Partitions[0]
			require.Zero(t, p.ErrorCode)
			require.EqualValues(t, 20, p.HighWatermark)
			all := values(t, p.Records)
			require.Len(t, all, 16)
			require.Equal(t, []string{"a2", "b2"}, all[:2])
			records, err := k.Records("orders", 1, 19)
			require.NoError(t, err)
			require.Len(t, records, 1)
			require.Equal(t, "b9", string(records[0].Value))
			require.EqualValues(t, 10, k.Requests(wire.KeyProduce))
		})
	}
}

func TestFetchWaitsForRecordsInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		reader, writer := connect(t, k), connect(t, k)
		req := fetchRequest("orders", 0, 0)
		req.MaxWaitMs = 60_000
		start := time.Now()
		reader.send(12, req)
		time.Sleep(7 * time.Second)
		produce(writer, "orders", 0, batch(t, "late"))
		var resp message.FetchResponse
		reader.receive(12, &resp)
		require.Equal(t, []string{"late"}, values(t, resp.Responses[0].Partitions[0].Records))
		require.Equal(t, 7*time.Second, time.Since(start))

		start = time.Now() // and without records it waits max.wait
		req = fetchRequest("orders", 0, 1)
		req.MaxWaitMs = 60_000
		empty := call[*message.FetchResponse](reader, 12, req)
		require.Empty(t, empty.Responses[0].Partitions[0].Records)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestFetchWaitsForMinBytesOverAllPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 3))
		reader, writer := connect(t, k), connect(t, k)
		one := batch(t, "x")
		req := fetchRequest("orders", 0, 0)
		for i := range int32(2) {
			p := req.Topics[0].Partitions[0]
			p.Partition = i + 1
			req.Topics[0].Partitions = append(req.Topics[0].Partitions, p)
		}
		req.MinBytes, req.MaxWaitMs = int32(3*len(one)), 3_600_000
		reader.send(12, req)
		for i := range int32(3) {
			time.Sleep(time.Second)
			produce(writer, "orders", i, batch(t, "x"))
		}
		start := time.Now()
		var resp message.FetchResponse
		reader.receive(12, &resp)
		require.Zero(t, time.Since(start))
		for i := range 3 {
			require.Len(t, resp.Responses[0].Partitions[i].Records, len(one))
		}
	})
}

func TestDataSurvivesRestart(t *testing.T) {
	for name, opts := range map[string][]fakebroker.Option{"memory": nil, "disk": {fakebroker.Dir(t.TempDir()), fakebroker.Listen("127.0.0.1:0")}} {
		t.Run(name, func(t *testing.T) {
			k := fakebroker.Start(t, append(opts, fakebroker.Topic("orders", 1))...)
			addr := k.Addrs()
			require.Zero(t, produce(connect(t, k), "orders", 0, batch(t, "before")).ErrorCode)
			require.NoError(t, k.Restart(t.Context()))
			require.Equal(t, addr, k.Addrs())
			require.EqualValues(t, 1, produce(connect(t, k), "orders", 0, batch(t, "after")).BaseOffset)
			records, err := k.Records("orders", 0, 0)
			require.NoError(t, err)
			require.Len(t, records, 2)
			require.NoError(t, k.Stop(t.Context()))
			_, err = k.DialContext(t.Context(), "tcp", addr[0])
			require.ErrorContains(t, err, "refused")
			require.ErrorIs(t, k.AwaitTopic(t.Context(), "orders"), fakebroker.ErrStopped)
		})
	}
}

func TestAwaitsReturnWithTheEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t)
		done := make(chan error, 1)
		go func() { done <- k.AwaitRecords(context.Background(), "orders", 0, 2) }()
		time.Sleep(time.Hour)
		require.NoError(t, k.CreateTopic(t.Context(), fakebroker.TopicSpec{Name: "orders", Partitions: 1}))
		c := connect(t, k)
		produce(c, "orders", 0, batch(t, "one"))
		synctest.Wait()
		require.Empty(t, done)
		produce(c, "orders", 0, batch(t, "two"))
		require.NoError(t, <-done)
		require.NoError(t, k.AwaitRequests(t.Context(), wire.KeyProduce, 2))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := k.AwaitRecords(ctx, "orders", 0, 3)
		require.EqualError(t, err, "await records: orders-0 is at offset 2 of 3: context deadline exceeded")
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1), fakebroker.Topic("other", 1))
		lost := k.Inject(fault.Produce().Topic("orders").LoseResponse().Times(1))
		c := connect(t, k)
		c.send(12, produceRequest("orders", 0, -1, batch(t, "applied")))
		c.closed()
		require.Equal(t, 1, lost.Hits())
		o, err := k.Offsets("orders", 0)
		require.NoError(t, err)
		require.EqualValues(t, 1, o.HighWatermark)

		k.Inject(fault.Produce().Nth(1).DropConnection())
		c = connect(t, k)
		c.send(12, produceRequest("orders", 0, -1, batch(t, "not applied")))
		c.closed()

		in := k.Inject(fault.Produce().Topic("orders").Error(errcode.NotLeaderOrFollower))
		c = connect(t, k)
		require.EqualValues(t, errcode.NotLeaderOrFollower, produce(c, "orders", 0, batch(t, "refused")).ErrorCode)
		require.Zero(t, produce(c, "other", 0, batch(t, "fine")).ErrorCode)
		in.Remove()
		k.Inject(fault.Fetch().Delay(3 * time.Second))
		start := time.Now()
		resp := call[*message.FetchResponse](c, 12, fetchRequest("orders", 0, 0))
		require.Equal(t, []string{"applied"}, values(t, resp.Responses[0].Partitions[0].Records))
		require.Equal(t, 3*time.Second, time.Since(start))

		k.Inject(fault.On(wire.KeyListOffsets).Hang())
		c.send(7, message.NewListOffsetsRequest())
		_ = c.conn.SetReadDeadline(time.Now().Add(time.Minute))
		_, err = c.conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "neither an answer nor the end")
	})
}

func TestThousandPartitionsAreMadeQuickly(t *testing.T) {
	k := fakebroker.Start(t)
	start := time.Now()
	require.NoError(t, k.CreateTopic(t.Context(), fakebroker.TopicSpec{Name: "wide", Partitions: 1000}))
	t.Logf("1,000 partitions in %v", time.Since(start))
	require.Less(t, time.Since(start), time.Minute) // only against an accident: 20 ms is the aim, see BenchmarkThousandPartitions
	require.Zero(t, produce(connect(t, k), "wide", 999, batch(t, "x")).ErrorCode)
}

func TestCloseEndsEveryGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 3 {
		k, err := fakebroker.New(fakebroker.Topic("orders", 3))
		require.NoError(t, err)
		c := connect(t, k)
		c.send(12, fetchRequest("orders", 0, 0))
		require.NoError(t, k.Close(t.Context()))
		require.NoError(t, k.Close(t.Context()))
		require.Error(t, k.Restart(t.Context()))
	}
	for range 3000 { // a goroutine that has done its last work needs a moment to be gone
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

func TestSettingsAreChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("no folder"), 0o600))
	broken := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(broken, "meta.properties"), []byte("garbage"), 0o600))
	listener := func(l fakebroker.Listener) fakebroker.Option { return fakebroker.AddListener(l) }
	for _, c := range []struct {
		say  []string
		opts []fakebroker.Option
	}{
		{[]string{"num.partition (did you mean num.partitions?)", "num.io.threads"}, []fakebroker.Option{fakebroker.Config("num.partition", "3"), fakebroker.Config("num.io.threads", "none")}},
		{[]string{"use Dir", `topic "t": 0 partitions`}, []fakebroker.Option{fakebroker.Config("log.dirs", "/x"), fakebroker.Topic("t", 0)}},
		{[]string{`topic "t" is there twice`}, []fakebroker.Option{fakebroker.Topic("t", 1), fakebroker.Topic("t", 6)}},
		{[]string{"no/slash"}, []fakebroker.Option{fakebroker.Topic("no/slash", 1)}},
		{[]string{"256.0.0.1"}, []fakebroker.Option{fakebroker.Listen("256.0.0.1:1")}},
		{[]string{"missing port"}, []fakebroker.Option{fakebroker.Listen("localhost")}},
		{[]string{"set Advertised"}, []fakebroker.Option{fakebroker.Listen("0.0.0.0:0")}},
		{[]string{`"x:99999": want HOST:PORT`}, []fakebroker.Option{listener(fakebroker.Listener{Advertised: "x:99999"})}},
		{[]string{`"x": want HOST:PORT`}, []fakebroker.Option{listener(fakebroker.Listener{Advertised: "x"})}},
		{[]string{`listener "a" is there twice`}, []fakebroker.Option{listener(fakebroker.Listener{Name: "A"}), listener(fakebroker.Listener{Name: "a"})}},
		{[]string{`listener "CONTROLLER"`}, []fakebroker.Option{listener(fakebroker.Listener{Name: "CONTROLLER"})}},
		{[]string{`listener "a b"`}, []fakebroker.Option{listener(fakebroker.Listener{Name: "a b"})}},
		{[]string{"no certificate"}, []fakebroker.Option{fakebroker.TLS(&tls.Config{})}},
		{[]string{`listener "A": TLS: the config has no certificate`}, []fakebroker.Option{listener(fakebroker.Listener{Name: "A", TLS: &tls.Config{}})}},
		{[]string{"a user has no name"}, []fakebroker.Option{fakebroker.User("", "x")}},
		{[]string{`cluster id "x": want 22 characters`}, []fakebroker.Option{fakebroker.ClusterID("x")}},
		{[]string{"node.id", "at least 0"}, []fakebroker.Option{fakebroker.NodeID(-1)}},
		{[]string{file}, []fakebroker.Option{fakebroker.Dir(file)}},
		{[]string{broken, "garbage"}, []fakebroker.Option{fakebroker.Dir(broken)}},
	} {
		_, err := fakebroker.New(c.opts...)
		for _, text := range c.say {
			require.ErrorContains(t, err, text)
		}
	}
	_, err := fakebroker.New(fakebroker.Topic("no/slash", 1))
	require.ErrorIs(t, err, errcode.InvalidTopicException)
}
