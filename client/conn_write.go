package client

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ottla-kafka/ottla/client/machine"
	"github.com/ottla-kafka/ottla/wire"
)

// writeMost is how many bytes of requests go into one write, apart from a single request that is larger.
const writeMost = 1 << 20

// keepBuffer is the largest encoding buffer that is kept for the next write.
const keepBuffer = 1<<20 + 64<<10

// writer is the writing half of a connection; the link's goroutine owns it.
type writer struct {
	c       *conn
	vec     Vec
	batch   []*Call // in vec, in order; not to be touched after the write, when Done may have run
	silent  []*Call // those of them that get no answer
	pieces  [][]byte
	bufs    net.Buffers
	writes  uint64
	limitAt time.Time // the write deadline that is set
	timer   *time.Timer
	armed   time.Time // when timer fires; zero when it does not
}

// errIdle and errExpired end a connection without anything being wrong.
var (
	errIdle    = errors.New("connection was idle for connections.max.idle.ms")
	errExpired = errors.New("login expired")
	errRetired = errors.New("connection is not needed any more")
)

// serve uses a connection until it ends. cause says why; timedOut is the call that got no answer, if that is why.
func (l *link) serve(c *conn) (timedOut *Call, cause error) {
	c.readerGone, c.progress = make(chan struct{}), make(chan struct{}, 1)
	l.mu.Lock()
	l.conn = c
	l.inflight = machine.Inflight[*Call]{MaxIdle: l.c.cfg.MaxIdle}
	l.inflight.Started(time.Now(), c.nextCorr)
	closed := l.closed
	l.mu.Unlock()
	l.c.meter.connections.Add(1)
	if closed || !l.c.life.start(c.read) {
		close(c.readerGone)
		return nil, ErrClosed
	}
	w := &writer{c: c, timer: time.NewTimer(time.Hour)}
	defer w.timer.Stop()
	for {
		queue, late, err := w.next()
		if err != nil {
			return late, err
		}
		if err := w.writeAll(queue); err != nil {
			return nil, err
		}
		l.mu.Lock()
		clear(queue)
		l.spare = queue[:0]
		l.mu.Unlock()
	}
}

// next waits for calls to write. It gives an error when the connection is to end.
func (w *writer) next() (queue []*Call, timedOut *Call, cause error) {
	l, c := w.c.l, w.c
	for {
		now := time.Now()
		l.mu.Lock()
		switch {
		case l.closed:
			cause = ErrClosed
		case c.readErr != nil:
			cause = c.readErr
		case len(l.queue) > 0 && !l.muted.After(now) && !c.expiring(now) && !w.late(now):
			queue, l.queue = l.queue, l.spare[:0]
			l.spare = nil
			l.muted = time.Time{}
		default:
			timedOut, cause = w.overdue(now)
		}
		var wakeAt time.Time
		if cause == nil && queue == nil {
			wakeAt = w.wakeAt(now)
		}
		held := len(l.queue) > 0
		l.mu.Unlock()
		if cause != nil || queue != nil {
			return queue, timedOut, cause
		}
		if held { // muted, or the login expires: what waits may run out of time
			if next := l.expireQueued(now); !next.IsZero() && (wakeAt.IsZero() || next.Before(wakeAt)) {
				wakeAt = next
			}
		}
		w.park(now, wakeAt)
	}
}

// late tells whether the oldest request is overdue; it is what a busy writer looks at. The link's lock is held.
func (w *writer) late(now time.Time) bool {
	s, ok := w.c.l.inflight.Oldest()
	return ok && s.Deadline.Before(now)
}

// overdue tells whether time alone ends the connection. The link's lock is held.
func (w *writer) overdue(now time.Time) (timedOut *Call, cause error) {
	l := w.c.l
	if s, late := l.inflight.Expired(now); late {
		return s.Value, fmt.Errorf("%w: %v got none within %s", ErrTimeout, s.Key, now.Sub(s.At).Round(time.Millisecond))
	}
	if l.inflight.Len() == 0 {
		switch {
		case l.inflight.Idle(now):
			return nil, errIdle
		case l.retired:
			l.retired = false
			return nil, errRetired
		case w.c.expiring(now):
			return nil, errExpired
		}
	}
	return nil, nil
}

// expiring tells whether the login ends soon: nothing is written any more, and when the last answer has come the
// connection ends and the next one logs in anew (KIP-368 without its second exchange on the same connection).
func (c *conn) expiring(now time.Time) bool { return !c.expires.IsZero() && !now.Before(c.expires) }

// wakeAt is when to look again without being woken. The link's lock is held.
func (w *writer) wakeAt(now time.Time) time.Time {
	l := w.c.l
	at := l.inflight.Deadline()
	earlier := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if len(l.queue) > 0 {
		earlier(l.muted)
	}
	earlier(w.c.expires)
	return at
}

// park waits for a signal or the time. The timer is set anew only when it would fire too late: deadlines mostly
// grow, so that is seldom, and a needless wake-up costs one look.
func (w *writer) park(now, wakeAt time.Time) {
	if !wakeAt.IsZero() && (w.armed.IsZero() || wakeAt.Before(w.armed)) {
		w.timer.Reset(wakeAt.Sub(now))
		w.armed = wakeAt
	}
	select {
	case <-w.c.l.wake:
	case <-w.timer.C:
		w.armed = time.Time{}
	}
}

// writeAll writes calls in as few writes as their size allows.
func (w *writer) writeAll(queue []*Call) error {
	for len(queue) > 0 {
		w.reset()
		n := 0
		for n < len(queue) && (n == 0 || w.vec.Len() < writeMost) {
			w.encode(queue[n])
			queue[n] = nil
			n++
		}
		if len(w.batch) > 0 {
			if err := w.flush(); err != nil {
				w.c.l.requeue(queue[n:])
				return err
			}
		}
		queue = queue[n:]
	}
	return nil
}

// requeue puts calls that were taken but not tried back in front.
func (l *link) requeue(calls []*Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(append([]*Call(nil), calls...), l.queue...)
}

func (w *writer) reset() {
	if cap(w.vec.B) > keepBuffer {
		w.vec.B = nil
	}
	clear(w.vec.refs)
	clear(w.batch)
	clear(w.silent)
	clear(w.pieces)
	w.vec.B, w.vec.refs, w.vec.size = w.vec.B[:0], w.vec.refs[:0], 0
	w.batch, w.silent, w.pieces = w.batch[:0], w.silent[:0], w.pieces[:0]
}

// encode appends one call to the write. A call that cannot be encoded ends here, with nothing written.
func (w *writer) encode(call *Call) {
	l, v := w.c.l, &w.vec
	version, err := w.c.versions.Pick(call.Key, call.MinVersion, call.MaxVersion)
	if err != nil {
		var ve *machine.VersionError
		if errors.As(err, &ve) {
			err = (*VersionError)(ve)
		}
		l.refuse(call, err)
		return
	}
	start, refs, size := len(v.B), len(v.refs), v.size
	call.state.correlation = l.inflight.Correlation() // nobody but this goroutine takes them: no lock
	v.B = append(v.B, 0, 0, 0, 0)
	v.B = wire.AppendRequestHeader(v.B, call.Key, version, call.state.correlation, &l.c.cfg.ClientID)
	if call.AppendVec != nil {
		err = call.AppendVec(v, version)
	} else {
		var body []byte
		if body, err = call.Append(v.B, version); err == nil {
			v.B = body
		}
	}
	if err != nil {
		v.B, v.refs, v.size = v.B[:start], v.refs[:refs], size
		l.refuse(call, fmt.Errorf("encode %v version %d: %w", call.Key, version, err))
		return
	}
	n := len(v.B) - start - 4 + v.size - size
	binary.BigEndian.PutUint32(v.B[start:], uint32(n))
	call.state.version, call.state.size, call.state.refs = version, n+4, len(v.refs) > refs
	call.state.start = int64(v.Len() - n - 4)
	w.batch = append(w.batch, call)
	if call.NoResponse {
		w.silent = append(w.silent, call)
	}
}

// flush writes what is encoded. Calls wait for their answers from before the write on, because the answer may be
// faster than the return of the system call.
func (w *writer) flush() error {
	l, c, now := w.c.l, w.c, time.Now()
	w.writes++
	l.mu.Lock()
	for _, call := range w.batch {
		call.state.write = w.writes
		if !call.NoResponse {
			l.inflight.Send(machine.Sent[*Call]{CorrelationID: call.state.correlation, Key: call.Key, Version: call.state.version,
				At: now, Deadline: call.state.deadline, Value: call})
		}
	}
	l.mu.Unlock()
	w.limit(now)
	l.c.meter.requests.Add(int64(len(w.batch)))
	n, err := w.write()
	l.c.meter.bytesOut.Add(n)
	l.mu.Lock()
	if err == nil {
		c.written = w.writes
	} else {
		c.failedWrite, c.failedAt = w.writes, n
	}
	waiting := c.waiting
	c.waiting = false
	l.inflight.Touch(now)
	l.mu.Unlock()
	if waiting {
		c.signalProgress()
	}
	for _, call := range w.silent {
		r := Reply{Version: call.state.version, Written: true, Size: call.state.size}
		if err != nil {
			r.Written = c.reached(call)
			r.Err = l.callError(call, fmt.Errorf("%w: %w", ErrDisconnected, err), "")
		}
		l.finish(call, r)
	}
	return err
}

// reached tells whether any byte of a call went out: it did, unless the write failed before it.
func (c *conn) reached(call *Call) bool {
	return call.state.write != c.failedWrite || call.state.start < c.failedAt
}

// limit sets the socket's write deadline, but not at every write: a deadline between one and two thirds of the
// limit away is as good.
func (w *writer) limit(now time.Time) {
	limit := w.c.l.c.writeLimit
	if w.limitAt.Sub(now) < limit*2/3 {
		w.limitAt = now.Add(limit)
		w.c.nc.SetWriteDeadline(w.limitAt)
	}
}

// write hands the bytes to the socket: in one system call where it takes many buffers, in one copy where that
// is cheap, else piece by piece.
func (w *writer) write() (int64, error) {
	v := &w.vec
	if len(v.refs) == 0 {
		n, err := w.c.nc.Write(v.B)
		return int64(n), err
	}
	if !w.c.vectored && v.Len() <= keepBuffer {
		w.flatten()
		n, err := w.c.nc.Write(v.B)
		return int64(n), err
	}
	at := 0
	for _, ref := range v.refs {
		if ref.at > at {
			w.pieces = append(w.pieces, v.B[at:ref.at])
			at = ref.at
		}
		w.pieces = append(w.pieces, ref.part)
	}
	if at < len(v.B) {
		w.pieces = append(w.pieces, v.B[at:])
	}
	w.bufs = w.pieces
	n, err := w.bufs.WriteTo(w.c.nc)
	w.bufs = nil
	return n, err
}

// flatten copies the referred parts into B.
func (w *writer) flatten() {
	v := &w.vec
	flat := make([]byte, 0, v.Len())
	at := 0
	for _, ref := range v.refs {
		flat = append(append(flat, v.B[at:ref.at]...), ref.part...)
		at = ref.at
	}
	v.B = append(flat, v.B[at:]...)
}
