package producer_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// swallow is a peer that acknowledges everything and keeps nothing.
func swallow(b *testing.B, partitions int) *client.Client {
	var offset atomic.Int64
	peer := wiretest.New(func(req message.Request, _ int16) message.Response {
		switch r := req.(type) {
		case *message.InitProducerIdRequest:
			resp := message.NewInitProducerIdResponse()
			resp.ProducerId = 1
			return resp
		case *message.ProduceRequest:
			resp := message.NewProduceResponse()
			for _, td := range r.TopicData {
				tr := message.TopicProduceResponse{Name: td.Name, TopicId: td.TopicId}
				for _, pd := range td.PartitionData {
					pr := message.PartitionProduceResponse{Index: pd.Index, BaseOffset: offset.Add(1), LogAppendTimeMs: -1}
					pr.CurrentLeader.LeaderId = -1
					tr.PartitionResponses = append(tr.PartitionResponses, pr)
				}
				resp.Responses = append(resp.Responses, tr)
			}
			return resp
		}
		return nil
	})
	leaders := make([]int32, partitions)
	for i := range leaders {
		leaders[i] = 1
	}
	peer.SetTopic("orders", 0, leaders...)
	cl, err := client.New(client.Cluster(peer))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cl.Close(context.Background())
		peer.Close()
	})
	return cl
}

// BenchmarkSubmit is one record of 100 bytes from Submit to its callback; the peer runs in the same process.
func BenchmarkSubmit(b *testing.B) {
	cl := swallow(b, 6)
	p, err := producer.New(cl, producer.BatchSize(256<<10))
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	if err := p.Warm(ctx, "orders"); err != nil {
		b.Fatal(err)
	}
	value := make([]byte, 100)
	done := func(_ producer.Ack, err error) {
		if err != nil {
			b.Error(err)
		}
	}
	b.ReportAllocs()
	b.SetBytes(100)
	for b.Loop() {
		if err := p.Submit(ctx, producer.Record{Topic: "orders", Value: value}, done); err != nil {
			b.Fatal(err)
		}
	}
	if err := p.Close(ctx); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSend is one waiting Send after the other.
func BenchmarkSend(b *testing.B) {
	cl := swallow(b, 6)
	p, err := producer.New(cl)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	value := make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Send(ctx, producer.Record{Topic: "orders", Value: value}); err != nil {
			b.Fatal(err)
		}
	}
	if err := p.Close(ctx); err != nil {
		b.Fatal(err)
	}
}
