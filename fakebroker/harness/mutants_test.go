package harness_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
)

var (
	trialSeeds = flag.Uint64("seeds", 0, "how many seeds TestTrials runs and TestMutantsAreFound tries per mistake, from 0 on; 0: a few, and of the mistakes those that are found soon")
	trialSeed  = flag.Int64("seed", -1, "the only seed that TestTrials runs, and says everything about")
	trialLevel = flag.Int("level", 0, "the transaction.version of all trials; 0: drawn by the seed")
	onlyMutant = flag.String("mutant", "", "the only mistakes that TestMutantsAreFound tries: a part of their names; with -seed, the one that TestTrials makes, whole or the only one that has this part")
)

// named are the mistakes of the bank that -mutant names: those that have it in their names, or the one that is called so.
func named(text string) (list []mutant, err error) {
	var all strings.Builder
	for _, m := range bank {
		if m.name == text {
			return []mutant{m}, nil
		}
		if strings.Contains(m.name, text) {
			list = append(list, m)
		}
		fmt.Fprintf(&all, "\n  %s", m.name)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the bank has no mistake %q in its names, which are:%s", text, &all)
	}
	return list, nil
}

// theOne is the mistake that a flag names; there must be only one.
func theOne(text string) (mutant, error) {
	list, err := named(text)
	if err == nil && len(list) > 1 {
		names := ""
		for _, m := range list {
			names += "\n  " + m.name
		}
		err = fmt.Errorf("%q is in the names of %d mistakes, only one can be made at a time:%s", text, len(list), names)
	}
	if err != nil {
		return mutant{}, err
	}
	return list[0], nil
}

// mutant is a mistake, of the broker or in how a client is written.
type mutant struct {
	name  string
	bugs  bug.Set
	style style
	// near is a seed that has found it: where the short run begins. The schedule is the runtime's, so the next run may need
	// another. rare mistakes need too many seeds for it.
	near uint64
	rare bool
}

// broken is a broker with one mistake.
func broken(b bug.Bug, near uint64) mutant {
	return mutant{name: b.String(), bugs: bug.Of(b), near: near, rare: near == rarely}
}

// rarely stands for a seed where it takes dozens of them.
const rarely = math.MaxUint64

// bank has every mistake that the checkers have to find. One that is known to be out of reach is not in it: leaders that do
// not verify transactions (KIP-890). This SDK takes a new epoch after each answer that it lost, so that the late batches
// which verification is for come under an old one and are refused anyway.
var bank = []mutant{
	broken(bug.StableOffsetTooFar, 0),
	broken(bug.StableOffsetIgnored, 0),
	broken(bug.AbortedListEmpty, 0),
	broken(bug.AbortedListCutShort, 0),
	broken(bug.AbortedListFromFetchOffset, 0),
	broken(bug.AbortedListFirstTooHigh, 0),
	broken(bug.AbortedIndexNotRebuilt, 0),
	broken(bug.MarkerAsData, 0),
	broken(bug.DuplicateWindowOfOne, rarely),
	broken(bug.DuplicateAppended, rarely),
	broken(bug.DuplicateWrongOffset, rarely),
	broken(bug.SequenceUnchecked, rarely),
	broken(bug.OldEpochAccepted, 0),
	broken(bug.MarkerClosesAll, 2),
	broken(bug.ProducersLostOnRestart, 0),
	broken(bug.SnapshotWithoutOpenTransaction, 2),

	broken(bug.InitWithoutBump, 4),
	broken(bug.InitLeavesOpen, 3),
	broken(bug.EndWithoutBump, rarely),
	broken(bug.EndEpochUnchecked, rarely),
	broken(bug.PrepareNotPersisted, 3),
	broken(bug.PrepareForgottenOnLoad, 1),
	broken(bug.PartitionsNotPersisted, 1),
	broken(bug.MarkerMissing, 0),
	broken(bug.MarkerAbortsOne, 0),
	broken(bug.MarkerTwice, 0),
	broken(bug.TimeoutWithoutBump, rarely),
	broken(bug.CommitAfterAbort, 0),
	broken(bug.AbortOnLoad, 1),
	broken(bug.ProducerIDAgain, rarely),

	broken(bug.OffsetsAppliedOnAbort, 0),
	broken(bug.OffsetsDroppedOnCommit, 0),
	broken(bug.OffsetsVisibleEarly, 0),
	broken(bug.StableNotRequired, rarely),
	broken(bug.GenerationUnchecked, rarely),
	broken(bug.FirstOffsetWins, 5),
	broken(bug.PendingLostOnLoad, 0),

	{name: "a pipeline aborts and polls on", style: style{pollsOn: true}},
	{name: "a pipeline commits offsets after the transaction", style: style{offsetsApart: true}, near: 1},
	{name: "a pipeline commits offsets before the transaction", style: style{offsetsBefore: true}, near: 1},
	{name: "a pipeline produces outside of the transaction", style: style{producesApart: true}},
	{name: "a pipeline commits the offset of the last record", style: style{offByOne: true}},
	{name: "a pipeline reads uncommitted", style: style{uncommitted: true}, near: 2},
	{name: "a pipeline has a new transactional id each time and no generation", style: style{noGeneration: true}, near: 1},
	{name: "a pipeline commits no offsets", style: style{forgetsOffsets: true}},
	{name: "a pipeline takes failed commits for done", style: style{ignoresFailures: true}},

	{name: "a reader leaves nothing out", style: style{filter: filter{ignoresList: true}}},
	{name: "a reader leaves aborted producers out at once, until any marker", style: style{filter: filter{atOnce: true}}},
	{name: "a reader hands out markers", style: style{filter: filter{handsMarkers: true}}},
}

// Every mistake that the broker can make is in the bank, once: one that nobody looks for proves nothing.
func TestTheBankHasEveryMistake(t *testing.T) {
	count := map[bug.Bug]int{}
	names := map[string]bool{}
	for _, m := range bank {
		require.False(t, names[m.name], "%q is there twice", m.name)
		names[m.name] = true
		for _, b := range bug.All() {
			if m.bugs.Has(b) {
				count[b]++
			}
		}
		require.NotEqual(t, mutant{name: m.name, near: m.near, rare: m.rare}, m, "%q makes no mistake", m.name)
	}
	for _, b := range bug.All() {
		require.Equal(t, 1, count[b], "%q in the bank", b)
	}
}

func TestAFlagThatNamesNoMistakeSaysWhichThereAre(t *testing.T) {
	_, err := named("no such thing")
	require.ErrorContains(t, err, `no mistake "no such thing"`)
	for _, m := range bank {
		require.ErrorContains(t, err, "\n  "+m.name)
		one, err := theOne(m.name)
		require.NoError(t, err)
		require.Equal(t, m, one)
	}
	all, err := named("")
	require.NoError(t, err)
	require.Equal(t, bank, all)
	some, err := named("marker ")
	require.NoError(t, err)
	require.Len(t, some, 5)
	_, err = theOne("marker ")
	require.ErrorContains(t, err, "marker closes all")
	one, err := theOne("marker tw")
	require.NoError(t, err)
	require.Equal(t, bug.MarkerTwice.String(), one.name)
}

// TestMutantsAreFound runs each mistake until a seed finds it. A seed that finds something without the mistake too does
// not count. -v prints the table.
//
//	go test ./fakebroker/harness -run Mutants -v                            those that are found soon
//	go test ./fakebroker/harness -run Mutants -v -seeds 500                 all, from seed 0 on
//	go test ./fakebroker/harness -run Mutants -v -seeds 500 -mutant marker  some of them
func TestMutantsAreFound(t *testing.T) {
	var table strings.Builder
	chosen, err := named(*onlyMutant)
	require.NoError(t, err)
	for i, m := range chosen {
		if *trialSeeds == 0 && *onlyMutant == "" && (m.rare || raceEnabled && i%12 > 0) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			first, n := m.near, uint64(mostSeeds)
			if *trialSeeds > 0 {
				n = *trialSeeds
			}
			if *trialSeeds > 0 || m.rare {
				first = 0
			}
			for i := range n {
				tr := runTrial(t, first+i, m.style, m.bugs)
				if len(tr.findings) == 0 || *trialSeeds > 0 && len(runTrial(t, first+i, right, 0).findings) > 0 {
					continue
				}
				fmt.Fprintf(&table, "%-64s seed %3d after %3d  %s\n", m.name, tr.seed, i+1, tr.summary())
				return
			}
			fmt.Fprintf(&table, "%-64s NOT FOUND in %d\n", m.name, n)
			t.Errorf("%d seeds from %d on have found nothing", n, first)
		})
	}
	t.Logf("\n%s", table.String())
}

// mostSeeds is within how many seeds each mistake has to be found.
const mostSeeds = 500

// TestTrials runs the same without any mistake: nothing may be found.
//
//	go test ./fakebroker/harness -run Trials -seeds 500
//	go test ./fakebroker/harness -run Trials -seed 17 -v                            one again, and what happens in it
//	go test ./fakebroker/harness -run Trials -seed 17 -v -mutant "marker twice"     with a mistake
func TestTrials(t *testing.T) {
	if *trialSeed >= 0 {
		m := mutant{style: right}
		if *onlyMutant != "" {
			var err error
			m, err = theOne(*onlyMutant)
			require.NoError(t, err)
		}
		tr := runTrial(t, uint64(*trialSeed), m.style, m.bugs)
		tr.print()
		require.Empty(t, tr.findings)
		return
	}
	n := *trialSeeds
	switch {
	case n == 0 && raceEnabled:
		n = 3
	case n == 0:
		n = 16
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
