package server

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// BenchmarkProduceToAThousandPartitions is what keyed records over a wide topic cost: a request has a small batch for each
// partition.
func BenchmarkProduceToAThousandPartitions(b *testing.B) {
	a := startAdmin(b, nil)
	const partitions = 1000
	a.create("wide", partitions)
	r := record.NewBuilder(nil)
	r.Append(1700000000000, []byte("key-1234"), make([]byte, 100), nil)
	batch := slices.Clone(r.Seal(record.NoProducer()))
	req := message.NewProduceRequest()
	req.Acks, req.TimeoutMs = -1, 30_000
	topic := message.TopicProduceData{Name: "wide", TopicId: a.broker.Image().Topic("wide").ID}
	for i := range int32(partitions) {
		topic.PartitionData = append(topic.PartitionData, message.PartitionProduceData{Index: i, Records: batch})
	}
	req.TopicData = []message.TopicProduceData{topic}
	b.ReportAllocs()
	for b.Loop() {
		resp := ask[*message.ProduceResponse](a, 12, req)
		require.Zero(b, resp.Responses[0].PartitionResponses[0].ErrorCode)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/partitions, "ns/batch")
}

// BenchmarkFirstBatchOfAThousandPartitions is what a partition costs when it is written to for the first time: its files.
func BenchmarkFirstBatchOfAThousandPartitions(b *testing.B) {
	a := startAdmin(b, nil)
	const partitions = 1000
	r := record.NewBuilder(nil)
	r.Append(1700000000000, []byte("key-1234"), make([]byte, 100), nil)
	batch := slices.Clone(r.Seal(record.NoProducer()))
	n := 0
	for b.Loop() {
		b.StopTimer()
		n++
		name := fmt.Sprint("wide-", n)
		a.create(name, partitions)
		req := message.NewProduceRequest()
		req.Acks, req.TimeoutMs = -1, 30_000
		topic := message.TopicProduceData{Name: name}
		for i := range int32(partitions) {
			topic.PartitionData = append(topic.PartitionData, message.PartitionProduceData{Index: i, Records: batch})
		}
		req.TopicData = []message.TopicProduceData{topic}
		b.StartTimer()
		resp := ask[*message.ProduceResponse](a, 12, req)
		require.Zero(b, resp.Responses[0].PartitionResponses[0].ErrorCode)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/partitions, "ns/batch")
}
