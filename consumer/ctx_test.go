package consumer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
)

// TestContextThatHasEndedStartsNothing: every call returns the cause, and no broker hears anything.
func TestContextThatHasEndedStartsNothing(t *testing.T) {
	parts := []consumer.TopicPartition{tp("orders", 0)}
	handle := func(context.Context, consumer.Record) error { panic("called") }
	calls := map[string]func(context.Context, *consumer.Consumer) error{
		"Poll": func(ctx context.Context, c *consumer.Consumer) error { _, err := c.Poll(ctx, 1); return err },
		"Records": func(ctx context.Context, c *consumer.Consumer) (err error) {
			for _, err = range c.Records(ctx) {
			}
			return err
		},
		"Batches": func(ctx context.Context, c *consumer.Consumer) (err error) {
			for _, err = range c.Batches(ctx) {
			}
			return err
		},
		"Typed.Records": func(ctx context.Context, c *consumer.Consumer) error {
			typed, err := consumer.NewTyped(c, consumer.String, consumer.String)
			require.NoError(t, err)
			for _, err = range typed.Records(ctx) {
			}
			return err
		},
		"Run": func(ctx context.Context, c *consumer.Consumer) error {
			return c.Run(ctx, handle, consumer.DeadLetter("dead"))
		},
		"Serve": func(ctx context.Context, c *consumer.Consumer) error {
			return c.Serve(ctx, func(context.Context, *consumer.Claim) error { panic("called") })
		},
		"Commit": func(ctx context.Context, c *consumer.Consumer) error { return c.Commit(ctx) },
		"CommitOffsets": func(ctx context.Context, c *consumer.Consumer) error {
			return c.CommitOffsets(ctx, map[consumer.TopicPartition]consumer.Offset{parts[0]: {}})
		},
		"CommitRecords": func(ctx context.Context, c *consumer.Consumer) error {
			return c.CommitRecords(ctx, consumer.Record{Topic: "orders"})
		},
		"Committed": func(ctx context.Context, c *consumer.Consumer) error {
			_, err := c.Committed(ctx, parts...)
			return err
		},
		"BeginningOffsets": func(ctx context.Context, c *consumer.Consumer) error {
			_, err := c.BeginningOffsets(ctx, parts...)
			return err
		},
		"EndOffsets": func(ctx context.Context, c *consumer.Consumer) error {
			_, err := c.EndOffsets(ctx, parts...)
			return err
		},
		"OffsetsForTimes": func(ctx context.Context, c *consumer.Consumer) error {
			_, err := c.OffsetsForTimes(ctx, map[consumer.TopicPartition]time.Time{parts[0]: time.Now()})
			return err
		},
		"Lag":   func(ctx context.Context, c *consumer.Consumer) error { _, err := c.Lag(ctx); return err },
		"Close": func(ctx context.Context, c *consumer.Consumer) error { return c.Close(ctx) },
		"Leave": func(ctx context.Context, c *consumer.Consumer) error { return c.Leave(ctx) },
	}
	why := errors.New("nobody wants it any more")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	for name, call := range calls {
		for _, role := range []string{"member", "alone"} {
			t.Run(name+" "+role, func(t *testing.T) {
				onBroker(t, func(t *testing.T, k *fakebroker.Cluster, cl *client.Client) {
					opts := []consumer.Option{consumer.Group("g"), consumer.Subscribe("orders")}
					if role == "alone" {
						opts = nil
					}
					c, err := consumer.New(cl, opts...)
					require.NoError(t, err)
					require.ErrorIs(t, call(ctx, c), why)
					time.Sleep(time.Minute)
					require.Zero(t, k.Connections())
					require.EqualValues(t, -1, c.Generation().ID)
					require.NoError(t, c.Close(context.Background()))
				}, fakebroker.Topic("orders", 1))
			})
		}
	}
}

// What asks for more, or commits, says that what was handed out is done, even if its ctx has ended: a loop that ends in this
// way repeats nothing.
func TestContextThatHasEndedLeavesDoneWhatIsDone(t *testing.T) {
	for name, call := range map[string]func(context.Context, *consumer.Consumer) error{
		"Poll":   func(ctx context.Context, c *consumer.Consumer) error { _, err := c.Poll(ctx, 1); return err },
		"Commit": func(ctx context.Context, c *consumer.Consumer) error { return c.Commit(ctx) },
	} {
		withFleet(t, 1, func(t *testing.T, fl *fleet) {
			write(t, fl.cl, "orders", 0, 10)
			c := fl.member(consumer.AutoCommit(time.Hour))
			require.Equal(t, []int64{0, 1, 2}, fl.poll(c, 3))
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			require.ErrorIs(t, call(ctx, c), context.Canceled, name)
			require.NoError(t, c.Close(context.Background()))
			require.Equal(t, map[int32]int64{0: 3}, fl.committed(0), name)
		})
	}
}

// The same for what belongs to a consumer that reads.
func TestContextThatHasEndedInsideHandlersAndTransactions(t *testing.T) {
	why := errors.New("nobody wants it any more")
	over, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 10)
		c := fl.member(consumer.AutoCommit(time.Hour))
		ctx, stop := context.WithCancel(context.Background())
		require.ErrorIs(t, c.Serve(ctx, func(ctx context.Context, claim *consumer.Claim) error {
			for range claim.Records(over) {
				t.Error("a record")
			}
			for r, err := range claim.Records(ctx) {
				require.NoError(t, err)
				if r.Offset == 4 {
					require.ErrorIs(t, claim.Commit(over), why)
					stop()
				}
			}
			return nil
		}), context.Canceled)
		require.NoError(t, c.Close(context.Background()))
		require.Equal(t, map[int32]int64{0: 5}, fl.committed(0))
	})
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 10)
		c, in := fl.intake()
		require.Equal(t, []int64{0, 1, 2}, fl.poll(c, 3))
		require.ErrorIs(t, in.Rewind(over), why)
		require.True(t, in.Pending(), "all is in hand as before")
		reading, handling, stop := in.Watch(over)
		require.ErrorIs(t, context.Cause(reading), why)
		require.ErrorIs(t, context.Cause(handling), why)
		stop()
		require.NoError(t, in.Rewind(within(t, time.Minute)))
		require.Equal(t, []int64{0, 1, 2}, fl.poll(c, 3))
		in.Release()
	})
}
