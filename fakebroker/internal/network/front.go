package network

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// A Front owns listeners and connections and hands their frames to one Handler.
type Front struct {
	cfg     Config
	handler Handler
	slots   *slots
	memory  *memory
	stop    chan struct{}
	wg      sync.WaitGroup // acceptors and connections

	mu        sync.Mutex
	listeners []Listener
	conns     map[*Conn]struct{}
	perIP     map[string]int
	closing   bool
}

// NewFront returns a Front without listeners.
func NewFront(cfg Config, h Handler) *Front {
	return &Front{
		cfg:     cfg,
		handler: h,
		slots:   newSlots(cfg.IOThreads, cfg.QueuedMaxRequests),
		memory:  &memory{limit: cfg.QueuedMaxBytes},
		stop:    make(chan struct{}),
		conns:   make(map[*Conn]struct{}),
		perIP:   make(map[string]int),
	}
}

// Serve starts accepting from l, on a goroutine of its own that ends with Close.
func (f *Front) Serve(l Listener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closing {
		_ = l.Listener.Close()
		return
	}
	f.listeners = append(f.listeners, l)
	f.wg.Add(1)
	go f.accept(l)
}

// accept is the acceptor of one listener.
func (f *Front) accept(l Listener) {
	defer f.wg.Done()
	pause := 5 * time.Millisecond
	for {
		nc, err := l.Listener.Accept()
		switch {
		case err == nil:
			pause = 5 * time.Millisecond
			f.admit(l, nc)
		case errors.Is(err, net.ErrClosed):
			return
		default: // out of file descriptors, or a peer that gave up in the backlog: neither is a reason to stop for ever
			f.cfg.Logger.Warn("accept failed", "listener", l.Name, "err", err, "retry", pause)
			select {
			case <-time.After(pause):
				pause = min(2*pause, time.Second)
			case <-f.stop:
				return
			}
		}
	}
}

// admit starts a connection's goroutine unless a limit forbids it.
func (f *Front) admit(l Listener, nc net.Conn) {
	ip := f.addressIP(nc.RemoteAddr())
	f.mu.Lock()
	refused := ""
	switch {
	case f.closing:
		refused = "broker is closing"
	case len(f.conns) >= f.cfg.MaxConnections:
		refused = "max.connections reached"
	case ip != "" && f.perIP[ip] >= f.cfg.MaxConnectionsPerIP:
		refused = "max.connections.per.ip reached"
	}
	if refused != "" {
		count := len(f.conns)
		f.mu.Unlock()
		_ = nc.Close()
		f.cfg.Logger.Warn("connection refused", "listener", l.Name, "peer", nc.RemoteAddr(), "reason", refused, "connections", count)
		return
	}
	c := newConn(f, l, nc, ip)
	f.conns[c] = struct{}{}
	f.perIP[ip]++
	f.wg.Add(1)
	f.mu.Unlock()
	go c.serve()
}

// forget is called by a connection's goroutine as its last act.
func (f *Front) forget(c *Conn) {
	f.mu.Lock()
	delete(f.conns, c)
	if f.perIP[c.ip]--; f.perIP[c.ip] == 0 {
		delete(f.perIP, c.ip)
	}
	f.mu.Unlock()
	f.wg.Done()
}

// Connections returns how many connections are open.
func (f *Front) Connections() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.conns)
}

// Disconnect closes every connection and keeps the listeners: what a broker's restart looks like to a client's socket.
func (f *Front) Disconnect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		c.abort(errClosing)
	}
}

// Close stops accepting, closes every connection and waits until their goroutines have ended. Exchanges that are still
// open may be completed afterwards; their answers go nowhere.
func (f *Front) Close() {
	f.Cut()
	f.wg.Wait()
}

// Cut is Close without the wait: when it returns no answer leaves any more, and no request comes in.
func (f *Front) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closing {
		return
	}
	f.closing = true
	close(f.stop)
	for _, l := range f.listeners {
		_ = l.Listener.Close()
	}
	for c := range f.conns {
		c.abort(errClosing)
	}
}

// addressIP is what max.connections.per.ip counts by; empty for peers that are not counted: those in memory and, unless
// configured, on this machine.
func (f *Front) addressIP(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok && (f.cfg.CountLoopback || !tcp.IP.IsLoopback()) {
		return tcp.IP.String()
	}
	return ""
}

func (f *Front) logger() *slog.Logger { return f.cfg.Logger }
