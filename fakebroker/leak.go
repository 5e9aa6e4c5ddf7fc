package fakebroker

import (
	"bytes"
	"runtime"
	"strings"
	"time"
)

// leakPatience is how long CheckLeaks waits for goroutines that have done their last work.
const leakPatience = time.Second

// CheckLeaks fails a test at whose end there are goroutines that were not there when it was called: producers, consumers
// and clients that nobody closed, or that do not end when closed. Call it first, before Start, so that its look comes
// last. It looks at the whole process, so the test must not be parallel to others; inside testing/synctest it is not
// needed, for there a leak ends the test by itself.
func CheckLeaks(tb TB) {
	tb.Helper()
	before := goroutines()
	tb.Cleanup(func() {
		tb.Helper()
		var left []string
		for deadline := time.Now().Add(leakPatience); ; time.Sleep(time.Millisecond) {
			left = left[:0]
			for id, stack := range goroutines() {
				if _, ok := before[id]; !ok {
					left = append(left, stack)
				}
			}
			if len(left) == 0 {
				return
			}
			if time.Now().After(deadline) {
				break
			}
		}
		tb.Fatalf("fakebroker.CheckLeaks: %d goroutines are left:\n\n%s", len(left), strings.Join(left, "\n\n"))
	})
}

// goroutines are the stacks of all goroutines but the caller's, by their ids, which are never used again.
func goroutines() map[string]string {
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	all := make(map[string]string)
	for i, stack := range bytes.Split(buf, []byte("\n\n")) {
		if i == 0 { // the caller comes first
			continue
		}
		head, _, _ := bytes.Cut(stack, []byte(" [")) // "goroutine 17 [select]:"
		all[string(head)] = string(stack)
	}
	return all
}
