package harness_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/txn"
	"github.com/ottla-kafka/ottla/wire"
)

var (
	pointsPerColumn = flag.Int("points", 2, "how many crash points of each kind TestEveryCrashPoint goes through in each set-up; 0 = all of them, a minute's work")
	pointsLog       = flag.Bool("points-log", false, "show the requests and the broker's log of each crash point")
	pointsBug       = flag.String("points-bug", "", "have the broker make that mistake, by its name or a part of it: TestEveryCrashPoint has to fail")
)

// setups are the pipelines: both group protocols, with both kinds of transactions, by Do and by Pipe.
var setups = func() (all []setup) {
	groups := []setup{
		{name: "classic", cons: []consumer.Option{consumer.GroupProtocol("classic"), consumer.Assignors("cooperative-sticky")}},
		{name: "KIP-848", cons: []consumer.Option{consumer.GroupProtocol("consumer")}},
	}
	for _, g := range groups {
		for _, version := range []int16{1, 2} {
			for _, way := range []setup{{name: "Do", work: doing}, {name: "Pipe", work: piping}} {
				way.name = fmt.Sprintf("%s/transaction.version=%d/%s", g.name, version, way.name)
				way.opts, way.cons = []fakebroker.Option{fakebroker.Feature("transaction.version", version)}, g.cons
				all = append(all, way)
			}
		}
	}
	return all
}()

// doing is the loop that users write with Do.
func doing(ctx context.Context, s *txn.Session, c *consumer.Consumer) error {
	release, err := s.Consume(c)
	if err != nil {
		return err
	}
	defer release()
	for {
		records, err := c.Poll(ctx, perTransaction)
		if err != nil {
			return err
		}
		err = s.Do(ctx, func(ctx context.Context, tx *txn.Tx) error {
			for _, r := range records {
				if err := send(ctx, tx, r); err != nil {
					return err
				}
			}
			return nil
		})
		if ctx.Err() != nil || txn.Class(err) == txn.Fenced || errors.Is(err, consumer.ErrClosed) {
			return err
		}
	}
}

// piping has Pipe do all of it.
func piping(ctx context.Context, s *txn.Session, c *consumer.Consumer) error {
	return s.Pipe(ctx, c, send, txn.CommitRecords(perTransaction))
}

// point is a step of the exchange between a worker and the broker: the nth request of an API.
type point struct {
	key wire.Key
	nth int
}

func (p point) String() string { return fmt.Sprintf("%s-%d", p.key, p.nth) }

// column is what happens at a point.
type column struct {
	name string
	rule func(pl *pipeline, at fault.Rule) fault.Rule
}

var columns = []column{
	{"worker killed before it", func(pl *pipeline, at fault.Rule) fault.Rule {
		return at.OnArrival(func(fault.Point) { pl.kill() }).DropConnection()
	}},
	{"worker killed after it", func(pl *pipeline, at fault.Rule) fault.Rule {
		return at.OnAnswer(func(fault.Point) { pl.kill() })
	}},
	{"worker killed, and it comes soon", func(pl *pipeline, at fault.Rule) fault.Rule {
		return at.OnArrival(func(fault.Point) { pl.kill() }).Late(30 * time.Millisecond)
	}},
	{"worker killed, and it comes late", func(pl *pipeline, at fault.Rule) fault.Rule {
		return at.OnArrival(func(fault.Point) { pl.kill() }).Late(7 * time.Second)
	}},
	{"request lost", func(_ *pipeline, at fault.Rule) fault.Rule { return at.DropConnection() }},
	{"response lost", func(_ *pipeline, at fault.Rule) fault.Rule { return at.LoseResponse() }},
	{"late by one request", func(_ *pipeline, at fault.Rule) fault.Rule { return at.LateAfter(1) }},
	{"late by four requests", func(_ *pipeline, at fault.Rule) fault.Rule { return at.LateAfter(4) }},
	{"late by twelve requests", func(_ *pipeline, at fault.Rule) fault.Rule { return at.LateAfter(12) }},
	{"late by a time", func(_ *pipeline, at fault.Rule) fault.Rule { return at.Late(300 * time.Millisecond) }},
	{"broker restarted before it", func(pl *pipeline, at fault.Rule) fault.Rule {
		return at.OnArrival(func(fault.Point) { pl.restart(false) })
	}},
	{"broker restarted after it", func(pl *pipeline, at fault.Rule) fault.Rule {
		return at.OnAnswer(func(fault.Point) { pl.restart(false) })
	}},
	{"broker killed before it", func(pl *pipeline, at fault.Rule) fault.Rule {
		return at.OnArrival(func(fault.Point) { pl.restart(true) })
	}},
	{"broker killed after it", func(pl *pipeline, at fault.Rule) fault.Rule {
		return at.OnAnswer(func(fault.Point) { pl.restart(true) })
	}},
	{"power cut before it", func(pl *pipeline, at fault.Rule) fault.Rule {
		return at.OnArrival(func(fault.Point) { pl.powerCut() })
	}},
	{"power cut after it", func(pl *pipeline, at fault.Rule) fault.Rule {
		return at.OnAnswer(func(fault.Point) { pl.powerCut() })
	}},
}

// diskOf is a disk that loses what was not flushed when the power is cut. The broker flushes each record, because one broker
// alone promises nothing else about what survives.
func diskOf(pl *pipeline, seed uint64) fakebroker.Option {
	chance := rand.New(rand.NewPCG(seed, 5))
	return func(s *fakebroker.Settings) {
		if *pointsBug != "" {
			m, err := theOne(*pointsBug)
			require.NoError(pl, err)
			require.NotZero(pl, m.bugs, "-points-bug %q: that is a mistake of pipelines, want one of the broker", m.name)
			s.Bugs = m.bugs
		}
		s.Properties["log.flush.interval.messages"] = "1"
		s.Disk = func(before vfs.FS) vfs.FS {
			switch {
			case before == nil:
				return vfs.NewCrash()
			case pl.dark:
				pl.dark = false
				return before.(*vfs.MemFS).Crash(chance)
			}
			return before
		}
	}
}

// powerCut ends the broker and loses what was not on its disk.
func (pl *pipeline) powerCut() {
	pl.dark = true
	pl.restart(true)
}

// restart ends the broker and starts it again, in good order or not.
func (pl *pipeline) restart(kill bool) {
	if kill {
		if err := pl.k.Crash(context.Background()); err != nil {
			pl.Errorf("Crash: %v", err)
		}
	}
	if err := pl.k.Restart(context.Background()); err != nil {
		pl.Errorf("Restart: %v", err)
	}
}

// TestEveryCrashPoint runs a pipeline of three transactions once undisturbed, which yields the steps of its exchange with the
// broker, and then once for each step and each thing that can happen there. Whatever happens, every record comes out once.
func TestEveryCrashPoint(t *testing.T) {
	total, missed := 0, 0
	for i := range setups {
		s := &setups[i]
		t.Run(s.name, func(t *testing.T) {
			points := steps(t, s)
			ran := 0
			for j, column := range columns {
				for k, at := range points {
					if n := *pointsPerColumn; n > 0 && (k+i+3*j)%max(1, len(points)/n) != 0 {
						continue
					}
					ran++
					t.Run(column.name+"/"+at.String(), func(t *testing.T) {
						runPipeline(t, s, uint64(100*k+j), func(pl *pipeline) {
							hit := pl.inject(column.rule(pl, fault.On(at.key).Nth(at.nth)))
							pl.accompany((j+k)%2 == 1)
							pl.begin()
							pl.carried()
							pl.epilogue()
							if hit.Hits() == 0 {
								missed++
							}
						})
					})
				}
			}
			t.Logf("%d steps, %d crash points: %v", len(points), ran, points)
			total += ran
		})
	}
	t.Logf("%d crash points, %d of them where the exchange took another course", total, missed)
	require.LessOrEqual(t, missed, total/4, "faults that never happen prove nothing")
}

// steps runs the pipeline undisturbed and returns its requests in order, but for those that open connections.
func steps(t *testing.T, s *setup) (points []point) {
	var mu sync.Mutex
	runPipeline(t, s, 0, func(pl *pipeline) {
		count := map[wire.Key]int{}
		seen := pl.inject(fault.Any().Except(wire.KeyApiVersions).OnArrival(func(p fault.Point) {
			mu.Lock()
			defer mu.Unlock()
			count[p.Key]++
			points = append(points, point{p.Key, count[p.Key]})
		}))
		pl.begin()
		pl.carried()
		seen.Remove()
		pl.epilogue()
		require.Empty(t, pl.ends)
	})
	mu.Lock()
	defer mu.Unlock()
	return points
}

// epilogue lets what is late arrive, and has a fourth transaction carried, which it must not harm.
func (pl *pipeline) epilogue() {
	pl.Helper()
	time.Sleep(8 * time.Second)
	pl.write(perTransaction)
	pl.carried()
	pl.halt()
	pl.exactlyOnce()
}

// accompany makes every answer slow, so that more is under way at the same time, and tells of all requests if it is to.
func (pl *pipeline) accompany(slow bool) {
	if *pointsLog {
		start := time.Now()
		say := func(what string) func(fault.Point) {
			return func(p fault.Point) {
				fmt.Printf("%8.3f %s %s %s\n", time.Since(start).Seconds(), what, p.ClientID, p.Key)
			}
		}
		pl.k.Inject(fault.Any().OnArrival(say("->")).OnAnswer(say("<-")))
		return
	}
	if slow {
		pl.k.Inject(fault.Any().Delay(2 * time.Millisecond))
	}
}

func brokerLog() io.Writer {
	if *pointsLog {
		return os.Stdout
	}
	return io.Discard
}
