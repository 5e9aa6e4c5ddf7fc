package network

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// A MemoryListener is a net.Listener whose connections never leave the process: the default transport of tests.
type MemoryListener struct {
	addr   MemoryAddr
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// MemoryAddr is the address of an in-memory listener, in host:port form.
type MemoryAddr string

// Network returns "memory".
func (MemoryAddr) Network() string { return "memory" }

// String returns the address.
func (a MemoryAddr) String() string { return string(a) }

// NewMemoryListener returns a listener under a name that only Dial's caller has to know.
func NewMemoryListener(addr string) *MemoryListener {
	return &MemoryListener{addr: MemoryAddr(addr), accept: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *MemoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Connections that exist stay.
func (l *MemoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *MemoryListener) Addr() net.Addr { return l.addr }

// Dial connects to the listener. A closed one refuses, as a port without a listener does.
func (l *MemoryListener) Dial(ctx context.Context) (net.Conn, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("dial memory %s: %w", l.addr, err)
	}
	client, server := Pipe("client", string(l.addr))
	select {
	case <-l.closed:
	default:
		select {
		case l.accept <- server:
			return client, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("dial memory %s: %w", l.addr, context.Cause(ctx))
		case <-l.closed:
		}
	}
	return nil, fmt.Errorf("dial memory %s: %w: the broker is not running", l.addr, syscall.ECONNREFUSED)
}

// Pipe returns the two ends of a buffered in-memory connection with deadlines. Each direction holds 64 KiB.
func Pipe(client, server string) (net.Conn, net.Conn) {
	up, down := newPipe(), newPipe()
	return &MemoryConn{in: down, out: up, local: MemoryAddr(client), remote: MemoryAddr(server)},
		&MemoryConn{in: up, out: down, local: MemoryAddr(server), remote: MemoryAddr(client)}
}

// A MemoryConn is one end of Pipe.
type MemoryConn struct {
	in, out       *pipe
	local, remote MemoryAddr
}

// Read implements net.Conn.
func (c *MemoryConn) Read(b []byte) (int, error) { return c.in.read(b) }

// Write implements net.Conn.
func (c *MemoryConn) Write(b []byte) (int, error) { return c.out.write(b) }

// WriteBuffers writes all buffers as one unit, with one wake-up of the reader; what net.Buffers is for a TCP connection.
// It does not change bufs.
func (c *MemoryConn) WriteBuffers(bufs [][]byte) (int64, error) {
	n, err := c.out.write(bufs...)
	return int64(n), err
}

// Close implements net.Conn: the peer reads what was written, then io.EOF.
func (c *MemoryConn) Close() error {
	c.out.end(true)
	c.in.end(false)
	return nil
}

// LocalAddr implements net.Conn.
func (c *MemoryConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *MemoryConn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *MemoryConn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *MemoryConn) SetReadDeadline(t time.Time) error {
	c.in.setLimit(&c.in.readLimit, t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *MemoryConn) SetWriteDeadline(t time.Time) error {
	c.out.setLimit(&c.out.writeLimit, t)
	return nil
}
