package harness_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
)

var (
	mutantSeeds = flag.Uint64("seeds", 0, "how many seeds TestMutants tries per mutant, from 0 on, and TestTrials runs; 0: as many as it takes, from a seed that has found the mutant")
	trialSeed   = flag.Int64("seed", -1, "the only seed that TestTrials runs, and says everything about")
	trialLevel  = flag.Int("level", 0, "the transaction.version of all trials; 0: drawn by the seed")
	onlyMutant  = flag.String("mutant", "", "the only mutants that TestMutants tries: a part of their names; with -seed, what TestTrials does it with")
)

// mostSeeds is within how many seeds each mutant has to be found.
const mostSeeds = 500

// mutant is a mistake, of the broker or in how a pipeline is written.
type mutant struct {
	name  string
	bugs  bug.Set
	style style
	// near is a seed that has found it: where the short run begins. The schedule is the runtime's, so the next run may need
	// another.
	near uint64
}

// brokerMutant is a broker with one mistake.
func brokerMutant(b bug.Bug, near uint64) mutant {
	return mutant{name: b.String(), bugs: bug.Of(b), near: near}
}

// bank has every mistake that the checkers have to find.
var bank = []mutant{
	brokerMutant(bug.StableOffsetTooFar, 0),
	brokerMutant(bug.StableOffsetIgnored, 0),
	brokerMutant(bug.AbortedListEmpty, 0),
	brokerMutant(bug.AbortedListCutShort, 0),
	brokerMutant(bug.AbortedListFromFetchOffset, 0),
	brokerMutant(bug.AbortedListFirstTooHigh, 0),
	brokerMutant(bug.AbortedIndexNotRebuilt, 0),
	brokerMutant(bug.MarkerAsData, 0),
	brokerMutant(bug.DuplicateWindowOfOne, 0),
	brokerMutant(bug.DuplicateAppended, 0),
	brokerMutant(bug.DuplicateWrongOffset, 0),
	brokerMutant(bug.SequenceUnchecked, 0),
	brokerMutant(bug.OldEpochAccepted, 0),
	brokerMutant(bug.MarkerClosesAll, 0),
	brokerMutant(bug.ProducersLostOnRestart, 0),
	brokerMutant(bug.SnapshotWithoutOpenTransaction, 0),
	brokerMutant(bug.VerificationSkipped, 0),

	brokerMutant(bug.InitWithoutBump, 0),
	brokerMutant(bug.InitLeavesOpen, 0),
	brokerMutant(bug.EndWithoutBump, 0),
	brokerMutant(bug.EndEpochUnchecked, 0),
	brokerMutant(bug.PrepareNotPersisted, 0),
	brokerMutant(bug.PrepareForgottenOnLoad, 0),
	brokerMutant(bug.PartitionsNotPersisted, 0),
	brokerMutant(bug.MarkerMissing, 0),
	brokerMutant(bug.MarkerAbortsOne, 0),
	brokerMutant(bug.MarkerTwice, 0),
	brokerMutant(bug.TimeoutWithoutBump, 0),
	brokerMutant(bug.CommitAfterAbort, 0),
	brokerMutant(bug.AbortOnLoad, 0),
	brokerMutant(bug.ProducerIDAgain, 0),

	brokerMutant(bug.OffsetsAppliedOnAbort, 0),
	brokerMutant(bug.OffsetsDroppedOnCommit, 0),
	brokerMutant(bug.OffsetsVisibleEarly, 0),
	brokerMutant(bug.StableNotRequired, 0),
	brokerMutant(bug.GenerationUnchecked, 0),
	brokerMutant(bug.FirstOffsetWins, 0),
	brokerMutant(bug.PendingLostOnLoad, 0),

	{name: "a pipeline aborts and polls on", style: style{pollsOn: true}},
	{name: "a pipeline commits offsets after the transaction", style: style{offsetsApart: true}},
	{name: "a pipeline commits offsets before the transaction", style: style{offsetsBefore: true}},
	{name: "a pipeline produces outside of the transaction", style: style{producesApart: true}},
	{name: "a pipeline commits the offset of the last record", style: style{offByOne: true}},
	{name: "a pipeline reads uncommitted", style: style{uncommitted: true}},
	{name: "a pipeline has a new transactional id each time and no generation", style: style{noGeneration: true}},
	{name: "a pipeline commits no offsets", style: style{forgetsOffsets: true}},
	{name: "a pipeline takes failed commits for done", style: style{ignoresFailures: true}},

	{name: "a reader leaves nothing out", style: style{filter: filter{ignoresList: true}}},
	{name: "a reader leaves aborted producers out at once, until any marker", style: style{filter: filter{atOnce: true}}},
	{name: "a reader hands out markers", style: style{filter: filter{handsMarkers: true}}},
}

// TestMutantsAreFound runs each mistake until a seed finds it. -v prints the table.
//
//	go test ./fakebroker/harness -run Mutants -v                            from the seeds in the table on
//	go test ./fakebroker/harness -run Mutants -v -seeds 500                 from seed 0 on
//	go test ./fakebroker/harness -run Mutants -v -mutant "marker"           some of them
func TestMutantsAreFound(t *testing.T) {
	var table strings.Builder
	for _, m := range bank {
		if !strings.Contains(m.name, *onlyMutant) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			first, n := m.near, uint64(mostSeeds)
			if *mutantSeeds > 0 {
				first, n = 0, *mutantSeeds
			}
			for i := range n {
				tr := runTrial(t, first+i, m.style, m.bugs)
				if len(tr.findings) > 0 {
					fmt.Fprintf(&table, "%-64s seed %3d after %3d  %s\n", m.name, tr.seed, i+1, tr.summary())
					return
				}
			}
			fmt.Fprintf(&table, "%-64s NOT FOUND in %d\n", m.name, n)
			t.Errorf("%d seeds from %d on have found nothing", n, first)
		})
	}
	t.Logf("\n%s", table.String())
}

// TestTrials runs the same without any mistake: nothing may be found.
//
//	go test ./fakebroker/harness -run Trials -seeds 500
//	go test ./fakebroker/harness -run Trials -seed 17 -v                            one again, and what happens in it
//	go test ./fakebroker/harness -run Trials -seed 17 -v -mutant "marker twice"     with a mistake
func TestTrials(t *testing.T) {
	if *trialSeed >= 0 {
		s, bugs := right, bug.Set(0)
		for _, m := range bank {
			if m.name == *onlyMutant {
				s, bugs = m.style, m.bugs
			}
		}
		tr := runTrial(t, uint64(*trialSeed), s, bugs)
		tr.print()
		require.Empty(t, tr.findings)
		return
	}
	n := *mutantSeeds
	if n == 0 {
		n = 12
	}
	began := time.Now()
	for seed := range n {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			tr := runTrial(t, seed, right, 0)
			if len(tr.findings) > 0 {
				t.Errorf("replay: go test ./fakebroker/harness -run Trials -seed %d -v\ntransaction.version %d\n%s", seed, tr.level, strings.Join(tr.findings, "\n"))
			}
		})
	}
	t.Logf("%d seeds in %s", n, time.Since(began).Round(time.Millisecond))
}

// print says everything about a trial.
func (tr *trial) print() {
	fmt.Fprintf(os.Stderr, "seed %d, transaction.version %d, classic %t, %d entries in the log\n", tr.seed, tr.level, tr.classic, tr.log.Len())
	for _, line := range tr.story {
		fmt.Fprintln(os.Stderr, line)
	}
	if testing.Verbose() {
		for _, o := range tr.log.Ops() {
			fmt.Fprintln(os.Stderr, o)
		}
	}
}
