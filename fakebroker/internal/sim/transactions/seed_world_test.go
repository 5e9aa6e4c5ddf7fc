package transactions

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/sim/clockwork"
)

// The timeouts of a seed are short, so that two virtual minutes hold many transactions.
const (
	seedTimeout = 6 * time.Second // transaction.timeout.ms
	seedCheck   = time.Second     // transaction.abort.timed.out.transaction.cleanup.interval.ms
	seedID      = "tx"            // the transactional id that all sessions want
	seedGroup   = "g"
)

var (
	errBroken  = errors.New("connection ended")
	errTimeout = errors.New("no answer in time")
)

// world is one run: two brokers, of which one coordinates transactions and each leads a partition of out, and one after the
// other, and now and then beside each other, sessions that carry numbers from an input to out.
type world struct {
	*clockwork.Clock
	seed  uint64
	level int16 // transaction.version

	// Streams of chance, one for each purpose, so that a new draw of one does not shift the others.
	net, work, fault *rand.Rand

	menu    menu
	faulty  bool
	up      [3]bool // by broker id
	coord   *coordinating
	leaders [2]*leader // of out-0, out-1
	offsets *offsets
	nodes   []*node
	ledger  ledger
}

func newWorld(seed uint64, level int16, log func(string, ...any)) *world {
	stream := func(name string) *rand.Rand { return clockwork.Stream(seed, name) }
	w := &world{Clock: clockwork.New(log), seed: seed, level: level, faulty: true, up: [3]bool{1: true, 2: true},
		net: stream("net"), work: stream("work"), fault: stream("fault")}
	w.menu = drawMenu(w.fault)
	w.ledger.init(w)
	w.coord = newCoordinating(w)
	for i := range w.leaders {
		w.leaders[i] = newLeader(w, int32(i), int32(i+1))
	}
	w.offsets = newOffsets(w)
	return w
}

func (w *world) run(d time.Duration) { w.Run(d, w.check) }

// delay is what a packet takes.
func (w *world) delay() time.Duration {
	if w.faulty && w.menu.slow && clockwork.Chance(w.net, 40) {
		return clockwork.Between(w.net, 0, 4*time.Second)
	}
	return clockwork.Between(w.net, time.Millisecond, 20*time.Millisecond)
}

// lost tells whether a packet is lost.
func (w *world) lost() bool {
	if w.faulty && w.menu.loss && clockwork.Chance(w.net, 60) {
		w.Sometimes("packet lost")
		return true
	}
	return false
}
