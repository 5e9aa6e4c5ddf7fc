package consumer_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// The tests of consumers that are assigned their partitions and commit their offsets for a group, as with Kafka's assign and
// group.id.

// alone makes such a consumer of group "g" for partitions of "orders".
func (fl *fleet) alone(parts []int32, opts ...consumer.Option) *consumer.Consumer {
	fl.t.Helper()
	cl, err := client.New(client.Cluster(fl.k))
	require.NoError(fl.t, err)
	c, err := consumer.New(cl, append([]consumer.Option{consumer.Group("g"), consumer.Assign("orders", parts...), consumer.OnReset(consumer.Earliest)}, opts...)...)
	require.NoError(fl.t, err)
	fl.t.Cleanup(func() {
		assert.NoError(fl.t, c.Close(context.Background()))
		require.NoError(fl.t, cl.Close(context.Background()))
	})
	return c
}

// stored is what the group has, without a member.
func (fl *fleet) stored() map[int32]int64 {
	fl.t.Helper()
	out := map[int32]int64{}
	g, err := fl.k.Group(context.Background(), "g")
	if err != nil {
		require.ErrorContains(fl.t, err, "g")
		return out
	}
	require.Empty(fl.t, g.Members)
	for _, o := range g.Offsets {
		out[o.Partition] = o.Offset
	}
	return out
}

func TestAssignedConsumerCommitsAndStartsFromWhatWasCommitted(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 20)
		a := fl.alone([]int32{0}, consumer.ManualCommit)
		require.Equal(t, []int64{0, 1, 2}, fl.poll(a, 3))
		require.Empty(t, fl.stored())
		require.NoError(t, a.Commit(within(t, time.Minute)))
		require.Equal(t, map[int32]int64{0: 3}, fl.stored())
		rs, err := a.Poll(within(t, time.Minute), 4)
		require.NoError(t, err)
		require.NoError(t, a.CommitRecords(within(t, time.Minute), rs[1]))
		found, err := a.Committed(within(t, time.Minute))
		require.NoError(t, err)
		require.EqualValues(t, 5, found[tp("orders", 0)].At)
		require.EqualValues(t, rs[1].LeaderEpoch, found[tp("orders", 0)].Epoch())
		require.NoError(t, a.Close(context.Background()))
		require.Equal(t, map[int32]int64{0: 5}, fl.stored(), "nothing by itself")

		b := fl.alone([]int32{0}, consumer.StartAt(consumer.Latest))
		require.Equal(t, []int64{5, 6}, fl.poll(b, 2), "StartAt is for what has no committed offset")
		require.NoError(t, b.CommitOffsets(within(t, time.Minute), map[consumer.TopicPartition]consumer.Offset{
			tp("orders", 0): {At: 9, Metadata: "by hand"}}))
		found, err = b.Committed(within(t, time.Minute), tp("orders", 0))
		require.NoError(t, err)
		require.Equal(t, "by hand", found[tp("orders", 0)].Metadata)
		done := make(chan error, 1)
		b.CommitAsync(func(err error) { done <- err })
		require.NoError(t, <-done)
		require.NoError(t, b.Close(context.Background()))

		c := fl.alone(nil, consumer.AssignAt("orders", 0, consumer.AtOffset(17)))
		require.Equal(t, []int64{17, 18}, fl.poll(c, 2), "a start that is said for the partition is as a Seek")
		require.ErrorIs(t, c.Subscribe("orders"), consumer.ErrNoGroup)
		require.EqualValues(t, -1, c.Generation().ID)
		require.Equal(t, "Unknown", c.Membership().State.String())
	})
}

// The same order as for members: what is done is committed by time, when partitions are removed, and at the end.
func TestAssignedConsumerCommitsByItself(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 100)
		a := fl.alone([]int32{0}, consumer.AutoCommit(time.Second))
		require.Equal(t, []int64{0, 1, 2}, fl.poll(a, 3))
		time.Sleep(3 * time.Second)
		require.Equal(t, map[int32]int64{0: 0}, fl.stored(), "they are in hand")
		require.Equal(t, []int64{3, 4}, fl.poll(a, 2))
		time.Sleep(3 * time.Second)
		require.Equal(t, map[int32]int64{0: 3}, fl.stored())

		require.NoError(t, a.Assign(consumer.Assignment{TopicPartition: tp("orders", 1)}))
		require.ErrorIs(t, a.Pause(tp("orders", 0)), consumer.ErrNotAssigned)
		time.Sleep(3 * time.Second)
		require.Equal(t, int64(3), fl.stored()[0], "3 and 4 are in hand")
		require.NoError(t, a.Add(consumer.Assignment{TopicPartition: tp("orders", 0)})) // again, while it is still given up
		require.NoError(t, a.Pause(tp("orders", 1)))
		require.Equal(t, []int64{5, 6, 7}, fl.poll(a, 3), "where it was, and 3 and 4 were done with this Poll")
		require.NoError(t, a.Resume(tp("orders", 1)))
		require.NoError(t, a.Remove(tp("orders", 0)))
		require.NoError(t, a.Commit(within(t, time.Minute)))
		require.Equal(t, int64(8), fl.stored()[0])
		require.Equal(t, []int64{0, 1}, fl.poll(a, 2))
		require.Equal(t, []int64{2, 3}, fl.poll(a, 2))
		require.NoError(t, a.Close(context.Background()))
		require.Equal(t, map[int32]int64{0: 8, 1: 2}, fl.stored())
		require.ErrorIs(t, a.Add(consumer.Assignment{TopicPartition: tp("orders", 0)}), consumer.ErrClosed)
		require.ErrorIs(t, a.CommitOffsets(within(t, time.Minute), map[consumer.TopicPartition]consumer.Offset{tp("orders", 0): {}}), consumer.ErrClosed)
	})
}

// Seek and Pause of a partition that was added again reach the new claim, however long the old one takes.
func TestAssignedPartitionThatIsAddedAgainObeysAtOnce(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 20)
		a := fl.alone([]int32{0})
		require.Equal(t, []int64{0, 1}, fl.poll(a, 2))
		require.NoError(t, a.Unassign())
		require.ErrorIs(t, a.Seek(tp("orders", 0), consumer.Earliest), consumer.ErrNotAssigned)
		require.NoError(t, a.Add(consumer.Assignment{TopicPartition: tp("orders", 0)}))
		require.NoError(t, a.Seek(tp("orders", 0), consumer.AtOffset(11)))
		require.NoError(t, a.Pause(tp("orders", 0)))
		nothing(t, a, time.Minute)
		require.NoError(t, a.Resume(tp("orders", 0)))
		require.Equal(t, []int64{11, 12}, fl.poll(a, 2))
		require.NoError(t, a.Remove(tp("orders", 0)))
		require.NoError(t, a.Add(consumer.Assignment{TopicPartition: tp("orders", 0)}))
		require.NoError(t, a.Remove(tp("orders", 0)))
		nothing(t, a, time.Minute)
		require.Equal(t, map[int32]int64{0: 13}, fl.stored())
	})
}

func TestAssignedConsumerRunsHandlers(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 200)
		var l ledger
		a := fl.alone([]int32{0, 1}, consumer.MaxPollInterval(time.Minute, consumer.Leave))
		ctx, cancel := context.WithCancel(context.Background())
		require.ErrorIs(t, a.Run(ctx, func(_ context.Context, r consumer.Record) error {
			if l.add(r) == 200 {
				cancel()
			}
			return nil
		}), context.Canceled)
		l.once(t, 200)
		at := fl.stored()
		require.EqualValues(t, 200, at[0]+at[1])

		write(t, fl.cl, "orders", 200, 200)
		var stalls, ended atomic.Int64
		b := fl.alone([]int32{0, 1}, consumer.MaxPollInterval(time.Minute, consumer.Leave), consumer.OnStall(func(consumer.Stall) { stalls.Add(1) }))
		require.ErrorIs(t, b.Serve(within(t, 10*time.Minute), func(ctx context.Context, claim *consumer.Claim) error {
			defer ended.Add(1)
			if claim.TopicPartition().Partition == 1 {
				for r := range claim.Records(ctx) {
					if l.add(r); r.Offset == at[1] {
						require.NoError(t, b.Remove(r.TopicPartition()))
					}
				}
				require.ErrorIs(t, context.Cause(claim.Ending()), consumer.ErrRevoked)
				require.ErrorContains(t, context.Cause(claim.Ending()), "was removed")
				return nil
			}
			for r := range claim.Records(ctx) {
				if l.add(r); r.Offset == at[0]+10 {
					time.Sleep(3 * time.Minute) // no group gives its partitions away
				}
			}
			return nil
		}), context.DeadlineExceeded)
		require.Positive(t, stalls.Load())
		require.EqualValues(t, 2, ended.Load())
		off, err := fl.k.Offsets("orders", 0)
		require.NoError(t, err)
		require.Equal(t, map[int32]int64{0: off.HighWatermark, 1: at[1] + 1}, fl.stored())
	})
}

func TestGroupWithMembersTakesNoCommitsOfAnAssignedConsumer(t *testing.T) {
	for _, protocol := range []string{"classic", "consumer"} {
		withFleet(t, 2, func(t *testing.T, fl *fleet) {
			write(t, fl.cl, "orders", 0, 40)
			m := fl.member(consumer.GroupProtocol(protocol))
			idle(t, m)
			awaitClaims(t, m, 2)
			var failed atomic.Int64
			a := fl.alone([]int32{0, 1}, consumer.AutoCommit(time.Second), consumer.OnEvent(func(e consumer.Event) {
				if e.Kind == consumer.EventCommitFailed && errors.Is(e.Err, consumer.ErrGroupInUse) {
					failed.Add(1)
				}
			}))
			fl.poll(a, 3)
			err := a.Commit(within(t, time.Minute))
			require.ErrorIs(t, err, consumer.ErrGroupInUse, protocol)
			require.ErrorIs(t, err, errcode.UnknownMemberId)
			require.ErrorContains(t, err, `members of group "g" commit for it`)
			require.ErrorContains(t, err, "orders-")
			time.Sleep(3 * time.Second)
			require.Positive(t, failed.Load())
			require.ErrorIs(t, a.Close(context.Background()), consumer.ErrGroupInUse, "what could not be committed")
			require.NoError(t, m.Close(context.Background()))
			write(t, fl.cl, "orders", 40, 40)
			b := fl.alone([]int32{0, 1})
			fl.poll(b, 3)
			require.NoError(t, b.Commit(within(t, time.Minute)), "nobody is a member any more")
		})
	}
}

func TestAssignedConsumerCommitsAMovingStartUnlessItCommitsByHand(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 40)
		a := fl.alone([]int32{0}, consumer.OnReset(consumer.Latest), consumer.ManualCommit)
		nothing(t, a, time.Second)
		require.Empty(t, fl.stored())
		require.NoError(t, a.Commit(within(t, time.Minute)))
		require.Equal(t, map[int32]int64{0: 40}, fl.stored())
	})
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 40)
		a := fl.alone([]int32{0}, consumer.OnReset(consumer.Latest), consumer.AutoCommit(time.Hour))
		nothing(t, a, time.Second)
		require.Equal(t, map[int32]int64{0: 40}, fl.stored())
	})
}

// A transaction's offsets need no member either.
func TestAssignedConsumerFeedsTransactions(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 10)
		a := fl.alone([]int32{0})
		in, err := a.Intake()
		require.NoError(t, err)
		require.Equal(t, []int64{0, 1, 2}, fl.poll(a, 3))
		p, err := in.Portion()
		require.NoError(t, err)
		require.NoError(t, fl.send(p))
		in.Settle(p)
		require.Equal(t, []int64{3, 4}, fl.poll(a, 2))
		require.NoError(t, in.Rewind(within(t, time.Minute)))
		require.Equal(t, []int64{3, 4, 5}, fl.poll(a, 3))
		in.Release()
		require.NoError(t, a.Close(context.Background()))
		require.Equal(t, map[int32]int64{0: 3}, fl.stored())
	})
}

func TestCommitsOfAnAssignedConsumerRideOutFaults(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 10)
		fl.k.Inject(fault.On(wire.KeyOffsetFetch).LoseResponse().Times(1))
		fl.k.Inject(fault.On(wire.KeyOffsetFetch).Error(errcode.NotCoordinator).Nth(2))
		a := fl.alone([]int32{0})
		fl.poll(a, 3)
		for _, code := range []errcode.Code{errcode.NotCoordinator, errcode.CoordinatorLoadInProgress, errcode.RebalanceInProgress} {
			fl.k.Inject(fault.On(wire.KeyOffsetCommit).Error(code).Times(2))
			fl.poll(a, 1)
			require.NoError(t, a.Commit(within(t, time.Minute)), code)
		}
		fl.k.Inject(fault.On(wire.KeyOffsetCommit).LoseResponse().Times(1))
		fl.poll(a, 1)
		require.NoError(t, a.Commit(within(t, time.Minute)))
		require.Equal(t, map[int32]int64{0: 7}, fl.stored())
		fl.k.Inject(fault.On(wire.KeyOffsetCommit).Error(errcode.CoordinatorLoadInProgress).Times(1000))
		fl.poll(a, 1)
		began := time.Now()
		err := a.Commit(context.Background())
		require.ErrorIs(t, err, client.ErrTimeout)
		require.ErrorIs(t, err, errcode.CoordinatorLoadInProgress)
		require.InDelta(t, 60, time.Since(began).Seconds(), 1, "default.api.timeout.ms")
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		require.ErrorIs(t, a.Commit(ctx), context.DeadlineExceeded)
		began = time.Now()
		ctx, cancel = context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		require.ErrorIs(t, a.Close(ctx), context.DeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}

// Offsets of a topic that was deleted are not committed for another that took its name.
func TestUsers19AssignedConsumerDoesNotCommitForTheTopicThatTookTheName(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 50)
		a := fl.alone([]int32{0}, consumer.AutoCommit(time.Hour))
		fl.poll(a, 40)
		name := "orders"
		req := message.NewDeleteTopicsRequest()
		req.Topics, req.TimeoutMs = []message.DeleteTopicState{{Name: &name}}, 10000
		_, err := fl.cl.Request(within(t, time.Minute), client.Controller(), req)
		require.NoError(t, err)
		require.NoError(t, fl.k.CreateTopic(context.Background(), fakebroker.TopicSpec{Name: "orders", Partitions: 1}))
		a.Client().RefreshMetadata()
		time.Sleep(5 * time.Second)
		require.ErrorIs(t, a.Commit(within(t, time.Minute)), errcode.UnknownTopicId)
		require.Empty(t, fl.stored())
		require.ErrorIs(t, a.Close(context.Background()), errcode.UnknownTopicId)
	})
}

// Whatever Add, Remove and Close do at the same time, Close ends.
func TestAssignedConsumerClosesWhilePartitionsComeAndGo(t *testing.T) {
	for range 50 {
		withFleet(t, 4, func(t *testing.T, fl *fleet) {
			a := fl.alone([]int32{0})
			var steering sync.WaitGroup
			for p := range int32(4) {
				steering.Go(func() {
					for {
						err := a.Add(consumer.Assignment{TopicPartition: tp("orders", p)})
						if errors.Is(err, consumer.ErrClosed) {
							return
						}
						runtime.Gosched()
						_ = a.Remove(tp("orders", p))
						_ = a.Unassign()
					}
				})
			}
			runtime.Gosched()
			require.NoError(t, a.Close(context.Background()))
			steering.Wait()
			time.Sleep(time.Minute)
			require.Empty(t, a.Membership().Claims)
		})
	}
}

// TestSteeredAssignmentLosesAndRepeatsNothing removes and adds partitions at moments of chance while the consumer reads in all
// ways by turns: whatever the moment, the next claim of a partition begins where the one before was done.
func TestSteeredAssignmentLosesAndRepeatsNothing(t *testing.T) {
	const n, parts = 600, 4
	for seed := range uint64(20) {
		withFleet(t, parts, func(t *testing.T, fl *fleet) {
			rnd, steers := rand.New(rand.NewPCG(seed, 5)), rand.New(rand.NewPCG(seed, 6))
			write(t, fl.cl, "orders", 0, n)
			a := fl.alone([]int32{0, 1, 2, 3}, consumer.MaxBytes(20000, 1+rnd.IntN(5000)), consumer.AutoCommit(time.Duration(1+rnd.IntN(50))*time.Millisecond))
			ctx, cancel := context.WithCancel(context.Background())
			var steering sync.WaitGroup
			steering.Go(func() {
				for ctx.Err() == nil {
					time.Sleep(time.Duration(steers.IntN(8)) * time.Millisecond)
					p := consumer.Assignment{TopicPartition: tp("orders", steers.Int32N(parts))}
					switch steers.IntN(4) {
					case 0:
						assert.NoError(t, a.Remove(p.TopicPartition))
					case 1:
						assert.NoError(t, a.Assign(p, consumer.Assignment{TopicPartition: tp("orders", steers.Int32N(parts))}))
					default:
						assert.NoError(t, a.Add(p))
					}
				}
			})
			done := map[string]int{}
			var mu sync.Mutex
			note := func(r consumer.Record) int {
				mu.Lock()
				defer mu.Unlock()
				done[string(r.Value)]++
				return len(done)
			}
			for round := 0; note(consumer.Record{}) <= n; round++ {
				require.Less(t, round, 5000, "seed %d: %d of %d", seed, len(done)-1, n)
				if round == 300 {
					cancel()
					steering.Wait()
					require.NoError(t, a.Add(consumer.Assignment{TopicPartition: tp("orders", 0)}, consumer.Assignment{TopicPartition: tp("orders", 1)},
						consumer.Assignment{TopicPartition: tp("orders", 2)}, consumer.Assignment{TopicPartition: tp("orders", 3)}))
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rnd.IntN(15))*time.Millisecond)
				readRound(t, rnd, ctx, a, note)
				cancel()
			}
			cancel()
			steering.Wait()
			delete(done, "")
			for v, times := range done {
				require.Equal(t, 1, times, "seed %d: value %s", seed, v)
			}
			require.NoError(t, a.Commit(within(t, time.Minute)))
			require.NoError(t, a.Close(context.Background()))
			sum := int64(0)
			for _, o := range fl.stored() {
				sum += o
			}
			require.EqualValues(t, n, sum, "seed %d", seed)
		})
	}
}
