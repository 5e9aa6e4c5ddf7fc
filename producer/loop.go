package producer

import (
	"sync"
	"time"

	"github.com/ottla-kafka/ottla/producer/machine"
)

// loop drives the machine. It has an inbox, and whoever finds nobody at work may become the runner: the producer's
// own goroutine (wake-ups from Submit, timers), a Send that waits anyway, a connection's reader that has an answer.
// There is one runner at a time, so the machine has one owner, and a waiting Send costs no goroutine switch on its way
// out. Nothing the runner does blocks.
type loop struct {
	p *Producer
	m *machine.Machine // the runner's

	mu       sync.Mutex
	running  bool
	controls []func()
	news     []*part // have something to gather
	replies  []*request
	packed   []*batch // compressed
	deadline time.Time
	asleep   time.Time // until when the goroutine sleeps

	wake chan struct{} // to the goroutine, capacity 1
	stop chan struct{} // closed by Close

	// the runner's scratch
	doing    inbox
	events   []machine.Event
	gathered []*machine.Batch
	extra    []machine.Event    // from effects, for the next step
	flying   []*request         // issued, not answered
	over     []*machine.Request // revoked, to be recycled after the step
	implicit bool               // the open transaction's; see transactional.go
	response response
}

// inbox is what a runner takes at once.
type inbox struct {
	controls []func()
	news     []*part
	replies  []*request
	packed   []*batch
}

func newLoop(p *Producer, m *machine.Machine) *loop {
	return &loop{p: p, m: m, wake: make(chan struct{}, 1), stop: make(chan struct{}), deadline: farAway, asleep: farAway}
}

var farAway = time.Unix(1<<40, 0)

// main is the producer's goroutine; Close ends it.
func (l *loop) main() {
	defer l.p.life.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		l.runAsGoroutine()
		l.mu.Lock()
		d := l.deadline
		l.asleep = d
		idle := l.empty() || l.running
		l.mu.Unlock()
		if !idle {
			continue
		}
		if machine.Never(d) {
			timer.Stop()
		} else {
			timer.Reset(time.Until(d))
		}
		select {
		case <-timer.C:
		case <-l.wake:
		case <-l.stop:
			return
		}
	}
}

// runAsGoroutine takes a turn even with an empty inbox, because time may have passed.
func (l *loop) runAsGoroutine() {
	l.mu.Lock()
	if l.running {
		l.mu.Unlock()
		return
	}
	l.running = true
	l.mu.Unlock()
	l.run(true)
}

// runInline makes the caller the runner unless there is one.
func (l *loop) runInline() {
	l.mu.Lock()
	if l.running {
		l.mu.Unlock()
		return
	}
	l.running = true
	l.mu.Unlock()
	l.run(false)
}

// turns bounds how long a goroutine that has other work stays the runner.
const turns = 32

// run works until the inbox is empty. running is set and is ours.
func (l *loop) run(own bool) {
	for n := 0; ; n++ {
		l.mu.Lock()
		if n > 0 && l.empty() || !own && n == turns {
			l.running = false
			again := !l.empty()
			l.deadline = l.m.Deadline()
			if !own && (again || l.deadline.Before(l.asleep)) {
				l.signal()
			}
			l.mu.Unlock()
			return
		}
		l.doing.controls, l.controls = l.controls, l.doing.controls[:0]
		l.doing.news, l.news = l.news, l.doing.news[:0]
		l.doing.replies, l.replies = l.replies, l.doing.replies[:0]
		l.doing.packed, l.packed = l.packed, l.doing.packed[:0]
		l.mu.Unlock()
		l.turn()
	}
}

func (l *loop) empty() bool {
	return len(l.controls)+len(l.news)+len(l.replies)+len(l.packed) == 0
}

// turn does what is in l.doing. Controls come first: they make partitions known.
func (l *loop) turn() {
	l.events = l.events[:0]
	for i, f := range l.doing.controls {
		f()
		l.doing.controls[i] = nil
	}
	for i, pt := range l.doing.news {
		e := pt.gather(false, &l.gathered)
		if n := len(e.Batches); n > 0 {
			pt.queued.Store(int32(pt.m.Queued() + n))
			pt.blocked.CompareAndSwap(0, e.Batches[0].Created.UnixNano())
		}
		l.events = append(l.events, e)
		l.doing.news[i] = nil
	}
	for _, b := range l.doing.packed {
		b.m.Size = b.size()
		l.events = append(l.events, machine.Event{Kind: machine.Prepared, Batch: &b.m})
	}
	for _, r := range l.doing.replies {
		l.landed(r)
		r.decode(&l.response)
		l.events = append(l.events, machine.Event{Kind: machine.Replied, Request: r.m})
	}
	l.step()
	for i, r := range l.doing.replies {
		l.m.Recycle(r.m)
		l.doing.replies[i] = nil
	}
	clear(l.doing.packed)
	l.recycle()
}

// now makes a step of its own of what has happened in this turn, for those who cannot go on before it.
func (l *loop) now() {
	l.step()
	l.events = l.events[:0]
	l.recycle()
}

// recycle hands back the requests that were revoked before the last step.
func (l *loop) recycle() {
	for i, m := range l.over {
		l.m.Recycle(m)
		l.over[i] = nil
	}
	l.over = l.over[:0]
}

// step lets the machine decide about l.events and does what it says, until it says nothing more.
func (l *loop) step() {
	now := time.Now()
	if !now.Before(l.m.ExpireAt()) {
		l.revokeExpired(now)
	}
	eff := l.m.Step(now, l.events...)
	for {
		clear(l.gathered)
		l.gathered = l.gathered[:0]
		l.extra = l.extra[:0]
		for _, mp := range eff.Seal {
			l.extra = append(l.extra, mp.Owner.(*part).gather(true, &l.gathered))
		}
		for _, mb := range eff.Prepare {
			l.p.packer.add(mb.Owner.(*batch))
		}
		for _, mb := range eff.Split {
			l.extra = append(l.extra, l.divide(mb.Owner.(*batch)))
		}
		for _, mb := range eff.Release {
			l.release(mb.Owner.(*batch))
		}
		for _, mb := range eff.Discard {
			l.discard(mb.Owner.(*batch))
		}
		if l.p.txnID != nil {
			l.tellSession(eff) // before the verdicts: a flush that waits for those must not come back first
		}
		for i := range eff.Verdicts {
			l.conclude(&eff.Verdicts[i])
		}
		for _, r := range eff.Send {
			l.send(r)
		}
		if eff.InitProducerID {
			l.askProducerID()
		}
		if eff.Refresh {
			l.p.cl.RefreshMetadata()
		}
		for _, mp := range eff.Bumped {
			l.noteBump(mp.Owner.(*part))
		}
		if len(l.extra) == 0 {
			return
		}
		eff = l.m.Step(time.Now(), l.extra...)
	}
}

// release frees a batch's memory; its callbacks may still have to be called. When they are far behind, the memory is kept
// until they have been called: that bounds the teller's line.
func (l *loop) release(b *batch) {
	if !b.judged && l.p.teller.behind() {
		b.late = true
		return
	}
	b.dropBuffer(l.p.mem)
	l.p.let(b)
}

// discard ends a batch that comes to no verdict.
func (l *loop) discard(b *batch) {
	for _, f := range b.flushes {
		f.less()
	}
	b.judged = true
	l.release(b)
	l.p.let(b)
}

// tell puts a part into the inbox. Submitters call it when add said so.
func (l *loop) tell(pt *part, wake bool, opened time.Time, fresh bool) {
	l.mu.Lock()
	if fresh {
		l.news = append(l.news, pt)
	}
	if !l.running && (wake || opened.Add(l.p.cfg.Linger).Before(l.asleep)) {
		l.signal()
	}
	l.mu.Unlock()
}

// signal wakes the goroutine.
func (l *loop) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// control makes the runner call f.
func (l *loop) control(f func()) {
	l.mu.Lock()
	l.controls = append(l.controls, f)
	if !l.running {
		l.signal()
	}
	l.mu.Unlock()
}

// event is control for a machine event; only for callers that run on the runner's side already.
func (l *loop) event(e machine.Event) { l.events = append(l.events, e) }

// replied puts an answered request into the inbox and works on it, on the connection's goroutine.
func (l *loop) replied(r *request) {
	l.mu.Lock()
	l.replies = append(l.replies, r)
	l.mu.Unlock()
	l.runInline()
}

// prepared puts a compressed batch into the inbox and works on it, on the packer's goroutine.
func (l *loop) prepared(b *batch) {
	l.mu.Lock()
	l.packed = append(l.packed, b)
	l.mu.Unlock()
	l.runInline()
}
