package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatKafkaAllowsPasses has histories that look odd and are right.
func TestWhatKafkaAllowsPasses(t *testing.T) {
	for _, s := range []story{
		{name: "an ordinary pipeline", drained: true, text: `
			w: send a = 0@0
			w: send b = 0@1
			r: assigned g 0@0
			r: poll 0@0=a 0@1=b
			r: begin T1
			r: processed T1 g 0@0
			r: processed T1 g 0@1
			r: commit-offsets T1 g 0@2 = ok
			r: commit T1 = ok
			q: offsets g 0@2
			r: revoked g 0
			q: assigned g 0@2`},
		{name: "transactions interleave their writes (G0)", drained: true, text: `
			v: begin T1
			w: begin T2
			v: send T1 a = 0@0
			w: send T2 b = 0@1
			v: send T1 c = 0@2
			w: send T2 d = 0@3
			w: commit T2 = ok
			v: commit T1 = ok
			r: poll 0@0=a 0@1=b 0@2=c 0@3=d`},
		{name: "offsets have gaps: markers and what was aborted", drained: true, text: `
			w: begin T1
			w: send T1 a = 0@0
			w: abort T1 = ok
			w: begin T2
			w: send T2 a = 0@2
			w: commit T2 = ok
			w: begin T3
			w: send T3 b = 0@4
			w: commit T3 = ok
			r: poll 0@2=a 0@4=b`},
		{name: "an aborted value is tried again", drained: true, text: `
			w: begin T1
			w: send T1 a = 0@0
			w: abort T1 = ok
			w: begin T2
			w: send T2 a = 0@2
			w: commit T2 = ok
			r: poll 0@2=a
			s: dirty-poll 0@0=a 0@2=a`},
		{name: "a poll skips across a rebalance", text: `
			w: send a = 0@0
			w: send b = 0@1
			w: send c = 0@2
			r: assigned g 0@0
			r: poll 0@0=a
			r: revoked g 0
			q: assigned g 0@1
			q: poll 0@1=b
			q: revoked g 0
			r: assigned g 0@2
			r: poll 0@2=c`},
		{name: "a poll goes back across a rebalance", text: `
			w: send a = 0@0
			r: assigned g 0@0
			r: poll 0@0=a
			r: lost g 0
			r: assigned g 0@0
			r: poll 0@0=a`},
		{name: "a consumer seeks", text: `
			w: send a = 0@0
			w: send b = 0@1
			r: poll 0@0=a 0@1=b
			r: moved 0@0
			r: poll 0@0=a 0@1=b`},
		{name: "a transaction with an open outcome was committed", drained: true, text: `
			w: begin T1
			w: send T1 a = 0@0
			w: send T1 b = 1@0
			w: commit T1 = info
			r: poll 0@0=a
			r: poll 1@0=b`},
		{name: "a transaction with an open outcome was not", drained: true, text: `
			w: begin T1
			w: send T1 a = 0@0
			w: send T1 b = 1@0
			w: commit T1 = info
			v: send c = 0@2
			r: poll 0@2=c`},
		{name: "asked again, and told", drained: true, text: `
			w: begin T1
			w: send T1 a = 0@0
			w: commit T1 = info
			w: commit T1 = ok
			r: poll 0@0=a`},
		{name: "a send with an open outcome was written", drained: true, text: `
			w: send a = info
			w: send b = 0@1
			r: poll 0@0=a 0@1=b`},
		{name: "a send with an open outcome was not", drained: true, text: `
			w: send a = info
			w: send b = 0@0
			r: poll 0@0=b`},
		{name: "an open and an aborted transaction with the same value", drained: true, text: `
			w: begin T1
			w: send T1 a = info
			w: abort T1 = ok
			w: begin T2
			w: send T2 a = info
			w: commit T2 = info
			r: poll 0@2=a`},
		{name: "a read while the commit is under way", drained: true, text: `
			w: begin T1
			w: send T1 a = 0@0
			w: #1 commit T1
			r: poll 0@0=a
			#1 = ok`},
		{name: "a reader that begins late", text: `
			w: send a = 0@0
			w: send b = 0@1
			r: poll 0@1=b`},
		{name: "a reader that has not got there", text: `
			w: send a = 0@0
			w: send b = 0@1
			r: poll 0@0=a`},
		{name: "read_uncommitted sees what was aborted and what is open", text: `
			w: begin T1
			w: send T1 a = 0@0
			r: dirty-poll 0@0=a
			w: abort T1 = ok`},
		{name: "nobody who writes is in the log", text: `
			r: poll 0@0=a 0@1=b`},
		{name: "sends at the same time end in any order", text: `
			v: #1 send a
			w: send b = 0@0
			#1 = 0@1`},
		{name: "partitions have no order between them", text: `
			w: send a = 0@7
			w: send b = 1@3
			w: send c = 0@8`},
		{name: "offsets are aborted and committed again", text: `
			w: begin T1
			w: commit-offsets T1 g 0@5 = ok
			w: abort T1 = ok
			w: begin T2
			w: commit-offsets T2 g 0@5 = ok
			w: commit T2 = ok
			v: offsets g 0@5`},
		{name: "an operator puts offsets back", text: `
			w: commit-offsets g 0@5 = ok
			o: reset-offsets g 0@0 = ok
			v: offsets g 0@0`},
		{name: "records are processed again after a reset", text: `
			w: send a = 0@0
			r: begin T1
			r: processed T1 g 0@0
			r: commit T1 = ok
			o: reset-offsets g 0@0 = ok
			r: begin T2
			r: processed T2 g 0@0
			r: commit T2 = ok`},
		{name: "offsets were not committed where nobody knows", text: `
			w: begin T1
			w: commit-offsets T1 g 0@5 = ok
			w: commit T1 = info
			v: offsets g 0@none`},
		{name: "at least once: processed again outside of transactions", text: `
			w: send a = 0@0
			r: assigned g 0@0
			r: processed g 0@0
			r: lost g 0
			q: assigned g 0@0
			q: processed g 0@0
			q: commit-offsets g 0@1 = ok`},
		{name: "an aborted batch is done again", text: `
			w: send a = 0@0
			r: assigned g 0@0
			r: begin T1
			r: processed T1 g 0@0
			r: commit-offsets T1 g 0@1 = ok
			r: abort T1 = ok
			r: moved 0@0
			r: begin T2
			r: processed T2 g 0@0
			r: commit-offsets T2 g 0@1 = ok
			r: commit T2 = ok`},
		{name: "a member that was thrown out heard of it late", text: `
			r: assigned g 0@0
			q: assigned g 0@0
			r: lost g 0`},
		{name: "a member died with its partition", text: `
			r: assigned g 0@0
			r: crashed
			q: assigned g 0@0
			q: revoked g 0`},
		{name: "a member that was thrown out thinks that it gives up in good order", text: `
			r: assigned g 0@0
			q: assigned g 0@0
			r: revoked g 0`},
		{name: "a member that was thrown out cannot commit", text: `
			r: assigned g 0@0
			q: assigned g 0@0
			r: commit-offsets g 0@1 = fail`},
		{name: "a commit that was under way when the partition went to another", text: `
			r: assigned g 0@0
			r: #1 commit-offsets g 0@1
			r: revoked g 0
			q: assigned g 0@0
			#1 = ok`},
		{name: "a tool commits", text: `
			r: assigned g 0@0
			o: commit-offsets g 0@1 = ok
			r: processed g 0@0`},
		{name: "a chain of transactions is no circle", text: `
			u: begin T1
			u: send T1 a = 0@0
			u: commit T1 = ok
			v: begin T2
			v: processed T2 g 0@0
			v: send T2 b = 0@2
			v: commit T2 = ok
			w: begin T3
			w: processed T3 h 0@0
			w: processed T3 h 0@2
			w: commit T3 = ok`},
	} {
		t.Run(s.name, func(t *testing.T) { require.NoError(t, s.check(t).Err()) })
	}
}
