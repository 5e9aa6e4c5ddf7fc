package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/client/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

type dialed struct {
	conn *conn
	err  error
}

// connect waits for the back-off, then dials, and keeps an eye on the deadlines of the calls that wait. It gives
// nil when it failed (the queue has been failed too) or the client was closed.
func (l *link) connect() *conn {
	ctx, cancel := context.WithCancel(l.c.ctx)
	defer cancel()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var result chan dialed // nil until dialling has begun
	var began time.Time
	for {
		now := time.Now()
		next := l.expireQueued(now)
		l.mu.Lock()
		idle, retryAt, failures := len(l.queue) == 0, l.retryAt, l.failures
		l.mu.Unlock()
		if result == nil {
			if idle {
				return nil // nobody waits any more: no reason to dial
			}
			if !retryAt.After(now) {
				began, result = now, make(chan dialed, 1)
				l.startDial(ctx, failures, result)
			} else if next.IsZero() || retryAt.Before(next) {
				next = retryAt
			}
		}
		if next.IsZero() {
			next = now.Add(time.Hour)
		}
		timer.Reset(next.Sub(now))
		select {
		case d := <-result:
			return l.dialEnded(d, began)
		case <-timer.C:
		case <-l.wake:
		case <-l.c.ctx.Done():
			if result != nil { // the dial ends with ctx; its connection must not be left over
				if d := <-result; d.conn != nil {
					d.conn.nc.Close()
				}
			}
			return nil
		}
	}
}

// startDial dials in a goroutine of its own, which ends by its own limit or with ctx.
func (l *link) startDial(ctx context.Context, failures int, result chan<- dialed) {
	setup := machine.Backoff{First: l.c.cfg.SetupTimeout, Most: l.c.cfg.SetupTimeoutMax}
	limit := setup.Exact(failures + 1)
	run := func() {
		ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: connecting took more than %s (socket.connection.setup.timeout.ms)", ErrTimeout, limit))
		defer cancel()
		c, err := l.dial(ctx)
		result <- dialed{c, err}
	}
	if !l.c.life.start(run) {
		result <- dialed{nil, ErrClosed}
	}
}

func (l *link) dialEnded(d dialed, began time.Time) *conn {
	now := time.Now()
	l.c.meter.dials.Add(1)
	id := l.id()
	addr, _ := l.c.addrOf(id)
	for _, o := range l.c.cfg.Observers {
		o.Connected(ConnectEvent{Broker: id, Purpose: l.purpose, Addr: addr, Took: now.Sub(began), Err: d.err})
	}
	if d.err == nil {
		l.mu.Lock()
		l.lastErr = nil
		l.mu.Unlock()
		l.c.log.Debug("kafka: connected", "broker", id, "purpose", l.purpose.String(), "addr", d.conn.addr, "took", now.Sub(began))
		return d.conn
	}
	if errors.Is(d.err, ErrClosed) {
		return nil
	}
	l.c.meter.dialErrors.Add(1)
	l.backOff(now, d.err)
	hint := hintOf(d.err)
	l.c.log.Warn("kafka: cannot connect", "broker", id, "purpose", l.purpose.String(), "addr", addr, "error", d.err, "hint", hint)
	switch {
	case errors.Is(d.err, errcode.RebootstrapRequired):
		l.c.meta.restart()
	case id >= 0:
		l.c.RefreshMetadata() // it may be somewhere else by now
	}
	l.failQueued(d.err, hint)
	return nil
}

// backOff notes a failure and sets when to try again.
func (l *link) backOff(now time.Time, err error) {
	b := machine.Backoff{First: l.c.cfg.ReconnectBackoff, Most: l.c.cfg.ReconnectBackoffMax}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures++
	l.lastErr = err
	l.retryAt = now.Add(l.c.jittered(b, l.failures))
}
