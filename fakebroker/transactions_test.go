package fakebroker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// transactional is a producer of transactions that speaks frames.
type transactional struct {
	*rawClient
	id    string
	pid   int64
	epoch int16
	seq   map[int32]int32
}

// begin finds the coordinator and gets a producer id and epoch.
func begin(c *rawClient, id string, timeout time.Duration) *transactional {
	c.t.Helper()
	found := call[*message.FindCoordinatorResponse](c, 4, &message.FindCoordinatorRequest{KeyType: 1, CoordinatorKeys: []string{id}})
	require.Zero(c.t, found.Coordinators[0].ErrorCode)
	p := &transactional{rawClient: c, id: id}
	require.Equal(c.t, errcode.None, p.init(timeout))
	return p
}

func (p *transactional) init(timeout time.Duration) errcode.Code {
	p.t.Helper()
	req := message.NewInitProducerIdRequest()
	req.TransactionalId, req.TransactionTimeoutMs = &p.id, int32(timeout.Milliseconds())
	resp := call[*message.InitProducerIdResponse](p.rawClient, 5, req)
	if resp.ErrorCode == 0 {
		p.pid, p.epoch, p.seq = resp.ProducerId, resp.ProducerEpoch, make(map[int32]int32)
	}
	return errcode.Code(resp.ErrorCode)
}

func (p *transactional) add(topic string, partitions ...int32) errcode.Code {
	p.t.Helper()
	req := &message.AddPartitionsToTxnRequest{V3AndBelowTransactionalId: p.id, V3AndBelowProducerId: p.pid, V3AndBelowProducerEpoch: p.epoch,
		V3AndBelowTopics: []message.AddPartitionsToTxnTopic{{Name: topic, Partitions: partitions}}}
	resp := call[*message.AddPartitionsToTxnResponse](p.rawClient, 3, req)
	return errcode.Code(resp.ResultsByTopicV3AndBelow[0].ResultsByPartition[0].PartitionErrorCode)
}

func (p *transactional) write(topic string, partition int32, values ...string) errcode.Code {
	p.t.Helper()
	b := record.NewBuilder(nil)
	for _, v := range values {
		b.Append(time.Now().UnixMilli(), nil, []byte(v), nil)
	}
	s := record.NoProducer()
	s.ProducerID, s.ProducerEpoch, s.BaseSequence, s.Transactional = p.pid, p.epoch, p.seq[partition], true
	req := produceRequest(topic, partition, -1, b.Seal(s))
	req.TransactionalId = &p.id
	resp := call[*message.ProduceResponse](p.rawClient, 11, req)
	code := errcode.Code(resp.Responses[0].PartitionResponses[0].ErrorCode)
	if code == errcode.None {
		p.seq[partition] += int32(len(values))
	}
	return code
}

// end ends the transaction by the protocol of a version of EndTxn: from 5 on with the bump of KIP-890.
func (p *transactional) end(version int16, commit bool) errcode.Code {
	p.t.Helper()
	req := &message.EndTxnRequest{TransactionalId: p.id, ProducerId: p.pid, ProducerEpoch: p.epoch, Committed: commit}
	resp := call[*message.EndTxnResponse](p.rawClient, version, req)
	if version >= 5 && resp.ErrorCode == 0 {
		p.pid, p.epoch, p.seq = resp.ProducerId, resp.ProducerEpoch, make(map[int32]int32)
	}
	return errcode.Code(resp.ErrorCode)
}

// committed reads what a partition has for read_committed.
func committed(c *rawClient, topic string, partition int32) []string {
	c.t.Helper()
	req := fetchRequest(topic, partition, 0)
	req.IsolationLevel, req.MinBytes = 1, 0
	p := call[*message.FetchResponse](c, 12, req).Responses[0].Partitions[0]
	require.Zero(c.t, p.ErrorCode)
	aborted := make(map[int64][]int64) // those of one producer rise
	for _, a := range p.AbortedTransactions {
		aborted[a.ProducerId] = append(aborted[a.ProducerId], a.FirstOffset)
	}
	var all []string
	for raw := p.Records; len(raw) > 0; {
		b, rest, err := record.Next(raw)
		require.NoError(c.t, err)
		raw = rest
		h, err := record.ParseHeader(b)
		require.NoError(c.t, err)
		next := aborted[h.ProducerID]
		out := len(next) > 0 && h.BaseOffset >= next[0]
		switch {
		case h.Control() && out: // and not the end of an earlier one
			aborted[h.ProducerID] = next[1:]
		case !h.Control() && !out:
			all = append(all, values(c.t, b)...)
		}
	}
	return all
}

func TestTransactionsByBothProtocols(t *testing.T) {
	for _, version := range []int16{3, 5} {
		t.Run(fmt.Sprint("EndTxn v", version), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				k := fakebroker.Start(t, fakebroker.Topic("orders", 2))
				c := connect(t, k)
				p := begin(c, "shop", time.Minute)
				require.Equal(t, errcode.None, p.add("orders", 0, 1))
				require.Equal(t, errcode.None, p.write("orders", 0, "a", "b"))
				require.Equal(t, errcode.None, p.write("orders", 1, "c"))
				require.Empty(t, committed(c, "orders", 0))
				tx, err := k.Transaction(ctx, "shop")
				require.NoError(t, err)
				require.Equal(t, fakebroker.TransactionOngoing, tx.State)
				require.Equal(t, []fakebroker.TransactionPartition{{Topic: "orders", Partition: 0}, {Topic: "orders", Partition: 1}}, tx.Partitions)

				require.Equal(t, errcode.None, p.end(version, true))
				_, err = k.AwaitTransaction(ctx, "shop", fakebroker.TransactionIs(fakebroker.TransactionCompleteCommit))
				require.NoError(t, err)
				require.Equal(t, []string{"a", "b"}, committed(c, "orders", 0))
				require.Equal(t, []string{"c"}, committed(c, "orders", 1))

				require.Equal(t, errcode.None, p.add("orders", 0))
				require.Equal(t, errcode.None, p.write("orders", 0, "nothing"))
				require.Equal(t, errcode.None, p.end(version, false))
				tx, err = k.AwaitTransaction(ctx, "shop", fakebroker.TransactionAborts(1))
				require.NoError(t, err)
				require.Equal(t, 1, tx.Commits)
				require.Equal(t, []string{"a", "b"}, committed(c, "orders", 0))
				bumps := map[int16]int16{3: 0, 5: 2}
				require.Equal(t, bumps[version], tx.ProducerEpoch)
			})
		})
	}
}

func TestATransactionThatTakesTooLongIsAbortedAndItsProducerFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		c := connect(t, k)
		p := begin(c, "slow", 30*time.Second)
		require.Equal(t, errcode.None, p.add("orders", 0))
		require.Equal(t, errcode.None, p.write("orders", 0, "a"))
		began := time.Now()
		tx, err := k.AwaitTransaction(t.Context(), "slow", fakebroker.TransactionIs(fakebroker.TransactionCompleteAbort))
		require.NoError(t, err)
		require.WithinRange(t, time.Now(), began.Add(30*time.Second), began.Add(41*time.Second))
		require.Equal(t, 1, tx.TimeOuts)
		require.Equal(t, errcode.InvalidProducerEpoch, p.write("orders", 0, "b"))
		require.Equal(t, errcode.ProducerFenced, p.end(3, true))
		require.Empty(t, committed(c, "orders", 0))
		require.Equal(t, errcode.None, p.init(time.Minute))
		require.ErrorIs(t, k.ExpireTransaction(t.Context(), "slow"), errcode.InvalidTxnState)
	})
}

func TestANewInstanceFencesTheOldOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		old := begin(connect(t, k), "job", time.Minute)
		require.Equal(t, errcode.None, old.add("orders", 0))
		require.Equal(t, errcode.None, old.write("orders", 0, "a"))
		young := &transactional{rawClient: connect(t, k), id: "job"}
		require.Equal(t, errcode.ConcurrentTransactions, young.init(time.Minute))
		tx, err := k.AwaitTransaction(t.Context(), "job", fakebroker.TransactionIs(fakebroker.TransactionCompleteAbort))
		require.NoError(t, err)
		require.Equal(t, 1, tx.Fences)
		require.Equal(t, errcode.None, young.init(time.Minute))
		require.Equal(t, old.pid, young.pid)
		require.Greater(t, young.epoch, old.epoch)
		require.Equal(t, errcode.ProducerFenced, old.add("orders", 0))
		require.Equal(t, errcode.ProducerFenced, old.end(3, true))
		require.Equal(t, errcode.InvalidProducerEpoch, old.write("orders", 0, "b"))
	})
}

// TestTransactionsGoOnAfterTheBrokerIsGone stops the broker in one way or another with a transaction in each of its
// states: what was decided is finished, what was open can be ended.
func TestTransactionsGoOnAfterTheBrokerIsGone(t *testing.T) {
	ways := map[string]func(ctx context.Context, k *fakebroker.Cluster) error{
		"restart": func(ctx context.Context, k *fakebroker.Cluster) error { return k.Restart(ctx) },
		"crash": func(ctx context.Context, k *fakebroker.Cluster) error {
			return errors.Join(k.Crash(ctx), k.Restart(ctx))
		},
		"reload": func(ctx context.Context, k *fakebroker.Cluster) error {
			return k.ReloadTransactionCoordinator(ctx, "job")
		},
	}
	for name, gone := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
				p := begin(connect(t, k), "job", time.Minute)
				again := func() {
					t.Helper()
					require.NoError(t, gone(ctx, k))
					p.rawClient = connect(t, k)
				}
				again()
				require.Equal(t, errcode.None, p.add("orders", 0))
				require.Equal(t, errcode.None, p.write("orders", 0, "a"))
				again()
				require.Equal(t, errcode.None, p.write("orders", 0, "b"))
				require.Equal(t, errcode.None, p.end(5, true))
				again() // in the middle of the markers
				_, err := k.AwaitTransaction(ctx, "job", fakebroker.TransactionIs(fakebroker.TransactionCompleteCommit))
				require.NoError(t, err)
				require.Equal(t, []string{"a", "b"}, committed(p.rawClient, "orders", 0))
				again()
				require.Equal(t, errcode.None, p.add("orders", 0))
				require.Equal(t, errcode.None, p.write("orders", 0, "nothing"))
				require.Equal(t, errcode.None, p.end(5, false))
				again()
				_, err = k.AwaitTransaction(ctx, "job", fakebroker.TransactionIs(fakebroker.TransactionCompleteAbort))
				require.NoError(t, err)
				require.Equal(t, []string{"a", "b"}, committed(p.rawClient, "orders", 0))
				again()
				require.Equal(t, errcode.None, p.init(time.Minute))
			})
		})
	}
}

func TestATopicThatIsDeletedHoldsNoTransactionBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1), fakebroker.Topic("gone", 1))
		c := connect(t, k)
		p := begin(c, "job", time.Minute)
		require.Equal(t, errcode.None, p.add("orders", 0))
		require.Equal(t, errcode.None, p.add("gone", 0))
		name := "gone"
		call[*message.DeleteTopicsResponse](c, 6, &message.DeleteTopicsRequest{TimeoutMs: 1000, Topics: []message.DeleteTopicState{{Name: &name}}})
		require.Equal(t, errcode.None, p.end(5, true))
		_, err := k.AwaitTransaction(t.Context(), "job", fakebroker.TransactionCommits(1))
		require.NoError(t, err)
	})
}

func TestTransactionalIdsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1), fakebroker.Config("transactional.id.expiration.ms", "3600000"))
		begin(connect(t, k), "once", time.Minute)
		all, err := k.Transactions(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1)
		_, err = k.AwaitTransaction(t.Context(), "once", fakebroker.TransactionIs(fakebroker.TransactionDead))
		require.NoError(t, err)
		require.NoError(t, k.ReloadTransactionCoordinator(t.Context(), "once"))
		all, err = k.Transactions(t.Context())
		require.NoError(t, err)
		require.Empty(t, all)
	})
}

func TestTheTransactionsTopicIsMadeAsConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Config("transaction.state.log.num.partitions", "7"))
		c := connect(t, k)
		begin(c, "any", time.Minute)
		req := &message.DescribeConfigsRequest{Resources: []message.DescribeConfigsResource{{ResourceType: 2, ResourceName: "__transaction_state"}}}
		got := make(map[string]string)
		for _, e := range call[*message.DescribeConfigsResponse](c, 4, req).Results[0].Configs {
			if e.ConfigSource == 1 {
				got[e.Name] = *e.Value
			}
		}
		require.Equal(t, map[string]string{"cleanup.policy": "compact", "compression.type": "uncompressed", "min.insync.replicas": "1",
			"segment.bytes": "104857600", "unclean.leader.election.enable": "false"}, got)
		topic := "__transaction_state"
		m := call[*message.MetadataResponse](c, 12, &message.MetadataRequest{Topics: []message.MetadataRequestTopic{{Name: &topic}}})
		require.Len(t, m.Topics[0].Partitions, 7)
		require.True(t, m.Topics[0].IsInternal)
	})
}

func TestFeaturesAreChosenForANewCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		levels := func(k *fakebroker.Cluster) map[string]int16 {
			req := &message.ApiVersionsRequest{ClientSoftwareName: "raw", ClientSoftwareVersion: "1"}
			all := make(map[string]int16)
			for _, f := range call[*message.ApiVersionsResponse](connect(t, k), 4, req).FinalizedFeatures {
				all[f.Name] = f.MaxVersionLevel
			}
			return all
		}
		require.Equal(t, int16(2), levels(fakebroker.Start(t))["transaction.version"])
		require.Equal(t, int16(1), levels(fakebroker.Start(t, fakebroker.Feature("transaction.version", 1)))["transaction.version"])
		require.NotContains(t, levels(fakebroker.Start(t, fakebroker.Feature("transaction.version", 0))), "transaction.version")
		for name, level := range map[string]int16{"transaction.version": 3, "no.version": 1, "metadata.version": 20} {
			_, err := fakebroker.New(fakebroker.Feature(name, level))
			require.ErrorContains(t, err, name)
		}
	})
}

// BenchmarkTransactions is one transaction of one record: AddPartitionsToTxn, Produce, EndTxn, and what follows from that.
func BenchmarkTransactions(b *testing.B) {
	k, err := fakebroker.New(fakebroker.Topic("t", 1))
	require.NoError(b, err)
	defer k.Close(b.Context())
	p := begin(connect(b, k), "job", time.Minute)
	for b.Loop() {
		require.Equal(b, errcode.None, p.add("t", 0))
		require.Equal(b, errcode.None, p.write("t", 0, "v"))
		require.Equal(b, errcode.None, p.end(5, true))
	}
}

func TestTheProtocolFollowsTheFeatureLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1), fakebroker.Feature("transaction.version", 0))
		c := connect(t, k)
		p := begin(c, "job", time.Minute)
		require.Equal(t, errcode.None, p.add("orders", 0))
		require.Equal(t, errcode.UnsupportedVersion, p.end(5, true))
		require.Equal(t, errcode.None, p.end(4, true))
		req := &message.UpdateFeaturesRequest{FeatureUpdates: []message.FeatureUpdateKey{{Feature: "transaction.version", MaxVersionLevel: 2, UpgradeType: 1}}}
		require.Zero(t, call[*message.UpdateFeaturesResponse](c, 2, req).ErrorCode)
		_, err := k.AwaitTransaction(t.Context(), "job", fakebroker.TransactionCommits(1))
		require.NoError(t, err)
		require.Equal(t, errcode.None, p.add("orders", 0))
		require.Equal(t, errcode.None, p.end(5, true))
		require.EqualValues(t, 1, p.epoch)
	})
}
