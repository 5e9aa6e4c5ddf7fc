package txn_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/txn"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// rounds sends n transactions, each again until it is known to be committed, and holds what readers see against what the
// session said.
func rounds(t *testing.T, cl *client.Client, s *txn.Session, n int, tolerate func(error)) {
	var want []string
	for i := range n {
		a, b := fmt.Sprint(i, "a"), fmt.Sprint(i, "b")
		for attempt := 0; ; attempt++ {
			require.Less(t, attempt, 10)
			err := s.Do(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				for _, v := range []string{a, b} {
					if err := tx.Submit(ctx, text("orders", v), nil); err != nil {
						return err
					}
				}
				if _, err := tx.Send(ctx, text("audit", a)); err != nil {
					return err
				}
				time.Sleep(7 * time.Millisecond)
				return tx.SendOffsets(ctx, "g", groupmember.Generation{}, at(int64(i+1)))
			})
			if err == nil {
				break
			}
			tolerate(err)
		}
		want = append(want, a, b)
	}
	require.Equal(t, want, committed(t, cl, "orders"))
	require.Len(t, committed(t, cl, "audit"), n)
	require.Equal(t, int64(n), offsetOf(t, cl, "g"))
}

// apis are the requests of a transaction.
var apis = []wire.Key{wire.KeyFindCoordinator, wire.KeyInitProducerId, wire.KeyAddPartitionsToTxn, wire.KeyAddOffsetsToTxn, wire.KeyTxnOffsetCommit,
	wire.KeyProduce, wire.KeyEndTxn}

// TestWhatPassesNeverSurfaces: whatever gets lost on the way, and whatever code a broker answers that Kafka calls retriable,
// no call fails, nothing is committed twice and nothing is lost.
func TestWhatPassesNeverSurfaces(t *testing.T) {
	bothKinds(t, func(t *testing.T, level int16) {
		hits := 0
		try := func(key wire.Key, name string, nth int, set func(fault.Rule) fault.Rule) {
			synctest.Test(t, func(t *testing.T) {
				k, cl := cluster(t, level)
				in := k.Inject(set(fault.On(key)).Nth(nth))
				s := open(t, cl, "tx")
				rounds(t, cl, s, 3, func(err error) { require.NoError(t, err, "%s: %s, %d", key, name, nth) })
				hits += in.Hits()
			})
		}
		for _, key := range apis {
			for _, nth := range []int{1, 2} {
				try(key, "lost request", nth, fault.Rule.DropConnection)
				try(key, "lost response", nth, fault.Rule.LoseResponse)
				try(key, "hang", nth, fault.Rule.Hang)
				if key != wire.KeyInitProducerId { // the first one of a session fences it when it comes late
					try(key, "late", nth, func(r fault.Rule) fault.Rule { return r.Late(time.Duration(50*nth) * time.Millisecond) })
				}
			}
			for _, c := range []errcode.Code{errcode.NotCoordinator, errcode.CoordinatorNotAvailable, errcode.CoordinatorLoadInProgress, errcode.ConcurrentTransactions, errcode.RequestTimedOut} {
				if key != wire.KeyProduce && (key != wire.KeyFindCoordinator || c == errcode.CoordinatorNotAvailable) {
					try(key, c.Name(), 1, func(r fault.Rule) fault.Rule { return r.Error(c) })
				}
			}
		}
		require.Greater(t, hits, 40)
	})
}

// TestWhatMeansAbort: each code that dooms a transaction costs that one, and the next is as good as new.
func TestWhatMeansAbort(t *testing.T) {
	doom := map[wire.Key][]errcode.Code{
		wire.KeyAddPartitionsToTxn: {errcode.TopicAuthorizationFailed, errcode.UnknownProducerId, errcode.TransactionAbortable},
		wire.KeyAddOffsetsToTxn:    {errcode.GroupAuthorizationFailed, errcode.UnknownProducerId, errcode.TransactionAbortable},
		wire.KeyTxnOffsetCommit:    {errcode.GroupAuthorizationFailed, errcode.FencedInstanceId, errcode.UnknownMemberId, errcode.IllegalGeneration, errcode.TransactionAbortable},
		wire.KeyProduce:            {errcode.TopicAuthorizationFailed, errcode.OutOfOrderSequenceNumber, errcode.InvalidProducerEpoch, errcode.InvalidTxnState, errcode.TransactionAbortable, errcode.InvalidRecord},
		wire.KeyEndTxn:             {errcode.TransactionAbortable, errcode.UnknownProducerId},
	}
	bothKinds(t, func(t *testing.T, level int16) {
		for key, codes := range doom {
			for _, code := range codes {
				synctest.Test(t, func(t *testing.T) {
					k, cl := cluster(t, level)
					s := open(t, cl, "tx")
					times := 1
					if code == errcode.UnknownMemberId || code == errcode.IllegalGeneration {
						times = 3 // the member is asked again, in case that it has not heard yet
					}
					in := k.Inject(fault.On(key).Error(code).Times(times))
					failures := 0
					rounds(t, cl, s, 3, func(err error) {
						require.ErrorIs(t, err, code, "%s", key)
						require.Equal(t, txn.Abortable, txn.Class(err), "%s %s: %v", key, code, err)
						failures++
					})
					if in.Hits() > 0 {
						require.Equal(t, 1, failures, "%s %s", key, code)
					}
				})
			}
		}
	})
}

// TestWhatEndsTheSession: each code that Kafka's producer calls fatal ends the session with class Fenced, and nothing of the
// open transaction is committed.
func TestWhatEndsTheSession(t *testing.T) {
	final := []errcode.Code{errcode.ProducerFenced, errcode.TransactionalIdAuthorizationFailed}
	bothKinds(t, func(t *testing.T, level int16) {
		for _, key := range []wire.Key{wire.KeyAddPartitionsToTxn, wire.KeyAddOffsetsToTxn, wire.KeyTxnOffsetCommit, wire.KeyProduce, wire.KeyEndTxn} {
			for _, code := range final {
				synctest.Test(t, func(t *testing.T) {
					k, cl := cluster(t, level)
					s := open(t, cl, "tx")
					in := k.Inject(fault.On(key).Error(code))
					err := s.Do(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
						if _, err := tx.Send(ctx, text("orders", "x")); err != nil {
							return err
						}
						return tx.SendOffsets(ctx, "g", groupmember.Generation{}, at(1))
					})
					if in.Hits() == 0 {
						require.NoError(t, err)
						return
					}
					in.Remove()
					require.Equal(t, txn.Fenced, txn.Class(err), "%s %s: %v", key, code, err)
					require.ErrorIs(t, err, code)
					require.Equal(t, txn.Over, s.State())
					_, err = s.Begin(t.Context())
					require.ErrorIs(t, err, txn.ErrFenced)
					require.ErrorIs(t, err, code)
					require.NoError(t, s.Close(t.Context()))
					open(t, cl, "tx") // ends what is open
					require.Empty(t, committed(t, cl, "orders"))
				})
			}
		}
	})
}

// A broker that restarts, or dies, in the middle of transactions costs at most those that were open.
func TestTransactionsSurviveTheBroker(t *testing.T) {
	for name, disturb := range map[string]func(*testing.T, *fakebroker.Cluster){
		"restart":    func(t *testing.T, k *fakebroker.Cluster) { require.NoError(t, k.Restart(context.Background())) },
		"disconnect": func(t *testing.T, k *fakebroker.Cluster) { k.Disconnect() },
		"crash": func(t *testing.T, k *fakebroker.Cluster) {
			require.NoError(t, k.Crash(context.Background()))
			time.Sleep(time.Second)
			require.NoError(t, k.Restart(context.Background()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothKinds(t, func(t *testing.T, level int16) {
				synctest.Test(t, func(t *testing.T) {
					k, cl := cluster(t, level)
					s := open(t, cl, "tx")
					stop := make(chan struct{})
					go func() {
						defer close(stop)
						for range 5 {
							time.Sleep(37 * time.Millisecond)
							disturb(t, k)
						}
					}()
					rounds(t, cl, s, 20, func(err error) {
						require.NotEqual(t, txn.Fenced, txn.Class(err), "%v", err)
						out, _ := s.Last()
						require.NotEqual(t, txn.Committed, out)
					})
					<-stop
				})
			})
		})
	}
}
