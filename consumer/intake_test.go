package consumer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// The transactions of these tests are OffsetCommit requests made by hand with what Portion says: what matters here is what
// the consumer does around them. Package txn tests the rest.

// intake is a consumer whose offsets are committed by transactions.
func (fl *fleet) intake(opts ...consumer.Option) (*consumer.Consumer, *consumer.Intake) {
	fl.t.Helper()
	c := fl.member(append([]consumer.Option{consumer.AutoCommit(time.Second)}, opts...)...)
	in, err := c.Intake()
	require.NoError(fl.t, err)
	return c, in
}

// send commits a portion behind the consumer's back.
func (fl *fleet) send(p consumer.Portion) error {
	req := message.NewOffsetCommitRequest()
	req.GroupId, req.MemberId, req.GenerationIdOrMemberEpoch = p.Group, p.Generation.MemberID, p.Generation.ID
	t := message.OffsetCommitRequestTopic{Name: "orders"}
	for tp, o := range p.Offsets {
		t.Partitions = append(t.Partitions, message.OffsetCommitRequestPartition{PartitionIndex: tp.Partition, CommittedOffset: o.At, CommittedLeaderEpoch: o.Epoch()})
	}
	req.Topics = append(req.Topics, t)
	resp, err := fl.cl.Request(within(fl.t, time.Minute), client.Coordinator(client.GroupCoordinator, p.Group).Versions(2, 9), req)
	if err != nil {
		return err
	}
	return errcode.Code(resp.(*message.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode).Err()
}

func (fl *fleet) poll(c *consumer.Consumer, n int) []int64 {
	fl.t.Helper()
	rs, err := c.Poll(within(fl.t, time.Minute), n)
	require.NoError(fl.t, err)
	return offsets(rs)
}

func TestIntakeHandsOutAgainWhatWasNotSettled(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 10)
		c, in := fl.intake()
		require.False(t, in.Pending())
		require.Equal(t, []int64{0, 1, 2}, fl.poll(c, 3))
		require.Equal(t, []int64{3, 4}, fl.poll(c, 2))
		require.True(t, in.Pending())
		time.Sleep(5 * time.Second)
		require.Empty(t, fl.committed(0), "enable.auto.commit rests")
		require.ErrorIs(t, c.Commit(within(t, time.Minute)), consumer.ErrInTransaction)
		require.ErrorIs(t, c.CommitOffsets(within(t, time.Minute), nil), consumer.ErrInTransaction)
		c.CommitAsync(func(err error) { require.ErrorIs(t, err, consumer.ErrInTransaction) })
		require.ErrorIs(t, c.Run(within(t, time.Minute), func(context.Context, consumer.Record) error { return nil }), consumer.ErrInTransaction)
		_, err := c.Intake()
		require.ErrorIs(t, err, consumer.ErrBusy)

		require.NoError(t, in.Rewind(within(t, time.Minute)))
		require.False(t, in.Pending())
		require.Equal(t, []int64{0, 1, 2, 3}, fl.poll(c, 4))
		p, err := in.Portion()
		require.NoError(t, err)
		require.Equal(t, "g", p.Group)
		require.Equal(t, c.Generation(), p.Generation)
		require.EqualValues(t, 4, p.Offsets[tp("orders", 0)].At)
		require.NoError(t, fl.send(p))
		in.Settle(p)
		p, err = in.Portion()
		require.NoError(t, err)
		require.Empty(t, p.Offsets, "no news")

		for r, err := range c.Records(within(t, time.Minute)) {
			require.NoError(t, err)
			if r.Offset == 6 {
				break
			}
		}
		require.NoError(t, in.Rewind(within(t, time.Minute)))
		for b, err := range c.Batches(within(t, time.Minute)) {
			require.NoError(t, err)
			require.EqualValues(t, 4, first(b))
			break
		}
		in.Release()
		require.Equal(t, []int64{4, 5}, fl.poll(c, 2), "after Release too")
		require.NoError(t, c.Commit(within(t, time.Minute)))
		require.Equal(t, map[int32]int64{0: 6}, fl.committed(0))
	})
}

func first(b consumer.Batch) int64 {
	for r := range b.Records() {
		return r.Offset
	}
	return -1
}

// A commit whose outcome nobody heard: what the coordinator has decides.
func TestRewindAsksWhenOffsetsWereSent(t *testing.T) {
	for _, arrived := range []bool{true, false} {
		withFleet(t, 1, func(t *testing.T, fl *fleet) {
			write(t, fl.cl, "orders", 0, 10)
			c, in := fl.intake()
			require.Equal(t, []int64{0, 1, 2}, fl.poll(c, 3))
			p, err := in.Portion()
			require.NoError(t, err)
			require.NoError(t, fl.send(p))
			in.Settle(p)
			require.Equal(t, []int64{3, 4}, fl.poll(c, 2))
			p, err = in.Portion()
			require.NoError(t, err)
			want := []int64{3, 4, 5}
			if arrived {
				require.NoError(t, fl.send(p))
				want = []int64{5, 6, 7}
			}
			require.NoError(t, in.Rewind(within(t, time.Minute)))
			require.Equal(t, want, fl.poll(c, 3))
			require.NoError(t, in.Rewind(within(t, time.Minute)))
			require.Equal(t, want, fl.poll(c, 3), "nothing was sent since")
			in.Release()
		})
	}
}

func TestPartitionsAreGivenUpWhenTheirTransactionIsOver(t *testing.T) {
	for _, protocol := range []string{"classic", "consumer"} {
		for _, commit := range []bool{true, false} {
			withFleet(t, 2, func(t *testing.T, fl *fleet) {
				write(t, fl.cl, "orders", 0, 200)
				c, in := fl.intake(consumer.GroupProtocol(protocol))
				seen := map[int32]int64{}
				for r, err := range c.Records(within(t, time.Minute)) {
					require.NoError(t, err)
					if seen[r.Partition]++; len(seen) == 2 && seen[0] > 5 && seen[1] > 5 {
						break
					}
				}
				reading, handling, stop := in.Watch(context.Background())
				other := fl.member(consumer.GroupProtocol(protocol))
				theirs := make(chan []consumer.Record, 1)
				go func() {
					rs, err := other.Poll(within(t, time.Minute), 1000)
					assert.NoError(t, err)
					theirs <- rs
				}()
				<-reading.Done()
				require.ErrorIs(t, context.Cause(reading), consumer.ErrRevoked)
				time.Sleep(10 * time.Second)
				require.NoError(t, handling.Err(), "the transaction may go on")
				require.Empty(t, theirs, "the partition is not given up yet")
				p, err := in.Portion()
				require.NoError(t, err)
				require.Len(t, p.Offsets, 2)
				if commit {
					require.NoError(t, fl.send(p))
					in.Settle(p)
				} else {
					require.NoError(t, in.Rewind(within(t, time.Minute)))
				}
				stop()
				write(t, fl.cl, "orders", 200, 100) // they may have come to the end of it
				rs := <-theirs
				require.NotEmpty(t, rs)
				from := int64(0)
				if commit {
					from = seen[rs[0].Partition]
				}
				require.Equal(t, from, rs[0].Offset)
				in.Release()
			})
		}
	}
}

func TestALostPartitionBreaksTheTransaction(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 10)
		c, in := fl.intake()
		require.Equal(t, []int64{0, 1, 2}, fl.poll(c, 3))
		reading, handling, stop := in.Watch(context.Background())
		require.NoError(t, fl.k.FenceMember(within(t, time.Minute), "g", c.Generation().MemberID))
		<-handling.Done()
		require.ErrorIs(t, context.Cause(handling), consumer.ErrLost)
		require.ErrorIs(t, context.Cause(reading), consumer.ErrLost)
		require.ErrorIs(t, in.Err(), consumer.ErrLost)
		_, err := in.Portion()
		require.ErrorIs(t, err, consumer.ErrLost)
		require.ErrorContains(t, err, "orders-0 from offset 0 is in hand")
		require.True(t, in.Pending())
		require.NoError(t, in.Rewind(within(t, time.Minute)))
		require.NoError(t, in.Err())
		stop()
		require.Equal(t, []int64{0, 1, 2, 3}, fl.poll(c, 4), "it is this member's again")
		p, err := in.Portion()
		require.NoError(t, err)
		require.NoError(t, fl.send(p))
		in.Settle(p)
		in.Release()
	})
}

// A transaction that takes longer than DrainTimeout while a partition is wanted back has lost it.
func TestOverdueTransactionIsBroken(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 10)
		c, in := fl.intake(consumer.DrainTimeout(2 * time.Second))
		require.Equal(t, []int64{0, 1, 2}, fl.poll(c, 3))
		reading, handling, stop := in.Watch(context.Background())
		defer stop()
		require.NoError(t, c.Subscribe("others"))
		<-reading.Done()
		require.NoError(t, handling.Err())
		<-handling.Done()
		require.ErrorIs(t, context.Cause(handling), consumer.ErrRevoked)
		_, err := in.Portion()
		require.ErrorIs(t, err, consumer.ErrRevoked)
		require.Empty(t, fl.committed(0))
		in.Release()
	})
}

// Close waits for a transaction that is under way, and for none that is not.
func TestCloseAndTransactions(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 10)
		c, in := fl.intake()
		require.Equal(t, []int64{0, 1, 2}, fl.poll(c, 3))
		reading, _, stop := in.Watch(context.Background())
		closed := make(chan error, 1)
		go func() { closed <- c.Close(context.Background()) }()
		<-reading.Done()
		require.ErrorIs(t, context.Cause(reading), consumer.ErrClosed)
		p, err := in.Portion()
		require.NoError(t, err)
		require.NoError(t, fl.send(p))
		in.Settle(p)
		stop()
		require.NoError(t, <-closed)
		require.Equal(t, map[int32]int64{0: 3}, fl.committed(0))

		c, in = fl.intake()
		require.Equal(t, []int64{3, 4}, fl.poll(c, 2))
		began := time.Now()
		require.NoError(t, c.Close(context.Background()))
		require.Less(t, time.Since(began), time.Second)
		_, err = in.Portion()
		require.True(t, errors.Is(err, consumer.ErrClosed), "%v", err)
		require.Equal(t, map[int32]int64{0: 3}, fl.committed(0))
	})
}

// Several partitions, some with records in hand: what was settled does not come again, all of the rest does.
func TestRewindOfSeveralPartitions(t *testing.T) {
	withFleet(t, 3, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 300)
		c, in := fl.intake()
		var l ledger
		for l.len() < 300 {
			rs, err := c.Poll(within(t, time.Minute), 40)
			require.NoError(t, err)
			if l.len()%3 == 0 {
				require.NoError(t, in.Rewind(within(t, time.Minute)))
				rs, err = c.Poll(within(t, time.Minute), 41)
				require.NoError(t, err)
			}
			p, err := in.Portion()
			require.NoError(t, err)
			require.NoError(t, fl.send(p))
			in.Settle(p)
			for _, r := range rs {
				l.add(r)
			}
		}
		l.once(t, 300)
		in.Release()
	})
}

// What is handed out while the transaction ends belongs to the next one.
func TestSettleKeepsWhatWasHandedOutMeanwhile(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, fl *fleet) {
		c, in := fl.intake()
		write(t, fl.cl, "orders", 0, 100)
		var l ledger
		for l.len() < 100 {
			rs, err := c.Poll(within(t, time.Minute), 7)
			require.NoError(t, err)
			p, err := in.Portion()
			require.NoError(t, err)
			if l.len()+len(rs) < 100 {
				fl.poll(c, 9) // of the same partition or the other one
			}
			require.NoError(t, fl.send(p))
			in.Settle(p)
			for _, r := range rs {
				l.add(r)
			}
			if l.len() < 100 {
				require.True(t, in.Pending())
			}
			require.NoError(t, in.Rewind(within(t, time.Minute)))
		}
		l.once(t, 100)
		in.Release()
	})
}
