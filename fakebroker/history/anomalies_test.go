package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnomaliesAreFound has for each anomaly the smallest history that shows it.
func TestAnomaliesAreFound(t *testing.T) {
	for _, s := range []story{
		{name: "an acknowledged record is passed over", want: []Finding{LostWrite}, text: `
			w: send a = 0@0
			w: send b = 0@1
			w: send c = 0@2
			r: poll 0@0=a
			r: moved 0@2
			r: poll 0@2=c`},
		{name: "an acknowledged record is skipped by a reader", want: []Finding{LostWrite, IntPollSkip}, text: `
			w: send a = 0@0
			w: send b = 0@1
			w: send c = 0@2
			r: poll 0@0=a 0@2=c`},
		{name: "the end is missing", drained: true, want: []Finding{Unseen}, text: `
			w: send a = 0@0
			w: send b = 0@1
			r: poll 0@0=a`},
		{name: "the beginning is missing", drained: true, want: []Finding{LostWrite}, text: `
			w: send a = 0@0
			w: send b = 0@1
			r: poll 0@1=b`},
		{name: "the beginning is missing, for one who began there", want: []Finding{LostWrite}, text: `
			w: send a = 0@0
			w: send b = 0@1
			r: assigned g 0@0
			r: poll 0@1=b`},
		{name: "an acknowledgement without an offset", drained: true, want: []Finding{Unseen}, text: `
			w: send a = 0@-1
			w: send b = 0@0
			r: poll 0@0=b`},
		{name: "a retry is written again", want: []Finding{Duplicate}, text: `
			w: send a = 0@0
			r: poll 0@0=a 0@1=a`},
		{name: "a retry is written again, and nobody reads committed", want: []Finding{Duplicate}, text: `
			w: send a = 0@0
			r: dirty-poll 0@0=a 0@1=a`},
		{name: "a retry goes to another partition", want: []Finding{Duplicate}, text: `
			w: send a = info
			r: poll 0@0=a
			r: poll 1@0=a`},
		{name: "two transactions write the same", want: []Finding{Duplicate}, text: `
			w: begin T1
			w: send T1 a = 0@0
			w: commit T1 = info
			w: begin T2
			w: send T2 a = 0@2
			w: commit T2 = ok
			r: poll 0@0=a 0@2=a`},
		{name: "an offset changes its value", want: []Finding{InconsistentOffset}, text: `
			w: send a = 0@0
			w: send b = 0@1
			r: poll 0@0=a 0@1=c`},
		{name: "an acknowledgement names another's offset", want: []Finding{InconsistentOffset, NonmonotonicSend}, text: `
			w: send a = 0@0
			w: send b = 0@0
			r: poll 0@0=a`},
		{name: "a marker is handed out", want: []Finding{Phantom}, text: `
			w: begin T1
			w: send T1 a = 0@0
			w: commit T1 = ok
			r: poll 0@0=a 0@1=marker`},
		{name: "an aborted record is read", want: []Finding{AbortedRead}, text: `
			w: begin T1
			w: send T1 a = 0@0
			w: abort T1 = ok
			r: poll 0@0=a`},
		{name: "a record is read whose transaction could not commit", want: []Finding{AbortedRead}, text: `
			w: begin T1
			w: send T1 a = 0@0
			w: commit T1 = fail
			r: poll 0@0=a`},
		{name: "a record is read whose process died before the commit", want: []Finding{AbortedRead}, text: `
			w: begin T1
			w: send T1 a = info
			w: crashed
			r: poll 0@0=a`},
		{name: "a refused record is read", want: []Finding{AbortedRead}, text: `
			w: send a = fail
			r: dirty-poll 0@0=a`},
		{name: "a record is read before the commit", want: []Finding{DirtyRead}, text: `
			w: begin T1
			w: send T1 a = 0@0
			r: poll 0@0=a
			w: commit T1 = ok`},
		{name: "a partition has no commit marker", want: []Finding{Torn}, drained: true, text: `
			w: begin T1
			w: send T1 a = 0@0
			w: send T1 b = 1@0
			w: commit T1 = ok
			r: poll 0@0=a`},
		{name: "a partition has an abort marker, and nobody knows whether it was a commit", want: []Finding{Torn}, text: `
			w: begin T1
			w: send T1 a = 0@0
			w: send T1 b = 1@0
			w: commit T1 = info
			v: send c = 1@2
			r: assigned g 0@0 1@0
			r: poll 0@0=a
			r: poll 1@2=c`},
		{name: "offsets took effect and records did not", want: []Finding{Torn}, drained: true, text: `
			w: begin T1
			w: send T1 a = 0@0
			w: commit-offsets T1 g 1@5 = ok
			w: commit T1 = info
			v: offsets g 1@5`},
		{name: "records took effect and offsets did not", want: []Finding{OffsetsBack}, text: `
			w: begin T1
			w: send T1 a = 0@0
			w: commit-offsets T1 g 1@5 = ok
			w: commit T1 = ok
			r: poll 0@0=a
			v: offsets g 1@none`},
		{name: "aborted offsets are applied", want: []Finding{AbortedOffsets}, text: `
			w: begin T1
			w: commit-offsets T1 g 0@5 = ok
			w: abort T1 = ok
			v: offsets g 0@5`},
		{name: "offsets are seen before the commit", want: []Finding{AbortedOffsets}, text: `
			w: begin T1
			w: commit-offsets T1 g 0@5 = ok
			v: offsets g 0@5
			w: commit T1 = ok`},
		{name: "a committed offset goes back", want: []Finding{OffsetsBack}, text: `
			w: commit-offsets g 0@5 = ok
			w: commit-offsets g 0@7 = ok
			v: offsets g 0@5`},
		{name: "two transactions read each other", want: []Finding{Circular}, text: `
			w: begin T1
			v: begin T2
			w: send T1 a = 0@0
			v: send T2 b = 1@0
			w: processed T1 g 1@0
			v: processed T2 g 0@0
			w: commit T1 = ok
			v: commit T2 = ok`},
		{name: "three transactions read in a circle", want: []Finding{Circular}, text: `
			u: begin T1
			v: begin T2
			w: begin T3
			u: send T1 a = 0@0
			v: send T2 b = 0@1
			w: send T3 c = 0@2
			u: processed T1 g 0@2
			v: processed T2 g 0@0
			w: processed T3 g 0@1
			u: commit T1 = ok
			v: commit T2 = ok
			w: commit T3 = ok`},
		{name: "a poll leaves out what others see", want: []Finding{IntPollSkip}, text: `
			w: send a = 0@0
			w: send b = 0@1
			w: send c = 0@2
			q: poll 0@0=a 0@1=b 0@2=c
			r: poll 0@0=a 0@2=c`},
		{name: "a record is left out between two polls", want: []Finding{PollSkip}, text: `
			w: send a = 0@0
			w: send b = 0@1
			w: send c = 0@2
			q: poll 0@0=a 0@1=b 0@2=c
			r: poll 0@0=a
			r: poll 0@2=c`},
		{name: "a poll goes back inside", want: []Finding{IntNonmonotonicPoll}, text: `
			w: send a = 0@0
			w: send b = 0@1
			r: poll 0@1=b 0@0=a`},
		{name: "a consumer reads again", want: []Finding{NonmonotonicPoll}, text: `
			w: send a = 0@0
			r: poll 0@0=a
			r: poll 0@0=a`},
		{name: "a retry overtakes", want: []Finding{NonmonotonicSend}, text: `
			w: #1 send a
			w: send b = 0@0
			#1 = 0@1`},
		{name: "a retry overtakes inside a transaction", want: []Finding{IntNonmonotonicSend}, text: `
			w: begin T1
			w: #1 send T1 a
			w: send T1 b = 0@0
			#1 = 0@1
			w: commit T1 = ok`},
		{name: "the later lies before the earlier", want: []Finding{RealTimeOrder}, text: `
			v: send a = 0@5
			w: send b = 0@4`},
		{name: "a commit runs ahead of the work", want: []Finding{BeyondProcessed}, text: `
			w: send a = 0@0
			w: send b = 0@1
			r: assigned g 0@0
			r: poll 0@0=a
			r: commit-offsets g 0@2 = ok`},
		{name: "a commit runs ahead of the work, which follows", want: []Finding{BeyondProcessed}, text: `
			w: send a = 0@0
			r: assigned g 0@0
			r: poll 0@0=a
			r: commit-offsets g 0@1 = ok
			r: processed g 0@0`},
		{name: "an aborted batch is passed over", want: []Finding{BeyondProcessed}, text: `
			w: send a = 0@0
			w: send b = 0@1
			r: assigned g 0@0
			r: poll 0@0=a 0@1=b
			r: begin T1
			r: processed T1 g 0@0
			r: abort T1 = ok
			r: begin T2
			r: processed T2 g 0@1
			r: commit-offsets T2 g 0@2 = ok
			r: commit T2 = ok`},
		{name: "a zombie's work counts too", want: []Finding{ProcessedTwice}, text: `
			w: send a = 0@0
			r: begin T1
			r: processed T1 g 0@0
			q: begin T2
			q: processed T2 g 0@0
			q: commit T2 = ok
			r: commit T1 = ok`},
		{name: "a partition is given away, and its owner can still commit", want: []Finding{TwoOwners}, text: `
			r: assigned g 0@0
			q: assigned g 0@0
			r: commit-offsets g 0@1 = ok`},
		{name: "likewise in a transaction", want: []Finding{TwoOwners}, text: `
			r: assigned g 0@0
			r: begin T1
			q: assigned g 0@0
			r: commit-offsets T1 g 0@1 = ok
			r: abort T1 = ok`},
	} {
		t.Run(s.name, func(t *testing.T) {
			r := s.check(t)
			require.ElementsMatch(t, s.want, r.Findings(), "%s", r)
		})
	}
}
