package network

import (
	"sync/atomic"
	"time"
)

// Handler is what the front hands frames to. The server implements it.
type Handler interface {
	// Handle is called on the connection's own goroutine, while it holds one of the num.io.threads slots. It must lead
	// to exactly one Complete, Skip or Fail of x, now or later, from any goroutine; it may wait for disk, but a wait
	// for other requests (a delayed fetch) has to return first and complete later, or the slots run out.
	Handle(x *Exchange)
	// Sent is called on the connection's goroutine after an answer has left (or was skipped).
	Sent(x *Exchange)
}

// An Exchange is one request frame and the promise of its answer. It belongs to the connection, which reuses it: nothing
// of it may be used after it was completed.
type Exchange struct {
	Conn *Conn
	// Frame is the request without its size word. It aliases the connection's read buffer and is valid until the
	// exchange is completed.
	Frame []byte
	// Timing is filled in as the exchange proceeds; the server reads it in Sent.
	Timing Timing
	// Tag is for the Handler: what it wants to know again in Sent.
	Tag any

	answer    Answer
	resume    func()
	fate      fate
	completed time.Time
	done      chan struct{} // one slot; receives when the answer is there
	finished  atomic.Bool
	orphan    bool        // nobody waits for the answer
	left      atomic.Bool // nobody does any more: the connection has ended
	working   atomic.Bool // the connection is in Handle: whoever finishes now need not look at the clock
}

type fate uint8

const (
	fateAnswer      fate = iota // write answer
	fateSkip                    // acks=0: no bytes, read the next frame
	fateClose                   // close the connection
	fateAnswerClose             // write answer, then close
	fateResume                  // take a slot again and run resume, which decides anew
)

// Timing splits a request's life as Apache Kafka's request metrics do.
type Timing struct {
	Received time.Time     // when the last byte of the frame was read
	Queue    time.Duration // waiting for a handler slot (RequestQueueTimeMs)
	Local    time.Duration // in the handler (LocalTimeMs)
	Remote   time.Duration // waiting in purgatory (RemoteTimeMs)
	Throttle time.Duration // muted for a quota (ThrottleTimeMs)
	Response time.Duration // completed, but not yet picked up by the connection (ResponseQueueTimeMs)
	Send     time.Duration // encoding and writing (ResponseSendTimeMs)

	RequestBytes, ResponseBytes int
}

// An Answer is encoded on the connection's goroutine, so that whoever completed a delayed request does not pay for it.
type Answer interface {
	// AppendTo appends header and body to dst. Stored bytes that should not be copied are returned as splices, in
	// ascending order of At. An error closes the connection.
	AppendTo(dst []byte) ([]byte, []Splice, error)
}

// A Splice stands for bytes that go out between dst[:At] and dst[At:] without passing through dst.
type Splice struct {
	At int
	// Bytes are sent as they are; they must stay unchanged for ever (stored batches do).
	Bytes [][]byte
	// File, when set, is sent instead of Bytes: N bytes from Pos, by sendfile where the connection allows.
	File FileRegion
}

// Complete hands in the answer. It never blocks.
func (x *Exchange) Complete(a Answer) { x.finish(fateAnswer, a) }

// CompleteAndClose hands in the last answer of a connection: a failed authentication's. reason is logged.
func (x *Exchange) CompleteAndClose(a Answer, reason error) {
	x.Conn.reason.CompareAndSwap(nil, &reason)
	x.finish(fateAnswerClose, a)
}

// Skip ends the exchange without an answer: Produce with acks=0.
func (x *Exchange) Skip() { x.finish(fateSkip, nil) }

// Fail ends the exchange by closing its connection; reason is logged with the peer's address.
func (x *Exchange) Fail(reason error) {
	x.Conn.reason.CompareAndSwap(nil, &reason)
	x.finish(fateClose, nil)
}

// Resume has the connection's goroutine take a handler slot again and run next, which then must complete the exchange or
// arrange that it is. Whoever ends a wait (an append, a timer) calls it, so that the work behind the wait (the re-read
// of a delayed fetch) is done by the connection that asked for it.
func (x *Exchange) Resume(next func()) {
	x.resume = next
	x.finish(fateResume, nil)
}

// Orphan returns an exchange of its own, as if c had read frame: the Handler can be given a request whose connection has
// ended. Whatever it is completed with goes nowhere, and what would have resumed it does not run.
func Orphan(c *Conn, frame []byte) *Exchange {
	now := time.Now()
	return &Exchange{Conn: c, Frame: frame, Timing: Timing{Received: now, RequestBytes: len(frame) + 4}, orphan: true}
}

func (x *Exchange) finish(f fate, a Answer) {
	if x.finished.Swap(true) {
		panic("network: exchange completed twice")
	}
	if x.orphan {
		release(a)
		return
	}
	x.answer, x.fate, x.completed = a, f, time.Time{}
	if !x.working.Load() {
		x.completed = time.Now()
	}
	x.done <- struct{}{}
	if x.left.Load() {
		x.discard()
	}
}

// leave is called by the connection when it stops waiting. The answer, whether it is there already or still comes, lets go
// of what it holds.
func (x *Exchange) leave() {
	x.left.Store(true)
	x.discard()
}

// discard takes the answer if it is there: either leave or finish finds it.
func (x *Exchange) discard() {
	select {
	case <-x.done:
		release(x.answer)
	default:
	}
}

func release(a Answer) {
	if held, ok := a.(Releaser); ok {
		held.Release()
	}
}
