package fakebroker

import (
	"bytes"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
)

// When CheckLeaks takes a goroutine for forgotten. Time alone would not do: on a busy machine a second may pass without a
// step of this process, and then what is only about to end would be reported.
const (
	leakPatience = time.Second // nothing has moved for so long,
	leakLooks    = 100         // and over so many looks;
	leakLimit    = time.Minute // or it still moves after so long
)

// CheckLeaks fails a test at whose end there are goroutines that were not there when it was called: producers, consumers
// and clients that nobody closed, or that do not end when closed. Call it first, before Start, so that its look comes
// last: clusters that Start has started are closed by then.
//
// It waits for what is about to end: a goroutine counts as left when, for a second and a hundred looks, neither it nor
// anything that it may wait for has moved; one that works on and on counts after a minute. It sees goroutines, not timers
// that have not fired, and looks at the whole process, so the test must not be parallel to others. Inside testing/synctest
// it is not needed, for there a leak ends the test by itself.
func CheckLeaks(tb TB) {
	tb.Helper()
	before := make(map[string]bool)
	for _, g := range goroutines() {
		before[g.id] = true
	}
	tb.Cleanup(func() {
		tb.Helper()
		judge := leakJudge{began: time.Now()}
		for ; ; time.Sleep(time.Millisecond) {
			left, busy := leftovers(goroutines(), before)
			if len(left) == 0 {
				return
			}
			if judge.forgotten(time.Now(), left, busy) {
				tb.Fatalf("%s", leakReport(left))
				return
			}
		}
	})
}

// leakJudge decides, from look to look, whether what is left has been forgotten.
type leakJudge struct {
	began, since time.Time // of the first look, and of the last at which something had moved
	all, looks   int       // looks since then
	last         map[string]string
}

// forgotten takes a look: the goroutines that are left with what they are at, and whether anything is at work.
func (j *leakJudge) forgotten(now time.Time, left map[string]string, busy bool) bool {
	if busy || !maps.Equal(left, j.last) {
		j.last, j.since, j.looks = left, now, 0
	}
	j.all++
	j.looks++
	if now.Sub(j.began) >= leakLimit && j.all >= leakLooks {
		return true
	}
	return now.Sub(j.since) >= leakPatience && j.looks >= leakLooks
}

// atWork are the states of goroutines that wait for nothing but a processor.
var atWork = []string{"running", "runnable", "preempted"}

// leftovers are the goroutines that were not there before, by their ids, and whether one of them, or one that was there,
// has something to do: then the others may be waiting for it.
func leftovers(now []goroutine, before map[string]bool) (left map[string]string, busy bool) {
	left = make(map[string]string)
	for _, g := range now {
		busy = busy || slices.Contains(atWork, g.state)
		if before[g.id] || strings.Contains(g.stack, "os/signal.loop(") { // the runtime's, from the first Notify on
			continue
		}
		left[g.id] = g.stack
		busy = busy || g.state == "syscall"
	}
	return left, busy
}

func leakReport(left map[string]string) string {
	stacks := slices.Sorted(maps.Values(left))
	head := "1 goroutine is left"
	if n := len(left); n != 1 {
		head = fmt.Sprintf("%d goroutines are left", n)
	}
	hint := ""
	if strings.Contains(strings.Join(stacks, ""), "fakebroker/internal/server.") {
		hint = "\nA broker is among them: call CheckLeaks before Start, and Close what New has started."
	}
	return fmt.Sprintf("fakebroker.CheckLeaks: %s that the test has started:%s\n\n%s", head, hint, strings.Join(stacks, "\n\n"))
}

// A goroutine at one moment.
type goroutine struct {
	id    string // "goroutine 17": never used again
	state string // as runtime.Stack has it: "select", "runnable"
	stack string
}

// goroutines are all goroutines but the caller's.
func goroutines() []goroutine {
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	var all []goroutine
	for i, stack := range bytes.Split(buf, []byte("\n\n")) {
		if i == 0 { // the caller comes first
			continue
		}
		// goroutine 17 [select, 2 minutes, locked to thread]:
		head, frames, _ := strings.Cut(string(stack), "\n")
		id, more, _ := strings.Cut(head, " [")
		state := strings.TrimSpace(more[:max(strings.IndexAny(more, ",(]"), 0)])
		// How long it has been waiting is left out: that is no move.
		g := goroutine{id: id, state: state, stack: fmt.Sprintf("%s [%s]:\n%s", id, state, frames)}
		all = append(all, g)
	}
	return all
}
