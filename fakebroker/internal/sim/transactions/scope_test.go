package transactions

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
)

var wide = flag.Bool("wide", false, "TestTransactionsInAllCourses searches the wide scopes too, which takes minutes")

// scopes of transaction.version 2 with 1 and 2 transactions: whatever happens in them, nothing goes wrong.
var scopes = []scope{
	{name: "late requests", level: 2, txns: []int8{2}, late: 1},
	{name: "lost answers and an election", level: 2, txns: []int8{2}, lost: 1, reloads: 1},
	{name: "timeout", level: 2, txns: []int8{1}, late: 1, timeouts: 1},
	{name: "markers written twice", level: 2, txns: []int8{2}, reloads: 1, markers: 1},
	{name: "two instances", level: 2, txns: []int8{1, 1}},
	{name: "last epochs", level: 2, txns: []int8{2}, late: 1, first: 32764},
	{name: "version 1: lost answers and an election", level: 1, txns: []int8{2}, lost: 1, reloads: 1},
	{name: "version 1: timeout", level: 1, txns: []int8{1}, timeouts: 1},
	{name: "version 1: late requests but for ends", level: 1, txns: []int8{2}, late: 1, noEnds: true},
}

// wideScopes are the same with more of everything, two things at a time.
var wideScopes = []scope{
	{name: "late twice", level: 2, txns: []int8{2}, late: 2},
	{name: "late and lost", level: 2, txns: []int8{2}, late: 1, lost: 1},
	{name: "late and an election", level: 2, txns: []int8{2}, late: 1, reloads: 1},
	{name: "late and a timeout", level: 2, txns: []int8{2}, late: 1, timeouts: 1},
	{name: "lost and a timeout", level: 2, txns: []int8{2}, lost: 1, timeouts: 1},
	{name: "an election and a timeout", level: 2, txns: []int8{2}, reloads: 1, timeouts: 1},
	{name: "late and markers twice", level: 2, txns: []int8{2}, late: 1, markers: 1},
	{name: "two instances, late", level: 2, txns: []int8{1, 1}, late: 1},
	{name: "two instances, timeout", level: 2, txns: []int8{1, 1}, timeouts: 1},
	{name: "one transaction, late, lost and an election", level: 2, txns: []int8{1}, late: 1, lost: 1, reloads: 1},
	{name: "one transaction, late, a timeout and markers twice", level: 2, txns: []int8{1}, late: 1, timeouts: 1, markers: 1},
	{name: "last epochs, late and an election", level: 2, txns: []int8{2}, late: 1, reloads: 1, first: 32764},
	{name: "last epochs, late and a timeout", level: 2, txns: []int8{2}, late: 1, timeouts: 1, first: 32765},
	{name: "version 1, late but for ends, and a timeout", level: 1, txns: []int8{2}, late: 1, timeouts: 1, noEnds: true},
	{name: "version 1, late but for ends, and an election", level: 1, txns: []int8{2}, late: 1, reloads: 1, noEnds: true},
	{name: "version 1, two instances", level: 1, txns: []int8{1, 1}, late: 1, noEnds: true},
}

// found is where a search came to.
type searched struct {
	states, quiet int
	err           error
	story         *step
}

// search goes through everything that can happen in a scope, the shortest courses first, until a state is wrong.
func search(s *scope, limit int) (out searched) {
	first := begin(s)
	queue := []*state{first}
	known := map[uint64]struct{}{first.key(): {}}
	for len(queue) > 0 {
		st := queue[0]
		queue[0], queue = nil, queue[1:]
		out.states++
		if st.quiet() {
			out.quiet++
			if err := st.settle(); err != nil {
				out.err, out.story = err, st.step
				return out
			}
		}
		for _, next := range st.next() {
			k := next.key()
			if _, again := known[k]; again {
				continue
			}
			known[k] = struct{}{}
			if err := next.check(st); err != nil {
				out.err, out.story = err, next.step
				return out
			}
			queue = append(queue, next)
		}
		if limit > 0 && out.states >= limit {
			out.err = fmt.Errorf("not closed after %d states, %d are waiting", limit, len(queue))
			return out
		}
	}
	return out
}

// TestTransactionsInAllCourses searches small scopes to their end: the coordinator's machine and two logs, with transactions of
// which requests come late or twice, answers are lost, the coordinator changes, markers are written twice, time runs out.
func TestTransactionsInAllCourses(t *testing.T) {
	list := scopes
	if *wide {
		list = append(list, wideScopes...)
	}
	total := 0
	for i := range list {
		s := &list[i]
		t.Run(s.name, func(t *testing.T) {
			start := time.Now()
			out := search(s, 0)
			total += out.states
			t.Logf("%d states, %d of them final, %s", out.states, out.quiet, time.Since(start).Round(time.Millisecond))
			require.NoError(t, out.err, "%s", out.story)
		})
	}
	t.Logf("%d states", total)
}

// TestOldTransactionsAreEndedByALateEnd is the hole that KIP-890 closes, found by the same search: with transaction.version 1 an
// EndTxn that comes late ends the transaction after its own.
func TestOldTransactionsAreEndedByALateEnd(t *testing.T) {
	out := search(&scope{level: 1, txns: []int8{2}, late: 1}, 0)
	require.ErrorContains(t, out.err, "E6")
	t.Logf("after %d states: %v\n%s", out.states, out.err, out.story)
}

// mistakes are those of package bug that scopes find; the others need offsets, several segments or a crash to show.
var mistakes = map[string][]bug.Bug{
	"late requests": {bug.StableOffsetTooFar, bug.StableOffsetIgnored, bug.AbortedListEmpty, bug.AbortedListCutShort, bug.AbortedListFirstTooHigh,
		bug.MarkerAsData, bug.DuplicateAppended, bug.OldEpochAccepted, bug.InitLeavesOpen, bug.EndWithoutBump, bug.EndEpochUnchecked,
		bug.TimeoutWithoutBump, bug.CommitAfterAbort},
	"lost answers and an election":            {bug.PartitionsNotPersisted, bug.AbortOnLoad, bug.PrepareForgottenOnLoad},
	"two instances":                           {bug.InitWithoutBump},
	"version 1: lost answers and an election": {bug.PrepareNotPersisted},
}

// TestScopesFindMistakes has the broker make one mistake after the other.
func TestScopesFindMistakes(t *testing.T) {
	for _, s := range scopes {
		for _, b := range mistakes[s.name] {
			s.bugs = bug.Of(b)
			out := search(&s, 0)
			require.Error(t, out.err, "%s in scope %q", b, s.name)
			t.Logf("%s: after %d states %v", b, out.states, out.err)
		}
	}
}
