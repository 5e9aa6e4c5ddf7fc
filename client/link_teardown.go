package client

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// tearDown ends a connection: it waits for both halves to stop, then fails what was under way, oldest first. Only
// then are the calls' buffers free, because only then no socket can read them.
//
// What was queued but not written is failed behind it, so that a caller who tries again sees his calls in their
// order. When nothing was under way the queue stays: the next connection writes it, in order all the same.
func (l *link) tearDown(c *conn, cause error, timedOut *Call) {
	c.nc.Close()
	l.mu.Lock()
	c.stopped = true
	l.mu.Unlock()
	c.signalProgress()
	<-c.readerGone
	now := time.Now()

	l.mu.Lock()
	if c.readErr != nil && errors.Is(cause, net.ErrClosed) {
		cause = c.readErr // the reader closed the socket under the writer and knows why
	}
	l.conn = nil
	var calls []*Call
	for s, ok := l.inflight.Drain(); ok; s, ok = l.inflight.Drain() {
		calls = append(calls, s.Value)
	}
	normal := len(calls) == 0 && (isOrderly(cause) || hangUp(cause) && (c.answers > 0 || len(l.queue) == 0))
	var queued []*Call
	if !normal || l.closed {
		queued, l.queue = l.queue, nil
	}
	closed, broker := l.closed, l.broker
	l.mu.Unlock()

	l.c.meter.connections.Add(-1)
	if !normal && !closed {
		l.backOff(now, cause)
	}
	l.report(c, broker, cause, normal || closed)
	if closed {
		cause = ErrClosed
	}
	hint := l.endHint(c, cause)
	for _, call := range calls {
		r := Reply{Version: call.state.version, Written: c.reached(call), Size: call.state.size}
		r.Err = l.callError(call, endError(cause, call == timedOut), hint)
		l.finish(call, r)
	}
	for _, call := range queued {
		l.finish(call, Reply{Err: l.callError(call, endError(cause, false), hint)})
	}
	if !normal && !closed && broker >= 0 {
		l.c.RefreshMetadata()
	}
}

// endError is the cause as one call sees it.
func endError(cause error, timedOut bool) error {
	switch {
	case errors.Is(cause, ErrClosed):
		return ErrClosed
	case timedOut:
		return cause
	case errors.Is(cause, ErrTimeout):
		// Not this call's own time-out: the connection was given up for another's.
		return fmt.Errorf("%w because of another request: %v", ErrDisconnected, cause)
	}
	return fmt.Errorf("%w: %w", ErrDisconnected, cause)
}

// isOrderly tells whether we ended the connection, and for no fault of the broker's.
func isOrderly(err error) bool {
	for _, orderly := range []error{errIdle, errExpired, errRetired, ErrClosed} {
		if errors.Is(err, orderly) {
			return true
		}
	}
	return false
}

// hangUp tells whether the other side ended the connection, as brokers do with idle ones.
func hangUp(err error) bool {
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (l *link) report(c *conn, broker int32, cause error, normal bool) {
	e := DisconnectEvent{Broker: broker, Purpose: l.purpose, Addr: c.addr, Err: cause}
	if normal {
		e.Err = nil
		l.c.log.Debug("kafka: connection closed", "broker", broker, "purpose", l.purpose.String(), "addr", c.addr, "why", cause)
	} else {
		l.c.log.Warn("kafka: connection lost", "broker", broker, "purpose", l.purpose.String(), "addr", c.addr, "error", cause)
	}
	for _, o := range l.c.cfg.Observers {
		o.Disconnected(e)
	}
}

// endHint explains the ends that a wrong configuration brings.
func (l *link) endHint(c *conn, cause error) string {
	if hint := hintOf(cause); hint != "" {
		return hint
	}
	if c.answers == 0 && hangUp(cause) && !l.c.cfg.Security.UsesSASL() {
		return "the broker hung up at the first request after ApiVersions; a listener that wants a SASL login does that: set client.SASL (security.protocol=SASL_PLAINTEXT or SASL_SSL)"
	}
	if errors.Is(cause, os.ErrDeadlineExceeded) {
		return "the broker took no bytes within the write limit (Config.WriteTimeout): it is stopped, overloaded or unreachable"
	}
	return ""
}
