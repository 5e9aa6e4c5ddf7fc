package consumer

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/consumer/machine"
)

// StallPolicy says what happens when the application takes longer than max.poll.interval.ms.
type StallPolicy int8

const (
	// Leave leaves the group, so that others get the partitions, as Kafka's consumer does; but it says so: Run and Serve end
	// with a *StallError, a loop or Poll returns it once when it asks for more, and then comes back to the group.
	Leave StallPolicy = iota
	// Warn tells OnStall, observers and the logger, and stays in the group.
	Warn
	// Panic panics with the stack of the goroutine that does not get on, in a goroutine of the consumer's: nobody can recover
	// it.
	Panic
)

// Stall is something that took too long.
type Stall struct {
	TopicPartition
	Offset  int64         // of the record in hand, the first of what Poll returned; -1 when nothing is in hand
	For     time.Duration // so far
	Stack   string        // of the goroutine that has it; empty when it cannot be told
	Claimed int           // partitions that this member has
}

// String is one line, without the stack.
func (s Stall) String() string {
	if s.Offset < 0 {
		return fmt.Sprintf("nothing was asked for in %s, with %d partitions assigned", s.For.Round(time.Millisecond), s.Claimed)
	}
	return fmt.Sprintf("%s offset %d has been in hand for %s", s.TopicPartition, s.Offset, s.For.Round(time.Millisecond))
}

// StallError says that the member left the group because of a stall.
type StallError struct{ Stall Stall }

// Error says what is in hand, for how long, and what to do.
func (e *StallError) Error() string {
	return fmt.Sprintf("consumer: left the group: %s, more than max.poll.interval.ms allows; take fewer records at a time, raise it, or set StallPolicy to Warn", e.Stall)
}

// Unwrap makes errors.Is(err, ErrStalled) true, and ErrLost, since the partitions are gone.
func (e *StallError) Unwrap() error { return ErrStalled }

// stallWatch looks now and then whether the application gets on.
type stallWatch struct {
	g     *group
	limit time.Duration
	every time.Duration
	seen  progress  // of the loop, when last looked at
	since time.Time // it is like that; zero while it waits for data
	told  bool
}

// progress changes when the loop does anything.
type progress struct{ asked, held int64 }

func newStallWatch(g *group) *stallWatch {
	limit := g.cfg.MaxPollInterval
	return &stallWatch{g: g, limit: limit, every: min(max(limit/20, time.Millisecond), 5*time.Second)}
}

// look finds what has been in hand for too long.
func (w *stallWatch) look(now time.Time) {
	g := w.g
	g.mu.Lock()
	e := g.engine
	var s *Stall
	var id string
	switch {
	case len(g.claims) == 0 || g.left.Load() || g.closing():
		w.since = time.Time{}
	case e != nil:
		w.since = time.Time{}
		s, id = e.stalled(now, w.limit)
	default:
		s, id = w.loop(now)
	}
	if s != nil {
		s.Claimed = len(g.claims)
	}
	g.mu.Unlock()
	if s != nil {
		s.Stack = stackOf(id)
		w.tell(*s)
	}
}

// loop looks at Records, Batches and Poll. g.mu is held.
func (w *stallWatch) loop(now time.Time) (*Stall, string) {
	g := w.g
	at := progress{asked: g.asked.Load()}
	var held *claim
	for _, c := range g.sorted() {
		if c.cell != nil && c.cell.Held() {
			at.held += c.cell.Position().Offset
			if held == nil {
				held = c
			}
		}
	}
	switch {
	case g.c.reader.Waiting():
		w.since = time.Time{}
		return nil, ""
	case at != w.seen || w.since.IsZero():
		w.seen, w.since, w.told = at, now, false
		return nil, ""
	case w.told || now.Sub(w.since) < w.limit:
		return nil, ""
	}
	w.told = true
	s := &Stall{Offset: -1, For: now.Sub(w.since)}
	if held != nil {
		s.TopicPartition, s.Offset = held.TopicPartition, held.cell.Done().Offset
	}
	return s, g.reading
}

// stalled looks at the handlers of Run and Serve. g.mu is held.
func (e *engine) stalled(now time.Time, limit time.Duration) (*Stall, string) {
	for w := range e.workers {
		if w.claim != nil && !w.told && now.Sub(w.since) >= limit {
			w.told = true
			return &Stall{TopicPartition: w.claim.TopicPartition, Offset: w.record.Offset, For: now.Sub(w.since)}, w.id
		}
	}
	for _, c := range e.g.sorted() {
		if c.inHand != nil && now.Sub(c.inHandAt) >= limit {
			s := &Stall{TopicPartition: c.TopicPartition, Offset: c.inHand.Item.Offset, For: now.Sub(c.inHandAt)}
			c.inHandAt = now // told once in a while
			return s, c.goroutine
		}
	}
	return nil, ""
}

// tell does what the policy says.
func (w *stallWatch) tell(s Stall) {
	g := w.g
	g.note(machine.NoticeStalled, s.TopicPartition, s.String(), nil)
	if g.cfg.OnStall != nil {
		aside(func() { g.cfg.OnStall(s) })
	}
	switch g.cfg.StallPolicy {
	case Panic:
		panic("consumer: stalled: " + s.String() + "\n\n" + s.Stack)
	case Leave:
		if g.alone != nil {
			return // nobody waits for its partitions
		}
		g.mu.Lock()
		m := g.member
		g.mu.Unlock()
		m.Stall()
		g.left.Store(true)
		g.c.driver.Report(&StallError{s}, false)
	}
}

// goroutineID is what the runtime calls the calling goroutine, to find it among all stacks when it does not get on.
func goroutineID() string {
	var buf [64]byte
	line := buf[:runtime.Stack(buf[:], false)]
	if i := bytes.IndexByte(line, '['); i > 0 {
		return string(line[:i])
	}
	return ""
}

// maxStacks bounds the dump that a stack is looked for in.
const maxStacks = 4 << 20

// stackOf is the stack of a goroutine, empty if it is gone or not in the dump.
func stackOf(id string) string {
	if id == "" {
		return ""
	}
	buf := make([]byte, 1<<16)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) || len(buf) >= maxStacks {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	for part := range strings.SplitSeq(string(buf), "\n\n") {
		if strings.HasPrefix(part, id) {
			return part
		}
	}
	return ""
}
