package admin_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// Filters that an old broker does not know would make the list longer than what was asked for.
func TestFiltersOfTransactionsAreNotLeftOut(t *testing.T) {
	p := peer(t, 1, func(r *wiretest.Request) message.Response {
		if req, ok := r.Body.(*message.ListTransactionsRequest); ok {
			resp := message.NewListTransactionsResponse()
			for _, s := range req.StateFilters {
				if s != string(admin.TransactionOngoing) {
					resp.UnknownStateFilters = append(resp.UnknownStateFilters, s)
				}
			}
			return resp
		}
		return nil
	})
	a := adminOf(t, p)
	for _, c := range []struct {
		most   int16
		filter admin.TransactionFilter
	}{{0, admin.TransactionFilter{LongerThan: time.Second}}, {1, admin.TransactionFilter{Pattern: "x.*"}}} {
		p.SetVersions(wire.KeyListTransactions, 0, c.most)
		_, err := adminOf(t, p).ListTransactions(t.Context(), c.filter)
		require.ErrorIs(t, err, client.ErrUnsupportedVersion)
		require.ErrorContains(t, err, "takes brokers from")
	}
	_, err := a.ListTransactions(t.Context(), admin.TransactionFilter{States: []admin.TransactionState{admin.TransactionOngoing, "Hanging"}})
	require.ErrorContains(t, err, "broker 1 (broker-1:9092): it knows no state Hanging")
}

// Coordinators that are asked for long transactions let those pass that have none open.
func TestTransactionsThatAreNotOpenAreNotLong(t *testing.T) {
	p := peer(t, 2, func(r *wiretest.Request) message.Response {
		req, ok := r.Body.(*message.ListTransactionsRequest)
		if !ok {
			return nil
		}
		if r.Broker == 2 {
			return &message.ListTransactionsResponse{ErrorCode: int16(errcode.ClusterAuthorizationFailed)}
		}
		require.EqualValues(t, 90_000, req.DurationFilter)
		return &message.ListTransactionsResponse{TransactionStates: []message.ListTransactionsResponseTransactionState{
			{TransactionalId: "c", ProducerId: 3, TransactionState: "PrepareAbort"}, {TransactionalId: "b", TransactionState: "CompleteCommit"}, {TransactionalId: "a", TransactionState: "Empty"}}}
	})
	rows, err := adminOf(t, p).ListTransactions(t.Context(), admin.TransactionFilter{LongerThan: 90 * time.Second})
	require.ErrorIs(t, err, errcode.ClusterAuthorizationFailed, "the rows of the other broker come beside it")
	require.Equal(t, []admin.ListedTransaction{{ID: "c", ProducerID: 3, State: admin.TransactionPrepareAbort, Coordinator: 1}}, rows)
}

// Each coordinator is asked once for all its ids, and again only for those that have moved since.
func TestTransactionsAreDescribedWhereTheirCoordinatorsAre(t *testing.T) {
	var moved atomic.Bool
	p := peer(t, 2, coordinated(func(r *wiretest.Request) message.Response {
		req, ok := r.Body.(*message.DescribeTransactionsRequest)
		if !ok {
			return nil
		}
		resp := message.NewDescribeTransactionsResponse()
		for _, id := range req.TransactionalIds {
			row := message.DescribeTransactionsResponseTransactionState{TransactionalId: id, TransactionStartTimeMs: -1, TransactionState: "Empty"}
			switch {
			case id == "nomad" && r.Broker == 1:
				moved.Store(true)
				row = message.DescribeTransactionsResponseTransactionState{TransactionalId: id, ErrorCode: int16(errcode.NotCoordinator)}
			case id == "nobody":
				row = message.DescribeTransactionsResponseTransactionState{TransactionalId: id, ErrorCode: int16(errcode.TransactionalIdNotFound)}
			case id == "open":
				row = message.DescribeTransactionsResponseTransactionState{TransactionalId: id, TransactionState: "Ongoing", TransactionTimeoutMs: 60_000,
					TransactionStartTimeMs: 1_700_000_000_000, ProducerId: 7, ProducerEpoch: 3,
					Topics: []message.DescribeTransactionsResponseTopicData{{Topic: "b", Partitions: []int32{0}}, {Topic: "a", Partitions: []int32{2, 1}}}}
			}
			resp.TransactionStates = append(resp.TransactionStates, row)
		}
		return resp
	}, func(id string) int32 {
		if id == "nomad" && moved.Load() {
			return 2
		}
		return 1
	}))
	rows, err := adminOf(t, p).DescribeTransactions(t.Context(), "nomad", "open", "nobody")
	require.ErrorIs(t, err, errcode.TransactionalIdNotFound)
	require.NoError(t, rows[0].Err)
	require.EqualValues(t, 2, rows[0].Coordinator.ID)
	require.Zero(t, rows[0].Age(time.Now()))
	require.Equal(t, admin.Transaction{ID: "open", State: admin.TransactionOngoing, ProducerID: 7, ProducerEpoch: 3, Timeout: time.Minute, Start: time.UnixMilli(1_700_000_000_000),
		Partitions: []admin.TopicPartition{tp("a", 1), tp("a", 2), tp("b", 0)}, Coordinator: admin.Broker{ID: 1, Host: "broker", Port: 9092}}, rows[1])
	require.Equal(t, time.Minute, rows[1].Age(time.UnixMilli(1_700_000_060_000)))
	require.Len(t, p.Requests(wire.KeyDescribeTransactions), 2)
}

// While what was open is being aborted, the coordinator asks to come again.
func TestFencingWaitsForTheAbort(t *testing.T) {
	var asked atomic.Int32
	p := peer(t, 1, coordinated(func(r *wiretest.Request) message.Response {
		req, ok := r.Body.(*message.InitProducerIdRequest)
		if !ok {
			return nil
		}
		require.EqualValues(t, -1, req.ProducerId)
		require.EqualValues(t, 5_000, req.TransactionTimeoutMs)
		resp := message.NewInitProducerIdResponse()
		switch {
		case *req.TransactionalId == "secret":
			resp.ErrorCode = int16(errcode.TransactionalIdAuthorizationFailed)
		case asked.Add(1) < 3:
			resp.ErrorCode = int16(errcode.ConcurrentTransactions)
		default:
			resp.ProducerId, resp.ProducerEpoch = 7, 4
		}
		return resp
	}, func(string) int32 { return 1 }))
	rows, err := adminOf(t, p, client.RequestTimeout(5*time.Second)).FenceProducers(t.Context(), "t", "secret")
	require.ErrorIs(t, err, errcode.TransactionalIdAuthorizationFailed)
	require.Equal(t, admin.FencedProducer{ID: "t", ProducerID: 7, ProducerEpoch: 4}, rows[0])
	require.EqualValues(t, 3, asked.Load())
}

// Nothing is created for an id that does not exist.
func TestOnlyWhatExistsIsTerminated(t *testing.T) {
	p := peer(t, 1, coordinated(func(r *wiretest.Request) message.Response {
		if req, ok := r.Body.(*message.DescribeTransactionsRequest); ok {
			return &message.DescribeTransactionsResponse{TransactionStates: []message.DescribeTransactionsResponseTransactionState{
				{TransactionalId: req.TransactionalIds[0], ErrorCode: int16(errcode.TransactionalIdNotFound)}}}
		}
		return nil
	}, func(string) int32 { return 1 }))
	require.ErrorIs(t, adminOf(t, p).ForceTerminateTransaction(t.Context(), "typo"), errcode.TransactionalIdNotFound)
	require.Empty(t, p.Requests(wire.KeyInitProducerId))
}

// On a broker: who is fenced by an administrator and who by another instance of the program hears which it was.
func TestTheFencedHearWhoItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		a := adminOf(t, k)
		begin := func() (*txn.Session, *txn.Tx) {
			s, err := txn.New(t.Context(), a.Client(), "shop")
			require.NoError(t, err)
			tx, err := s.Begin(t.Context())
			require.NoError(t, err)
			_, err = tx.Send(t.Context(), producer.Record{Topic: "orders", Value: []byte("v")})
			require.NoError(t, err)
			return s, tx
		}
		for want, fence := range map[txn.Cause]func(){
			txn.Admin: func() { _, err := a.FenceProducers(t.Context(), "shop"); require.NoError(t, err) },
			txn.NewInstance: func() {
				s, tx := begin()
				require.NoError(t, tx.Commit(t.Context()))
				require.NoError(t, s.Close(t.Context()))
			},
		} {
			s, tx := begin()
			fence()
			var fenced *txn.FencedError
			require.ErrorAs(t, tx.Commit(t.Context()), &fenced)
			require.Equal(t, want, fenced.By)
			require.NoError(t, s.Close(t.Context()))
		}
	})
}

// A transaction that hangs is found by broker, topic and partition, by its age, and not any more when it is aborted.
func TestHangingTransactionsAreFoundAndAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 3), fakebroker.Topic("other", 1))
		a := adminOf(t, k)
		produce(t, k, "orders", 1, time.Now(), time.Now())
		for p, age := range map[int32]time.Duration{1: time.Hour, 2: 10 * time.Minute} {
			_, err := k.HangTransaction(t.Context(), "orders", p, time.Now().Add(-age))
			require.NoError(t, err)
		}
		find := func(s admin.HangingSearch) (found []admin.TopicPartition) {
			rows, err := a.HangingTransactions(t.Context(), s)
			require.NoError(t, err)
			for _, h := range rows {
				found = append(found, h.TopicPartition)
			}
			return found
		}
		require.Equal(t, []admin.TopicPartition{tp("orders", 1)}, find(admin.HangingSearch{}))
		require.Equal(t, []admin.TopicPartition{tp("orders", 1), tp("orders", 2)}, find(admin.HangingSearch{Topics: []string{"orders"}, MaxTimeout: time.Minute}))
		require.Equal(t, []admin.TopicPartition{tp("orders", 2)}, find(admin.HangingSearch{Partitions: []admin.TopicPartition{tp("orders", 2)}, MaxTimeout: time.Minute}))
		require.Equal(t, []admin.TopicPartition{tp("orders", 1)}, find(admin.HangingSearch{Broker: new(int32(1))}))
		require.Empty(t, find(admin.HangingSearch{Topics: []string{"other"}, MaxTimeout: time.Nanosecond}))
		_, err := a.HangingTransactions(t.Context(), admin.HangingSearch{Topics: []string{"nowhere"}})
		require.ErrorIs(t, err, errcode.UnknownTopicOrPartition)
		_, err = a.HangingTransactions(t.Context(), admin.HangingSearch{Broker: new(int32(7))})
		require.ErrorIs(t, err, client.ErrUnknownBroker, "that nothing hangs there would be wrong")

		off, err := k.Offsets("orders", 1)
		require.NoError(t, err)
		require.EqualValues(t, 2, off.LastStable)
		spec, err := a.FindOpenTransaction(t.Context(), tp("orders", 1), 2)
		require.NoError(t, err)
		require.NoError(t, a.AbortTransaction(t.Context(), spec))
		off, err = k.Offsets("orders", 1)
		require.NoError(t, err)
		require.Equal(t, off.LogEnd, off.LastStable)
		require.Empty(t, find(admin.HangingSearch{}))
		spec.ProducerEpoch--
		require.Error(t, a.AbortTransaction(t.Context(), spec), "an older epoch of the producer")
	})
}

// With many partitions each broker is asked about some of them at a time.
func TestTheSearchAsksAboutSomePartitionsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("wide", 1100))
		before := k.Requests(wire.KeyDescribeProducers)
		rows, err := adminOf(t, k).HangingTransactions(t.Context(), admin.HangingSearch{})
		require.NoError(t, err)
		require.Empty(t, rows)
		synctest.Wait() // an answer counts when it is sent
		require.EqualValues(t, 3, k.Requests(wire.KeyDescribeProducers)-before)
	})
}
