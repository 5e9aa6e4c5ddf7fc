package fault

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// A Point is one request as rules see it.
type Point struct {
	Key      wire.Key
	ClientID string
	// What the request names; asked only by rules that have such a selector, and by hooks, until they return. Nil means
	// that it names none.
	Topics, Groups, TransactionalIDs func() []string
}

// An Outcome is what is to happen to a request. The zero value means nothing.
type Outcome struct {
	Delay     time.Duration
	Arrived   func()        // call it before anything else but the delay, and wait for it
	Answered  func()        // call it before the answer leaves, and wait for it
	Code      errcode.Code  // answer with it, unless None
	Drop      bool          // close the connection, apply nothing
	Lose      bool          // apply, then close the connection
	Hang      bool          // never answer
	Late      bool          // close the connection, and apply later:
	LateBy    time.Duration // after this time
	LateAfter int           // or, if positive, after so many further requests of the client

	topics []string
}

// IsZero reports whether the request is to be served as if there were no faults.
func (o *Outcome) IsZero() bool {
	return o.Delay == 0 && o.Arrived == nil && o.Answered == nil && o.Code == errcode.None && !o.Drop && !o.Lose && !o.Hang && !o.Late
}

// For returns the code that a topic's partitions are to be answered with.
func (o *Outcome) For(topic string) errcode.Code {
	if o.Code == errcode.None || len(o.topics) > 0 && !slices.Contains(o.topics, topic) {
		return errcode.None
	}
	return o.Code
}

// A Set holds the rules of one broker. Its methods may be called from any goroutine.
type Set struct {
	active atomic.Int64

	mu    sync.Mutex
	rules []*Injection
}

// An Injection is a rule at work.
type Injection struct {
	set  *Set
	rule Rule

	seen    int           // matching requests
	hits    int           // of those, struck
	changed chan struct{} // closed and renewed at each hit
}

// Add puts a rule to work behind those that are there.
func (s *Set) Add(r Rule) *Injection {
	in := &Injection{set: s, rule: r, changed: make(chan struct{})}
	s.mu.Lock()
	s.rules = append(s.rules, in)
	s.mu.Unlock()
	s.active.Add(1)
	return in
}

// Active reports whether there is any rule; it is cheap enough for every request.
func (s *Set) Active() bool { return s.active.Load() > 0 }

// Match asks the rules about a request, counts it, and returns what is to happen.
func (s *Set) Match(p Point) Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.rules {
		r := &in.rule
		if !r.matches(&p) {
			continue
		}
		if in.seen++; in.seen <= r.after || r.times > 0 && in.hits >= r.times {
			continue
		}
		in.hits++
		close(in.changed)
		in.changed = make(chan struct{})
		return r.outcome(p)
	}
	return Outcome{}
}

func (r *Rule) outcome(p Point) Outcome {
	o := Outcome{Delay: r.delay, Code: r.code, Drop: r.drop, Lose: r.lose, Hang: r.hang, Late: r.late, LateBy: r.lateBy, LateAfter: r.lateAfter, topics: r.topics}
	if f := r.arrived; f != nil {
		o.Arrived = func() { f(p) }
	}
	if f := r.answered; f != nil {
		o.Answered = func() { f(p) }
	}
	return o
}

// Hits returns how many requests the rule has struck.
func (in *Injection) Hits() int {
	in.set.mu.Lock()
	defer in.set.mu.Unlock()
	return in.hits
}

// Await returns when the rule has struck n requests, or with the cause of ctx when that has ended.
func (in *Injection) Await(ctx context.Context, n int) error {
	for {
		in.set.mu.Lock()
		hits, changed := in.hits, in.changed
		in.set.mu.Unlock()
		if hits >= n && ctx.Err() == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("fault rule %q struck %d of %d requests: %w", in.rule, hits, n, context.Cause(ctx))
		}
	}
}

// Remove takes the rule out of work; requests that it delays stay delayed.
func (in *Injection) Remove() {
	in.set.mu.Lock()
	defer in.set.mu.Unlock()
	if i := slices.Index(in.set.rules, in); i >= 0 {
		in.set.rules = slices.Delete(in.set.rules, i, i+1)
		in.set.active.Add(-1)
	}
}
