package consumer_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/consumer"
)

// A handler that ends its goroutine, as FailNow of a test does, is a failed handler, not one that works for ever.
func TestHandlerThatEndsItsGoroutineHasFailed(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 20)
		a := fl.member()
		err := a.Run(context.Background(), func(_ context.Context, r consumer.Record) error {
			if r.Offset == 3 {
				runtime.Goexit()
			}
			return nil
		}, consumer.Concurrency(1))
		var failed *consumer.RecordError
		require.ErrorAs(t, err, &failed)
		require.EqualValues(t, 3, failed.Record.Offset)
		require.ErrorContains(t, err, "without returning")
		require.Equal(t, map[int32]int64{0: 3}, fl.committed(0))

		err = a.Serve(context.Background(), func(ctx context.Context, claim *consumer.Claim) error {
			for r := range claim.Records(ctx) {
				if r.Offset == 7 {
					runtime.Goexit()
				}
			}
			return nil
		})
		require.ErrorContains(t, err, "orders-0")
		require.ErrorContains(t, err, "without returning")
		require.Equal(t, map[int32]int64{0: 7}, fl.committed(0))
	})
}

// The panic of a handler ends the process with what it says, and with nothing else.
func TestPanicOfAHandlerIsWhatTheProcessEndsWith(t *testing.T) {
	const asked = "OTTLA_PANICKING_HANDLER"
	for _, how := range []string{"run", "serve"} {
		if os.Getenv(asked) == how {
			withFleet(t, 1, func(t *testing.T, fl *fleet) {
				write(t, fl.cl, "orders", 0, 1)
				if how == "run" {
					fl.member().Run(context.Background(), func(context.Context, consumer.Record) error { panic("of the handler") })
				}
				fl.member().Serve(context.Background(), func(context.Context, *consumer.Claim) error { panic("of the handler") })
			})
		}
	}
	if os.Getenv(asked) != "" {
		return
	}
	for _, how := range []string{"run", "serve"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestPanicOfAHandlerIsWhatTheProcessEndsWith$")
		cmd.Env = append(os.Environ(), asked+"="+how)
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), "panic: of the handler", how)
		require.NotContains(t, string(out), "fatal error", how)
	}
}

// Callbacks that end their goroutine take nothing of the consumer with them: it goes on, and Close does not hang.
func TestCallbacksThatEndTheirGoroutineHarmNothing(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, fl *fleet) {
		write(t, fl.cl, "orders", 0, 20)
		var called sync.Map
		gone := func(what string) { called.Store(what, true); runtime.Goexit() }
		told := func(what string) func(context.Context, []consumer.TopicPartition) {
			return func(context.Context, []consumer.TopicPartition) { gone(what) }
		}
		a := fl.member(consumer.OnAssigned(told("assigned")), consumer.OnRevoked(told("revoked")), consumer.OnEvent(func(consumer.Event) { gone("event") }),
			consumer.OnLost(func(context.Context, []consumer.TopicPartition, error) { gone("lost") }),
			consumer.OnStall(func(consumer.Stall) { gone("stall") }), consumer.MaxPollInterval(time.Minute, consumer.Warn))
		require.Equal(t, []int64{0, 1, 2}, fl.poll(a, 3))
		a.CommitAsync(func(error) { gone("commit") })
		time.Sleep(2 * time.Minute)
		require.NoError(t, fl.k.FenceMember(within(t, time.Minute), "g", a.Generation().MemberID))
		time.Sleep(time.Minute)
		require.Equal(t, []int64{3, 4}, fl.poll(a, 2))
		require.Equal(t, []int64{5}, fl.poll(a, 1))
		require.NoError(t, a.Close(context.Background()))
		require.Equal(t, map[int32]int64{0: 5}, fl.committed(0))
		for _, what := range []string{"assigned", "revoked", "event", "lost", "stall", "commit"} {
			_, ok := called.Load(what)
			require.True(t, ok, what)
		}
	})
}
