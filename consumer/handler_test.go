package consumer_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"testing"

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
