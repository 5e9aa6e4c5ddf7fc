package harness_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker/harness"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
)

// eager are options of producers that send at once, in small batches, several behind each other.
var eager = []producer.Option{producer.Linger(0), producer.BatchSize(100), producer.DeliveryTimeout(40 * time.Second), producer.RequestTimeout(5 * time.Second), producer.RetryBackoff(20*time.Millisecond, 200*time.Millisecond)}

// session makes a transactional session of a process.
func (l *life) session(cl *client.Client, id string) (*txn.Session, func(), error) {
	s, err := txn.New(l.ctx, cl, id, txn.TransactionTimeout(trialTimeout), txn.Producer(eager...))
	if err != nil {
		return nil, nil, err
	}
	return s, func() { l.closes(s.Close) }, nil
}

// input is the i-th record of in. Its key says the partition, and where its result will go.
func input(i int) producer.Record {
	k := i % 7
	r := producer.Record{Topic: "in", Key: fmt.Appendf(nil, "key-%d", k), Value: fmt.Appendf(nil, "v%03d", i)}
	return r.To(int32(k % 2))
}

// result is what a worker makes of a record.
func result(r consumer.Record) producer.Record {
	k := int32(r.Key[len(r.Key)-1] - '0')
	out := producer.Record{Topic: "out", Key: r.Key, Value: append([]byte("done "), r.Value...)}
	return out.To(k / 2 % 2)
}

// shop writes in. It is never killed: nobody could say where its successor has to go on.
func (tr *trial) shop() func(*life) error {
	next := 0
	if tr.random("shop style").IntN(2) == 0 {
		return func(l *life) error { return l.plainShop(&next) }
	}
	return func(l *life) error { return l.transactionalShop(&next) }
}

// plainShop writes idempotently, in bursts.
func (l *life) plainShop(next *int) error {
	r, rec := l.tr.random(l.id), harness.Record(l.tr.log, l.id)
	cl, done, err := l.client()
	if err != nil {
		return err
	}
	defer done()
	for *next < trialRecords {
		p, err := producer.New(cl, eager...) // now and then a new one, with an id of its own
		if err != nil {
			return err
		}
		for range 3 {
			l.burst(r, rec, p, next)
			l.sleep(time.Duration(r.IntN(1200)) * time.Millisecond)
		}
		if err := p.Close(l.ctx); err != nil {
			return err
		}
	}
	return nil
}

// burst writes some records, one right after the other.
func (l *life) burst(r *rand.Rand, rec *harness.Recorder, p *producer.Producer, next *int) {
	for range min(1+r.IntN(6), trialRecords-*next) {
		out := input(*next)
		*next++
		err := rec.Submit(l.ctx, p, out, func(_ producer.Ack, err error) {
			if err != nil {
				l.tr.find("send failed: %s: %v", out.Value, err)
			}
		})
		if err != nil {
			l.tr.find("send failed: %s: %v", out.Value, err)
		}
	}
}

// transactionalShop writes in transactions, and aborts some; what it aborted it writes again.
func (l *life) transactionalShop(next *int) error {
	var first producer.Ack // of the transaction, so that one in doubt can be looked up
	return l.transactions("shop", func(r *rand.Rand, tx *harness.Tx) (commit bool, size int) {
		size, first = min(1+r.IntN(6), trialRecords-*next), producer.Ack{Offset: -1}
		commit = r.IntN(4) > 0
		for i := range size {
			out := input(*next + i)
			if !commit { // so that nobody takes it for what is written later
				out.Value = fmt.Appendf(out.Value, " aborted by %s at %s", l.id, time.Now().Format("04:05.000"))
			}
			_ = tx.Submit(l.ctx, out, func(ack producer.Ack, err error) {
				if i == 0 && err == nil {
					first = ack
				}
			})
		}
		return commit, size
	}, func(size int, certain bool) (over bool) {
		if !certain && !l.isThere(first) {
			return false
		}
		*next += size
		return *next >= trialRecords
	})
}

// isThere reports whether a record is committed, once no transaction is open at its place any more.
func (l *life) isThere(ack producer.Ack) bool {
	for ack.Offset >= 0 && l.ctx.Err() == nil {
		o, err := l.tr.k.Offsets(ack.Topic, ack.Partition)
		if err == nil && o.LastStable > ack.Offset {
			there, err := l.tr.visibleAt(ack.Topic, ack.Partition, ack.Offset)
			if err == nil {
				return there
			}
		}
		l.sleep(100 * time.Millisecond)
	}
	return false
}

// ledger writes transactions to a topic of its own.
func (tr *trial) ledger() func(*life) error {
	left, n := trialLedger, 0
	return func(l *life) error {
		return l.transactions("ledger", func(r *rand.Rand, tx *harness.Tx) (bool, int) {
			for i := range 1 + r.IntN(7) {
				n++
				out := producer.Record{Topic: "ledger", Value: fmt.Appendf(nil, "entry %d %s", n, strings.Repeat("x", r.IntN(60)))}
				_ = tx.Submit(l.ctx, out.To(int32(i%2)), nil)
				if r.IntN(3) == 0 {
					l.sleep(time.Duration(r.IntN(300)) * time.Millisecond)
				}
			}
			return r.IntN(3) > 0, 1
		}, func(size int, _ bool) bool {
			left -= size
			return left <= 0
		})
	}
}

// transactions makes transactions until over says so. fill says whether to commit, committed is told what was, or may have
// been and nobody will ever say.
func (l *life) transactions(id string, fill func(*rand.Rand, *harness.Tx) (commit bool, size int), committed func(size int, certain bool) (over bool)) error {
	r, rec := l.tr.random(l.id), harness.Record(l.tr.log, l.id)
	cl, done, err := l.client()
	if err != nil {
		return err
	}
	defer done()
	s, done, err := l.session(cl, id)
	if err != nil {
		return err
	}
	defer done()
	for {
		tx, err := rec.Begin(l.ctx, s)
		if err != nil {
			if txn.Class(err) == txn.Fenced || l.ctx.Err() != nil {
				return err
			}
			l.sleep(50 * time.Millisecond)
			continue
		}
		commit, size := fill(r, tx)
		if r.IntN(20) == 0 && !l.tr.isCalm() {
			l.sleep(trialTimeout + 2*time.Second) // the coordinator loses its patience
		}
		if !commit {
			err = tx.Abort(l.ctx)
		} else {
			err = l.commit(tx)
			if (err == nil || inDoubtForGood(err)) && committed(size, err == nil) {
				return nil
			}
			if inDoubtForGood(err) {
				return err
			}
		}
		if txn.Class(err) == txn.Fenced || l.ctx.Err() != nil {
			return errors.Join(err, context.Cause(l.ctx))
		}
		l.sleep(time.Duration(r.IntN(500)) * time.Millisecond)
	}
}

// commit commits, and asks until the outcome is known; what cannot be committed is aborted.
func (l *life) commit(tx *harness.Tx) error {
	for {
		err := tx.Commit(l.ctx)
		switch {
		case err == nil || l.ctx.Err() != nil || txn.Class(err) == txn.Fenced || inDoubtForGood(err):
			return err
		case txn.Class(err) == txn.Abortable:
			return errors.Join(err, tx.Abort(l.ctx))
		}
		l.sleep(50 * time.Millisecond)
	}
}

// inDoubtForGood reports whether a session that is over does not know what became of its last transaction.
func inDoubtForGood(err error) bool {
	var fenced *txn.FencedError
	return txn.Class(err) == txn.OutcomeUnknown && errors.As(err, &fenced)
}

// reader reads all topics as read_committed from the beginning, in small fetches, after a while.
func (tr *trial) reader(wait time.Duration) func(*life) error {
	return func(l *life) error {
		l.sleep(wait)
		rec := harness.Record(tr.log, l.id)
		cl, done, err := l.client()
		if err != nil {
			return err
		}
		defer done()
		c, err := consumer.New(cl, append(rec.Consumer("", consumer.ReadCommitted), consumer.StartAt(consumer.Earliest), consumer.MaxBytes(1200, 500),
			consumer.Assign("in", 0, 1), consumer.Assign("out", 0, 1), consumer.Assign("ledger", 0, 1))...)
		if err != nil {
			return err
		}
		defer l.closes(c.Close)
		for l.ctx.Err() == nil {
			_, _ = c.Poll(l.ctx, 3)
		}
		return context.Cause(l.ctx)
	}
}
