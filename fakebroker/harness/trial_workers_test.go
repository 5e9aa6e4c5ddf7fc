package harness_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker/harness"
	"github.com/ottla-kafka/ottla/fakebroker/history"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
)

// style is how a pipeline is written. Right is right; each other field is a mistake that programs make.
type style struct {
	pollsOn         bool // aborts on any error and polls on: the textbook loop
	offsetsApart    bool // commits offsets beside the transaction, once it is committed
	offsetsBefore   bool // likewise, before it is
	producesApart   bool // sends results with a producer of its own
	offByOne        bool // commits the offset of the last record instead of the one behind it
	uncommitted     bool // reads read_uncommitted
	noGeneration    bool // commits offsets without saying who it is, under a new transactional id each time: nobody is fenced
	forgetsOffsets  bool // commits no offsets
	ignoresFailures bool // takes a commit that failed for done

	filter filter // of the reader that does without a consumer
}

var right style

// worker carries records from in to out until the trial is done.
func (tr *trial) worker(id string) func(*life) error {
	return func(l *life) error {
		cl, done, err := l.client()
		if err != nil {
			return err
		}
		defer done()
		w := &carrier{life: l, cl: cl, r: tr.random(l.id), rec: harness.Record(tr.log, l.id)}
		level := consumer.ReadCommitted
		if tr.style.uncommitted {
			level = consumer.ReadUncommitted
		}
		protocol := "consumer"
		if tr.classic {
			protocol = "classic"
		}
		w.c, err = consumer.New(cl, append(w.rec.Consumer("g", level), consumer.Subscribe("in"), consumer.OnReset(consumer.Earliest), consumer.DrainTimeout(3*time.Second),
			func(cfg *consumer.Config) { cfg.Group.Protocol = protocol }, noAutoCommit, consumer.SessionTimeout(trialSession, time.Second), consumer.MaxPollInterval(15*time.Second, consumer.Leave))...)
		if err != nil {
			return err
		}
		defer l.closes(w.c.Close)
		if tr.style.noGeneration {
			id = fmt.Sprintf("%s-%d", id, w.r.Uint64())
		}
		s, done, err := l.session(cl, id)
		if err != nil {
			return err
		}
		defer done()
		w.s = s
		way := tr.random("way").IntN(3)
		switch {
		case tr.style.wrong() || way == 0:
			return w.byHand()
		case way == 1:
			return w.pipe()
		}
		return w.loop()
	}
}

func (s style) wrong() bool {
	s.uncommitted, s.filter = false, filter{} // those are wrong in any loop
	return s != right
}

// carrier is a worker at work.
type carrier struct {
	*life
	cl  *client.Client
	r   *rand.Rand
	rec *harness.Recorder
	c   *consumer.Consumer
	s   *txn.Session
}

var errWhim = errors.New("the worker has changed its mind")

// pipe lets Pipe do it all. Now and then the handler fails, or takes too long.
func (w *carrier) pipe() error {
	for {
		err := w.rec.Pipe(w.ctx, w.s, w.c, func(ctx context.Context, tx *harness.Tx, r consumer.Record) error {
			w.nap()
			if w.r.IntN(25) == 0 {
				return errWhim
			}
			return tx.Submit(ctx, result(r), nil)
		}, txn.CommitRecords(1+w.r.IntN(6)))
		if !errors.Is(err, errWhim) {
			return err
		}
	}
}

// nap takes a while, sometimes long.
func (w *carrier) nap() {
	if w.tr.isCalm() {
		return
	}
	switch w.r.IntN(60) {
	case 0:
		w.sleep(time.Duration(3+w.r.IntN(9)) * time.Second) // longer than sessions and transactions may last
	case 1, 2, 3, 4, 5:
		w.sleep(time.Duration(w.r.IntN(700)) * time.Millisecond)
	}
}

// loop is a loop of one's own with Consume.
func (w *carrier) loop() error {
	stop, err := w.s.Consume(w.c)
	if err != nil {
		return err
	}
	defer stop()
	for w.ctx.Err() == nil {
		tx, err := w.rec.Begin(w.ctx, w.s)
		if err != nil {
			if txn.Class(err) == txn.Fenced {
				return err
			}
			w.sleep(50 * time.Millisecond)
			continue
		}
		records, err := w.poll()
		if err != nil {
			return errors.Join(err, tx.Abort(w.ctx))
		}
		if len(records) == 0 {
			if err := tx.Abort(w.ctx); txn.Class(err) == txn.Fenced {
				return err
			}
			continue
		}
		for _, r := range records {
			w.nap()
			tx.Processed("g", r)
			if err := tx.Submit(w.ctx, result(r), nil); err != nil {
				break // Commit will say so
			}
		}
		if w.r.IntN(8) == 0 {
			err = tx.Abort(w.ctx)
		} else {
			err = w.commit(tx)
		}
		if txn.Class(err) == txn.Fenced || inDoubtForGood(err) {
			return err
		}
	}
	return context.Cause(w.ctx)
}

// poll waits a while for records.
func (w *carrier) poll() ([]consumer.Record, error) {
	ctx, cancel := context.WithTimeout(w.ctx, 300*time.Millisecond)
	defer cancel()
	records, err := w.c.Poll(ctx, 1+w.r.IntN(6))
	if errors.Is(err, consumer.ErrClosed) || errors.Is(err, consumer.ErrFenced) {
		return nil, err
	}
	return records, nil
}

// byHand is the loop that programs have which do without Consume, with the mistake of the trial's style. Without one it puts
// the positions back itself and is right.
func (w *carrier) byHand() error {
	apart, err := producer.New(w.cl, eager...)
	if err != nil {
		return err
	}
	defer w.closes(apart.Close)
	for w.ctx.Err() == nil {
		records, err := w.poll()
		if err != nil {
			return err
		}
		if len(records) == 0 {
			continue
		}
		generation := w.c.Generation()
		if w.tr.style.noGeneration {
			generation = groupmember.Generation{ID: -1}
		}
		tx, err := w.rec.Begin(w.ctx, w.s)
		if err != nil {
			return err // as a whole: the next life begins at the committed offsets
		}
		offsets, first := map[consumer.TopicPartition]consumer.Offset{}, map[consumer.TopicPartition]int64{}
		for _, r := range records {
			w.nap()
			tx.Processed("g", r)
			if w.tr.style.producesApart {
				err = w.rec.Submit(w.ctx, apart, result(r), nil)
			} else {
				err = tx.Submit(w.ctx, result(r), nil)
			}
			if err != nil {
				break
			}
			next := r.Offset + 1
			if w.tr.style.offByOne {
				next = r.Offset
			}
			offsets[r.TopicPartition()] = consumer.Offset{At: next}
			if _, known := first[r.TopicPartition()]; !known {
				first[r.TopicPartition()] = r.Offset + 1
			}
		}
		if err == nil && w.r.IntN(8) == 0 {
			err = errWhim
		}
		if err == nil {
			err = w.finish(tx, generation, offsets, first)
		} else {
			err = errors.Join(err, tx.Abort(w.ctx))
		}
		switch {
		case err == nil, w.tr.style.ignoresFailures:
		case txn.Class(err) == txn.Fenced, inDoubtForGood(err), w.ctx.Err() != nil:
			return err
		case w.tr.style.pollsOn:
		default:
			return err // the next life begins at the committed offsets
		}
	}
	return context.Cause(w.ctx)
}

// finish commits, with the offsets in the transaction or not.
func (w *carrier) finish(tx *harness.Tx, g groupmember.Generation, offsets map[consumer.TopicPartition]consumer.Offset, first map[consumer.TopicPartition]int64) error {
	s := w.tr.style
	switch {
	case s.forgetsOffsets:
		return w.commit(tx)
	case s.offsetsBefore:
		if err := w.commitOffsets(offsets); err != nil {
			return errors.Join(err, tx.Abort(w.ctx))
		}
		return w.commit(tx)
	case s.offsetsApart:
		if err := w.commit(tx); err != nil {
			return err
		}
		return w.commitOffsets(offsets)
	}
	if w.r.IntN(2) == 0 { // some send them more than once: the latest counts
		some := map[consumer.TopicPartition]consumer.Offset{}
		for tp := range offsets {
			some[tp] = consumer.Offset{At: first[tp]}
		}
		if err := tx.SendOffsets(w.ctx, "g", g, some); err != nil {
			return errors.Join(err, tx.Abort(w.ctx))
		}
	}
	if err := tx.SendOffsets(w.ctx, "g", g, offsets); err != nil {
		return errors.Join(err, tx.Abort(w.ctx))
	}
	return w.commit(tx)
}

func (w *carrier) commitOffsets(offsets map[consumer.TopicPartition]consumer.Offset) error {
	var list []history.Offset
	for tp, o := range offsets {
		list = append(list, history.Offset{TopicPartition: history.TopicPartition(tp), Offset: o.At})
	}
	call := w.rec.CommitOffsets("g", list...)
	err := w.c.CommitOffsets(w.ctx, offsets)
	if err != nil {
		call.Info(err)
	} else {
		call.OK()
	}
	return err
}

// noAutoCommit leaves committing to the program.
func noAutoCommit(cfg *consumer.Config) { cfg.Group.AutoCommit = false }
