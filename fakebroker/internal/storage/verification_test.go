package storage

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// verifier appends to a log that demands verification.
type verifier struct {
	*testing.T
	l *Log
}

func newVerifier(t *testing.T) verifier {
	return verifier{t, openTest(t, vfs.NewMem(), DefaultLogConfig())}
}

func (v verifier) ask(epoch int16, seq int32, bumps bool) uint64 {
	v.Helper()
	guard, err := v.l.StartVerification(7, epoch, seq, bumps, t0)
	require.NoError(v, err)
	return guard
}

func (v verifier) write(epoch int16, seq int32, guard uint64) error {
	_, err := v.l.AppendTransactional(produced{values: []string{"a"}, id: 8, epoch: epoch, seq: seq, txn: true}.bytes(), 0,
		FromClient, Verification{Required: true, Guard: guard}, t0)
	return err
}

func (v verifier) end(epoch int16, version int8) error {
	_, err := v.l.AppendEndTxnMarker(EndTxnMarker{ProducerID: 7, ProducerEpoch: epoch, TransactionVersion: version}, 0, t0)
	return err
}

func TestTheFirstBatchOfATransactionNeedsTheGuard(t *testing.T) {
	v := newVerifier(t)
	require.ErrorIs(t, v.write(0, 0, 0), errcode.InvalidTxnState)
	guard := v.ask(0, 0, false)
	require.NotZero(t, guard)
	require.Equal(t, guard, v.ask(0, 0, false), "asked twice it is the same verification")
	require.ErrorIs(t, v.write(0, 0, guard+1), errcode.InvalidTxnState)
	require.NoError(t, v.write(0, 0, guard))
	require.Zero(t, v.ask(0, 1, false), "open already")
	require.NoError(t, v.write(0, 1, 0))
	require.NoError(t, v.write(0, 1, 0), "a repetition is not verified")
	require.NoError(t, v.end(0, 1))
	require.ErrorIs(t, v.write(0, 2, 0), errcode.InvalidTxnState)
	require.NoError(t, v.write(0, 1, 0), "nor one after the end")
	_, err := v.l.AppendTransactional(produced{values: []string{"a"}, id: 8, seq: 2, txn: true}.bytes(), 0, FromClient, Verification{}, t0)
	require.NoError(t, err, "when verification is off")
}

func TestAGuardIsWorthlessOnceTheTransactionHasEnded(t *testing.T) {
	v := newVerifier(t)
	late := v.ask(0, 0, false)
	require.NoError(t, v.end(0, 1), "the abort comes before the batch")
	require.ErrorIs(t, v.write(0, 0, late), errcode.InvalidTxnState)
	next := v.ask(0, 0, false)
	require.NotEqual(t, late, next)
	require.ErrorIs(t, v.write(0, 0, late), errcode.InvalidTxnState, "not even while the next one is being verified")
	require.NoError(t, v.write(0, 0, next))
}

// With version 2 the next transaction has the epoch of the last one's marker and may be verified before that comes.
func TestAMarkerLeavesTheGuardOfTheNextTransaction(t *testing.T) {
	v := newVerifier(t)
	require.NoError(t, v.write(0, 0, v.ask(0, 0, true)))
	next := v.ask(1, 0, true)
	require.NotZero(t, next, "the open one is of another epoch")
	require.NoError(t, v.end(1, 2))
	require.NoError(t, v.write(1, 0, next))
}

func TestOldEpochsAreNotVerified(t *testing.T) {
	v := newVerifier(t)
	require.NoError(t, v.write(3, 0, v.ask(3, 0, false)))
	_, err := v.l.StartVerification(7, 2, 0, false, t0)
	require.ErrorIs(t, err, errcode.InvalidProducerEpoch)
	require.ErrorIs(t, v.write(2, 0, 0), errcode.InvalidProducerEpoch)
	require.NoError(t, v.l.Close(t0))
	_, err = v.l.StartVerification(7, 3, 0, false, t0)
	require.ErrorIs(t, err, errcode.KafkaStorageError)
}

func TestWhereATransactionMayBegin(t *testing.T) {
	for name, c := range map[string]struct {
		bumps bool
		asked []int32 // sequences, by the order of their requests
		write int32
		code  errcode.Code
	}{
		"an unknown producer of version 1 anywhere":           {asked: []int32{5}, write: 5},
		"an unknown producer of version 2 at zero":            {bumps: true, asked: []int32{0}, write: 0},
		"and not later, where batches before it are missing":  {bumps: true, asked: []int32{5}, write: 5, code: errcode.OutOfOrderSequenceNumber},
		"not behind a lower sequence that waits for its turn": {asked: []int32{5, 8}, write: 8, code: errcode.OutOfOrderSequenceNumber},
		"nor behind one that came later":                      {asked: []int32{8, 5}, write: 8, code: errcode.OutOfOrderSequenceNumber},
		"at the lowest":                                       {asked: []int32{8, 5}, write: 5},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVerifier(t)
			var guard uint64
			for _, seq := range c.asked {
				guard = v.ask(0, seq, c.bumps)
			}
			if err := v.write(0, c.write, guard); c.code != errcode.None {
				require.ErrorIs(t, err, c.code)
				return
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// A producer that is being verified may not write outside of its transaction either what could not be first in it.
func TestVerificationHoldsForPlainBatchesToo(t *testing.T) {
	v := newVerifier(t)
	plain := func(seq int32) error {
		_, err := v.l.AppendAsLeader(produced{values: []string{"a"}, id: 8, seq: seq}.bytes(), 0, FromClient, t0)
		return err
	}
	v.ask(0, 1, false)
	require.ErrorIs(t, plain(3), errcode.OutOfOrderSequenceNumber)
	require.NoError(t, plain(1))
	require.NoError(t, v.end(0, 1), "which ends the verification")
	require.NoError(t, plain(2))
}

func TestANewEpochForgetsTheLowestSequence(t *testing.T) {
	v := newVerifier(t)
	v.ask(0, 0, false)
	require.NoError(t, v.write(1, 4, v.ask(1, 4, false)))
}

func TestVerificationsThatLeadNowhereExpire(t *testing.T) {
	v := newVerifier(t)
	guard := v.ask(0, 0, false)
	require.NoError(t, v.l.tick(t0.Add(24*time.Hour-time.Millisecond), false, true, false))
	require.Equal(t, guard, v.ask(0, 0, false))
	require.NoError(t, v.l.tick(t0.Add(24*time.Hour), false, true, false))
	require.NotEqual(t, guard, v.ask(0, 0, false))
}

func TestMarkersOfVersion2HaveAHigherEpoch(t *testing.T) {
	v := newVerifier(t)
	require.NoError(t, v.write(4, 0, v.ask(4, 0, true)))
	require.ErrorIs(t, v.end(4, 2), errcode.InvalidProducerEpoch)
	require.NoError(t, v.end(5, 2))
	require.NoError(t, v.end(5, 2), "the coordinator did not hear of the first")
	require.ErrorIs(t, v.end(4, 2), errcode.InvalidProducerEpoch)
	require.EqualValues(t, 3, v.l.LogEndOffset(), "both are in the log")
	require.EqualValues(t, -1, v.l.ActiveProducers()[0].TxnStartOffset)

	last := int16(math.MaxInt16)
	require.NoError(t, v.write(last, 0, v.ask(last, 0, true)))
	require.NoError(t, v.end(last, 2), "there is no higher one")
	require.ErrorIs(t, v.write(6, 0, 0), errcode.InvalidProducerEpoch)
}

func TestBytesOfOpenTransactionsAreNotReadable(t *testing.T) {
	l := openTest(t, vfs.NewMem(), DefaultLogConfig())
	stable := func(b []byte, grows bool) {
		t.Helper()
		before, size := l.StableBytes(), int64(len(b))
		appendOK(t, l, b)
		l.SetHighWatermark(l.LogEndOffset())
		if !grows {
			size = 0
		}
		require.Equal(t, before+size, l.StableBytes())
	}
	stable(batchOf("a"), true)
	one := produced{values: []string{"a"}, id: 1, txn: true}.bytes()
	two := produced{values: []string{"a"}, id: 2, txn: true}.bytes()
	stable(one, false)
	stable(two, false)
	stable(batchOf("b"), false)
	before := l.StableBytes()
	end := func(id int64) {
		_, err := l.AppendEndTxnMarker(EndTxnMarker{ProducerID: id}, 0, t0)
		require.NoError(t, err)
		l.SetHighWatermark(l.LogEndOffset())
	}
	end(0)
	require.Equal(t, before+int64(len(one)), l.StableBytes())
	end(1)
	require.Greater(t, l.StableBytes(), before+int64(len(one)+len(two)), "all, with both markers")
	stable(batchOf("c"), true)
}
