package machine

import (
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/wire"
)

// Sent is a request that was handed to the socket and waits for its answer.
type Sent[T any] struct {
	CorrelationID int32
	Key           wire.Key
	Version       int16
	At            time.Time // when it was handed over
	Deadline      time.Time
	Value         T // the driver's
}

// Inflight is the machine of one connection once it is up. A broker answers the requests of a connection in the
// order in which they were sent, so the oldest one is the only one an answer can belong to; any other
// correlation id means that the two sides have lost step and the connection is of no more use.
//
//	Send   -> a correlation id, the request waits at the end of the queue
//	Answer -> the oldest request, or an error after which the connection has to be closed
//	Deadline, Expired, Idle -> when to look again, and what is then overdue
//	Drain  -> whoever still waits, oldest first, when the connection has ended
type Inflight[T any] struct {
	// MaxIdle is how long the connection may stay without a request; zero or less keeps it for ever.
	MaxIdle time.Duration

	ring   []Sent[T] // a power of two long
	head   int
	n      int
	next   int32
	active time.Time
}

// Started sets the moment from which idleness counts and the first correlation id.
func (f *Inflight[T]) Started(now time.Time, firstCorrelationID int32) {
	f.active, f.next = now, firstCorrelationID
}

// Len is how many requests wait for an answer.
func (f *Inflight[T]) Len() int { return f.n }

// Correlation gives the next correlation id. It is taken before the request is encoded; a request that fails to
// encode wastes it, which does no harm.
func (f *Inflight[T]) Correlation() int32 {
	id := f.next
	f.next = (f.next + 1) & 0x7fffffff // negative ids are legal but no client sends them
	return id
}

// Send puts a request at the end of the queue.
func (f *Inflight[T]) Send(s Sent[T]) {
	if f.n == len(f.ring) {
		f.grow()
	}
	f.ring[(f.head+f.n)&(len(f.ring)-1)] = s
	f.n++
	f.active = s.At
}

func (f *Inflight[T]) grow() {
	ring := make([]Sent[T], max(8, 2*len(f.ring)))
	for i := range f.n {
		ring[i] = f.ring[(f.head+i)&(len(f.ring)-1)]
	}
	f.ring, f.head = ring, 0
}

// Touch notes that the connection was used without a request that waits.
func (f *Inflight[T]) Touch(now time.Time) { f.active = now }

// Answer takes the oldest request off the queue, if the answer is to that one.
func (f *Inflight[T]) Answer(now time.Time, correlationID int32) (Sent[T], error) {
	if f.n == 0 {
		return Sent[T]{}, &CorrelationError{Got: correlationID, None: true}
	}
	s := &f.ring[f.head]
	if s.CorrelationID != correlationID {
		return Sent[T]{}, &CorrelationError{Want: s.CorrelationID, Got: correlationID, Key: s.Key}
	}
	f.active = now
	return f.pop(), nil
}

// Oldest is the request an answer would belong to; ok is false when none waits.
func (f *Inflight[T]) Oldest() (s Sent[T], ok bool) {
	if f.n == 0 {
		return s, false
	}
	return f.ring[f.head], true
}

func (f *Inflight[T]) pop() Sent[T] {
	s := f.ring[f.head]
	f.ring[f.head] = Sent[T]{} // let go of the driver's value
	f.head = (f.head + 1) & (len(f.ring) - 1)
	f.n--
	return s
}

// Drain takes the oldest request off the queue whatever was answered.
func (f *Inflight[T]) Drain() (Sent[T], bool) {
	if f.n == 0 {
		return Sent[T]{}, false
	}
	return f.pop(), true
}

// Deadline is when Expired or Idle may first say something new; zero for never.
func (f *Inflight[T]) Deadline() time.Time {
	if f.n == 0 {
		if f.MaxIdle <= 0 {
			return time.Time{}
		}
		return f.active.Add(f.MaxIdle)
	}
	first := f.at(0).Deadline
	for i := 1; i < f.n; i++ {
		if d := f.at(i).Deadline; d.Before(first) {
			first = d
		}
	}
	return first
}

// Expired is the oldest request whose deadline has passed.
func (f *Inflight[T]) Expired(now time.Time) (Sent[T], bool) {
	for i := range f.n {
		if s := f.at(i); !s.Deadline.After(now) {
			return *s, true
		}
	}
	return Sent[T]{}, false
}

// Idle tells whether nothing has been sent or answered for MaxIdle.
func (f *Inflight[T]) Idle(now time.Time) bool {
	return f.n == 0 && f.MaxIdle > 0 && !now.Before(f.active.Add(f.MaxIdle))
}

func (f *Inflight[T]) at(i int) *Sent[T] { return &f.ring[(f.head+i)&(len(f.ring)-1)] }

// CorrelationError is an answer that belongs to no request, or not to the oldest.
type CorrelationError struct {
	Want, Got int32
	Key       wire.Key
	None      bool // no request was waiting
}

// Error names the id that came and the one that was due.
func (e *CorrelationError) Error() string {
	if e.None {
		return fmt.Sprintf("answer with correlation id %d came though no request waits", e.Got)
	}
	return fmt.Sprintf("answer has correlation id %d, the oldest request (%v) has %d", e.Got, e.Key, e.Want)
}
