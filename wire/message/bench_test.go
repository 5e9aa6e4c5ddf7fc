package message

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
)

func fetchResponse(partitions int) *FetchResponse {
	m := NewFetchResponse()
	topic := wire.Add(&m.Responses)
	topic.TopicId = wire.UUID{1}
	for i := range partitions {
		p := wire.Add(&topic.Partitions)
		p.PartitionIndex, p.HighWatermark, p.Records = int32(i), 1000, make([]byte, 1024)
	}
	return m
}

func metadataResponse(topics, partitions int) *MetadataResponse {
	m := NewMetadataResponse()
	for i := range 3 {
		b := wire.Add(&m.Brokers)
		b.NodeId, b.Host, b.Port = int32(i), "broker.example", 9092
	}
	for i := range topics {
		topic := wire.Add(&m.Topics)
		topic.Name = new(fmt.Sprintf("topic-%d", i))
		for j := range partitions {
			p := wire.Add(&topic.Partitions)
			p.PartitionIndex = int32(j)
			p.ReplicaNodes, p.IsrNodes, p.OfflineReplicas = []int32{0, 1, 2}, []int32{0, 1, 2}, []int32{}
		}
	}
	return m
}

func produceRequest(partitions int) *ProduceRequest {
	m := NewProduceRequest()
	m.Acks, m.TimeoutMs = -1, 30000
	topic := wire.Add(&m.TopicData)
	topic.TopicId = wire.UUID{1}
	for i := range partitions {
		p := wire.Add(&topic.PartitionData)
		p.Index, p.Records = int32(i), make([]byte, 1024)
	}
	return m
}

func encoded(tb testing.TB, m Message, version int16) []byte {
	b, err := m.AppendTo(nil, version)
	require.NoError(tb, err)
	return b
}

// What a client or broker reads all day costs no allocation beyond slices and strings, and into a used message none.
func TestHotMessagesAllocateLittle(t *testing.T) {
	for name, c := range map[string]struct {
		full, into Message
		version    int16
		most       float64
	}{
		"FetchResponse":    {fetchResponse(20), NewFetchResponse(), 17, 0},
		"ProduceRequest":   {produceRequest(20), NewProduceRequest(), 13, 0},
		"MetadataResponse": {metadataResponse(10, 20), NewMetadataResponse(), 13, 3 + 10*2}, // hosts, and two for each nullable name
	} {
		body := encoded(t, c.full, c.version)
		var r wire.Reader
		got := testing.AllocsPerRun(20, func() {
			r.Reset(body)
			if err := c.into.ReadFrom(&r, c.version); err != nil {
				t.Fatal(err)
			}
		})
		require.LessOrEqual(t, got, c.most, "%s read again", name)
		buf := make([]byte, 0, len(body))
		got = testing.AllocsPerRun(20, func() {
			if _, err := c.full.AppendTo(buf, c.version); err != nil {
				t.Fatal(err)
			}
		})
		require.Zero(t, got, "%s written", name)
	}
}

func benchmarkRead(b *testing.B, m, into Message, version int16, fresh func() Message) {
	body := encoded(b, m, version)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	var r wire.Reader
	for b.Loop() {
		if fresh != nil {
			into = fresh()
		}
		r.Reset(body)
		if err := into.ReadFrom(&r, version); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFetchResponseRead(b *testing.B) {
	m := fetchResponse(20)
	b.Run("fresh", func(b *testing.B) {
		benchmarkRead(b, m, nil, 17, func() Message { return new(FetchResponse) })
	})
	b.Run("reused", func(b *testing.B) { benchmarkRead(b, m, new(FetchResponse), 17, nil) })
}

func BenchmarkMetadataResponseRead(b *testing.B) {
	m := metadataResponse(100, 10)
	b.Run("fresh", func(b *testing.B) {
		benchmarkRead(b, m, nil, 13, func() Message { return new(MetadataResponse) })
	})
	b.Run("reused", func(b *testing.B) { benchmarkRead(b, m, new(MetadataResponse), 13, nil) })
}

func BenchmarkProduceRequest(b *testing.B) {
	m := produceRequest(20)
	b.Run("write", func(b *testing.B) {
		buf := make([]byte, 0, 64<<10)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.AppendTo(buf, 13); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) { benchmarkRead(b, m, new(ProduceRequest), 13, nil) })
}

func BenchmarkProduceResponseRead(b *testing.B) {
	m := NewProduceResponse()
	topic := wire.Add(&m.Responses)
	for i := range 20 {
		wire.Add(&topic.PartitionResponses).Index = int32(i)
	}
	benchmarkRead(b, m, new(ProduceResponse), 13, nil)
}
