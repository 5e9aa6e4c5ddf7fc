package storage_test

import (
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/record"
)

var now = time.UnixMilli(1_700_000_000_000)

func exampleBatch(values ...string) []byte {
	b := record.NewBuilder(nil)
	for _, v := range values {
		b.Append(now.UnixMilli(), nil, []byte(v), nil)
	}
	return b.Seal(record.NoProducer())
}

func exampleLog() *storage.Log {
	l, err := storage.OpenLog(storage.LogOptions{
		FS: vfs.NewMem(), Dir: "data/orders-0", Partition: storage.TopicPartition{Topic: "orders"},
		TopicID: wire.UUID{1}, Config: storage.DefaultLogConfig(),
	}, now)
	if err != nil {
		panic(err)
	}
	return l
}

// A log of its own, outside a Manager: this is how the quorum opens the
// metadata log.
func ExampleOpenLog() {
	l := exampleLog()
	info, err := l.AppendAsLeader(exampleBatch("a", "b"), 3, storage.FromClient, now)
	fmt.Println(info.FirstOffset, info.LastOffset, err)
	fmt.Println(l.LatestEpoch(), l.EndOffsetForEpoch(3))
	// Output:
	// 0 1 <nil>
	// 3 {3 2}
}

func ExampleLog_Read() {
	l := exampleLog()
	_, _ = l.AppendAsLeader(exampleBatch("a", "b"), 0, storage.FromClient, now)
	_, _ = l.AppendAsLeader(exampleBatch("c"), 0, storage.FromClient, now)
	l.SetHighWatermark(2)

	d, err := l.Read(1, 1<<20, storage.BoundHighWatermark, true)
	if err != nil {
		panic(err)
	}
	defer d.Records.Release()
	b, _ := d.Records.AppendTo(nil)
	it, _ := record.Open(b, record.ReadOptions{})
	for r := range it.All() {
		fmt.Println(r.Offset, string(r.Value)) // the batch that holds offset 1 begins at 0
	}
	fmt.Println("next", d.NextOffset, "of", d.LogEndOffset)
	// Output:
	// 0 a
	// 1 b
	// next 2 of 3
}

// A producer that repeats a batch, because the answer was lost, gets the
// answer of the first time.
func ExampleLog_AppendAsLeader() {
	l := exampleLog()
	batch := func() []byte {
		b := record.NewBuilder(nil)
		b.Append(now.UnixMilli(), nil, []byte("a"), nil)
		return b.Seal(record.Stamp{ProducerID: 7, BaseSequence: 0})
	}
	for range 2 {
		info, err := l.AppendAsLeader(batch(), 0, storage.FromClient, now)
		fmt.Println(info.FirstOffset, info.Duplicate, err)
	}
	_, err := l.AppendAsLeader(exampleBatch("x"), 0, storage.FromRaft, now)
	fmt.Println(storage.CodeOf(err).Name())
	// Output:
	// 0 false <nil>
	// 0 true <nil>
	// INVALID_RECORD
}

func ExampleLog_OffsetForTimestamp() {
	l := exampleLog()
	_, _ = l.AppendAsLeader(exampleBatch("a"), 0, storage.FromClient, now)
	found, _ := l.OffsetForTimestamp(now.UnixMilli()-5, storage.BoundLogEnd)
	none, _ := l.OffsetForTimestamp(now.UnixMilli()+5, storage.BoundLogEnd)
	fmt.Println(found, none)
	// Output: {1700000000000 0 0} {-1 -1 -1}
}

// The log dirs of a broker, from start to stop.
func ExampleManager() {
	n := byte(0)
	opts := storage.ManagerOptions{
		FS: vfs.NewMem(), Dirs: []string{"data"}, ClusterID: "4L6g3nShT-eMCtK--X86sw", NodeID: 1,
		NewUUID: func() wire.UUID { n++; return wire.UUID{1, 15: n} },
	}
	config := func(string) storage.LogConfig { return storage.DefaultLogConfig() }
	m, _ := storage.NewManager(opts, now)
	_ = m.LoadLogs(config, now)
	l, _ := m.Create(storage.TopicPartition{Topic: "orders"}, wire.UUID{9}, config("orders"), now)
	_, _ = l.AppendAsLeader(exampleBatch("a"), 0, storage.FromClient, now)
	m.Tick(now)
	_ = m.Close(42, now)

	m, _ = storage.NewManager(opts, now)
	_ = m.LoadLogs(config, now)
	for l := range m.Logs() {
		fmt.Println(l.Partition(), l.LogEndOffset(), m.PreviousBrokerEpoch())
	}
	// Output: orders-0 1 42
}

func ExampleValidateProduce() {
	two := append(exampleBatch("a"), exampleBatch("b")...)
	fmt.Println(storage.ValidateProduce(two, 13))
	// Output: INVALID_RECORD: produce requests with version 13 are only allowed to contain exactly one record batch per partition
}
