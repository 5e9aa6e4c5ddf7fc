package txn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

func TestCommitShowsAllAndAbortNothing(t *testing.T) {
	everyLevel(t, func(t *testing.T, level int16) {
		synctest.Test(t, func(t *testing.T) {
			_, cl := cluster(t, level)
			s := open(t, cl, "tx")
			want := []string(nil)
			for round := range 4 {
				tx, err := s.Begin(t.Context())
				require.NoError(t, err)
				require.Equal(t, txn.InTransaction, s.State())
				a, b := fmt.Sprint("a", round), fmt.Sprint("b", round)
				submit(t, tx, "orders", a, b)
				_, err = tx.Send(t.Context(), text("audit", a))
				require.NoError(t, err)
				require.Empty(t, slices.DeleteFunc(committed(t, cl, "orders"), func(v string) bool { return slices.Contains(want, v) }), "not before the commit")
				require.NoError(t, tx.SendOffsets(t.Context(), "g", groupmember.Generation{}, at(int64(10*round+1))))
				if round%2 == 0 {
					require.NoError(t, tx.Commit(t.Context()))
					require.Equal(t, txn.Committed, tx.Outcome())
					want = append(want, a, b)
				} else {
					require.NoError(t, tx.Abort(t.Context()))
					require.Equal(t, txn.Aborted, tx.Outcome())
				}
				require.Equal(t, txn.Ready, s.State(), "the session goes on")
			}
			require.Equal(t, want, committed(t, cl, "orders"))
			require.Equal(t, []string{"a0", "a2"}, committed(t, cl, "audit"))
			require.Equal(t, int64(21), offsetOf(t, cl, "g"), "the offsets of the aborted one are gone")
		})
	})
}

func TestDoCommitsAbortsAndPanics(t *testing.T) {
	everyLevel(t, func(t *testing.T, level int16) {
		synctest.Test(t, func(t *testing.T) {
			_, cl := cluster(t, level)
			s := open(t, cl, "tx")
			require.NoError(t, s.Do(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				submit(t, tx, "orders", "one")
				return nil
			}))
			no := errors.New("no")
			err := s.Do(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				_, err := tx.Send(ctx, text("orders", "two"))
				require.NoError(t, err)
				return no
			})
			require.ErrorIs(t, err, no)
			require.Equal(t, txn.Abortable, txn.Class(err))
			require.PanicsWithValue(t, "boom", func() {
				_ = s.Do(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
					_, err := tx.Send(ctx, text("orders", "three"))
					require.NoError(t, err)
					panic("boom")
				})
			})
			require.NoError(t, s.Do(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				submit(t, tx, "orders", "four")
				return nil
			}))
			require.Equal(t, []string{"one", "four"}, committed(t, cl, "orders"))
		})
	})
}

// A transaction in which nothing was sent asks nobody for anything.
func TestEmptyTransactionsCostNothing(t *testing.T) {
	everyLevel(t, func(t *testing.T, level int16) {
		synctest.Test(t, func(t *testing.T) {
			k, cl := cluster(t, level)
			s := open(t, cl, "tx")
			for range 3 {
				tx, err := s.Begin(t.Context())
				require.NoError(t, err)
				require.NoError(t, tx.SendOffsets(t.Context(), "g", groupmember.Generation{}, nil))
				require.NoError(t, tx.Commit(t.Context()))
				tx, err = s.Begin(t.Context())
				require.NoError(t, err)
				require.NoError(t, tx.Abort(t.Context()))
			}
			for _, key := range []wire.Key{wire.KeyEndTxn, wire.KeyAddPartitionsToTxn, wire.KeyAddOffsetsToTxn, wire.KeyTxnOffsetCommit} {
				require.Zero(t, k.Requests(key), key.String())
			}
			synctest.Wait() // a request counts when its answer is sent
			require.Equal(t, int64(1), k.Requests(wire.KeyInitProducerId))
		})
	})
}

// What a transaction costs in requests: one EndTxn, and before transaction.version 2 one AddPartitionsToTxn for all
// partitions that are there by then.
func TestRequestsOfATransaction(t *testing.T) {
	everyLevel(t, func(t *testing.T, level int16) {
		synctest.Test(t, func(t *testing.T) {
			k, cl := cluster(t, level)
			s := open(t, cl, "tx")
			require.NoError(t, s.Warm(t.Context(), "orders", "audit"))
			adds := int64(0)
			for range 3 {
				require.NoError(t, s.Do(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
					submit(t, tx, "orders", "a", "b")
					submit(t, tx, "audit", "c")
					return tx.SendOffsets(ctx, "g", groupmember.Generation{}, at(1))
				}))
				time.Sleep(time.Second) // the markers are written: no CONCURRENT_TRANSACTIONS
				adds++
			}
			require.Equal(t, int64(3), k.Requests(wire.KeyEndTxn))
			require.Equal(t, int64(3), k.Requests(wire.KeyTxnOffsetCommit))
			require.Equal(t, int64(1), k.Requests(wire.KeyInitProducerId))
			if level >= 2 {
				require.Zero(t, k.Requests(wire.KeyAddPartitionsToTxn))
				require.Zero(t, k.Requests(wire.KeyAddOffsetsToTxn))
			} else {
				require.LessOrEqual(t, k.Requests(wire.KeyAddPartitionsToTxn), 2*adds)
				require.Equal(t, adds, k.Requests(wire.KeyAddOffsetsToTxn))
			}
		})
	})
}

func TestRecordsFromOutsideOfATransactionAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cl := cluster(t, 2)
		s := open(t, cl, "tx")
		tx, err := s.Begin(t.Context())
		require.NoError(t, err)
		submit(t, tx, "orders", "in")
		_, err = s.Begin(t.Context())
		require.ErrorIs(t, err, txn.ErrOpen)
		require.NoError(t, tx.Commit(t.Context()))
		for name, f := range map[string]func() error{
			"Submit": func() error { return tx.Submit(t.Context(), text("orders", "late"), nil) },
			"Send":   func() error { _, err := tx.Send(t.Context(), text("orders", "late")); return err },
			"SendAll": func() error {
				_, err := tx.SendAll(t.Context(), slices.Values([]producer.Record{text("orders", "late")}))
				return err
			},
		} {
			err := f()
			require.ErrorIs(t, err, txn.ErrOver, name)
			require.ErrorContains(t, err, "committed", name)
			require.Equal(t, producer.NotWritten, producer.Outcome(err), name)
			require.Equal(t, txn.Abortable, txn.Class(err), name)
		}
		require.NoError(t, tx.Commit(t.Context()), "once more changes nothing")
		require.ErrorIs(t, tx.Abort(t.Context()), txn.ErrOver)
		second, err := s.Begin(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, tx.Submit(t.Context(), text("orders", "late"), nil), txn.ErrOver, "nor through another transaction")
		require.ErrorIs(t, tx.SendOffsets(t.Context(), "g", groupmember.Generation{}, at(1)), txn.ErrOver)
		require.NoError(t, second.Commit(t.Context()))
		require.Equal(t, []string{"in"}, committed(t, cl, "orders"))
	})
}

// A record that a broker refuses dooms its transaction; the next one is as good as new.
func TestARefusedRecordDoomsItsTransaction(t *testing.T) {
	everyLevel(t, func(t *testing.T, level int16) {
		synctest.Test(t, func(t *testing.T) {
			_, cl := cluster(t, level)
			s := open(t, cl, "tx", txn.Producer(producer.MaxRequestSize(4<<20)))
			tx, err := s.Begin(t.Context())
			require.NoError(t, err)
			submit(t, tx, "orders", "small")
			verdict := make(chan error, 1)
			require.NoError(t, tx.Submit(t.Context(), producer.Record{Topic: "audit", Value: make([]byte, 2<<20)}, func(_ producer.Ack, err error) { verdict <- err }))
			require.ErrorIs(t, <-verdict, errcode.MessageTooLarge)
			<-tx.Context().Done()
			require.ErrorIs(t, tx.Err(), errcode.MessageTooLarge)
			err = tx.Submit(t.Context(), text("orders", "more"), nil)
			require.ErrorIs(t, err, errcode.MessageTooLarge, "the reason is told")
			err = tx.Commit(t.Context())
			require.Equal(t, txn.Abortable, txn.Class(err))
			require.ErrorIs(t, err, txn.ErrAbortable)
			require.NoError(t, tx.Abort(t.Context()))
			require.NoError(t, s.Do(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				submit(t, tx, "orders", "again")
				return nil
			}))
			require.Equal(t, []string{"again"}, committed(t, cl, "orders"))
		})
	})
}

// A record that Submit itself refuses is not part of the transaction, which goes on.
func TestARecordThatSubmitRefusesLeavesTheTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cl := cluster(t, 2)
		s := open(t, cl, "tx")
		require.NoError(t, s.Do(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			err := tx.Submit(ctx, producer.Record{Topic: "orders", Value: make([]byte, 2<<20)}, nil)
			require.ErrorIs(t, err, producer.ErrRecordTooLarge)
			submit(t, tx, "orders", "instead")
			return nil
		}))
		require.Equal(t, []string{"instead"}, committed(t, cl, "orders"))
	})
}

// Records of an aborted transaction that were not sent yet get their verdict.
func TestEveryRecordOfAnAbortedTransactionHasItsVerdict(t *testing.T) {
	everyLevel(t, func(t *testing.T, level int16) {
		synctest.Test(t, func(t *testing.T) {
			k, cl := cluster(t, level)
			s := open(t, cl, "tx", txn.Producer(producer.Linger(time.Hour), producer.DeliveryTimeout(2*time.Hour)))
			tx, err := s.Begin(t.Context())
			require.NoError(t, err)
			told := make(chan error, 100)
			for range cap(told) {
				require.NoError(t, tx.Submit(t.Context(), text("orders", "x"), func(_ producer.Ack, err error) { told <- err }))
			}
			require.NoError(t, tx.Abort(t.Context()))
			require.Len(t, told, cap(told))
			err = <-told
			require.ErrorIs(t, err, txn.ErrAborted)
			require.Equal(t, producer.NotWritten, producer.Outcome(err))
			have, err := k.Records("orders", 0, 0)
			require.NoError(t, err)
			require.Empty(t, have)
		})
	})
}

func TestCloseAbortsWhatIsOpen(t *testing.T) {
	everyLevel(t, func(t *testing.T, level int16) {
		synctest.Test(t, func(t *testing.T) {
			k, cl := cluster(t, level)
			s := open(t, cl, "tx")
			tx, err := s.Begin(t.Context())
			require.NoError(t, err)
			_, err = tx.Send(t.Context(), text("orders", "x"))
			require.NoError(t, err)
			require.NoError(t, s.Close(t.Context()))
			require.NoError(t, s.Close(t.Context()), "again")
			require.Equal(t, txn.Closed, s.State())
			require.Empty(t, committed(t, cl, "orders"))
			synctest.Wait() // a request counts when its answer is sent
			require.Equal(t, int64(1), k.Requests(wire.KeyEndTxn))
			_, err = s.Begin(t.Context())
			require.ErrorIs(t, err, txn.ErrClosed)
			require.Equal(t, txn.Fenced, txn.Class(err))
			require.Error(t, tx.Submit(t.Context(), text("orders", "late"), nil))
			require.Error(t, tx.Commit(t.Context()))
		})
	})
}

// A cluster that is gone keeps Close from ending for as long as ctx says, and for transaction.timeout.ms at most.
func TestCloseIsBounded(t *testing.T) {
	bothKinds(t, func(t *testing.T, level int16) {
		for _, limit := range []time.Duration{time.Second, time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				k, cl := cluster(t, level)
				s := open(t, cl, "tx", txn.TransactionTimeout(10*time.Second))
				tx, err := s.Begin(t.Context())
				require.NoError(t, err)
				_, err = tx.Send(t.Context(), text("orders", "x"))
				require.NoError(t, err)
				require.NoError(t, k.Stop(t.Context()))
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				began := time.Now()
				err = s.Close(ctx)
				require.LessOrEqual(t, time.Since(began), min(limit, 10*time.Second))
				require.Equal(t, txn.Abortable, txn.Class(err), "%v", err)
			})
		}
	})
}

// Commit and Abort at the same time: one of them wins, and the other one says so.
func TestCommitAndAbortAtTheSameTime(t *testing.T) {
	bothKinds(t, func(t *testing.T, level int16) {
		synctest.Test(t, func(t *testing.T) {
			_, cl := cluster(t, level)
			s := open(t, cl, "tx")
			for range 30 {
				tx, err := s.Begin(t.Context())
				require.NoError(t, err)
				submit(t, tx, "orders", "x")
				aborted := make(chan error)
				go func() { aborted <- tx.Abort(t.Context()) }()
				committed := tx.Commit(t.Context())
				require.NotEqual(t, committed == nil, <-aborted == nil)
				require.Equal(t, committed == nil, tx.Outcome() == txn.Committed)
			}
		})
	})
}

// A new session of the same id ends what the old one left open, and the old one learns by whom it was replaced.
func TestANewInstanceFencesTheOldOne(t *testing.T) {
	everyLevel(t, func(t *testing.T, level int16) {
		synctest.Test(t, func(t *testing.T) {
			k, cl := cluster(t, level)
			old := open(t, cl, "tx")
			tx, err := old.Begin(t.Context())
			require.NoError(t, err)
			_, err = tx.Send(t.Context(), text("orders", "zombie"))
			require.NoError(t, err)
			young := open(t, connect(t, k), "tx")
			require.NoError(t, young.Do(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				submit(t, tx, "orders", "heir")
				return nil
			}))
			err = tx.Commit(t.Context())
			require.Equal(t, txn.Fenced, txn.Class(err), "%v", err)
			var fenced *txn.FencedError
			require.ErrorAs(t, err, &fenced)
			require.Equal(t, txn.NewInstance, fenced.By, "%v", err)
			require.Greater(t, fenced.ByEpoch, fenced.Epoch)
			require.Equal(t, txn.Aborted, tx.Outcome())
			require.Equal(t, txn.Fenced, txn.Class(tx.Err()), "%v", tx.Err())
			require.Equal(t, txn.Fenced, txn.Class(tx.Flush(t.Context())))
			require.Equal(t, tx.Err(), context.Cause(tx.Context()))
			require.Equal(t, txn.Over, old.State())
			_, err = old.Begin(t.Context())
			require.ErrorAs(t, err, &fenced)
			require.Equal(t, []string{"heir"}, committed(t, cl, "orders"))
		})
	})
}

// An administrator who fences an id is told from a new instance by the timeout he registers.
func TestAnAdministratorFences(t *testing.T) {
	everyLevel(t, func(t *testing.T, level int16) {
		synctest.Test(t, func(t *testing.T) {
			k, cl := cluster(t, level)
			for _, idle := range []bool{true, false} {
				s := open(t, cl, fmt.Sprint("tx", idle))
				tx, err := s.Begin(t.Context())
				require.NoError(t, err)
				if !idle {
					_, err = tx.Send(t.Context(), text("orders", "x"))
					require.NoError(t, err)
				}
				_, err = admin.New(connect(t, k)).FenceProducers(t.Context(), s.ID())
				require.NoError(t, err)
				_, err = tx.Send(t.Context(), text("orders", "y"))
				if err == nil {
					err = tx.Commit(t.Context())
				}
				if txn.Class(err) == txn.Abortable { // a leader's word; the coordinator has the last one
					err = tx.Abort(t.Context())
				}
				var fenced *txn.FencedError
				require.ErrorAs(t, err, &fenced)
				require.Equal(t, txn.Admin, fenced.By, "%v", err)
				require.Equal(t, txn.Fenced, txn.Class(err))
			}
		})
	})
}

// A transaction that was open for too long is aborted by the coordinator, and the error says so. Where every end of a
// transaction brings a new epoch, the session survives that.
func TestATransactionThatTookTooLongSaysSo(t *testing.T) {
	everyLevel(t, func(t *testing.T, level int16) {
		synctest.Test(t, func(t *testing.T) {
			_, cl := cluster(t, level)
			s := open(t, cl, "tx", txn.TransactionTimeout(10*time.Second))
			err := s.Do(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				_, err := tx.Send(ctx, text("orders", "slow"))
				require.NoError(t, err)
				time.Sleep(30 * time.Second)
				return nil
			})
			require.ErrorIs(t, err, txn.ErrTimedOut)
			require.ErrorContains(t, err, "transaction.timeout.ms")
			require.Empty(t, committed(t, cl, "orders"))
			next := s
			if level < 2 {
				require.Equal(t, txn.Fenced, txn.Class(err), "%v", err)
				var fenced *txn.FencedError
				require.ErrorAs(t, err, &fenced)
				require.Equal(t, txn.Timeout, fenced.By, "%v", err)
				require.Greater(t, fenced.Open, 29*time.Second)
				next = open(t, cl, "tx")
			} else {
				require.Equal(t, txn.Abortable, txn.Class(err), "%v", err)
			}
			require.NoError(t, next.Do(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				submit(t, tx, "orders", "next")
				return nil
			}))
			require.Equal(t, []string{"next"}, committed(t, cl, "orders"))
		})
	})
}
