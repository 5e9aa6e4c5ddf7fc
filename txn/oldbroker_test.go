package txn_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// oldBroker is a coordinator and leader that speaks the versions of a release before KIP-890.
type oldBroker struct {
	*wiretest.Peer
	t *testing.T

	mu       sync.Mutex
	epoch    int16
	expected []int16 // the epochs that InitProducerId was asked with
	added    bool
	ends     []bool  // outcomes of EndTxn
	next     int32   // sequence
	seqEpoch int16   // of next
	values   []int32 // first sequence of each batch taken
	refuse   func(n int) (code errcode.Code, silent bool)
	produced int
	offsets  []int32 // generations that offsets came with
}

// releases have the highest versions of the requests of a transaction.
var releases = map[string]map[wire.Key]int16{
	"2.1": {wire.KeyProduce: 7, wire.KeyFindCoordinator: 2, wire.KeyInitProducerId: 1, wire.KeyAddPartitionsToTxn: 1, wire.KeyAddOffsetsToTxn: 1, wire.KeyEndTxn: 1, wire.KeyTxnOffsetCommit: 2, wire.KeyMetadata: 7, wire.KeyDescribeTransactions: -1},
	"2.4": {wire.KeyProduce: 8, wire.KeyFindCoordinator: 3, wire.KeyInitProducerId: 2, wire.KeyAddPartitionsToTxn: 1, wire.KeyAddOffsetsToTxn: 1, wire.KeyEndTxn: 1, wire.KeyTxnOffsetCommit: 2, wire.KeyMetadata: 9, wire.KeyDescribeTransactions: -1},
	"2.5": {wire.KeyProduce: 8, wire.KeyFindCoordinator: 3, wire.KeyInitProducerId: 3, wire.KeyAddPartitionsToTxn: 1, wire.KeyAddOffsetsToTxn: 1, wire.KeyEndTxn: 1, wire.KeyTxnOffsetCommit: 3, wire.KeyMetadata: 9, wire.KeyDescribeTransactions: -1},
	"3.4": {wire.KeyProduce: 9, wire.KeyFindCoordinator: 4, wire.KeyInitProducerId: 4, wire.KeyAddPartitionsToTxn: 3, wire.KeyAddOffsetsToTxn: 3, wire.KeyEndTxn: 3, wire.KeyTxnOffsetCommit: 3, wire.KeyMetadata: 12},
}

func newOldBroker(t *testing.T, release string) (*oldBroker, *client.Client) {
	b := &oldBroker{t: t, epoch: -1, seqEpoch: -1}
	b.Peer = wiretest.NewCluster(1, b.answer)
	for key, most := range releases[release] {
		b.SetVersions(key, 0, most)
	}
	b.SetTopic("orders", 0, 1)
	cl, err := client.New(client.Cluster(b.Peer), client.Jitter(1), client.RequestTimeout(3*time.Second))
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = cl.Close(context.Background())
		b.Close()
	})
	return b, cl
}

func (b *oldBroker) answer(r *wiretest.Request) message.Response {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch req := r.Body.(type) {
	case *message.FindCoordinatorRequest:
		resp := message.NewFindCoordinatorResponse()
		node := message.Coordinator{NodeId: 1, Host: "peer-1", Port: 9092}
		resp.NodeId, resp.Host, resp.Port = node.NodeId, node.Host, node.Port
		if r.Version >= 4 {
			resp = message.NewFindCoordinatorResponse()
			for _, key := range req.CoordinatorKeys {
				node.Key = key
				resp.Coordinators = append(resp.Coordinators, node)
			}
		}
		return resp
	case *message.InitProducerIdRequest:
		b.expected = append(b.expected, req.ProducerEpoch)
		b.epoch++
		resp := message.NewInitProducerIdResponse()
		resp.ProducerId, resp.ProducerEpoch = 7, b.epoch
		return resp
	case *message.AddPartitionsToTxnRequest:
		b.added = true
		resp := message.NewAddPartitionsToTxnResponse()
		for _, topic := range req.V3AndBelowTopics {
			out := message.AddPartitionsToTxnTopicResult{Name: topic.Name}
			for _, p := range topic.Partitions {
				out.ResultsByPartition = append(out.ResultsByPartition, message.AddPartitionsToTxnPartitionResult{PartitionIndex: p})
			}
			resp.ResultsByTopicV3AndBelow = append(resp.ResultsByTopicV3AndBelow, out)
		}
		return resp
	case *message.AddOffsetsToTxnRequest:
		return message.NewAddOffsetsToTxnResponse()
	case *message.TxnOffsetCommitRequest:
		b.offsets = append(b.offsets, req.GenerationIdOrMemberEpoch)
		resp := message.NewTxnOffsetCommitResponse()
		for _, topic := range req.Topics {
			out := message.TxnOffsetCommitResponseTopic{Name: topic.Name}
			for _, p := range topic.Partitions {
				out.Partitions = append(out.Partitions, message.TxnOffsetCommitResponsePartition{PartitionIndex: p.PartitionIndex})
			}
			resp.Topics = append(resp.Topics, out)
		}
		return resp
	case *message.EndTxnRequest:
		b.added = false
		b.ends = append(b.ends, req.Committed)
		return message.NewEndTxnResponse()
	case *message.ProduceRequest:
		return b.produce(req)
	}
	return nil
}

// produce takes batches in order of their sequence alone.
func (b *oldBroker) produce(req *message.ProduceRequest) message.Response {
	require.Equal(b.t, "tx", *req.TransactionalId)
	require.True(b.t, b.added, "the partition is part of the transaction before the first record comes")
	pd := req.TopicData[0].PartitionData[0]
	h, err := record.ParseHeader(pd.Records)
	require.NoError(b.t, err)
	require.True(b.t, h.Transactional())
	resp := message.NewProduceResponse()
	out := message.PartitionProduceResponse{LogAppendTimeMs: -1, BaseOffset: int64(len(b.values))}
	out.CurrentLeader.SetDefaults()
	b.produced++
	code := errcode.None
	silent := false
	if b.refuse != nil {
		code, silent = b.refuse(b.produced)
	}
	if h.ProducerEpoch > b.seqEpoch {
		b.seqEpoch, b.next = h.ProducerEpoch, 0
	}
	switch {
	case silent:
		return wiretest.NoAnswer
	case code != errcode.None:
	case h.ProducerEpoch < b.seqEpoch:
		code = errcode.InvalidProducerEpoch
	case len(b.values) > 0 && h.BaseSequence+h.Count == b.next && h.BaseSequence == b.values[len(b.values)-1]:
		// the same again: the answer was lost
	case h.BaseSequence != b.next:
		code = errcode.OutOfOrderSequenceNumber
	default:
		b.values = append(b.values, h.BaseSequence)
		b.next += h.Count
	}
	out.ErrorCode = int16(code)
	resp.Responses = []message.TopicProduceResponse{{Name: "orders", PartitionResponses: []message.PartitionProduceResponse{out}}}
	return resp
}

func onEveryRelease(t *testing.T, f func(t *testing.T, release string, b *oldBroker, s *txn.Session)) {
	for release := range releases {
		t.Run(release, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, cl := newOldBroker(t, release)
				f(t, release, b, open(t, cl, "tx", txn.Producer(producer.DeliveryTimeout(10*time.Second), producer.RequestTimeout(3*time.Second))))
			})
		})
	}
}

func one(ctx context.Context, s *txn.Session) error {
	return s.Do(ctx, func(ctx context.Context, tx *txn.Tx) error {
		_, err := tx.Send(ctx, text("orders", "x"))
		return err
	})
}

func TestOldBrokersTakeTransactions(t *testing.T) {
	onEveryRelease(t, func(t *testing.T, release string, b *oldBroker, s *txn.Session) {
		for range 3 {
			require.NoError(t, s.Do(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				_, err := tx.Send(ctx, text("orders", "x"))
				require.NoError(t, err)
				return tx.SendOffsets(ctx, "g", groupmember.Generation{}, at(1))
			}))
		}
		require.Equal(t, []int32{0, 1, 2}, b.values, "one sequence, in one epoch")
		require.Equal(t, []bool{true, true, true}, b.ends)
		require.Equal(t, []int16{-1}, b.expected)
		require.Equal(t, []int32{-1, -1, -1}, b.offsets)
	})
}

// A record that is certainly not in the log costs its transaction alone, on the oldest broker too.
func TestARefusedBatchOnOldBrokers(t *testing.T) {
	onEveryRelease(t, func(t *testing.T, release string, b *oldBroker, s *txn.Session) {
		b.refuse = func(n int) (errcode.Code, bool) {
			if n == 2 {
				return errcode.InvalidRecord, false
			}
			return errcode.None, false
		}
		require.NoError(t, one(t.Context(), s))
		err := one(t.Context(), s)
		require.ErrorIs(t, err, errcode.InvalidRecord)
		require.Equal(t, txn.Abortable, txn.Class(err))
		require.NoError(t, one(t.Context(), s))
		require.Equal(t, []bool{true, false, true}, b.ends)
		if release < "2.5" {
			require.Equal(t, []int32{0, 1}, b.values, "the place in the sequence is taken again")
			require.Equal(t, []int16{-1}, b.expected)
		} else {
			require.Equal(t, []int32{0, 0}, b.values, "in an epoch of its own")
			require.Equal(t, []int16{-1, 0}, b.expected)
		}
	})
}

// Records that nobody knows of may come late. Another epoch keeps them out, where the broker gives one.
func TestABatchInDoubtOnOldBrokers(t *testing.T) {
	onEveryRelease(t, func(t *testing.T, release string, b *oldBroker, s *txn.Session) {
		require.NoError(t, one(t.Context(), s))
		b.mu.Lock()
		b.refuse = func(int) (errcode.Code, bool) { return errcode.None, true }
		b.mu.Unlock()
		err := one(t.Context(), s)
		b.mu.Lock()
		b.refuse = nil
		b.mu.Unlock()
		require.ErrorIs(t, err, producer.ErrDeliveryTimeout)
		if release < "2.5" {
			require.Equal(t, txn.Fenced, txn.Class(err), "%v", err)
			require.ErrorContains(t, err, "KIP-360")
			require.ErrorIs(t, one(t.Context(), s), txn.ErrFenced)
			return
		}
		require.Equal(t, txn.Abortable, txn.Class(err), "%v", err)
		require.NoError(t, one(t.Context(), s))
		require.Equal(t, []int32{0, 0}, b.values)
		require.Equal(t, []int16{-1, 0}, b.expected)
	})
}

// Brokers before 2.5 do not check the generation of a group's member, so offsets that need it are refused.
func TestGenerationsNeedKIP447(t *testing.T) {
	onEveryRelease(t, func(t *testing.T, release string, b *oldBroker, s *txn.Session) {
		err := s.Do(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			return tx.SendOffsets(ctx, "g", groupmember.Generation{ID: 3, MemberID: "m"}, at(1))
		})
		if release < "2.5" {
			require.ErrorContains(t, err, "KIP-447")
			require.Equal(t, txn.Abortable, txn.Class(err))
			require.Empty(t, b.offsets)
		} else {
			require.NoError(t, err)
			require.Equal(t, []int32{3}, b.offsets)
		}
	})
}
