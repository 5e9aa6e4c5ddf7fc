package fakebroker

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A look of a story: how long after the one before, how often, at what.
type look struct {
	after time.Duration
	times int
	left  string
	busy  bool
}

func TestWhatIsLeftIsForgottenOnceNothingMoves(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		looks []look
		want  int // the look that says so; 0: none
	}{
		{"it waits, and nothing moves", []look{{10 * ms, 300, "a", false}}, 101},
		{"quick looks go on for a second", []look{{ms, 3000, "a", false}}, 1001},
		{"the machine was elsewhere: hours are no looks", []look{{time.Hour, 99, "a", false}}, 0},
		{"it moves now and then", []look{{10 * ms, 90, "a", false}, {10 * ms, 90, "b", false}, {10 * ms, 90, "a", false}, {10 * ms, 200, "ab", false}}, 371},
		{"what it waits for is at work", []look{{10 * ms, 5000, "a", true}, {10 * ms, 50, "a", false}}, 0},
		{"it works on and on", []look{{10 * ms, 7000, "a", true}}, 6001},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.Unix(0, 0)
			judge, n := leakJudge{began: now}, 0
			for _, l := range c.looks {
				for range l.times {
					n++
					if n > 1 {
						now = now.Add(l.after)
					}
					if judge.forgotten(now, map[string]string{"goroutine 1": l.left}, l.busy) {
						require.Equal(t, c.want, n)
						return
					}
				}
			}
			require.Zero(t, c.want, "it was never said")
		})
	}
}

func TestLeftoversAreNewGoroutinesAndWhetherAnybodyWorks(t *testing.T) {
	old := map[string]bool{"goroutine 1": true}
	for _, c := range []struct {
		name string
		all  []goroutine
		left int
		busy bool
	}{
		{"nobody new", []goroutine{{"goroutine 1", "select", ""}}, 0, false},
		{"a new one waits", []goroutine{{"goroutine 1", "select", ""}, {"goroutine 2", "IO wait", ""}}, 1, false},
		{"a new one works", []goroutine{{"goroutine 2", "runnable", ""}}, 1, true},
		{"a new one is with the kernel", []goroutine{{"goroutine 2", "syscall", ""}}, 1, true},
		{"it may wait for an old one", []goroutine{{"goroutine 1", "running", ""}, {"goroutine 2", "select", ""}}, 1, true},
		{"an old one is with the kernel, as os/signal always is", []goroutine{{"goroutine 1", "syscall", ""}, {"goroutine 2", "select", ""}}, 1, false},
		{"signals are the runtime's", []goroutine{{"goroutine 2", "syscall", "os/signal.signal_recv()\nos/signal.loop()"}}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			left, busy := leftovers(c.all, old)
			require.Len(t, left, c.left)
			require.Equal(t, c.busy, busy)
		})
	}
}

func TestGoroutinesAreReadFromTheirStacks(t *testing.T) {
	stop, there := make(chan struct{}), make(chan struct{})
	defer close(stop)
	go func() { close(there); <-stop }()
	<-there
	require.Eventually(t, func() bool {
		for _, g := range goroutines() {
			if g.state == "chan receive" && strings.Contains(g.stack, "TestGoroutinesAreReadFromTheirStacks") {
				return strings.HasPrefix(g.stack, g.id+" [chan receive]:\n")
			}
		}
		return false
	}, time.Minute, time.Millisecond)
}
