package fakebroker_test

import (
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

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
	require.Contains(t, leaky.failed, "1 goroutine is left")
	require.Contains(t, leaky.failed, "forgotten")
	require.NotContains(t, leaky.failed, "A broker is among them")
	close(stop)

	early := &recorder{TB: t}
	var started fakebroker.TB = &recorder{TB: t} // whose cleanups come later
	fakebroker.CheckLeaks(early)
	fakebroker.Start(started)
	early.end()
	require.Contains(t, early.failed, "call CheckLeaks before Start")
	started.(*recorder).end()
}

// What is about to end is waited for, however long the machine takes for it: here a second goroutine is at work, and the
// first waits for it, longer than a leak may look the same.
func TestCheckLeaksWaitsForWhatIsAboutToEnd(t *testing.T) {
	r := &recorder{TB: t}
	fakebroker.CheckLeaks(r)
	done := make(chan struct{})
	go func() {
		for began := time.Now(); time.Since(began) < 1200*time.Millisecond; {
			runtime.Gosched()
		}
		close(done)
	}()
	go func() { <-done }()
	r.end()
	require.Empty(t, r.failed)
	<-done
}

func forgotten(stop chan struct{}) { <-stop }
