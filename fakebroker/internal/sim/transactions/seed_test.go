package transactions

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/sim/clockwork"
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
)

var (
	seeds   = flag.Uint64("seeds", 20, "how many seeds of each transaction.version TestTransactions runs")
	oneSeed = flag.Int64("seed", -1, "the only seed that TestTransactions runs; with -v it tells what happens")
	only    = flag.Int("version", -1, "the only transaction.version that TestTransactions runs")
)

// outcome is what a run leaves behind.
type outcome struct {
	trace                              uint64
	steps                              int
	committed, aborted, doubtful, open int
	reach                              map[string]int
	err                                string
}

// scenario is one seed: a minute of faults, then peace.
func scenario(seed uint64, level int16, log func(string, ...any)) (out outcome) {
	w := newWorld(seed, level, log)
	defer func() {
		c := &w.ledger.count
		out = outcome{trace: w.Trace, steps: w.Steps, reach: w.Reach, committed: c.committed, aborted: c.aborted, doubtful: c.doubtful, open: c.open}
		switch r := recover().(type) {
		case nil:
		case clockwork.Failure:
			out.err = r.Text
		default:
			panic(fmt.Sprintf("transaction.version %d seed %d: %v", level, seed, r))
		}
	}()
	w.run(100 * time.Millisecond)
	w.add()
	for range 25 {
		w.misfortune()
		w.run(clockwork.Between(w.fault, 0, 4*time.Second))
		w.scan()
	}
	w.peace()
	w.complete()
	return
}

// peace ends all faults. Whoever is there goes on for a while; then a last session comes, carries a transaction, and all rests.
func (w *world) peace() {
	w.Note("-- peace")
	w.faulty = false
	w.run(15 * time.Second)
	last := w.add()
	w.run(10 * time.Second)
	if last.over || last.s.Serial() == 0 {
		w.Fail("the last session does not get on: %s %v", last.s.State(), last.s.Err())
	}
	for _, n := range w.nodes {
		n.dead = true
	}
	w.run(seedTimeout + 2*seedCheck + 5*time.Second)
}

func view(m *transaction.Machine, w *world) *transaction.View {
	var out coordinator.Result
	m.Handle(w.Now, coordinator.Request{Ticket: 1, Body: transaction.Inspect{ID: seedID}}, &out)
	return out.Replies[0].Response.(*transaction.View)
}

// wanted are places that a run of the default seeds has to reach; one that is not reached tests nothing.
var wanted = []string{
	"packet lost", "asked a broker that does not coordinate", "told the wrong coordinator", "append refused", "uncommitted records cut off",
	"a producer id was needed", "a transaction that takes too long", "batch appended and not acknowledged in time", "duplicate batch recognised",
	"batch refused before verification: INVALID_PRODUCER_EPOCH", "batch refused: OUT_OF_ORDER_SEQUENCE_NUMBER", "commit recalled",
	"marker written and nobody told", "verification refused: CONCURRENT_TRANSACTIONS", "verification refused: INVALID_PRODUCER_EPOCH",
	"verification refused: TRANSACTION_ABORTABLE", "session fenced, by 1", "session fenced, by 2", "told: in doubt", "transaction doomed",
	"request arrived after its sender gave it up: AddOffsetsToTxn", "request arrived after its sender gave it up: AddPartitionsToTxn",
	"request arrived after its sender gave it up: EndTxn", "request arrived after its sender gave it up: InitProducerId",
	"request arrived after its sender gave it up: Produce", "request arrived after its sender gave it up: TxnOffsetCommit",
}

// found are seeds that have found something once.
var found = []struct {
	level int16
	seed  uint64
}{
	{1, 0},  // an acknowledgement out of turn took the next transaction's sequences back
	{1, 2},  // the same
	{1, 13}, // a fence kept the epoch: the fenced producer went on in the next transaction
	{1, 17}, // the same
}

func TestSeedsThatFoundSomething(t *testing.T) {
	for _, x := range found {
		if out := scenario(x.seed, x.level, nil); out.err != "" {
			t.Errorf("transaction.version %d seed %d: %s", x.level, x.seed, out.err)
		}
	}
}

// TestTransactions has sessions bear what a seed has for them.
func TestTransactions(t *testing.T) {
	reach, count, sum := map[string]int{}, 0, outcome{}
	for _, level := range []int16{0, 1, 2} {
		if *only >= 0 && *only != int(level) {
			continue
		}
		first, last := uint64(0), *seeds
		var log func(string, ...any)
		if *oneSeed >= 0 {
			first, last = uint64(*oneSeed), uint64(*oneSeed)+1
			if testing.Verbose() {
				log = t.Logf
			}
		}
		failed := 0
		for seed := first; seed < last && failed < 5; seed++ {
			out := scenario(seed, level, log)
			count++
			sum.steps, sum.committed, sum.aborted, sum.doubtful, sum.open = sum.steps+out.steps, sum.committed+out.committed, sum.aborted+out.aborted, sum.doubtful+out.doubtful, sum.open+out.open
			for place, n := range out.reach {
				reach[place] += n
			}
			if out.err != "" {
				failed++
				t.Errorf("transaction.version %d seed %d: %s\nreplay: go test ./fakebroker/internal/sim/transactions -run TestTransactions$ -version %d -seed %d -v", level, seed, out.err, level, seed)
				continue
			}
			if seed%20 == 0 {
				again := scenario(seed, level, nil)
				require.Equal(t, out.trace, again.trace, "transaction.version %d seed %d takes another course the second time", level, seed)
			}
		}
	}
	t.Logf("%d runs, %d steps; transactions: %d committed, %d aborted, %d in doubt to the end, %d never ended", count, sum.steps, sum.committed, sum.aborted, sum.doubtful, sum.open)
	var lines []string
	for _, place := range slices.Sorted(maps.Keys(reach)) {
		lines = append(lines, fmt.Sprintf("%8d %s", reach[place], place))
	}
	t.Logf("reached:\n%s", strings.Join(lines, "\n"))
	if *oneSeed >= 0 || *only >= 0 || *seeds < 20 {
		return
	}
	for _, place := range wanted {
		if reach[place] == 0 {
			t.Errorf("no seed reached %q", place)
		}
	}
}
