package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/groupmember"
)

// Consume makes the offsets of a consumer part of the session's transactions, until stop is called: what the consumer hands
// out (Records, Batches, Poll) is committed by the next Commit of the session, in the same transaction as the records that
// were submitted meanwhile, and handed out again after an abort. So a loop of one's own is
//
//	stop, err := s.Consume(c)
//	defer stop()
//	for ctx.Err() == nil {
//		records, err := c.Poll(ctx, 0)
//		...
//		err = s.Do(ctx, func(ctx context.Context, tx *txn.Tx) error {
//			for _, r := range records { ... tx.Submit(ctx, out, nil) ... }
//			return nil // Do commits the records and the offsets
//		})
//		...
//	}
//
// Nothing is lost when Do fails and the loop goes on: after an abort the consumer's positions are back at the committed
// offsets. So there is one rule: after any error of Begin, Do or Commit read again, and process what comes then; never process
// once more what was read before. A loop that sends offsets itself (Tx.SendOffsets) and does not put the positions back loses
// what it aborted.
//
// Partitions are given up when the transaction with their records has ended, not before (consumer.DrainTimeout bounds it), and
// the generation of the membership goes with the offsets, so that a member which the group has dropped cannot commit
// (KIP-447). Brokers before 2.5 do not check it, so Consume fails there for a consumer that subscribes; it asks the group's
// coordinator, for some seconds at most. enable.auto.commit rests meanwhile. A session may consume from several consumers, a consumer feeds one session.
// Consume fails for a consumer without a group, and while Run or Serve works or another session has it. After stop the session
// keeps a consumer whose offsets are in a commit in doubt, until Begin has found out or the session is closed; it may be given
// to the same session again meanwhile.
//
// What reads and what commits must not run at the same time: a record handed out while Commit runs may or may not be part
// of it. Pipe is all of this with the loop.
func (s *Session) Consume(c *consumer.Consumer) (stop func(), err error) {
	_, stop, err = s.consume(s.life, "Consume", c)
	return stop, err
}

func (s *Session) consume(ctx context.Context, op string, c *consumer.Consumer) (*consumer.Intake, func(), error) {
	if c == nil {
		return nil, nil, s.fail(op, Abortable, errors.New("the consumer is nil"))
	}
	if err := s.checkAge(ctx, op, c.Config().Group); err != nil {
		return nil, nil, err
	}
	f := s.intakes.unpark(c)
	if f == nil {
		in, err := c.Intake()
		if err != nil {
			return nil, nil, s.fail(op, Abortable, err)
		}
		f = &feed{c: c, in: in}
		s.intakes.mu.Lock()
		s.intakes.list = append(s.intakes.list, f)
		s.intakes.mu.Unlock()
	}
	for _, line := range LintConsumer(c.Config()) {
		s.cl.Logger().Warn("kafka transactions: "+line, "transactional.id", s.ID(), "group", c.Config().Group.ID)
	}
	return f.in, sync.OnceFunc(func() { s.letGo(f) }), nil
}

// letGo gives a consumer back to its owner. While it is not known what becomes of the transaction that its offsets were sent
// for, the consumer stays with the session, which goes on with it when it is given it again: where it is to go on, is not known
// either.
func (s *Session) letGo(f *feed) {
	s.mu.Lock()
	tx := s.tx
	s.mu.Unlock()
	if tx != nil && len(f.sent.Offsets) > 0 {
		switch out, settled, over := tx.ending(); {
		case settled || over || out == Aborted:
		case out == Committed:
			f.in.Settle(f.sent)
		default:
			s.intakes.park(f)
			return
		}
	}
	s.intakes.release(func(o *feed) bool { return o == f })
}

// LintConsumer says what is allowed for a consumer whose offsets are committed by transactions and still probably not meant.
// Consume and Pipe log each line as a warning.
func LintConsumer(cfg consumer.Config) []string {
	var out []string
	if cfg.Isolation != consumer.ReadCommitted {
		out = append(out, "isolation.level of the consumer is read_uncommitted: records of transactions that are aborted later are processed and their results committed; set read_committed")
	}
	if cfg.Start != consumer.Earliest && cfg.Start.IsZero() && cfg.Reset == consumer.Latest {
		out = append(out, "auto.offset.reset of the consumer is latest: records written before the group's first start are not processed")
	}
	return out
}

// intakes are the consumers whose offsets the session's transactions commit. The zero value has none. The session calls
// ready before a transaction begins, or void when none does; send before it ends one with a commit; then settle or rewind when
// it knows how that came out.
type intakes struct {
	mu   sync.Mutex // for list alone; a feed belongs to whoever begins or ends the transaction
	list []*feed
	back atomic.Int64 // counts how often positions went back
}

// feed is one consumer.
type feed struct {
	c      *consumer.Consumer
	in     *consumer.Intake
	sent   consumer.Portion // of the transaction under way
	off    error            // why the positions are not where they should be; nothing may be committed then
	parked bool             // its owner has let it go, see Session.letGo; belongs to intakes.mu
}

func (x *intakes) park(f *feed) {
	x.mu.Lock()
	f.parked = true
	x.mu.Unlock()
}

// unpark takes back a consumer that is parked, nil if it is not.
func (x *intakes) unpark(c *consumer.Consumer) *feed {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.list {
		if f.parked && f.c == c {
			f.parked = false
			return f
		}
	}
	return nil
}

// release lets go of feeds.
func (x *intakes) release(which func(*feed) bool) {
	var gone []*feed
	x.mu.Lock()
	x.list = slices.DeleteFunc(x.list, func(f *feed) bool {
		if which(f) {
			gone = append(gone, f)
			return true
		}
		return false
	})
	x.mu.Unlock()
	for _, f := range gone {
		f.in.Release()
	}
}

// settledAndParked are those that nobody waits for any more.
func settledAndParked(f *feed) bool { return f.parked && f.off == nil }

func (x *intakes) feeds() []*feed {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.list)
}

// send makes the offsets part of the transaction.
func (x *intakes) send(ctx context.Context, tx *Tx) error {
	for _, f := range x.feeds() {
		if f.off != nil {
			return fmt.Errorf("the consumer's positions are not back at the committed offsets since the last abort: %w", f.off)
		}
		err := tx.sendOffsets(ctx, func() (string, groupmember.Generation, map[groupmember.TopicPartition]groupmember.Offset, error) {
			var err error
			f.sent, err = f.in.Portion()
			return f.sent.Group, f.sent.Generation, f.sent.Offsets, err
		})
		if err == nil {
			err = f.in.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settle notes that the transaction is committed, with what was sent.
func (x *intakes) settle() {
	for _, f := range x.feeds() {
		f.in.Settle(f.sent)
		f.sent = consumer.Portion{}
	}
	x.release(settledAndParked)
}

// ready puts everything right before a transaction begins: it learns what became of the one before (settle) and tries again
// what rewind could not do. When positions went back, what the application has read meanwhile is not what comes next, and the
// transaction must not have it: that is an error, once.
func (x *intakes) ready(ctx context.Context, settle func(context.Context) error) error {
	before := x.back.Load()
	errs := []error{settle(ctx)}
	for _, f := range x.feeds() {
		if f.off != nil {
			errs = append(errs, x.putBack(ctx, f))
		}
	}
	err := errors.Join(errs...)
	if err == nil && x.back.Load() != before {
		err = errReadAgain
	}
	return err
}

// void notes that no transaction began with what the application has in hand: it must come again, since nothing else would
// ever bring it back.
func (x *intakes) void(err error) {
	if errors.Is(err, errReadAgain) {
		return // it has gone back just now
	}
	for _, f := range x.feeds() {
		if f.off == nil {
			f.off = fmt.Errorf("no transaction began with what was read: %w", err)
		}
	}
}

// errReadAgain says that records in the application's hand come again.
var errReadAgain = errors.New("the consumer went back to the committed offsets after an abort: what was read since comes again; read again")

// rewind puts the positions back after an abort. What could not be put back keeps every further transaction from committing
// until it is.
func (x *intakes) rewind(ctx context.Context) error {
	var errs []error
	for _, f := range x.feeds() {
		f.sent = consumer.Portion{}
		errs = append(errs, x.putBack(ctx, f))
	}
	x.release(settledAndParked)
	return errors.Join(errs...)
}

func (x *intakes) putBack(ctx context.Context, f *feed) error {
	moves := f.in.Pending()
	if f.off = f.in.Rewind(ctx); f.off == nil && moves {
		x.back.Add(1)
	}
	return f.off
}
