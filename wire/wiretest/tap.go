package wiretest

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
)

// Dial opens a connection, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// Tap writes down the frames that pass through the connections it dials.
type Tap struct {
	mu     sync.Mutex
	frames []TapFrame
	conns  int
}

// TapFrame is one frame without its length.
type TapFrame struct {
	Conn    int // number of the connection, from 1
	Request bool
	Frame   []byte
}

// Through is a dial function whose connections are written down.
func (t *Tap) Through(dial Dial) Dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.conns++
		return &tapped{Conn: nc, tap: t, n: t.conns}, nil
	}
}

// Frames are the frames so far: requests in the order in which they were handed over to be written, answers in the order
// in which they were read, each behind its request.
func (t *Tap) Frames() []TapFrame {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]TapFrame(nil), t.frames...)
}

// tapped is a connection that is written down. Reading and writing go on at once, so each way has its own state.
type tapped struct {
	net.Conn
	tap     *Tap
	n       int
	in, out []byte // bytes of a frame that is not complete
}

func (c *tapped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.in = c.tap.note(c.n, false, append(c.in, b[:n]...))
	return n, err
}

// Write notes the request first: the answer may be read before the write returns.
func (c *tapped) Write(b []byte) (int, error) {
	c.out = c.tap.note(c.n, true, append(c.out, b...))
	return c.Conn.Write(b)
}

// note takes complete frames off the front and gives what is left.
func (t *Tap) note(conn int, request bool, b []byte) []byte {
	for len(b) >= 4 {
		n := int64(binary.BigEndian.Uint32(b))
		if int64(len(b)) < 4+n {
			break
		}
		t.mu.Lock()
		t.frames = append(t.frames, TapFrame{conn, request, append([]byte(nil), b[4:4+n]...)})
		t.mu.Unlock()
		b = b[4+n:]
	}
	return b
}
