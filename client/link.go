package client

import (
	"fmt"
	"sync"
	"time"

	"github.com/ottla-kafka/ottla/client/machine"
)

type linkKey struct {
	broker  int32 // negative: a seed, see machine.SeedID
	purpose Purpose
}

// link is the way to one broker for one purpose. It outlives its connections: calls queue here while none is up,
// and one goroutine (run) dials, writes and cleans up for as long as there is something to do. The goroutine
// starts with a call that finds none and ends when the connection has gone and the queue is empty; Client.Close
// ends it in any case. A second goroutine reads (conn.read) and ends with its connection.
//
//	no goroutine --Issue--> connecting --up--> serving --idle, closed--> no goroutine
//	                            |  ^               |
//	                            failed: every queued call fails, the next one waits for the back-off
type link struct {
	c       *Client
	purpose Purpose
	wake    chan struct{} // holds one token: "look again"

	mu       sync.Mutex
	broker   int32 // changes once, when a seed's id becomes known
	queue    []*Call
	spare    []*Call // the last queue, for reuse
	inflight machine.Inflight[*Call]
	conn     *conn // nil while none is up
	running  bool  // the goroutine exists
	closed   bool
	retired  bool // to be closed when nothing is under way
	muted    time.Time
	retryAt  time.Time
	failures int
	lastErr  error // of the newest attempt to connect
}

func (c *Client) newLink(broker int32, p Purpose) *link {
	return &link{c: c, broker: broker, purpose: p, wake: make(chan struct{}, 1)}
}

// signal makes the goroutine look again. It never blocks.
func (l *link) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *link) issue(call *Call) {
	now := time.Now()
	timeout := call.Timeout
	if timeout <= 0 {
		timeout = l.c.cfg.RequestTimeout
	}
	call.state = callState{deadline: now.Add(timeout)}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		l.refuse(call, ErrClosed)
		return
	}
	if n := len(l.queue) + l.inflight.Len(); n >= l.c.cfg.MaxQueued {
		l.mu.Unlock()
		l.refuse(call, fmt.Errorf("%w: %d, the limit is Config.MaxQueued", ErrQueueFull, n))
		return
	}
	if wait := l.muted.Sub(now); wait > 0 {
		call.state.deadline = call.state.deadline.Add(min(wait, timeout))
	}
	l.queue = append(l.queue, call)
	start := !l.running
	if start {
		l.running = l.c.life.start(l.run)
		if !l.running { // closed between the two checks
			l.queue = l.queue[:len(l.queue)-1]
		}
	}
	running := l.running
	l.mu.Unlock()
	switch {
	case !running:
		l.refuse(call, ErrClosed)
	case !start:
		l.signal()
	}
}

// refuse ends a call of which nothing was written.
func (l *link) refuse(call *Call, err error) { l.finish(call, Reply{Err: l.callError(call, err, "")}) }

// finish runs Done and tells the observers. The link's lock is not held.
func (l *link) finish(call *Call, r Reply) {
	if r.Err != nil {
		l.c.meter.requestErrors.Add(1)
	}
	if len(l.c.cfg.Observers) > 0 {
		e := RequestEvent{Broker: l.id(), Purpose: l.purpose, Key: call.Key, Version: r.Version, RequestBytes: r.Size,
			ResponseBytes: len(r.Body), Latency: r.Latency, Err: r.Err}
		for _, o := range l.c.cfg.Observers {
			o.Requested(e)
		}
	}
	call.Done(r)
}

func (l *link) id() int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broker
}

// callError is what the caller of one call gets to see.
func (l *link) callError(call *Call, err error, hint string) error {
	return &OpError{Op: call.Key.String(), Broker: l.c.BrokerName(l.id()), Partition: -1, Attempts: 1, Hint: hint, Err: err}
}

// run is the link's goroutine.
func (l *link) run() {
	l.c.attend(l, 1)
	defer l.c.attend(l, -1)
	for l.hasWork() {
		if c := l.connect(); c != nil {
			timedOut, cause := l.serve(c)
			l.tearDown(c, cause, timedOut)
		}
	}
}

// hasWork tells the goroutine whether to go on; if not, it is already marked as gone.
func (l *link) hasWork() bool {
	l.mu.Lock()
	if !l.closed && l.c.ctx.Err() == nil && len(l.queue) > 0 {
		l.mu.Unlock()
		return true
	}
	l.running = false
	calls := l.queue
	l.queue = nil
	l.mu.Unlock()
	for _, call := range calls {
		l.refuse(call, ErrClosed)
	}
	return false
}

// expireQueued fails the queued calls whose time has come and gives the next deadline, zero for none.
func (l *link) expireQueued(now time.Time) time.Time {
	var next time.Time
	var late []*Call
	l.mu.Lock()
	kept := l.queue[:0]
	for _, call := range l.queue {
		if !call.state.deadline.After(now) {
			late = append(late, call)
			continue
		}
		if next.IsZero() || call.state.deadline.Before(next) {
			next = call.state.deadline
		}
		kept = append(kept, call)
	}
	clear(l.queue[len(kept):])
	l.queue = kept
	lastErr := l.lastErr
	l.mu.Unlock()
	for _, call := range late {
		err := fmt.Errorf("%w: it was not sent, because there was no connection or the broker had asked to wait", ErrTimeout)
		var hint string
		if lastErr != nil {
			err = fmt.Errorf("%w; the last attempt to connect said: %w", err, lastErr)
			hint = hintOf(lastErr)
		}
		l.finish(call, Reply{Err: l.callError(call, err, hint)})
	}
	return next
}

// failQueued ends everything that waits, in order.
func (l *link) failQueued(err error, hint string) {
	l.mu.Lock()
	calls := l.queue
	l.queue = nil
	l.mu.Unlock()
	for _, call := range calls {
		l.finish(call, Reply{Err: l.callError(call, err, hint)})
	}
}

// mute holds writing back for d (KIP-219). What waits gets as much more time, but no more than request.timeout.ms.
func (l *link) mute(now time.Time, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := now.Add(d)
	if !until.After(l.muted) {
		return
	}
	l.muted = until
	for _, call := range l.queue {
		call.state.deadline = call.state.deadline.Add(min(d, l.c.cfg.RequestTimeout))
	}
	l.signal()
}

// close ends the link for good; the goroutine sees to what is under way.
func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	c := l.conn
	l.mu.Unlock()
	if c != nil {
		c.nc.Close() // ends a write or read that blocks
	}
	l.signal()
}

// retire closes the connection as soon as nothing is under way; the link may be used again afterwards.
func (l *link) retire() {
	l.mu.Lock()
	l.retired = true
	l.mu.Unlock()
	l.signal()
}

// connected tells whether a connection is up, and how many calls are under way.
func (l *link) connected() (up bool, load int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn != nil, len(l.queue) + l.inflight.Len()
}

// resting tells whether the link waits for its back-off after a failure.
func (l *link) resting(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn == nil && l.retryAt.After(now)
}
