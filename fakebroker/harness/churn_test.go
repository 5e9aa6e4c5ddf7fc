package harness_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/wire"
)

var (
	churnSeeds = flag.Uint64("churn-seeds", 20, "how many seeds TestChurn runs")
	churnSeed  = flag.Int64("churn-seed", -1, "the only seed that TestChurn runs")
)

// what can happen. Of a clean seed only the first ones do, and nothing crashes.
var happenings = []struct {
	name  string
	crash bool
	do    func(f *fleet, r *rand.Rand)
}{
	{"join", false, func(f *fleet, _ *rand.Rand) {
		if len(f.members) < 5 {
			f.start(nil)
		}
	}},
	{"leave", false, func(f *fleet, r *rand.Rand) {
		if len(f.members) > 1 {
			f.members[r.IntN(len(f.members))].stop()
		}
	}},
	{"force a rebalance", false, func(f *fleet, _ *rand.Rand) { _ = f.k.ForceRebalance(context.Background(), "g") }}, // an empty group cannot
	{"disconnect", false, func(f *fleet, _ *rand.Rand) { f.k.Disconnect() }},
	{"drop connections", false, func(f *fleet, r *rand.Rand) {
		f.inject(fault.On(groupKeys[r.IntN(len(groupKeys))]).DropConnection().Times(1 + r.IntN(3)))
	}},
	{"lose answers", false, func(f *fleet, r *rand.Rand) {
		f.inject(fault.On(groupKeys[r.IntN(len(groupKeys))]).LoseResponse().Times(1 + r.IntN(2)))
	}},
	{"delay fetches", false, func(f *fleet, r *rand.Rand) {
		f.inject(fault.Fetch().Delay(time.Duration(r.IntN(2000)) * time.Millisecond).Times(1 + r.IntN(5)))
	}},
	{"crash of a member", true, func(f *fleet, r *rand.Rand) {
		if len(f.members) > 1 {
			f.members[r.IntN(len(f.members))].crash()
		}
	}},
	{"reload", true, func(f *fleet, _ *rand.Rand) { require.NoError(f, f.k.ReloadCoordinator(context.Background(), "g")) }},
	{"crash of the broker", true, func(f *fleet, r *rand.Rand) {
		require.NoError(f, f.k.Crash(context.Background()))
		time.Sleep(time.Duration(r.IntN(30)) * time.Second)
		require.NoError(f, f.k.Restart(context.Background()))
	}},
	{"expire a session", true, func(f *fleet, _ *rand.Rand) {
		if g, err := f.k.Group(context.Background(), "g"); err == nil && len(g.Members) > 0 {
			_ = f.k.ExpireSession(context.Background(), "g", g.Members[0].ID)
		}
	}},
	{"hang", true, func(f *fleet, r *rand.Rand) {
		f.inject(fault.On(groupKeys[r.IntN(len(groupKeys))]).Hang().Times(1 + r.IntN(3)))
	}},
}

var groupKeys = []wire.Key{wire.KeyJoinGroup, wire.KeySyncGroup, wire.KeyHeartbeat, wire.KeyConsumerGroupHeartbeat, wire.KeyOffsetCommit,
	wire.KeyOffsetFetch, wire.KeyFindCoordinator, wire.KeyMetadata}

// TestChurn has whole consumers bear what a seed has for them. Every record is processed; exactly once if nothing crashed.
func TestChurn(t *testing.T) {
	first, last := uint64(0), *churnSeeds
	if *churnSeed >= 0 {
		first, last = uint64(*churnSeed), uint64(*churnSeed)+1
	}
	repeats, records := 0, 0
	for seed := first; seed < last; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			clean := seed%2 == 0
			run(t, protocols[seed/2%3], 4, func(f *fleet) {
				f.Cleanup(func() {
					if f.Failed() {
						t.Logf("replay: go test ./fakebroker/harness -run TestChurn -churn-seed %d -v (%s)", seed, f.way.name)
					}
				})
				churn(f, rand.New(rand.NewPCG(seed, 11)), clean)
				distinct, again := f.ledger.counts()
				records, repeats = records+distinct, repeats+again
			})
		})
	}
	t.Logf("%d seeds, %d records, %d processed again after crashes", last-first, records, repeats)
}

func churn(f *fleet, r *rand.Rand, clean bool) {
	f.rough = !clean
	f.start(nil)
	f.start(nil)
	for range 12 {
		f.write(20 + r.IntN(60))
		h := happenings[r.IntN(len(happenings))]
		for clean && h.crash {
			h = happenings[r.IntN(len(happenings))]
		}
		f.Logf("%s: %s", time.Now().Format("04:05.000"), h.name)
		h.do(f, r)
		f.committedIsProcessed()
		time.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond)
	}
	for _, i := range f.faults {
		i.Remove()
	}
	f.settled(4, 2*(session+rebalance))
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if distinct, _ := f.ledger.counts(); distinct == f.written {
			break
		} else if time.Now().After(end) {
			require.Equal(f, f.written, distinct, "records processed")
		}
	}
	f.committedIsProcessed()
	if _, again := f.ledger.counts(); clean {
		require.Zero(f, again, "records processed again, and nothing crashed")
	}
}
