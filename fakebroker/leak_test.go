package fakebroker_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker"
)

// recorder is a test that can fail without failing the real one.
type recorder struct {
	testing.TB
	cleanups []func()
	failed   string
}

func (r *recorder) Cleanup(f func())                  { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Fatalf(format string, args ...any) { r.failed = fmt.Sprintf(format, args...) }
func (r *recorder) Output() io.Writer                 { return io.Discard }
func (r *recorder) end() {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}

func TestCheckLeaksNamesWhatIsLeft(t *testing.T) {
	clean := &recorder{TB: t}
	fakebroker.CheckLeaks(clean)
	k := fakebroker.Start(clean, fakebroker.Topic("orders", 1))
	require.Zero(t, produce(connect(t, k), "orders", 0, batch(t, "x")).ErrorCode)
	clean.end()
	require.Empty(t, clean.failed)

	leaky := &recorder{TB: t}
	fakebroker.CheckLeaks(leaky)
	stop := make(chan struct{})
	go forgotten(stop)
	leaky.end()
	require.Contains(t, leaky.failed, "1 goroutines are left")
	require.Contains(t, leaky.failed, "forgotten")
	close(stop)
}

func forgotten(stop chan struct{}) { <-stop }
