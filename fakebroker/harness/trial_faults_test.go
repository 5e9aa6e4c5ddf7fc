package harness_test

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// misfortune is something that goes wrong in a trial.
type misfortune struct {
	name string
	do   func(tr *trial, r *rand.Rand)
}

// writing are the requests of which transactions are made.
var writing = []wire.Key{wire.KeyInitProducerId, wire.KeyAddPartitionsToTxn, wire.KeyAddOffsetsToTxn, wire.KeyTxnOffsetCommit, wire.KeyEndTxn, wire.KeyProduce}

// mortals are the roles that die.
var mortals = []string{"w0", "w1", "ledger", "tail", "late"}

// all is what can happen. Each seed draws some of them, and how often.
var all = []misfortune{
	{"lose answers", func(tr *trial, r *rand.Rand) { tr.inject(any1(r).LoseResponse().Times(1 + r.IntN(3))) }},
	{"drop requests", func(tr *trial, r *rand.Rand) { tr.inject(any1(r).DropConnection().Times(1 + r.IntN(3))) }},
	{"late requests", func(tr *trial, r *rand.Rand) {
		tr.inject(late1(r).Late(time.Duration(50+r.IntN(4000)) * time.Millisecond).Times(1 + r.IntN(2)))
	}},
	{"late batches", func(tr *trial, r *rand.Rand) {
		tr.inject(fault.Produce().Client(mortals[r.IntN(3)]).After(r.IntN(6)).Late(time.Duration(20+r.IntN(1000)) * time.Millisecond).Times(1 + r.IntN(3)))
	}},
	{"late by steps", func(tr *trial, r *rand.Rand) { tr.inject(late1(r).LateAfter(1 + r.IntN(6)).Times(1)) }},
	{"slow requests", func(tr *trial, r *rand.Rand) {
		tr.inject(any1(r).Delay(time.Duration(r.IntN(4000)) * time.Millisecond).Times(1 + r.IntN(4)))
	}},
	{"refuse produce", func(tr *trial, r *rand.Rand) {
		tr.inject(fault.Produce().Error(errcode.NotEnoughReplicas).After(r.IntN(3)).Times(1))
	}},
	{"disconnect", func(tr *trial, _ *rand.Rand) { tr.k.Disconnect() }},
	{"kill", func(tr *trial, r *rand.Rand) { tr.kill(mortals[r.IntN(len(mortals))]) }},
	{"kill at a request", func(tr *trial, r *rand.Rand) {
		name := mortals[r.IntN(3)]
		tr.inject(fault.On(writing...).Client(name).After(r.IntN(10)).Times(1).OnAnswer(func(p fault.Point) {
			tr.tell("%s: answer to %s", name, p.Key)
			tr.kill(name)
		}))
	}},
	{"cut off", func(tr *trial, r *rand.Rand) {
		tr.mu.Lock()
		l := tr.lives[mortals[r.IntN(3)]]
		tr.mu.Unlock()
		tr.tell("cut %s off", l.id)
		l.cutOff(true)
		time.AfterFunc(time.Duration(1+r.IntN(9))*time.Second, func() {
			if l.ctx.Err() == nil {
				l.cutOff(false)
			}
		})
	}},
	{"the network blinks", func(tr *trial, r *rand.Rand) {
		// Just when some answers are on their way, if the process's network lags.
		name := []string{"shop", "shop", "shop", "ledger", "w0", "w1"}[r.IntN(6)]
		tr.inject(fault.On(wire.KeyProduce, wire.KeyTxnOffsetCommit).Client(name).After(r.IntN(6)).Times(1).OnAnswer(func(p fault.Point) {
			time.AfterFunc(10*time.Millisecond, func() {
				tr.mu.Lock()
				l := tr.lives[name]
				tr.mu.Unlock()
				tr.tell("blink of %s", l.id)
				l.cutOff(true)
				l.cutOff(false)
			})
		}))
	}},
	{"crash of the broker", func(tr *trial, r *rand.Rand) { tr.crash(time.Duration(r.IntN(3000)) * time.Millisecond) }},
	{"crash at a request", func(tr *trial, r *rand.Rand) {
		down := time.Duration(r.IntN(2000)) * time.Millisecond
		tr.inject(fault.On(writing...).After(r.IntN(12)).Times(1).OnAnswer(func(p fault.Point) {
			tr.tell("%s: answer to %s", p.ClientID, p.Key)
			tr.crash(down)
		}))
	}},
	{"restart of the broker", func(tr *trial, r *rand.Rand) { tr.restart() }},
	{"force a rebalance", func(tr *trial, _ *rand.Rand) { _ = tr.k.ForceRebalance(context.Background(), "g") }},
	{"reload the group coordinator", func(tr *trial, _ *rand.Rand) { _ = tr.k.ReloadCoordinator(context.Background(), "g") }},
	{"reload the transaction coordinator", func(tr *trial, r *rand.Rand) {
		_ = tr.k.ReloadTransactionCoordinator(context.Background(), mortals[r.IntN(3)])
	}},
	{"time a transaction out", func(tr *trial, r *rand.Rand) { _ = tr.k.ExpireTransaction(context.Background(), mortals[r.IntN(3)]) }},
	{"expire a session", func(tr *trial, r *rand.Rand) { tr.expireSession(r) }},
	{"a member is gone while it commits", func(tr *trial, r *rand.Rand) {
		// The answer to its offsets, or the request to end its transaction, is held until another has its partitions.
		key := []wire.Key{wire.KeyTxnOffsetCommit, wire.KeyEndTxn}[r.IntN(2)]
		tr.inject(fault.On(key).Client(mortals[r.IntN(2)]).Times(1).Delay(time.Duration(500+r.IntN(3000)) * time.Millisecond).OnArrival(func(p fault.Point) {
			tr.tell("%s: %s is held", p.ClientID, p.Key)
			tr.expireSessionOf(p.ClientID)
		}))
	}},
}

// any1 chooses requests of one of the keys of transactions, of one client or all.
func any1(r *rand.Rand) fault.Rule {
	rule := fault.On(writing[r.IntN(len(writing))]).After(r.IntN(4))
	if r.IntN(2) == 0 {
		rule = rule.Client(mortals[r.IntN(3)])
	}
	return rule
}

// late1 is any1 without TxnOffsetCommit: of two in one transaction nothing says which was first, so in Kafka one that comes
// late undoes the next.
func late1(r *rand.Rand) fault.Rule { return any1(r).Except(wire.KeyTxnOffsetCommit) }

// misfortunes has things go wrong for some time.
func (tr *trial) misfortunes() {
	r := tr.random("misfortunes")
	var drawn []misfortune
	for _, m := range all {
		if r.IntN(3) == 0 {
			drawn = append(drawn, m)
		}
	}
	if len(drawn) == 0 {
		drawn = all
	}
	for range 6 + r.IntN(10) {
		time.Sleep(time.Duration(r.IntN(2500)) * time.Millisecond)
		m := drawn[r.IntN(len(drawn))]
		tr.tell("%s", m.name)
		m.do(tr, r)
	}
}

// crash kills the broker and starts it again.
func (tr *trial) crash(down time.Duration) {
	go func() { // not on the goroutine of a request: it ends with the broker
		if !tr.away() {
			return
		}
		defer tr.back()
		tr.tell("the broker crashes")
		_ = tr.k.Crash(context.Background())
		time.Sleep(down)
		if err := tr.k.Restart(context.Background()); err != nil {
			tr.find("the broker does not start: %v", err)
		}
		tr.tell("the broker is back")
	}()
}

// restart stops the broker in good order and starts it again.
func (tr *trial) restart() {
	if !tr.away() {
		return
	}
	defer tr.back()
	if err := tr.k.Restart(context.Background()); err != nil {
		tr.find("the broker does not start: %v", err)
	}
}

// away claims the broker's absence: one at a time.
func (tr *trial) away() bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.absent {
		return false
	}
	tr.absent = true
	return true
}

func (tr *trial) back() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.absent = false
}

// expireSessionOf has the group drop the member of a role.
func (tr *trial) expireSessionOf(role string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	g, err := tr.k.Group(ctx, "g")
	if err != nil {
		return
	}
	for _, m := range g.Members {
		if m.ClientID == role {
			_ = tr.k.ExpireSession(ctx, "g", m.ID)
		}
	}
}

// expireSession has the group drop a member.
func (tr *trial) expireSession(r *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if g, err := tr.k.Group(ctx, "g"); err == nil && len(g.Members) > 0 {
		_ = tr.k.ExpireSession(ctx, "g", g.Members[r.IntN(len(g.Members))].ID)
	}
}
