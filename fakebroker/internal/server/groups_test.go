package server

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/group"
	"github.com/ottla-kafka/ottla/fakebroker/internal/network"
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Who waits for a group while its coordinator is loading hears of it when that is done, also when there is no such group.
func TestAWaitForAGroupOutlivesTheLoadingOfItsCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewFault(vfs.NewMem())
		b, conn := openBroker(t, fs, map[string]string{"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"})
		a := &admin{t: t, broker: b, conn: conn}
		a.create("orders", 20)
		ask[*message.FindCoordinatorResponse](a, 3, &message.FindCoordinatorRequest{CoordinatorKey: "g"})
		commit := &message.OffsetCommitRequest{GroupId: "g", GenerationIdOrMemberEpoch: -1, Topics: []message.OffsetCommitRequestTopic{{Name: "orders"}}}
		text := strings.Repeat("x", 4000) // in all more than a coordinator loads at once
		for i := range int32(20) {
			commit.Topics[0].Partitions = append(commit.Topics[0].Partitions, message.OffsetCommitRequestPartition{PartitionIndex: i, CommittedOffset: 7, CommittedMetadata: &text})
		}
		require.Zero(t, ask[*message.OffsetCommitResponse](a, 8, commit).Topics[0].Partitions[0].ErrorCode)

		gate := make(chan struct{})
		fs.Set(func(op vfs.Op) error {
			if op.Kind == vfs.OpRead {
				<-gate
			}
			return nil
		})
		require.NoError(t, b.ReloadCoordinator(t.Context(), "g"))
		_, err := b.Group(t.Context(), "g")
		require.ErrorIs(t, err, errcode.CoordinatorLoadInProgress)
		found := make(chan error, 1)
		go func() {
			_, err := b.AwaitGroup(context.Background(), "nobody", func(v *group.View) bool { return v.State == group.Dead })
			found <- err
		}()
		synctest.Wait()
		close(gate)
		require.NoError(t, <-found)
		require.NoError(t, conn.Close())
		require.NoError(t, b.Close())
	})
}

// A wait with a ctx that has ended answers with its cause, also when what it waits for is there.
func TestNothingIsDoneUnderAContextThatHasEnded(t *testing.T) {
	a := startAdmin(t, nil)
	a.create("orders", 1)
	ended, cancel := context.WithCancelCause(t.Context())
	cause := errcode.OperationNotAttempted
	cancel(cause)
	for range 20 { // a select between two that are ready would take either
		fs, l := vfs.NewMem(), network.NewMemoryListener("broker:9092")
		_, err := Open(ended, optionsOf(t, fs, l, nil))
		require.ErrorIs(t, err, cause)
		_, err = fs.List("/data")
		require.ErrorIs(t, err, vfs.ErrNotExist)
		_, err = l.Dial(t.Context())
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.ErrorIs(t, a.broker.AwaitTopic(ended, "orders"), cause)
		require.ErrorIs(t, a.broker.AwaitOffset(ended, "orders", 0, 0), cause)
		_, err = a.broker.Propose(ended, &message.CreateTopicsRequest{})
		require.ErrorIs(t, err, cause)
		_, err = a.broker.Groups(ended)
		require.ErrorIs(t, err, cause)
		_, err = a.broker.Transactions(ended)
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, a.broker.ReloadCoordinator(ended, "g"), cause)
		require.ErrorIs(t, a.broker.ReloadTransactions(ended, "t"), cause)
		_, err = a.broker.AwaitGroup(ended, "g", func(*group.View) bool { return true })
		require.ErrorIs(t, err, cause)
		_, err = a.broker.AwaitTransaction(ended, "t", func(*transaction.View) bool { return true })
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, a.broker.TimeOutTransaction(ended, "t"), cause)
		_, err = a.broker.HangTransaction(ended, "orders", 0, time.Now())
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, a.broker.Metrics().Await(ended, wire.KeyCreateTopics, 1), cause)
	}
}
