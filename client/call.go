package client

import (
	"strconv"
	"time"

	"github.com/ottla-kafka/ottla/wire"
)

// Purpose separates connections to one broker. A broker answers one request of a connection at a time, so a
// fetch that waits fetch.max.wait.ms must not stand in front of a heartbeat or a produce. There is at most one
// connection for each broker and purpose, opened when the first call needs it. Client.Lane makes further ones.
type Purpose uint32

const (
	// Metadata carries metadata, coordinator look-ups and everything an administrator asks.
	Metadata Purpose = iota
	// Produce carries produce requests.
	Produce
	// Fetch carries fetch requests and what goes with them (offsets of a leader's partitions).
	Fetch
	// Group carries what a member says to its group coordinator.
	Group
	// Transactions carries what transactional producers say to coordinators, of their groups too: a commit does not wait
	// behind a group's rebalance.
	Transactions

	purposes = 5
)

// String is the purpose's name in lower case, with a number behind it for a Lane.
func (p Purpose) String() string {
	base, lane := p&(1<<laneShift-1), p>>laneShift
	switch {
	case int(base) >= len(purposeNames):
		return "unknown"
	case lane > 0:
		return purposeNames[base] + "-" + strconv.Itoa(int(lane))
	}
	return purposeNames[base]
}

var purposeNames = [purposes]string{"metadata", "produce", "fetch", "group", "transactions"}

// Call is one attempt at one request, for Client.Issue. The caller fills the exported fields, hands it over and
// must not touch it again before Done has run; then he may fill it anew and use it again, which is how a
// producer issues requests without allocating.
type Call struct {
	Key wire.Key
	// MinVersion and MaxVersion bound the version. Zero MaxVersion means the latest stable one that both sides
	// know.
	MinVersion, MaxVersion int16
	// Append writes the body (no header) at the end of dst. It runs on the connection's goroutine, once, when
	// the version is known; it must not block or call the client. An error ends the call with Written false.
	Append func(dst []byte, version int16) ([]byte, error)
	// AppendVec is the alternative to Append for bodies with large parts that should not be copied. The parts it
	// refers to belong to the call until Done has run.
	AppendVec func(v *Vec, version int16) error
	// Timeout bounds the attempt from Issue to the answer, dialling included; zero means request.timeout.ms.
	// When it passes after the request was written, the connection is closed, because the answers behind it
	// cannot be had otherwise. A broker that asks to wait (KIP-219) adds the wait, up to the limit itself.
	Timeout time.Duration
	// MaxResponse is how large an answer the request allows, in bytes, zero if unknown: up to it the answer gets
	// its buffer in one piece, beyond it the buffer grows with what arrives.
	MaxResponse int
	// Memory, if not nil, gives the memory for an answer of n bytes, header included, in place of make; what it returns has
	// that length. It is asked for answers that are not small and not larger than MaxResponse, at most once, from the
	// connection's reader goroutine, and must not block or call the client. Reply.Body is a part of it then. When the call
	// fails, the memory must not be used for anything else.
	Memory func(n int) []byte
	// NoResponse is set for requests the broker does not answer (produce with acks=0). Done then runs when the
	// socket has taken the bytes.
	NoResponse bool
	// Done gets the outcome, exactly once: from the connection's reader goroutine with an answer, from its
	// writer goroutine when the connection ended, or from Issue itself on an immediate refusal. For the calls of
	// one connection it runs in the order in which they were issued, except for immediate refusals and for those
	// whose time ran out before they were written. It must not block; it may call Issue.
	Done func(Reply)

	state callState
}

// callState is what the link knows of a call between Issue and Done.
type callState struct {
	deadline    time.Time
	correlation int32
	version     int16
	refs        bool   // the socket reads from the caller's buffers
	size        int    // on the wire
	write       uint64 // the number of the write it was in
	start       int64  // where in that write it began
}

// Reply is the outcome of a Call.
type Reply struct {
	// Version is the one that was spoken; zero when nothing was sent.
	Version int16
	// Body is the answer without its header. It belongs to the receiver, for ever.
	Body []byte
	// Err is nil exactly if an answer came (or, with NoResponse, if the bytes went out).
	Err error
	// Written tells that bytes of the request may have reached the broker. When it is false the request
	// certainly had no effect.
	Written bool
	// Latency is the time from the write to the answer; zero without one.
	Latency time.Duration
	// Size is how many bytes the request had on the wire.
	Size int
}

// Vec is a request body in the making: small parts are appended to one buffer, large ones are only referred to
// and written by the socket from where they are.
type Vec struct {
	// B is the buffer small parts are appended to: v.B = wire.AppendInt32(v.B, n).
	B    []byte
	refs []vecRef
	size int // bytes in refs
}

// vecRef is a large part, and the length of B in front of it.
type vecRef struct {
	at   int
	part []byte
}

// refMin is the size from which a part is worth an entry of its own in a vectored write; a smaller one is
// copied, which costs less.
const refMin = 1 << 10

// Ref adds a part that belongs to the call until Done has run. It is not copied unless it is small.
func (v *Vec) Ref(part []byte) {
	if len(part) < refMin {
		v.B = append(v.B, part...)
		return
	}
	v.refs = append(v.refs, vecRef{at: len(v.B), part: part})
	v.size += len(part)
}

// Len is the size of the body so far, in bytes.
func (v *Vec) Len() int { return len(v.B) + v.size }
