package fakebroker_test

import (
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

// batchOf makes a transactional batch of one record.
func (p *transactional) batchOf(seq int32, value string) []byte {
	b := record.NewBuilder(nil)
	b.Append(time.Now().UnixMilli(), nil, []byte(value), nil)
	return b.Seal(record.Stamp{ProducerID: p.pid, ProducerEpoch: p.epoch, BaseSequence: seq, Transactional: true})
}

// produce sends a batch in a version of Produce.
func (p *transactional) produce(version int16, partition int32, batch []byte) message.PartitionProduceResponse {
	p.t.Helper()
	req := produceRequest("orders", partition, -1, batch)
	req.TransactionalId = &p.id
	return call[*message.ProduceResponse](p.rawClient, version, req).Responses[0].PartitionResponses[0]
}

func codeOf(pr message.PartitionProduceResponse) errcode.Code { return errcode.Code(pr.ErrorCode) }

func TestABatchOutsideOfItsTransactionIsRefusedInTheWordsOfItsVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 2))
		c := connect(t, k)
		p := begin(c, "shop", time.Minute)
		for version, code := range map[int16]errcode.Code{3: errcode.InvalidTxnState, 10: errcode.InvalidTxnState, 11: errcode.TransactionAbortable} {
			pr := p.produce(version, 0, p.batchOf(0, "a"))
			require.Equal(t, code, codeOf(pr), version)
			require.EqualValues(t, -1, pr.LogStartOffset)
			if version == 10 {
				require.Equal(t, "Partition was not added to the transaction", *pr.ErrorMessage)
			}
		}
		require.Equal(t, errcode.None, codeOf(p.produce(12, 0, p.batchOf(0, "a"))), "from version 12 on the leader adds it")
		tx, err := k.Transaction(t.Context(), "shop")
		require.NoError(t, err)
		require.Equal(t, []fakebroker.TransactionPartition{{Topic: "orders", Partition: 0}}, tx.Partitions)
		require.Equal(t, errcode.OutOfOrderSequenceNumber, codeOf(p.produce(12, 1, p.batchOf(5, "a"))), "an epoch begins at zero in each partition")

		require.Equal(t, errcode.TransactionalIdAuthorizationFailed, codeOf(produce(c, "orders", 0, p.batchOf(1, "no id"))))
		other := &transactional{rawClient: c, id: "shop", pid: p.pid + 1}
		req := produceRequest("orders", 0, -1, p.batchOf(1, "b"))
		req.TransactionalId = &p.id
		req.TopicData[0].PartitionData = append(req.TopicData[0].PartitionData, message.PartitionProduceData{Index: 1, Records: other.batchOf(0, "b")})
		for _, pr := range call[*message.ProduceResponse](c, 12, req).Responses[0].PartitionResponses {
			require.Equal(t, errcode.InvalidProducerIdMapping, codeOf(pr), "one producer a request")
		}
		plain := sequenced(t, p.pid, p.epoch, 1, "outside")
		require.Equal(t, errcode.InvalidTxnState, codeOf(produce(c, "orders", 0, plain)))
		p.epoch--
		require.Equal(t, errcode.InvalidProducerEpoch, codeOf(p.produce(12, 0, p.batchOf(1, "old"))))
	})
}

func TestVerificationCanBeTurnedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1), fakebroker.Config("transaction.partition.verification.enable", "false"))
		p := begin(connect(t, k), "shop", time.Minute)
		require.Equal(t, errcode.None, codeOf(p.produce(11, 0, p.batchOf(3, "a"))))
		o, err := k.Offsets("orders", 0)
		require.NoError(t, err)
		require.Zero(t, o.LastStable, "a transaction that nobody knows of is open")
		p = begin(p.rawClient, "newer", time.Minute)
		require.Equal(t, errcode.None, codeOf(p.produce(12, 0, p.batchOf(0, "a"))))
		tx, err := k.Transaction(t.Context(), "newer")
		require.NoError(t, err)
		require.Len(t, tx.Partitions, 1, "there is still somebody to add it")
	})
}

// The next transaction begins as soon as EndTxn is answered, when the markers of the last one are still on their way.
func TestTransactionsFollowEachOtherAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		c := connect(t, k)
		p := begin(c, "shop", time.Minute)
		var want []string
		for i := range 20 {
			v := fmt.Sprint("r", i)
			require.Equal(t, errcode.None, codeOf(p.produce(12, 0, p.batchOf(0, v))), v)
			commit := i%3 != 0
			if commit {
				want = append(want, v)
			}
			require.Equal(t, errcode.None, p.end(5, commit))
		}
		_, err := k.AwaitTransaction(t.Context(), "shop", fakebroker.TransactionCommits(13))
		require.NoError(t, err)
		require.Equal(t, want, committed(c, "orders", 0))
	})
}

func TestAReaderOfCommittedRecordsSleepsUntilTheMarker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		p := begin(connect(t, k), "shop", time.Minute)
		require.Equal(t, errcode.None, codeOf(p.produce(12, 0, p.batchOf(0, "a"))))
		reader := connect(t, k)
		req := fetchRequest("orders", 0, 0)
		req.IsolationLevel, req.MaxWaitMs, req.MinBytes = 1, 30_000, 60
		answered := make(chan *message.FetchResponse)
		began := time.Now()
		go func() { answered <- call[*message.FetchResponse](reader, 12, req) }()
		for seq := range int32(5) {
			time.Sleep(time.Second)
			synctest.Wait()
			require.Equal(t, errcode.None, codeOf(p.produce(12, 0, p.batchOf(seq+1, "more"))))
		}
		require.Equal(t, errcode.None, p.end(5, false))
		got := (<-answered).Responses[0].Partitions[0]
		require.Equal(t, 5*time.Second, time.Since(began))
		require.EqualValues(t, 7, got.LastStableOffset)
		require.Equal(t, []message.AbortedTransaction{{ProducerId: p.pid, FirstOffset: 0}}, got.AbortedTransactions)
		require.NotEmpty(t, got.Records, "what was aborted is sent, and the reader leaves it out")
	})
}

func marker(p *transactional, commit bool, partitions ...int32) message.WritableTxnMarker {
	return message.WritableTxnMarker{ProducerId: p.pid, ProducerEpoch: p.epoch, TransactionResult: commit,
		Topics: []message.WritableTxnMarkerTopic{{Name: "orders", PartitionIndexes: partitions}}}
}

// marked sends markers and returns the codes by producer and partition.
func marked(c *rawClient, version int16, markers ...message.WritableTxnMarker) map[string]errcode.Code {
	c.t.Helper()
	resp := call[*message.WriteTxnMarkersResponse](c, version, &message.WriteTxnMarkersRequest{Markers: markers})
	got := make(map[string]errcode.Code)
	for _, m := range resp.Markers {
		for _, topic := range m.Topics {
			for _, p := range topic.Partitions {
				at := fmt.Sprintf("%d %s-%d", m.ProducerId, topic.Name, p.PartitionIndex)
				require.NotContains(c.t, got, at)
				got[at] = errcode.Code(p.ErrorCode)
			}
		}
	}
	return got
}

func TestMarkersOfManyTransactionsInOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 2))
		c := connect(t, k)
		a, b := begin(c, "a", time.Minute), begin(c, "b", time.Minute)
		for _, p := range []*transactional{a, b} {
			require.Equal(t, errcode.None, codeOf(p.produce(12, 0, p.batchOf(0, p.id))))
			require.Equal(t, errcode.None, codeOf(p.produce(12, 1, p.batchOf(0, p.id))))
		}
		require.Empty(t, marked(c, 1))
		require.Equal(t, map[string]errcode.Code{
			fmt.Sprintf("%d orders-0", a.pid): errcode.None, fmt.Sprintf("%d orders-7", a.pid): errcode.UnknownTopicOrPartition,
			fmt.Sprintf("%d orders-1", a.pid): errcode.None, fmt.Sprintf("%d orders-1", b.pid): errcode.None,
		}, marked(c, 1, marker(a, true, 0, 7), marker(b, false, 1), marker(a, false, 1)))
		require.Equal(t, []string{"a"}, committed(c, "orders", 0))
		require.Empty(t, committed(c, "orders", 1))
		o, err := k.Offsets("orders", 0)
		require.NoError(t, err)
		require.EqualValues(t, 1, o.LastStable, "b is open in it")

		low := marker(b, true, 0)
		low.TransactionVersion = 2
		require.Equal(t, map[string]errcode.Code{fmt.Sprintf("%d orders-0", b.pid): errcode.InvalidProducerEpoch}, marked(c, 2, low))
		low.ProducerEpoch = -1
		require.Equal(t, map[string]errcode.Code{fmt.Sprintf("%d orders-0", b.pid): errcode.UnknownServerError}, marked(c, 2, low))
		low.ProducerEpoch = -2
		require.Equal(t, map[string]errcode.Code{fmt.Sprintf("%d orders-0", b.pid): errcode.InvalidProducerEpoch}, marked(c, 2, low))
		low.ProducerId = 99
		require.Equal(t, map[string]errcode.Code{"99 orders-0": errcode.InvalidProducerEpoch}, marked(c, 2, low))
		late := marker(b, true, 0)
		late.CoordinatorEpoch = 5
		require.Equal(t, errcode.None, marked(c, 2, late)[fmt.Sprintf("%d orders-0", b.pid)])
		late.CoordinatorEpoch = 4
		require.Equal(t, errcode.TransactionCoordinatorFenced, marked(c, 2, late)[fmt.Sprintf("%d orders-0", b.pid)])
		require.Equal(t, []string{"a", "b"}, committed(c, "orders", 0))
	})
}

// commit sends TxnOffsetCommit for the group of the same name as the id.
func (p *transactional) commit(version int16, offset int64) errcode.Code {
	p.t.Helper()
	req := message.NewTxnOffsetCommitRequest()
	req.TransactionalId, req.GroupId, req.ProducerId, req.ProducerEpoch = p.id, p.id, p.pid, p.epoch
	req.Topics = []message.TxnOffsetCommitRequestTopic{{Name: "orders", Partitions: []message.TxnOffsetCommitRequestPartition{{CommittedOffset: offset}}}}
	resp := call[*message.TxnOffsetCommitResponse](p.rawClient, version, req)
	return errcode.Code(resp.Topics[0].Partitions[0].ErrorCode)
}

// offset returns what the group has committed, and may be told if it asks for what is stable.
func (p *transactional) offset(stable bool) (int64, errcode.Code) {
	p.t.Helper()
	req := message.NewOffsetFetchRequest()
	req.RequireStable = stable
	req.Groups = []message.OffsetFetchRequestGroup{{GroupId: p.id, MemberEpoch: -1, Topics: []message.OffsetFetchRequestTopics{{Name: "orders", PartitionIndexes: []int32{0}}}}}
	got := call[*message.OffsetFetchResponse](p.rawClient, 9, req).Groups[0].Topics[0].Partitions[0]
	return got.CommittedOffset, errcode.Code(got.ErrorCode)
}

func TestOffsetsWaitForTheEndOfTheirTransaction(t *testing.T) {
	ends := map[string]func(p *transactional, k *fakebroker.Cluster) error{
		"at once":         func(*transactional, *fakebroker.Cluster) error { return nil },
		"after a restart": func(p *transactional, k *fakebroker.Cluster) error { return k.Restart(p.t.Context()) },
		"after a crash": func(p *transactional, k *fakebroker.Cluster) error {
			return errors.Join(k.Crash(p.t.Context()), k.Restart(p.t.Context()))
		},
		"after a reload": func(p *transactional, k *fakebroker.Cluster) error { return k.ReloadCoordinator(p.t.Context(), p.id) },
	}
	for name, gone := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
				p := begin(connect(t, k), "job", time.Minute)
				call[*message.FindCoordinatorResponse](p.rawClient, 4, &message.FindCoordinatorRequest{CoordinatorKeys: []string{p.id}})
				require.Equal(t, errcode.InvalidTxnState, p.commit(3, 1), "nobody added the group")
				require.Equal(t, errcode.TransactionAbortable, p.commit(4, 1))
				for i, commit := range []bool{true, false} {
					require.Equal(t, errcode.None, p.commit(5, int64(10*i+5)))
					require.NoError(t, gone(p, k))
					p.rawClient = connect(t, k)
					_, code := p.offset(true)
					require.Equal(t, errcode.UnstableOffsetCommit, code)
					before, code := p.offset(false)
					require.Equal(t, errcode.None, code)
					require.EqualValues(t, []int64{-1, 5}[i], before)
					require.Equal(t, errcode.None, p.end(5, commit))
					ended := fakebroker.TransactionIs(fakebroker.TransactionCompleteCommit)
					if !commit {
						ended = fakebroker.TransactionIs(fakebroker.TransactionCompleteAbort)
					}
					_, err := k.AwaitTransaction(t.Context(), p.id, ended)
					require.NoError(t, err)
					after, code := p.offset(true)
					require.Equal(t, errcode.None, code)
					require.EqualValues(t, 5, after)
				}
				p.epoch--
				require.Equal(t, errcode.InvalidProducerEpoch, p.commit(5, 99))
			})
		})
	}
}

// Whoever may write markers can name any partition. One in the coordinator's own log is nothing to it.
func TestAMarkerInTheCoordinatorsLogDoesNotStopIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1), fakebroker.Config("transaction.state.log.num.partitions", "1"))
		c := connect(t, k)
		p := begin(c, "shop", time.Minute)
		m := marker(p, false)
		m.Topics = []message.WritableTxnMarkerTopic{{Name: "__transaction_state", PartitionIndexes: []int32{0}}}
		marked(c, 1, m)
		require.NoError(t, k.ReloadTransactionCoordinator(t.Context(), "shop"))
		require.Equal(t, errcode.None, p.add("orders", 0))
		require.Equal(t, errcode.None, p.write("orders", 0, "a"))
		require.Equal(t, errcode.None, p.end(3, true))
	})
}
