package network

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A Conn is one accepted connection. Its goroutine (serve) is the only one that reads, runs handlers and writes.
type Conn struct {
	Listener string // name of the listener it came through
	Auth     bool   // the listener wants SASL first
	Remote   net.Addr
	Opened   time.Time
	// State belongs to the Handler; only its calls from Handle may touch it.
	State any

	front   *Front
	nc      net.Conn // as accepted
	rw      net.Conn // nc, or TLS over it
	tls     *tls.Config
	ip      string
	frames  frameReader
	out     sender
	stopped chan struct{}
	stop    sync.Once
	reason  atomic.Pointer[error] // why it closes; first one counts
	readBy  time.Time             // read deadline as set
}

func newConn(f *Front, l Listener, nc net.Conn, ip string) *Conn {
	c := &Conn{
		Listener: l.Name,
		Auth:     l.Auth,
		Remote:   nc.RemoteAddr(),
		Opened:   time.Now(),
		front:    f,
		nc:       nc,
		rw:       nc,
		tls:      l.TLS,
		ip:       ip,
		stopped:  make(chan struct{}),
	}
	c.frames = frameReader{memory: f.memory, max: f.cfg.RequestMaxBytes, limit: "socket.request.max.bytes", stop: c.stopped}
	if l.Auth {
		c.frames.max, c.frames.limit = min(f.cfg.LoginMaxBytes, f.cfg.RequestMaxBytes), "sasl.server.max.receive.size before authentication"
	}
	return c
}

// Authenticated lifts the limit that frames have before a login. The Handler calls it from Handle.
func (c *Conn) Authenticated() {
	c.frames.max, c.frames.limit = c.front.cfg.RequestMaxBytes, "socket.request.max.bytes"
}

// serve is the connection's goroutine; it ends when the peer or the Front closes, or the peer misbehaves.
func (c *Conn) serve() {
	defer c.front.forget(c)
	defer c.frames.close()
	c.tune()
	err := c.handshake()
	if err == nil {
		c.frames.from = c.rw
		c.out = newSender(c.rw, c.front.cfg.WriteTimeout)
		err = c.exchanges()
	}
	if first := c.reason.Load(); first != nil {
		err = *first
	}
	c.abort(err)
	_ = c.rw.Close()
	c.report(err)
}

// exchanges is the loop of doc.go's picture. The clock is read as seldom as the timing allows: reading it is a good part
// of what a small request costs.
func (c *Conn) exchanges() error {
	x := Exchange{Conn: c, done: make(chan struct{}, 1)}
	now := c.Opened
	for {
		c.deadline(now)
		frame, err := c.frames.next()
		if err != nil {
			return err
		}
		x.Frame, x.answer, x.Tag = frame, nil, nil
		x.finished.Store(false)
		x.Timing = Timing{Received: time.Now(), RequestBytes: len(frame) + 4}
		if now, err = c.exchange(&x); err != nil {
			return err
		}
		c.front.handler.Sent(&x)
	}
}

// exchange carries one request from the request channel to its written answer and returns the time then. After an error
// x may still be completed by somebody, so the caller must not reuse it.
func (c *Conn) exchange(x *Exchange) (time.Time, error) {
	work := func() { c.front.handler.Handle(x) }
	now := x.Timing.Received
	for {
		var err error
		if now, err = c.run(x, now, work); err != nil {
			return now, err
		}
		if x.fate != fateResume {
			break
		}
		work, x.resume = x.resume, nil
		x.finished.Store(false)
	}
	switch x.fate {
	case fateClose:
		return now, io.EOF // serve takes the reason
	case fateSkip:
		return now, nil
	}
	n, err := c.out.send(x.answer, now)
	end := time.Now()
	x.Timing.Send = end.Sub(now)
	x.Timing.ResponseBytes = n
	if err == nil && x.fate == fateAnswerClose {
		err = io.EOF
	}
	return end, err
}

// run takes a slot, does the work and waits until somebody has finished x; the slot is free during that wait.
func (c *Conn) run(x *Exchange, now time.Time, work func()) (time.Time, error) {
	queued, ok := c.front.slots.acquire(c.stopped)
	if !ok {
		return now, errClosing
	}
	if queued > 0 {
		x.Timing.Queue += queued
		now = now.Add(queued)
	}
	x.working.Store(true)
	work()
	x.working.Store(false)
	c.front.slots.release()
	returned := time.Now()
	x.Timing.Local += returned.Sub(now)
	select {
	case <-x.done:
		return returned, nil
	default:
	}
	select {
	case <-x.done:
		now = time.Now()
		if x.completed.After(returned) {
			x.Timing.Remote += x.completed.Sub(returned)
			x.Timing.Response += now.Sub(x.completed)
		}
		return now, nil
	case <-c.stopped:
		x.leave()
		return returned, errClosing
	}
}

// deadline lets a frame take MaxIdle to come; so an idle connection ends, and so does one that never completes a frame.
// The deadline is only moved when it has aged by an eighth, which keeps the call off the hot path.
func (c *Conn) deadline(now time.Time) {
	idle := c.front.cfg.MaxIdle
	if c.readBy.Sub(now) < idle {
		c.readBy = now.Add(idle + idle/8)
		_ = c.rw.SetReadDeadline(c.readBy)
	}
}

// tune sets the socket options that Apache Kafka sets.
func (c *Conn) tune() {
	tcp, ok := c.nc.(*net.TCPConn)
	if !ok {
		return
	}
	if n := c.front.cfg.SendBufferBytes; n >= 0 {
		_ = tcp.SetWriteBuffer(n)
	}
	if n := c.front.cfg.ReceiveBufferBytes; n >= 0 {
		_ = tcp.SetReadBuffer(n)
	}
}

// unexpectedMessage is the TLS 1.2 record of a fatal alert, which is what Java answers to bytes that are no TLS.
var unexpectedMessage = []byte{21, 3, 3, 0, 2, 2, 10}

// handshake makes the connection a TLS one if the listener says so.
func (c *Conn) handshake() error {
	if c.tls == nil {
		return nil
	}
	secure := tls.Server(c.nc, c.tls)
	ctx, cancel := context.WithTimeout(context.Background(), c.front.cfg.HandshakeTimeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		if errors.As(err, new(tls.RecordHeaderError)) {
			// Go's TLS just hangs up on what is no TLS. A Kafka client that came without knows from the alert what is wrong.
			_ = c.nc.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = c.nc.Write(unexpectedMessage)
		}
		return fmt.Errorf("TLS handshake on listener %s: %w", c.Listener, err)
	}
	c.rw = secure
	return nil
}

// abort unblocks the connection's goroutine for good; any goroutine may call it.
func (c *Conn) abort(reason error) {
	if reason != nil {
		c.reason.CompareAndSwap(nil, &reason)
	}
	c.stop.Do(func() {
		close(c.stopped)
		_ = c.nc.Close()
	})
}

// report logs why a connection ended: quietly when that is normal, with the peer's address always.
func (c *Conn) report(err error) {
	level, text := slog.LevelWarn, "connection closed"
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, errClosing), errors.Is(err, net.ErrClosed):
		level, text = slog.LevelDebug, "connection ended"
	case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET): // killed, or it left while an answer was on its way
		level, text = slog.LevelDebug, "connection ended by its peer"
	case errors.Is(err, os.ErrDeadlineExceeded):
		level, text = slog.LevelDebug, "connection closed: idle, or its peer does not read (connections.max.idle.ms)"
	case errors.Is(err, io.ErrUnexpectedEOF):
		level, text = slog.LevelInfo, "connection ended within a request"
	}
	if log := c.front.logger(); log.Enabled(context.Background(), level) {
		log.Log(context.Background(), level, text, "listener", c.Listener, "peer", c.Remote.String(), "reason", err)
	}
}
