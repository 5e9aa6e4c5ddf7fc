package transactions

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/sim/clockwork"
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// coordinating is the partition of __transaction_state with the one id, and the broker that leads it. It does what
// coordinator.Runtime and the server's marker sender do, one event at a time.
type coordinating struct {
	w         *world
	config    *config.Layers
	leader    int32
	epoch     int32 // of its leadership
	shard     *transaction.Machine
	life      int // counts shards, so that events of a dropped one do nothing
	log       []entry
	committed int
	held      []held
	waiting   map[coordinator.Ticket]func(any, errcode.Code)
	ticket    coordinator.Ticket
	refusing  time.Time
	alarm     time.Time
	producer  int64 // ids given out
}

// entry is a record as bytes; a nil value is a tombstone.
type entry struct {
	key, value []byte
}

// held is what waits until the log is committed up to an offset: a reply or an effect.
type held struct {
	offset int
	reply  *coordinator.Reply
	effect func()
}

func newCoordinating(w *world) *coordinating {
	layers, err := config.NewLayers(map[string]string{
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
	})
	if err != nil {
		w.Fail("%v", err)
	}
	c := &coordinating{w: w, config: layers, leader: 1, waiting: map[coordinator.Ticket]func(any, errcode.Code){}, producer: 1000}
	if w.menu.last {
		c.startAt(32750 + int16(w.fault.IntN(16)))
	}
	c.load(0)
	return c
}

// startAt has the log begin with a producer that is known already, with an epoch.
func (c *coordinating) startAt(epoch int16) {
	r := known(epoch, c.w.level, c.w.Now)
	key, err := logrecord.AppendKey(nil, r.Key)
	if err != nil {
		c.w.Fail("%v", err)
	}
	value, err := logrecord.AppendValue(nil, r.Value, r.Version)
	if err != nil {
		c.w.Fail("%v", err)
	}
	c.log = append(c.log, entry{key, value})
}

// load makes the leader the coordinator after d.
func (c *coordinating) load(d time.Duration) {
	c.life++
	c.epoch++
	life := c.life
	c.w.After(d, func() {
		if life != c.life || !c.w.up[c.leader] {
			return
		}
		c.w.Note("broker %d coordinates in epoch %d, %d records", c.leader, c.epoch, len(c.log))
		c.shard = transaction.New(transaction.Options{Environment: transaction.Environment{Level: c.w.level, Config: c.config}, CoordinatorEpoch: c.epoch,
			Incarnation: int64(c.life), Patience: time.Duration(c.w.seed%2) * 20 * time.Millisecond,
			SendMarkers: func(m transaction.Markers) { c.order(m) },
			AskProducerID: func(_ string, n transaction.NeedsProducerID) {
				c.withID(n, func(any, errcode.Code) {})
			}})
		for i, e := range c.log {
			c.replay(i, e)
		}
		c.committed, c.alarm = len(c.log), time.Time{}
		var out coordinator.Result
		c.shard.Loaded(c.w.Now, &out)
		c.carryOut(&out)
		c.arm()
	})
}

func (c *coordinating) replay(i int, e entry) {
	key, err := logrecord.ReadKey(logrecord.TransactionLog, e.key)
	if err != nil {
		c.w.Fail("record %d: %v", i, err)
	}
	value, _, err := logrecord.ReadValue(logrecord.TransactionLog, key.APIKey(), e.value)
	if err != nil {
		c.w.Fail("record %d: %v", i, err)
	}
	if err := c.shard.Replay(int64(i), key, value); err != nil {
		c.w.Fail("record %d does not replay: %v", i, err)
	}
}

// drop ends the shard, and cuts off what is not committed. silent: nobody is told.
func (c *coordinating) drop(silent bool) {
	c.life++
	if c.shard == nil {
		return
	}
	if c.committed < len(c.log) {
		c.w.Sometimes("uncommitted records cut off")
		c.log = c.log[:c.committed]
	}
	c.shard, c.held = nil, nil
	waiting := c.waiting
	c.waiting = map[coordinator.Ticket]func(any, errcode.Code){}
	if silent {
		return
	}
	for t := coordinator.Ticket(1); t <= c.ticket; t++ { // in order
		if done := waiting[t]; done != nil {
			done(nil, errcode.NotCoordinator)
		}
	}
}

// move makes the other broker the coordinator.
func (c *coordinating) move(loading time.Duration) {
	c.drop(false)
	c.leader = 3 - c.leader
	c.load(loading)
}

// ask hands a request to the shard; a new producer id is fetched if it needs one.
func (c *coordinating) ask(body any, done func(any, errcode.Code)) {
	if c.shard == nil {
		done(nil, errcode.CoordinatorLoadInProgress)
		return
	}
	c.ticket++
	c.waiting[c.ticket] = func(answer any, code errcode.Code) {
		if n, ok := answer.(transaction.NeedsProducerID); ok {
			c.withID(n, done)
			return
		}
		done(answer, code)
	}
	var out coordinator.Result
	c.shard.Handle(c.w.Now, coordinator.Request{Ticket: c.ticket, Body: body}, &out)
	c.carryOut(&out)
	c.arm()
}

func (c *coordinating) withID(n transaction.NeedsProducerID, done func(any, errcode.Code)) {
	c.w.Sometimes("a producer id was needed")
	c.w.After(c.w.delay(), func() {
		c.producer++
		c.ask(n.With(c.producer), done)
	})
}

// carryOut does what a result says: append, replay, Written, replies, effects.
func (c *coordinating) carryOut(out *coordinator.Result) {
	w := c.w
	if len(out.Records) > 0 && w.faulty && w.Now.Before(c.refusing) {
		w.Sometimes("append refused")
		var next coordinator.Result
		for _, f := range out.Failed {
			f(w.Now, errcode.CoordinatorNotAvailable, &next)
		}
		for _, r := range out.Replies {
			if len(out.Failed) == 0 {
				r = coordinator.Reply{Ticket: r.Ticket, Code: errcode.CoordinatorNotAvailable}
			}
			c.held = append(c.held, held{offset: len(c.log), reply: &r})
		}
		c.commit()
		return
	}
	c.append(out.Records)
	for _, r := range out.Replies {
		c.held = append(c.held, held{offset: len(c.log), reply: &r})
	}
	for _, f := range out.Committed {
		c.held = append(c.held, held{offset: len(c.log), effect: f})
	}
	for _, f := range out.Written {
		var next coordinator.Result
		f(w.Now, &next)
		if len(next.Records)+len(next.Replies)+len(next.Written)+len(next.Committed) > 0 {
			c.carryOut(&next)
		}
	}
	c.commit()
}

func (c *coordinating) append(records []coordinator.Record) {
	w := c.w
	for _, r := range records {
		var e entry
		var err error
		if e.key, err = logrecord.AppendKey(nil, r.Key); err != nil {
			w.Fail("key of %T: %v", r.Key, err)
		}
		if r.Value != nil {
			if e.value, err = logrecord.AppendValue(nil, r.Value, r.Version); err != nil {
				w.Fail("value of %T: %v", r.Key, err)
			}
		}
		w.Mix(e.key)
		w.Mix(e.value)
		if v, ok := r.Value.(*logrecord.TransactionLogValue); ok {
			w.Note("coordinator: producer %d epoch %d %s %v", v.ProducerId, v.ProducerEpoch, transaction.State(v.TransactionStatus), v.TransactionPartitions)
		}
		c.log = append(c.log, e)
		c.replay(len(c.log)-1, e)
	}
}

// commit lets the high watermark follow the log, at once or a little later, and what waits for it.
func (c *coordinating) commit() {
	lag := time.Duration(0)
	if c.committed < len(c.log) && c.w.faulty && c.w.menu.lag {
		lag = clockwork.Between(c.w.net, 0, 40*time.Millisecond)
	}
	to, life := len(c.log), c.life
	release := func() {
		if life != c.life {
			return
		}
		c.committed = max(c.committed, to)
		for len(c.held) > 0 && c.held[0].offset <= c.committed {
			h := c.held[0]
			c.held = c.held[1:]
			if h.effect != nil {
				h.effect()
				continue
			}
			c.answer(h.reply)
		}
	}
	if lag == 0 {
		release()
		return
	}
	c.w.After(lag, release)
}

// answer ends a ticket.
func (c *coordinating) answer(r *coordinator.Reply) {
	if r.Ticket == coordinator.NoTicket {
		return
	}
	done, ok := c.waiting[r.Ticket]
	if !ok {
		c.w.Fail("a request is answered twice")
	}
	delete(c.waiting, r.Ticket)
	done(r.Response, r.Code)
}

// arm wakes the shard at its deadline.
func (c *coordinating) arm() {
	if c.shard == nil {
		return
	}
	at := c.shard.Deadline()
	if at.IsZero() || at.Equal(c.alarm) {
		return
	}
	c.alarm = at
	life := c.life
	c.w.After(at.Sub(c.w.Now), func() {
		if life != c.life || !c.alarm.Equal(at) {
			return
		}
		c.alarm = time.Time{}
		for i := 0; ; i++ {
			t := c.shard.Deadline()
			if t.IsZero() || c.w.Now.Before(t) {
				break
			}
			if i > 1000 {
				c.w.Fail("the coordinator's clock does not come to rest")
			}
			var out coordinator.Result
			c.shard.Tick(c.w.Now, &out)
			c.carryOut(&out)
			if c.shard == nil {
				return
			}
		}
		c.arm()
	})
}

// order carries out an order for markers: to every partition, until each has its marker, a newer coordinator was there, or this
// one has gone. What is on its way then may still arrive.
func (c *coordinating) order(m transaction.Markers) {
	w := c.w
	w.Note("markers for %v commit %t: %v", m.Producer, m.Commit, m.Partitions)
	left := len(m.Partitions)
	if left == 0 {
		c.report(&m)
		return
	}
	for _, p := range m.Partitions {
		c.marker(&m, p, func() {
			if left--; left == 0 {
				c.report(&m)
			}
		})
	}
}

// marker writes one marker, again and again until it is there. With transaction.version 2 an attempt may be overtaken by the next
// one, and arrive when all is over: there it does no harm. Before that it would end the next transaction, and Apache Kafka's only
// protection is that this is unlikely.
func (c *coordinating) marker(m *transaction.Markers, p transaction.TopicPartition, written func()) {
	w, life := c.w, c.life
	over := false
	again := func(d time.Duration) {
		w.After(d, func() {
			if !over && life == c.life {
				over = true
				c.marker(m, p, written)
			}
		})
	}
	if w.level >= 2 {
		again(500 * time.Millisecond)
	}
	if w.lost() {
		again(500 * time.Millisecond)
		return
	}
	w.After(w.delay(), func() {
		if life != c.life && w.level < 2 {
			return
		}
		code := w.mark(m, p)
		if w.lost() {
			w.Sometimes("marker written and nobody told")
			again(500 * time.Millisecond)
			return
		}
		w.After(w.delay(), func() {
			if over || life != c.life {
				return
			}
			switch code {
			case errcode.None:
				over = true
				written()
			case errcode.InvalidProducerEpoch, errcode.TransactionCoordinatorFenced:
				over = true
				w.Note("marker for %v in %v refused: %s", m.Producer, p, code.Name())
				w.Sometimes("marker refused: " + code.Name())
			default:
				again(50 * time.Millisecond)
			}
		})
	})
}

// report tells the coordinator that all markers are there.
func (c *coordinating) report(m *transaction.Markers) {
	life := c.life
	c.w.After(c.w.delay(), func() {
		if life != c.life {
			return
		}
		c.ask(m.Written(), func(_ any, code errcode.Code) {
			switch code {
			case errcode.None, errcode.NotCoordinator, errcode.CoordinatorLoadInProgress:
			default:
				c.report(m)
			}
		})
	})
}
