package coordinator

import (
	"errors"
	"time"

	"github.com/ottla-kafka/ottla/wire/errcode"
)

// loadAtOnce is how long a log may be, in bytes, to be loaded by the loop itself: a fraction of a millisecond, less than
// a client would need to be told to come back.
const loadAtOnce = 64 << 10

var errStopped = errors.New("the runtime was closed")

func (r *Runtime) elect(partition, epoch int32) {
	if r.ended() {
		return
	}
	if s := r.shards[partition]; s != nil {
		if s.epoch >= epoch {
			return
		}
		r.drop(partition, errcode.NotCoordinator)
	}
	s := &shard{partition: partition, epoch: epoch, machine: r.o.NewShard(partition, epoch)}
	r.shards[partition] = s
	if r.o.Writer.Size(partition) <= loadAtOnce {
		r.loaded(s, r.replay(s, &batches{log: r.o.Log}))
		return
	}
	r.toLoad = append(r.toLoad, s)
	r.loadNext()
}

// loadNext starts the loader unless it runs or there is nothing to do. One log is loaded at a time; the goroutine ends
// with the log, or early when the runtime is closed.
func (r *Runtime) loadNext() {
	if r.loading || len(r.toLoad) == 0 {
		return
	}
	s := r.toLoad[0]
	r.toLoad = r.toLoad[1:]
	r.loading = true
	r.loaders.Add(1)
	go func() {
		defer r.loaders.Done()
		log := r.replay(s, &batches{log: r.o.Log})
		r.post(func() {
			r.loading = false
			r.loaded(s, log)
			r.loadNext()
		})
	}()
}

// replayed is how far a log was read, or why it was not.
type replayed struct {
	end, committed int64
	err            error
}

// replay reads the log of a shard into its machine, which nobody else touches before it is active. The shard's other
// fields are the loop's, also while it is being loaded.
func (r *Runtime) replay(s *shard, decoder *batches) replayed {
	skipped := 0
	end, committed, err := r.o.Writer.Load(s.partition, s.epoch, func(batch []byte) error {
		if r.ended() {
			return errStopped
		}
		n, err := decoder.decode(batch, s.machine)
		skipped += n
		return err
	})
	if skipped > 0 {
		r.o.Logger.Warn("coordinator records of unknown types were passed over", "topic", r.o.Log, "partition", s.partition, "records", skipped)
	}
	return replayed{end: end, committed: committed, err: err}
}

func (r *Runtime) loaded(s *shard, log replayed) {
	if r.shards[s.partition] != s {
		return // dropped meanwhile
	}
	if err := log.err; err != nil {
		switch {
		case errors.Is(err, errStopped):
		case errors.Is(err, errcode.NotLeaderOrFollower): // the next election is waiting already
			r.o.Logger.Debug("coordinator was not loaded", "topic", r.o.Log, "partition", s.partition, "epoch", s.epoch, "err", err)
		default:
			r.o.Logger.Error("coordinator was not loaded; what it coordinates is unavailable", "topic", r.o.Log, "partition", s.partition, "epoch", s.epoch, "err", err)
		}
		delete(r.shards, s.partition)
		return
	}
	s.active, s.end, s.committed = true, log.end, max(s.committed, log.committed)
	now := time.Now()
	var out Result
	s.machine.Loaded(now, &out)
	r.carryOut(s, now, &out)
	for _, body := range s.told {
		r.handle(s, Request{Body: body}, nobody)
	}
	s.told = nil
	if r.o.Loaded != nil {
		r.o.Loaded(s.partition)
	}
}

// A Dropper is a Shard that keeps tickets: it is told when the shard is dropped and refuses them all with code.
type Dropper interface {
	Drop(code errcode.Code, out *Result)
}

// drop ends a shard: what it had promised but not committed, and what waited in the machine, is refused.
func (r *Runtime) drop(partition int32, code errcode.Code) {
	s := r.shards[partition]
	if s == nil {
		return
	}
	delete(r.shards, partition)
	for _, h := range s.held {
		switch {
		case h.marker != nil:
			h.marker(code)
		case h.effect == nil: // what should have followed is not going to happen
			r.answer(Reply{Ticket: h.reply.Ticket, Code: code})
		}
	}
	if m, ok := s.machine.(Dropper); ok && s.active {
		var out Result
		m.Drop(code, &out)
		for _, reply := range out.Replies {
			r.answer(reply)
		}
	}
}
