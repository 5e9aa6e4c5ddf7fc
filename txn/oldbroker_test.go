package txn_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
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
	case *message.OffsetFetchRequest:
		return fetchedOffsets(req, r.Version)
	case *message.ListOffsetsRequest:
		resp := message.NewListOffsetsResponse()
		part := message.ListOffsetsPartitionResponse{Offset: 0, Timestamp: -1, LeaderEpoch: -1}
		resp.Topics = []message.ListOffsetsTopicResponse{{Name: "orders", Partitions: []message.ListOffsetsPartitionResponse{part}}}
		return resp
	case *message.FetchRequest:
		return fetched(req)
	}
	return nil
}

// fetchedOffsets are those of a group that has committed nothing.
func fetchedOffsets(req *message.OffsetFetchRequest, version int16) message.Response {
	resp := message.NewOffsetFetchResponse()
	none := message.OffsetFetchResponsePartition{CommittedOffset: -1, CommittedLeaderEpoch: -1}
	if version < 8 {
		resp.Topics = []message.OffsetFetchResponseTopic{{Name: "orders", Partitions: []message.OffsetFetchResponsePartition{none}}}
		return resp
	}
	nones := message.OffsetFetchResponsePartitions{CommittedOffset: -1, CommittedLeaderEpoch: -1}
	topics := []message.OffsetFetchResponseTopics{{Name: "orders", Partitions: []message.OffsetFetchResponsePartitions{nones}}}
	resp.Groups = []message.OffsetFetchResponseGroup{{GroupId: req.Groups[0].GroupId, Topics: topics}}
	return resp
}

// fetched is the one record there is, without a session; behind it there is never anything.
func fetched(req *message.FetchRequest) message.Response {
	if len(req.Topics) == 0 || req.Topics[0].Partitions[0].FetchOffset > 0 {
		return wiretest.NoAnswer
	}
	b := record.NewBuilder(nil)
	b.Append(0, nil, []byte("x"), nil)
	part := message.FetchResponsePartitionData{HighWatermark: 1, LastStableOffset: 1, PreferredReadReplica: -1,
		Records: b.Seal(record.NoProducer())}
	part.DivergingEpoch.SetDefaults()
	part.CurrentLeader.SetDefaults()
	part.SnapshotId.SetDefaults()
	resp := message.NewFetchResponse()
	resp.Responses = []message.FetchableTopicResponse{{Topic: "orders", TopicId: req.Topics[0].TopicId, Partitions: []message.FetchResponsePartitionData{part}}}
	return resp
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

// A member's offsets cannot be committed by transactions before 2.5. That is said before anything is read, not found out with
// every record again.
func TestPipesOfGroupsNeedKIP447(t *testing.T) {
	onEveryRelease(t, func(t *testing.T, release string, b *oldBroker, s *txn.Session) {
		if release >= "2.5" {
			return
		}
		c, err := consumer.New(s.Client(), consumer.Group("g"), consumer.Subscribe("orders"), consumer.WithIsolation(consumer.ReadCommitted), consumer.GroupProtocol("classic"))
		require.NoError(t, err)
		defer c.Close(context.Background())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		for op, try := range map[string]func() error{
			"Pipe": func() error {
				return s.Pipe(ctx, c, func(context.Context, *txn.Tx, consumer.Record) error { return nil })
			},
			"PipeBatches": func() error {
				return s.PipeBatches(ctx, c, func(context.Context, *txn.Tx, []consumer.Record) error { return nil })
			},
			"Consume": func() error { _, err := s.Consume(c); return err },
		} {
			err := try()
			require.ErrorIs(t, err, client.ErrUnsupportedVersion, op)
			require.ErrorContains(t, err, `transaction "tx": `+op)
			require.ErrorContains(t, err, "brokers from 2.5 on")
			require.ErrorContains(t, err, "KIP-447")
			require.Equal(t, txn.Abortable, txn.Class(err))
		}
		require.Less(t, time.Since(began), time.Second)
		require.Empty(t, b.Requests(wire.KeyJoinGroup, wire.KeyFetch))
		require.NoError(t, one(t.Context(), s), "the session goes on")
	})
}

// A pipe over one record: with a consumer that is assigned its partitions every release will do. A handler's error that no
// repetition heals ends it.
func TestPipesWithoutMembersTakeEveryRelease(t *testing.T) {
	for name, g := range map[string]groupmember.Generation{"without": {ID: -1}, "with": {ID: 3, MemberID: "m"}} {
		t.Run(name+" a member", func(t *testing.T) {
			onEveryRelease(t, func(t *testing.T, release string, b *oldBroker, s *txn.Session) {
				c, err := consumer.New(s.Client(), consumer.Group("g"), consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest),
					consumer.WithIsolation(consumer.ReadCommitted))
				require.NoError(t, err)
				defer c.Close(context.Background())
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				aborts := 0
				err = s.Pipe(ctx, c, func(ctx context.Context, tx *txn.Tx, r consumer.Record) error {
					return tx.SendOffsets(ctx, "other", g, at(1))
				}, txn.OnCommit(func(int) { cancel() }), txn.OnAbort(func(error) { aborts++ }))
				if release < "2.5" && g.MemberID != "" {
					require.ErrorContains(t, err, "KIP-447")
					require.ErrorIs(t, err, client.ErrUnsupportedVersion)
					require.Equal(t, 1, aborts)
					require.Equal(t, []bool{false}, b.ends)
				} else {
					require.ErrorIs(t, err, context.Canceled)
					require.Zero(t, aborts)
					require.Equal(t, []int32{g.ID, -1}, b.offsets)
				}
			})
		})
	}
}
