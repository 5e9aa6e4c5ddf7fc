package txn_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// swallow is a peer that acknowledges everything and keeps nothing; its versions are those before KIP-890.
func swallow(b *testing.B) *client.Client {
	var offset atomic.Int64
	peer := wiretest.New(func(req message.Request, version int16) message.Response {
		switch r := req.(type) {
		case *message.FindCoordinatorRequest:
			resp := message.NewFindCoordinatorResponse()
			for _, key := range r.CoordinatorKeys {
				resp.Coordinators = append(resp.Coordinators, message.Coordinator{Key: key, NodeId: 1, Host: "broker-1", Port: 9092})
			}
			return resp
		case *message.InitProducerIdRequest:
			resp := message.NewInitProducerIdResponse()
			resp.ProducerId = 1
			return resp
		case *message.AddPartitionsToTxnRequest:
			resp := message.NewAddPartitionsToTxnResponse()
			for _, topic := range r.V3AndBelowTopics {
				out := message.AddPartitionsToTxnTopicResult{Name: topic.Name}
				for _, p := range topic.Partitions {
					out.ResultsByPartition = append(out.ResultsByPartition, message.AddPartitionsToTxnPartitionResult{PartitionIndex: p})
				}
				resp.ResultsByTopicV3AndBelow = append(resp.ResultsByTopicV3AndBelow, out)
			}
			return resp
		case *message.EndTxnRequest:
			return message.NewEndTxnResponse()
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
	peer.SetVersions(wire.KeyFindCoordinator, 4, 4)
	peer.SetTopic("orders", 0, 1, 1, 1, 1, 1, 1)
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

// BenchmarkSubmit is producer's benchmark of the same name, within a transaction: what a record costs more is in the
// difference.
func BenchmarkSubmit(b *testing.B) {
	ctx := context.Background()
	s, err := txn.New(ctx, swallow(b), "tx", txn.Producer(producer.BatchSize(256<<10)))
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Warm(ctx, "orders"); err != nil {
		b.Fatal(err)
	}
	value := make([]byte, 100)
	done := func(_ producer.Ack, err error) {
		if err != nil {
			b.Error(err)
		}
	}
	tx, err := s.Begin(ctx)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(100)
	for b.Loop() {
		if err := tx.Submit(ctx, producer.Record{Topic: "orders", Value: value}, done); err != nil {
			b.Fatal(err)
		}
	}
	if err := tx.Commit(ctx); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(ctx); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkDo is a whole transaction of one record.
func BenchmarkDo(b *testing.B) {
	ctx := context.Background()
	s, err := txn.New(ctx, swallow(b), "tx")
	if err != nil {
		b.Fatal(err)
	}
	value := make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		err := s.Do(ctx, func(ctx context.Context, tx *txn.Tx) error {
			return tx.Submit(ctx, producer.Record{Topic: "orders", Value: value}, nil)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(ctx); err != nil {
		b.Fatal(err)
	}
}
