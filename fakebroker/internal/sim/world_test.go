package sim

import (
	"math/rand/v2"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/sim/clockwork"
)

// The timeouts of all members. They are short, so that two virtual minutes hold many rebalances.
const (
	session    = 10 * time.Second
	rebalance  = 20 * time.Second
	heartbeat  = time.Second
	reconverge = 2 * (session + rebalance)
)

// world is one run.
type world struct {
	*clockwork.Clock
	seed  uint64
	fleet fleet

	// Streams of chance, one for each purpose, so that a new draw of one does not shift the others.
	net, work, fault, ids *rand.Rand

	menu    menu // which faults this seed has
	faulty  bool // they happen at present
	topics  topics
	brokers *brokers
	nodes   []*node
	made    int
	ledger  ledger
}

func newWorld(seed uint64, f fleet, log func(string, ...any)) *world {
	stream := func(name string) *rand.Rand { return clockwork.Stream(seed, name) }
	w := &world{Clock: clockwork.New(log), seed: seed, fleet: f, faulty: true,
		net: stream("net"), work: stream("work"), fault: stream("fault"), ids: stream("ids")}
	w.menu = drawMenu(w.fault)
	w.ledger.init(w)
	w.topics.init(w)
	w.brokers = newBrokers(w)
	return w
}

// run lets time pass; every event is followed by the checks.
func (w *world) run(d time.Duration) { w.Run(d, w.check) }
