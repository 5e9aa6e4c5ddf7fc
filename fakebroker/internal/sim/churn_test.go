package sim

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/sim/clockwork"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/groupmember/machine"
)

var (
	seeds   = flag.Uint64("seeds", 28, "how many seeds of each fleet TestChurn runs")
	oneSeed = flag.Int64("seed", -1, "the only seed that TestChurn runs; with -v it tells what happens")
	only    = flag.String("fleet", "", "the only fleet that TestChurn runs")
)

// fleet is what kinds of members a run has.
type fleet struct {
	name      string
	server    string // group.consumer.assignors
	configure func(w *world, cfg *machine.Config)
}

// fleets are the kinds of groups there are. The seed decides between assignors of one kind.
var fleets = []fleet{
	{"eager", "uniform", func(w *world, cfg *machine.Config) {
		list := []machine.Assignor{groupmember.Range(), groupmember.RoundRobin(), groupmember.Sticky()}
		cfg.Protocol, cfg.Assignors = machine.Classic, list[w.seed%3:w.seed%3+1]
	}},
	{"cooperative", "uniform", func(_ *world, cfg *machine.Config) {
		cfg.Protocol, cfg.Assignors = machine.Classic, []machine.Assignor{groupmember.CooperativeSticky()}
	}},
	// A fleet on its way from eager to cooperative, as KIP-429 wants it done.
	{"rolling", "uniform", func(w *world, cfg *machine.Config) {
		cfg.Protocol, cfg.Assignors = machine.Classic, []machine.Assignor{groupmember.CooperativeSticky()}
		if clockwork.Chance(w.fault, 2) {
			cfg.Assignors = append(cfg.Assignors, groupmember.Range())
		}
	}},
	{"consumer", "uniform,range", func(w *world, cfg *machine.Config) {
		cfg.Protocol = machine.Consumer
		cfg.RemoteAssignor = []string{"", "uniform", "range"}[w.seed%3]
	}},
	// A fleet on its way from the classic protocol to the consumer protocol, or back.
	{"mixed", "uniform,range", func(w *world, cfg *machine.Config) {
		if cfg.Protocol = machine.Consumer; clockwork.Chance(w.fault, 2) {
			cfg.Protocol = machine.Classic
			cfg.Assignors = []machine.Assignor{[]machine.Assignor{groupmember.Range(), groupmember.CooperativeSticky()}[w.seed%2]}
		}
	}},
}

// outcome is what a run leaves behind.
type outcome struct {
	trace   uint64
	steps   int
	records int64
	reach   map[string]int
	err     string
}

// scenario is one seed: two minutes of faults, then peace, then everybody leaves.
func scenario(seed uint64, f fleet, log func(string, ...any)) (out outcome) {
	w := newWorld(seed, f, log)
	defer func() {
		out = outcome{trace: w.Trace, steps: w.Steps, reach: w.Reach}
		for _, p := range w.topics.parts() {
			out.records += w.topics.end[p]
		}
		switch r := recover().(type) {
		case nil:
		case clockwork.Failure:
			out.err = r.Text
		default:
			panic(fmt.Sprintf("fleet %s seed %d: %v", f.name, seed, r))
		}
	}()
	w.topics.produce()
	for range 1 + w.fault.IntN(3) {
		w.add(w.instance())
	}
	w.run(2 * time.Second)
	for range 40 {
		w.misfortune()
		w.run(clockwork.Between(w.fault, 0, 5*time.Second))
	}
	w.peace()
	w.run(reconverge)
	if err := w.settled(); err != nil {
		w.Fail("G5: not at rest within %s: %v\n%s", reconverge, err, w.brokers.snapshot(w.brokers.shard))
	}
	w.run(10 * time.Second) // what was produced last is processed, and committed with the next commit by time
	w.replayed()
	w.complete()
	for _, n := range w.live() {
		n.leave(false)
	}
	w.run(10 * time.Second)
	for _, n := range w.nodes {
		if !n.dead && !n.over {
			w.Fail("%s does not leave: %s", n.name, n.m.State())
		}
	}
	w.complete()
	return
}

// wanted are places that a run of the default seeds has to reach; one that is not reached tests nothing.
var wanted = []string{
	"request lost", "answer lost", "asked a broker that does not coordinate", "asked a coordinator that loads", "told the wrong coordinator",
	"append refused", "uncommitted records cut off", "topic replaced under a claim", "partitions lost", "record processed again",
	"given up undrained", "a static member came back", "two processes have one instance id", "a member with an instance id that another has gave up",
	"commit overtaken: ILLEGAL_GENERATION", "commit overtaken: UNKNOWN_MEMBER_ID", "commit overtaken: REBALANCE_IN_PROGRESS",
	"a member of an older generation still held a partition", "a fenced member still held a partition",
	"request arrived after its sender gave it up: JoinGroup", "request arrived after its sender gave it up: ConsumerGroupHeartbeat",
}

// found are seeds that have found something once.
var found = []struct {
	fleet string
	seed  uint64
}{
	{"eager", 0},         // of several records about a member the first counted after loading
	{"eager", 103},       // an assignment that came too late was lost first and then given
	{"cooperative", 265}, // a leader that left waited for a commit that waited for its assignment
	{"consumer", 40},     // a session that ended while the log took nothing was forgotten
	{"mixed", 44},        // a member that was taken out gave up when the group had become classic
	{"mixed", 85},        // patience with a dead static member ended before its session
	{"mixed", 161},       // an upgrade gave away what a cooperative member still held
	{"mixed", 318},       // an upgrade that was not written answered who waited twice
	{"mixed", 443},       // a group that was not written was there all the same
	{"mixed", 319},       // an upgrade that was refused forgot who waited
}

func TestSeedsThatFoundSomething(t *testing.T) {
	for _, x := range found {
		i := slices.IndexFunc(fleets, func(f fleet) bool { return f.name == x.fleet })
		if out := scenario(x.seed, fleets[i], nil); out.err != "" {
			t.Errorf("fleet %s seed %d: %s", x.fleet, x.seed, out.err)
		}
	}
}

func TestChurn(t *testing.T) {
	reach, count, steps, records := map[string]int{}, 0, 0, int64(0)
	for _, f := range fleets {
		if *only != "" && *only != f.name {
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
			out := scenario(seed, f, log)
			count, steps, records = count+1, steps+out.steps, records+out.records
			for place, n := range out.reach {
				reach[place] += n
			}
			if out.err != "" {
				failed++
				t.Errorf("fleet %s seed %d: %s\nreplay: go test ./fakebroker/internal/sim -run TestChurn -fleet %s -seed %d -v", f.name, seed, out.err, f.name, seed)
				continue
			}
			if seed%20 == 0 {
				again := scenario(seed, f, nil)
				require.Equal(t, out.trace, again.trace, "fleet %s seed %d takes another course the second time", f.name, seed)
			}
		}
	}
	t.Logf("%d runs, %d steps, %d records", count, steps, records)
	var lines []string
	for _, place := range slices.Sorted(maps.Keys(reach)) {
		lines = append(lines, fmt.Sprintf("%8d %s", reach[place], place))
	}
	t.Logf("reached:\n%s", strings.Join(lines, "\n"))
	if *oneSeed >= 0 || *only != "" || *seeds < 28 {
		return
	}
	for _, place := range wanted {
		if reach[place] == 0 {
			t.Errorf("no seed reached %q", place)
		}
	}
}
