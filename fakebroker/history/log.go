package history

import (
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"
)

// DefaultLimit is how many entries a Log holds unless told otherwise: a million, which is about 300 MB.
const DefaultLimit = 1_000_000

// pageSize is how many operations are allocated at a time, so that a long log is never copied while clients wait.
const pageSize = 1024

// maxValue is the length in bytes up to which values are kept as they are; of longer ones the log keeps the beginning and a
// hash.
const maxValue = 80

// ErrFull is the error of a check of a log that has reached its limit: what came later is not in it, so nothing can be
// concluded.
var ErrFull = errors.New("history: the log was full, operations are missing: make it with a higher Limit")

// A Log takes down what clients did and saw. All its methods, and those of everything made from it, may be called from any
// number of goroutines; each takes a lock for about a microsecond and waits for nothing else.
//
// It holds up to Limit entries in memory. An entry is an operation (about 300 bytes) or a record in a poll (about 100);
// values longer than 80 bytes are shortened. A log that is full takes nothing more, and Check says so instead of judging.
// Check needs two to three times the log's memory while it works.
type Log struct {
	now   func() time.Time
	limit int

	mu      sync.Mutex
	pages   [][]Op // each of pageSize, but for the last
	len     int    // operations
	entries int
	clock   int
	txns    int
	full    bool
}

// An Option changes a Log.
type Option func(*Log)

// Limit sets how many entries a log takes.
func Limit(entries int) Option { return func(l *Log) { l.limit = entries } }

// Clock sets where a log has the time from. The default is time.Now, which is virtual time inside testing/synctest. Time is
// for people who read reports: the order of operations is the order in which the log was told.
func Clock(now func() time.Time) Option { return func(l *Log) { l.now = now } }

// New makes an empty log.
func New(opts ...Option) *Log {
	l := &Log{now: time.Now, limit: DefaultLimit}
	for _, o := range opts {
		o(l)
	}
	return l
}

// Len returns how many entries the log holds.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries
}

// Ops returns a copy of the operations, in the order of their invocations.
func (l *Log) Ops() []Op {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.copied()
}

func (l *Log) copied() []Op {
	ops := make([]Op, 0, l.len)
	for _, page := range l.pages {
		ops = append(ops, page...)
	}
	return ops
}

// Process returns the recorder of one process: a client, a worker, whatever does one thing after the other and dies as a
// whole. A process that is started again after a crash takes a new name. Sends of one process to a partition are taken to
// be in the order of the calls of Send, so goroutines that send side by side need names of their own.
func (l *Log) Process(name string) *Process { return &Process{l, name} }

// add takes an operation down; it returns its index, or -1 when the log is full.
func (l *Log) add(o Op) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := 1 + len(o.Reads); l.full || l.entries+n > l.limit {
		l.full = true
		return -1
	} else {
		l.entries += n
	}
	l.clock++
	o.Index, o.invoked, o.Invoked = l.len, l.clock, l.now()
	if o.Outcome != Pending {
		o.completed, o.Completed = l.clock, o.Invoked
	}
	if l.len%pageSize == 0 {
		l.pages = append(l.pages, make([]Op, 0, pageSize))
	}
	last := &l.pages[len(l.pages)-1]
	*last = append(*last, o)
	l.len++
	return o.Index
}

// A Call is an operation that has begun. One of OK, Fail and Info ends it; further calls change nothing, except that OK and
// Fail replace Info: who asked again and was told knows more. An operation that is never ended counts as Info.
type Call struct {
	log   *Log
	index int
}

// end is called once the outcome is known.
func (c *Call) end(out Outcome, err error, fill func(*Op)) {
	if c.index < 0 {
		return
	}
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	o := &c.log.pages[c.index/pageSize][c.index%pageSize]
	if o.Outcome == OK || o.Outcome == Fail {
		return
	}
	c.log.clock++
	o.Outcome, o.completed, o.Completed, o.Err = out, c.log.clock, c.log.now(), ""
	if err != nil {
		o.Err = err.Error()
	}
	if fill != nil {
		fill(o)
	}
}

// OK says that the operation was done.
func (c *Call) OK() { c.end(OK, nil, nil) }

// Fail says that it was certainly not done, and never will be.
func (c *Call) Fail(err error) { c.end(Fail, err, nil) }

// Info says that nobody knows whether it was done.
func (c *Call) Info(err error) { c.end(Info, err, nil) }

// With sets the offsets of a CommitOffsets that was begun before they were known.
func (c *Call) With(offsets ...Offset) *Call {
	if c.index >= 0 {
		c.log.mu.Lock()
		defer c.log.mu.Unlock()
		o := &c.log.pages[c.index/pageSize][c.index%pageSize]
		o.Offsets = append([]Offset(nil), offsets...)
	}
	return c
}

// A SendCall is the Call of a Send.
type SendCall struct{ Call }

// OK says where the record is; offset Unknown when the broker did not say.
func (c *SendCall) OK(partition int32, offset int64) {
	c.end(OK, nil, func(o *Op) { o.Partition, o.Offset = partition, offset })
}

// shorten keeps the identity of a value in few bytes.
func shorten(value string) string {
	if len(value) <= maxValue {
		return value
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(value)) // never fails
	return fmt.Sprintf("%s#%016x", value[:maxValue-17], h.Sum64())
}
