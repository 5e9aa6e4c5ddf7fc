package network

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// pipeBuffer is what one direction holds; a writer with more waits for its reader, who then copies straight from the
// writer's slices.
const pipeBuffer = 64 << 10

// A pipe is one direction of an in-memory connection.
//
// Small writes go into a buffer and return at once. A write that does not fit parks its slices in lent and waits until
// the reader took them all, so that large transfers are copied once. Nothing here blocks but sync.Cond, which
// testing/synctest sees.
type pipe struct {
	mu         sync.Mutex
	readable   sync.Cond
	writable   sync.Cond
	buf        []byte // unread bytes are buf[off:]
	off        int
	lent       [][]byte // a waiting writer's slices, read after buf
	lentBusy   bool     // a writer is parked
	writeEnded bool     // writer closed: EOF after the rest
	readEnded  bool     // reader closed: writes fail
	readLimit  limit
	writeLimit limit
}

func newPipe() *pipe {
	p := &pipe{}
	p.readable.L = &p.mu
	p.writable.L = &p.mu
	p.readLimit.wake = &p.readable
	p.writeLimit.wake = &p.writable
	return p
}

func (p *pipe) read(dst []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.readEnded:
			return 0, net.ErrClosed
		case p.readLimit.passed():
			return 0, os.ErrDeadlineExceeded
		case len(dst) == 0:
			return 0, nil
		case p.off < len(p.buf) || len(p.lent) > 0:
			return p.take(dst), nil
		case p.writeEnded:
			return 0, io.EOF
		}
		p.readLimit.arm()
		p.readable.Wait()
	}
}

// take copies what is there, buffered bytes first.
func (p *pipe) take(dst []byte) int {
	n := copy(dst, p.buf[p.off:])
	if p.off += n; p.off == len(p.buf) {
		p.buf, p.off = p.buf[:0], 0
	}
	for n < len(dst) && len(p.lent) > 0 {
		m := copy(dst[n:], p.lent[0])
		n += m
		if p.lent[0] = p.lent[0][m:]; len(p.lent[0]) == 0 {
			p.lent = p.lent[1:]
		}
	}
	if p.lentBusy && len(p.lent) == 0 {
		p.writable.Broadcast()
	}
	return n
}

// write sends all slices, as one unit. The pipe does not keep them after it returned.
func (p *pipe) write(src ...[]byte) (int, error) {
	total := 0
	for _, b := range src {
		total += len(b)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.lentBusy && p.writeError() == nil {
		p.writeLimit.arm()
		p.writable.Wait()
	}
	if err := p.writeError(); err != nil {
		return 0, err
	}
	if held := len(p.buf) - p.off; held+total <= pipeBuffer {
		if p.off > 0 && len(p.buf)+total > cap(p.buf) {
			p.buf = p.buf[:copy(p.buf, p.buf[p.off:])]
			p.off = 0
		}
		for _, b := range src {
			p.buf = append(p.buf, b...)
		}
		p.readable.Signal()
		return total, nil
	}
	return p.lend(src, total)
}

// lend parks src until the reader has it all, or the pipe ends.
func (p *pipe) lend(src [][]byte, total int) (int, error) {
	p.lent = append(p.lent, src...)
	p.lentBusy = true
	var err error
	for p.readable.Signal(); ; {
		for len(p.lent) > 0 && len(p.lent[0]) == 0 {
			p.lent = p.lent[1:]
		}
		if len(p.lent) == 0 {
			break
		}
		if err = p.writeError(); err != nil {
			break
		}
		p.writeLimit.arm()
		p.writable.Wait()
	}
	for _, b := range p.lent {
		total -= len(b)
	}
	p.lent, p.lentBusy = nil, false
	p.writable.Broadcast() // a small write that goes on wakes nobody in turn
	return total, err
}

func (p *pipe) writeError() error {
	switch {
	case p.writeEnded:
		return net.ErrClosed
	case p.readEnded:
		return io.ErrClosedPipe
	case p.writeLimit.passed():
		return os.ErrDeadlineExceeded
	}
	return nil
}

// end closes the pipe from its writer's or its reader's side.
func (p *pipe) end(writer bool) {
	p.mu.Lock()
	if writer {
		p.writeEnded = true
		p.writeLimit.stop()
	} else {
		p.readEnded = true
		p.readLimit.stop()
	}
	p.readable.Broadcast()
	p.writable.Broadcast()
	p.mu.Unlock()
}

func (p *pipe) setLimit(l *limit, t time.Time) {
	p.mu.Lock()
	l.at = t
	l.wake.Broadcast()
	p.mu.Unlock()
}

// A limit is a deadline whose timer is armed only while somebody waits, and left alone when the deadline moves later:
// setting one per request costs nothing. All methods are called with the pipe's lock held.
type limit struct {
	at    time.Time // zero = none
	armed time.Time // when timer fires; zero = it does not
	timer *time.Timer
	wake  *sync.Cond
}

func (l *limit) passed() bool { return !l.at.IsZero() && !time.Now().Before(l.at) }

// arm makes sure that the waiter is woken at the deadline or before, to look again.
func (l *limit) arm() {
	if l.at.IsZero() || !l.armed.IsZero() && !l.armed.After(l.at) {
		return
	}
	l.armed = l.at
	if d := time.Until(l.at); l.timer == nil {
		l.timer = time.AfterFunc(d, l.fire)
	} else {
		l.timer.Reset(d)
	}
}

func (l *limit) fire() {
	l.wake.L.Lock()
	l.armed = time.Time{}
	l.wake.Broadcast()
	l.wake.L.Unlock()
}

func (l *limit) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.at, l.armed = time.Time{}, time.Time{}
}
