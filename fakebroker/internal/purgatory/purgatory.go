package purgatory

import (
	"sync"
	"time"
)

// Outcome says how an operation ended.
type Outcome uint8

// The ways an operation ends.
const (
	Satisfied Outcome = iota // Try returned true
	Expired                  // its deadline came first
	Closed                   // the purgatory was closed
)

// An Operation is one delayed request.
type Operation struct {
	// Try looks whether the wait is over. It is called by one goroutine at a time and never after it returned true or
	// the operation ended.
	Try func() bool
	// Done runs exactly once, without any lock held.
	Done func(Outcome)

	mu    sync.Mutex
	ended bool
	timer *time.Timer
}

// A Purgatory holds operations by key. Methods may be called from any goroutine.
type Purgatory[K comparable] struct {
	mu      sync.Mutex
	waiting map[K][]*Operation
	all     map[*Operation][]K
	closed  bool
}

// New returns an empty Purgatory.
func New[K comparable]() *Purgatory[K] {
	return &Purgatory[K]{waiting: make(map[K][]*Operation), all: make(map[*Operation][]K)}
}

// Watch completes op at once if it can, and otherwise keeps it until a Check of one of keys satisfies it or wait has
// passed. A wait of zero or less expires at once. keys must not be changed afterwards.
func (p *Purgatory[K]) Watch(op *Operation, wait time.Duration, keys ...K) {
	if op.attempt() {
		return
	}
	if wait <= 0 {
		op.end(Expired)
		return
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		op.end(Closed)
		return
	}
	p.all[op] = keys
	for _, k := range keys {
		p.waiting[k] = append(p.waiting[k], op)
	}
	p.mu.Unlock()
	// What was waited for may have come between the first try and the registration.
	if op.attempt() {
		p.remove(op)
		return
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	if !op.ended {
		op.timer = time.AfterFunc(wait, func() {
			p.remove(op)
			op.end(Expired)
		})
	}
}

// Check has every operation that waits for key look again and returns how many were satisfied.
func (p *Purgatory[K]) Check(key K) int {
	p.mu.Lock()
	ops := p.waiting[key]
	if len(ops) == 0 {
		p.mu.Unlock()
		return 0
	}
	var few [8]*Operation
	look := append(few[:0], ops...)
	p.mu.Unlock()
	satisfied := 0
	for _, op := range look {
		if op.attempt() {
			p.remove(op)
			satisfied++
		}
	}
	return satisfied
}

// Cancel takes an operation out; if it had not ended, Done never runs.
func (p *Purgatory[K]) Cancel(op *Operation) {
	op.mu.Lock()
	if !op.ended {
		op.finish()
	}
	op.mu.Unlock()
	p.remove(op)
}

// Len returns how many operations wait.
func (p *Purgatory[K]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all)
}

// Close ends every waiting operation with Closed; later ones end so at once.
func (p *Purgatory[K]) Close() {
	p.mu.Lock()
	p.closed = true
	ops := make([]*Operation, 0, len(p.all))
	for op := range p.all {
		ops = append(ops, op)
	}
	clear(p.all)
	clear(p.waiting)
	p.mu.Unlock()
	for _, op := range ops {
		op.end(Closed)
	}
}

// remove takes an ended operation off its keys; doing it twice is harmless.
func (p *Purgatory[K]) remove(op *Operation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.all[op] {
		ops := p.waiting[k]
		for i, o := range ops {
			if o == op {
				last := len(ops) - 1
				ops[i], ops[last] = ops[last], nil
				ops = ops[:last]
				break
			}
		}
		if len(ops) == 0 {
			delete(p.waiting, k)
		} else {
			p.waiting[k] = ops
		}
	}
	delete(p.all, op)
}

// attempt tries once and ends the operation if it is satisfied. False also means that it had ended before.
func (op *Operation) attempt() bool {
	op.mu.Lock()
	if op.ended || !op.Try() {
		op.mu.Unlock()
		return false
	}
	op.finish()
	op.mu.Unlock()
	op.Done(Satisfied)
	return true
}

// end ends the operation unless it has ended.
func (op *Operation) end(how Outcome) {
	op.mu.Lock()
	if op.ended {
		op.mu.Unlock()
		return
	}
	op.finish()
	op.mu.Unlock()
	op.Done(how)
}

func (op *Operation) finish() {
	op.ended = true
	if op.timer != nil {
		op.timer.Stop()
	}
}
