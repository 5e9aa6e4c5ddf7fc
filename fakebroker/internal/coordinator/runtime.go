package coordinator

import (
	"log/slog"
	"sync"
	"time"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// Options are what a Runtime is made of; all but Loaded must be set.
type Options struct {
	Log    logrecord.Log
	Writer Writer
	// NewShard makes the machine of a partition, empty, for the leader epoch that it is elected in. It is called on a
	// goroutine of the runtime.
	NewShard func(partition, epoch int32) Shard
	// Loaded is told, on the runtime's goroutine, when the shard of a partition can be asked. It must not block.
	Loaded func(partition int32)
	Logger *slog.Logger
}

// A Runtime runs the shards of one coordinator's topic on this broker. Methods may be called from any goroutine and never
// block; what they ask for happens in the order of the calls.
//
// The inbox has no limit of its own: a connection has one request at a time, so it holds as many as there are clients.
type Runtime struct {
	o       Options
	encoder batches
	shards  map[int32]*shard // of partitions that this broker leads

	// Tickets that have not been answered.
	lastTicket Ticket
	waiting    map[Ticket]func(response any, code errcode.Code)

	mu     sync.Mutex
	queue  []func()
	closed bool
	wake   chan struct{} // one slot
	stop   chan struct{} // closed by Close
	done   chan struct{} // closed when the loop has ended

	toLoad  []*shard       // big logs that wait for the loader
	loading bool           // a loader runs
	loaders sync.WaitGroup // ends by itself, sooner when stop is closed
}

// shard is one partition that this broker leads.
type shard struct {
	partition int32
	epoch     int32
	machine   Shard
	active    bool
	told      []any  // while it is being loaded: what it has to hear then
	end       int64  // offset behind what was replayed
	committed int64  // high watermark
	held      []held // what waits for it, in order of offset
}

// held is what rests on everything below an offset: a reply, or one of the functions.
type held struct {
	offset int64
	reply  Reply
	effect func()
	marker func(errcode.Code)
}

// New starts a runtime without shards. Close ends its goroutine.
func New(o Options) *Runtime {
	r := &Runtime{
		o:       o,
		encoder: batches{log: o.Log},
		shards:  make(map[int32]*shard),
		waiting: make(map[Ticket]func(any, errcode.Code)),
		wake:    make(chan struct{}, 1),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
	}
	go r.run()
	return r
}

// Submit asks the shard of a partition. done runs exactly once, on the runtime's goroutine as a rule, and must not block:
// with what the machine answered, or with a code. req.Ticket is filled in. req.Body must stay as it is until done.
func (r *Runtime) Submit(partition int32, req Request, done func(response any, code errcode.Code)) {
	if !r.post(func() { r.serve(partition, req, done) }) {
		done(nil, errcode.CoordinatorNotAvailable)
	}
}

// SubmitAll asks every shard there is and calls done once with all answers, by partition; those of shards that are
// loading have a code.
func (r *Runtime) SubmitAll(req Request, done func(answers map[int32]Reply)) {
	if !r.post(func() { r.serveAll(req, done) }) {
		done(nil)
	}
}

// Tell has every shard there is handle what concerns them all, in the order of the calls; those that are loading do when
// they have loaded. Nobody waits for an answer.
func (r *Runtime) Tell(body any) { r.post(func() { r.tell(body) }) }

// WriteMarker ends a transaction in a partition's log. done runs once, on the runtime's goroutine as a rule, when the
// marker is below the high watermark, or with a code: what the log refused it with, NOT_COORDINATOR or
// COORDINATOR_LOAD_IN_PROGRESS. It must not block.
func (r *Runtime) WriteMarker(partition int32, m Marker, done func(errcode.Code)) {
	if !r.post(func() { r.writeMarker(partition, m, done) }) {
		done(errcode.CoordinatorNotAvailable)
	}
}

// Elect makes this broker the coordinator of a partition under a leader epoch: its log is loaded. A lower or equal epoch
// than the one that is known changes nothing.
func (r *Runtime) Elect(partition, epoch int32) { r.post(func() { r.elect(partition, epoch) }) }

// Resign drops a partition: whoever waits gets NOT_COORDINATOR.
func (r *Runtime) Resign(partition int32) {
	r.post(func() { r.drop(partition, errcode.NotCoordinator) })
}

// Reload drops a partition and loads it again under the same epoch, as if the leadership had moved away and back.
func (r *Runtime) Reload(partition int32, done func()) {
	if !r.post(func() {
		if s := r.shards[partition]; s != nil {
			r.drop(partition, errcode.NotCoordinator)
			r.elect(partition, s.epoch)
		}
		done()
	}) {
		done()
	}
}

// Committed tells that the high watermark of a partition has moved: replies that waited for it leave.
func (r *Runtime) Committed(partition int32, highWatermark int64) {
	r.post(func() {
		if s := r.shards[partition]; s != nil {
			s.committed = max(s.committed, highWatermark)
			r.release(s)
		}
	})
}

// Close ends the runtime: whoever waits, or asks later, gets COORDINATOR_NOT_AVAILABLE. It returns when every goroutine
// has ended. More calls do nothing.
func (r *Runtime) Close() {
	r.mu.Lock()
	first := !r.closed
	r.closed = true
	r.mu.Unlock()
	if first {
		close(r.stop)
	}
	<-r.done
	r.loaders.Wait()
}

// post adds work for the loop; false when the runtime is closed.
func (r *Runtime) post(f func()) bool {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return false
	}
	r.queue = append(r.queue, f)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return true
}

func (r *Runtime) take() []func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.queue
	r.queue = nil
	return q
}

// run is the loop; it ends by Close.
func (r *Runtime) run() {
	defer close(r.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Stop()
		if t := r.deadline(); !t.IsZero() {
			timer.Reset(time.Until(t))
		}
		select {
		case <-r.wake:
			for _, f := range r.take() {
				f()
			}
		case <-timer.C:
			r.tick()
		case <-r.stop:
			r.end()
			return
		}
	}
}

// end answers everybody. What was posted before Close is served first: it may hold a done that has to run.
func (r *Runtime) end() {
	for partition := range r.shards {
		r.drop(partition, errcode.CoordinatorNotAvailable)
	}
	for _, f := range r.take() {
		f()
	}
}

func (r *Runtime) deadline() (next time.Time) {
	for _, s := range r.shards {
		if !s.active {
			continue
		}
		if t := s.machine.Deadline(); !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	return next
}

// tick does what is due, each thing with a result of its own, so that one that cannot be written stops no other.
func (r *Runtime) tick() {
	now := time.Now()
	for _, s := range r.shards {
		for s.active {
			t := s.machine.Deadline()
			if t.IsZero() || now.Before(t) {
				break
			}
			var out Result
			s.machine.Tick(now, &out)
			r.carryOut(s, now, &out)
		}
	}
}
