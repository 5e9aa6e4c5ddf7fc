package client

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/ottla-kafka/ottla/client/machine"
)

// conn is one connection that is up: negotiated and logged in. The link's goroutine writes, its own goroutine
// reads. Both close the socket when they fail, which ends the other one; the link's goroutine cleans up after
// both have stopped.
type conn struct {
	l        *link
	nc       net.Conn
	vectored bool // the socket takes many buffers in one system call
	br       *bufio.Reader
	addr     string
	versions *machine.Versions
	nextCorr int32
	expires  time.Time // of the login; zero for never

	readerGone chan struct{} // closed when the reading goroutine has stopped

	// Guarded by link.mu.
	readErr error  // why reading stopped; set before the link is woken
	written uint64 // writes that the socket has taken completely
	stopped bool   // the writer writes no more: all buffers are free
	waiting bool   // the reader waits for one of the two
	answers int64

	progress chan struct{} // holds one token: look at written and stopped again
	trusted  int           // largest frame that has come; the reader's own

	// The writer's: the write that failed, and how many of its bytes went out.
	failedWrite uint64
	failedAt    int64
}

// signalProgress makes a waiting reader look again.
func (c *conn) signalProgress() {
	select {
	case c.progress <- struct{}{}:
	default:
	}
}

// readBuffer is large enough for a first chunk, so that a frame of any size is allocated in one piece when its
// beginning has arrived.
const readBuffer = machine.FirstChunk

// read is the reading goroutine: it takes answers off the socket and runs Done for each, in order.
func (c *conn) read() {
	err := c.readAnswers()
	c.l.mu.Lock()
	c.readErr = err
	c.l.mu.Unlock()
	c.nc.Close()
	close(c.readerGone)
	c.l.signal()
}

func (c *conn) readAnswers() error {
	var head [4]byte
	for {
		if _, err := io.ReadFull(c.br, head[:]); err != nil {
			return err // io.EOF exactly between two frames
		}
		n, err := machine.FrameLength(head[:], c.l.c.cfg.MaxResponseBytes)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrProtocol, err)
		}
		frame, err := c.readFrame(n)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		c.l.c.meter.bytesIn.Add(int64(4 + n))
		if err := c.answer(frame); err != nil {
			return err
		}
	}
}

// readFrame reads n bytes into memory that grows with what arrives (machine.NextSize). The usual cases allocate
// once and exactly: the first chunk is waited for inside the read buffer.
func (c *conn) readFrame(n int) ([]byte, error) {
	trusted := c.trusted
	var memory func(int) []byte
	if n > machine.FirstChunk {
		var most int
		if most, memory = c.expected(); n > most {
			memory = nil
		}
		trusted = max(trusted, most)
	}
	if _, err := c.br.Peek(min(n, machine.FirstChunk)); err != nil {
		return nil, err
	}
	var buf []byte
	if memory != nil {
		buf = memory(n)
	} else {
		buf = make([]byte, machine.NextSize(machine.FirstChunk, n, trusted))
	}
	have := 0
	for {
		m, err := io.ReadFull(c.br, buf[have:])
		have += m
		if err != nil {
			return nil, err
		}
		if have == n {
			c.trusted = max(c.trusted, n)
			return buf, nil
		}
		grown := make([]byte, machine.NextSize(have, n, trusted))
		copy(grown, buf)
		buf = grown
	}
}

// expected is how large an answer the oldest request allowed, and who gives the memory for it.
func (c *conn) expected() (most int, memory func(n int) []byte) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if s, ok := c.l.inflight.Oldest(); ok {
		return s.Value.MaxResponse, s.Value.Memory
	}
	return 0, nil
}

// answer finds the call a frame belongs to and ends it.
func (c *conn) answer(frame []byte) error {
	l, now := c.l, time.Now()
	corr := int32(uint32(frame[0])<<24 | uint32(frame[1])<<16 | uint32(frame[2])<<8 | uint32(frame[3]))
	l.mu.Lock()
	sent, err := l.inflight.Answer(now, corr)
	if err != nil {
		l.mu.Unlock()
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	c.answers++
	l.failures = 0
	call := sent.Value
	// The call's own buffers go back to the caller with Done: not before the socket has let go of them.
	for call.state.refs && c.written < call.state.write && !c.stopped {
		c.waiting = true
		l.mu.Unlock()
		<-c.progress
		l.mu.Lock()
	}
	idle := l.retired && len(l.queue) == 0 && l.inflight.Len() == 0
	l.mu.Unlock()
	if idle {
		l.signal()
	}
	r := Reply{Version: sent.Version, Written: true, Latency: now.Sub(sent.At), Size: call.state.size}
	body, err := stripHeader(frame, sent.Key, sent.Version)
	if err != nil {
		r.Err = l.callError(call, fmt.Errorf("%w: %w", ErrProtocol, err), "")
		l.finish(call, r)
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	r.Body = body
	if d := throttleOf(sent.Key, sent.Version, body); d > 0 {
		l.throttled(now, sent.Key, d)
	}
	l.finish(call, r)
	return nil
}
