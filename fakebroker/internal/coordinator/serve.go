package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// serve takes one request to its shard.
func (r *Runtime) serve(partition int32, req Request, done func(any, errcode.Code)) {
	s, code := r.ready(partition)
	if code != errcode.None {
		done(nil, code)
		return
	}
	r.handle(s, req, done)
}

// ready returns the shard of a partition, or why it cannot be asked.
func (r *Runtime) ready(partition int32) (*shard, errcode.Code) {
	s := r.shards[partition]
	switch {
	case r.ended():
		return nil, errcode.CoordinatorNotAvailable
	case s == nil:
		return nil, errcode.NotCoordinator
	case !s.active:
		return nil, errcode.CoordinatorLoadInProgress
	}
	return s, errcode.None
}

func (r *Runtime) ended() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

func (r *Runtime) handle(s *shard, req Request, done func(any, errcode.Code)) {
	now := time.Now()
	r.lastTicket++
	req.Ticket = r.lastTicket
	r.waiting[req.Ticket] = done
	var out Result
	s.machine.Handle(now, req, &out)
	r.carryOut(s, now, &out)
}

func (r *Runtime) tell(body any) {
	if r.ended() {
		return
	}
	for _, s := range r.shards {
		if s.active {
			r.handle(s, Request{Body: body}, nobody)
		} else {
			s.told = append(s.told, body)
		}
	}
}

func nobody(any, errcode.Code) {}

func (r *Runtime) serveAll(req Request, done func(map[int32]Reply)) {
	answers := make(map[int32]Reply, len(r.shards))
	left := 1 // this function itself
	one := func() {
		if left--; left == 0 {
			done(answers)
		}
	}
	if !r.ended() {
		for partition, s := range r.shards {
			if !s.active {
				answers[partition] = Reply{Code: errcode.CoordinatorLoadInProgress}
				continue
			}
			left++
			r.handle(s, req, func(response any, code errcode.Code) {
				answers[partition] = Reply{Response: response, Code: code}
				one()
			})
		}
	}
	one()
}

// carryOut does what a result says, in this order: append, replay, Written (which may add to the result), replies and
// Committed. A result of Written or Failed is carried out in turn.
func (r *Runtime) carryOut(s *shard, now time.Time, out *Result) {
	var next Result
	if len(out.Records) > 0 {
		if code := r.writeAll(s, now, out); code != errcode.None {
			for _, failed := range out.Failed {
				failed(now, code, &next)
			}
			for _, reply := range out.Replies {
				if len(out.Failed) == 0 {
					reply = Reply{Ticket: reply.Ticket, Code: code}
				}
				r.hold(s, reply)
			}
			r.follow(s, now, &next)
			return
		}
	}
	for _, reply := range out.Replies {
		r.hold(s, reply)
	}
	for _, f := range out.Committed {
		s.held = append(s.held, held{offset: s.end, effect: f})
	}
	for _, written := range out.Written {
		written(now, &next)
	}
	r.follow(s, now, &next)
}

// follow carries out what Written or Failed added, if anything, and lets go what is committed.
func (r *Runtime) follow(s *shard, now time.Time, next *Result) {
	if len(next.Records)+len(next.Replies)+len(next.Written)+len(next.Committed) > 0 {
		r.carryOut(s, now, next)
		return
	}
	r.release(s)
}

// divisibleRecords is how many records of a divisible result go in one batch: far below what a batch may hold.
const divisibleRecords = 500

func (r *Runtime) writeAll(s *shard, now time.Time, out *Result) errcode.Code {
	if !out.Divisible {
		return r.write(s, now, out.Records, out.Txn)
	}
	for part := range slices.Chunk(out.Records, divisibleRecords) {
		if code := r.write(s, now, part, out.Txn); code != errcode.None {
			return code
		}
	}
	return errcode.None
}

// write appends records and replays them.
func (r *Runtime) write(s *shard, now time.Time, records []Record, txn *TxnBatch) errcode.Code {
	batch, err := r.encoder.encode(records, txn, now)
	if err != nil {
		r.o.Logger.Error("coordinator records were not encoded", "topic", r.o.Log, "partition", s.partition, "err", err)
		return errcode.UnknownServerError
	}
	var guard uint64
	replay := s.machine.Replay
	if txn != nil {
		guard = txn.Guard
		replay = func(offset int64, key, value logrecord.Record) error {
			return s.machine.(TxnShard).ReplayTxn(offset, txn.ProducerID, key, value)
		}
	}
	next, committed, err := r.o.Writer.Append(s.partition, s.epoch, batch, guard, now)
	if err != nil {
		code := Code(err)
		level := slog.LevelError
		if txn != nil && (code == errcode.InvalidTxnState || code == errcode.InvalidProducerEpoch) {
			level = slog.LevelDebug // the producer was late: its transaction has ended, or a newer instance has begun
		}
		r.o.Logger.Log(context.Background(), level, "coordinator records were not written", "topic", r.o.Log, "partition", s.partition, "err", err)
		return code
	}
	first := next - int64(len(records))
	for i := range records {
		if err := replay(first+int64(i), records[i].Key, records[i].Value); err != nil {
			panic("coordinator: a machine does not take its own record: " + err.Error())
		}
	}
	s.end, s.committed = next, max(s.committed, committed)
	return errcode.None
}

// writeMarker appends a marker and has the machine end the transaction.
func (r *Runtime) writeMarker(partition int32, m Marker, done func(errcode.Code)) {
	s, code := r.ready(partition)
	if code != errcode.None {
		done(code)
		return
	}
	next, committed, err := r.o.Writer.AppendMarker(s.partition, s.epoch, m, time.Now())
	if err != nil {
		r.o.Logger.Debug("marker was not written", "topic", r.o.Log, "partition", partition, "producer", m.ProducerID, "err", err)
		if !errors.As(err, &code) {
			code = errcode.UnknownServerError
		}
		done(code)
		return
	}
	if err := s.machine.(TxnShard).EndTxn(next-1, m.ProducerID, m.Commit); err != nil {
		panic("coordinator: a machine does not take the end of a transaction: " + err.Error())
	}
	s.end, s.committed = next, max(s.committed, committed)
	s.held = append(s.held, held{offset: s.end, marker: done})
	r.release(s)
}

// Code is what clients are told when an append failed, as Apache Kafka's coordinators map it.
func Code(err error) errcode.Code {
	var code errcode.Code
	if !errors.As(err, &code) {
		return errcode.UnknownServerError
	}
	switch code {
	case errcode.UnknownTopicOrPartition, errcode.NotEnoughReplicas, errcode.RequestTimedOut:
		return errcode.CoordinatorNotAvailable
	case errcode.NotLeaderOrFollower, errcode.KafkaStorageError:
		return errcode.NotCoordinator
	case errcode.MessageTooLarge, errcode.RecordListTooLarge, errcode.InvalidFetchSize:
		return errcode.UnknownServerError
	}
	return code
}

// hold keeps a reply until everything that its shard has written so far is committed.
func (r *Runtime) hold(s *shard, reply Reply) {
	s.held = append(s.held, held{offset: s.end, reply: reply})
}

// release lets go what is committed.
func (r *Runtime) release(s *shard) {
	n := 0
	for n < len(s.held) && s.held[n].offset <= s.committed {
		switch h := &s.held[n]; {
		case h.effect != nil:
			h.effect()
		case h.marker != nil:
			h.marker(errcode.None)
		default:
			r.answer(h.reply)
		}
		n++
	}
	if n == len(s.held) {
		s.held = s.held[:0]
		return
	}
	s.held = append(s.held[:0], s.held[n:]...)
}

// answer ends a ticket. A machine that answers one twice is broken.
func (r *Runtime) answer(reply Reply) {
	done, ok := r.waiting[reply.Ticket]
	if !ok {
		panic("coordinator: a request was answered twice")
	}
	delete(r.waiting, reply.Ticket)
	done(reply.Response, reply.Code)
}
