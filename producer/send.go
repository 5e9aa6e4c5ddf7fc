package producer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/ottla-kafka/ottla/producer/internal/buffer"
	"github.com/ottla-kafka/ottla/producer/machine"
)

// Submit hands a record over and returns as soon as it is in the buffer; done is called once, later, with where the
// record is or why it is not there. done may be nil. It runs on the producer's goroutine for callbacks, so it must not
// take long, and may itself submit.
//
// Submit waits for buffer memory and, the first time, for the topic's metadata, as long as ctx and max.block.ms allow.
// ctx has no say once Submit returned nil. When it returns an error, which always matches ErrNotWritten, done is not
// called. A ctx that has ended already is such an error, before the record has been looked at.
func (p *Producer) Submit(ctx context.Context, r Record, done func(Ack, error)) error {
	return p.submit(ctx, r, done, 0)
}

func (p *Producer) submit(ctx context.Context, r Record, done func(Ack, error), txn uint64) error {
	if err := ended(ctx, &r); err != nil {
		return err
	}
	if len(p.cfg.Interceptors) > 0 {
		return p.intercepted(ctx, r, done, nil, true, txn)
	}
	_, err := p.enqueue(ctx, &r, done, nil, true, txn)
	return err
}

// TrySubmit is Submit that never waits: ErrBufferFull when there is no room, ErrTopicPending when the topic's metadata
// has yet to come (see Warm).
func (p *Producer) TrySubmit(r Record, done func(Ack, error)) error {
	if len(p.cfg.Interceptors) > 0 {
		return p.intercepted(context.Background(), r, done, nil, false, 0)
	}
	_, err := p.enqueue(context.Background(), &r, done, nil, false, 0)
	return err
}

// Send sends one record and waits for its verdict; before that for buffer memory and metadata, as Submit does. It does
// not linger when nothing else is on its way to the broker;
// sends of many goroutines share batches all the same, because what comes while a request is in the air waits for it.
// When ctx ends, the record is taken back if no request has carried it yet (ErrNotWritten), and left to its fate
// otherwise (ErrOutcomeUnknown). A ctx that has ended already sends nothing (ErrNotWritten).
func (p *Producer) Send(ctx context.Context, r Record) (Ack, error) { return p.send(ctx, r, 0) }

func (p *Producer) send(ctx context.Context, r Record, txn uint64) (Ack, error) {
	err := ended(ctx, &r)
	if err != nil {
		return Ack{Topic: r.Topic, Partition: -1, Offset: -1}, err
	}
	w := p.newWaiter()
	if len(p.cfg.Interceptors) > 0 {
		err = p.intercepted(ctx, r, w.call, w, true, txn)
	} else {
		_, err = p.enqueue(ctx, &r, w.call, w, true, txn)
	}
	if err != nil {
		p.waiters.Put(w)
		return Ack{Topic: r.Topic, Partition: -1, Offset: -1}, err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		p.loop.control(func() { p.loop.withdraw(w) })
		<-w.done // at once: the runner does not block, and answers in any case
		if w.withdrawn {
			err = &Error{Outcome: w.outcome, Err: fmt.Errorf("send to %s ended by its context: %w", r.Topic, context.Cause(ctx))}
			return Ack{Topic: r.Topic, Partition: -1, Offset: -1}, err // the waiter stays with its batch
		}
	}
	ack, err := w.ack, w.err
	p.waiters.Put(w)
	return ack, err
}

// SendAll submits every record of the sequence, flushes, which waits for all verdicts, and returns how many were
// acknowledged. When ctx ends meanwhile, the records that are on their way are left to their fate and not counted. The
// error joins the first errors of records (ten at most) and says how many failed; the sequence is not read further
// once a record could not be submitted. With a ctx that has ended already it is not read at all.
func (p *Producer) SendAll(ctx context.Context, records iter.Seq[Record]) (acked int, err error) {
	return p.sendAll(ctx, records, 0)
}

func (p *Producer) sendAll(ctx context.Context, records iter.Seq[Record], txn uint64) (acked int, err error) {
	if err := context.Cause(ctx); err != nil {
		return 0, notWritten(fmt.Errorf("send all: %w", err))
	}
	var c collector
	n := 0
	var stop error
	for r := range records {
		if stop = p.submit(ctx, r, c.done, txn); stop != nil {
			break
		}
		n++
	}
	if flushErr := p.Flush(ctx); flushErr != nil {
		return c.result(n, errors.Join(stop, flushErr))
	}
	return c.result(n, stop)
}

// ended is the error of a call whose ctx has ended before it.
func ended(ctx context.Context, r *Record) error {
	if ctx.Err() == nil { // the quick look: Cause asks the chain of parents
		return nil
	}
	return notWritten(fmt.Errorf("send to %s: %w", r.Topic, context.Cause(ctx)))
}

// waiter is a Send that waits. It is reused with its channel and its callback.
type waiter struct {
	p    *Producer
	call func(Ack, error) // w.told
	done chan struct{}    // one signal

	batch     *batch // where the record is; its place moves when others are taken out
	at        int
	ack       Ack
	err       error
	over      bool // told or withdrawn
	withdrawn bool
	outcome   machine.Outcome
}

func (p *Producer) newWaiter() *waiter {
	w, _ := p.waiters.Get().(*waiter)
	if w == nil {
		w = &waiter{p: p, done: make(chan struct{}, 1)}
		w.call = w.told
	}
	w.batch, w.over, w.withdrawn, w.err = nil, false, false, nil
	return w
}

// told is the record's callback.
func (w *waiter) told(a Ack, err error) {
	w.p.loop.mu.Lock()
	late := w.over // withdrawn before: nobody waits any more
	w.over = true
	w.p.loop.mu.Unlock()
	if late {
		return
	}
	w.ack, w.err = a, err
	w.done <- struct{}{}
}

// enqueue finds the record's partition and adds it there, waiting for memory if it may.
func (p *Producer) enqueue(ctx context.Context, r *Record, done func(Ack, error), w *waiter, wait bool, txn uint64) (*part, error) {
	t, err := p.topic(ctx, r.Topic, wait)
	if err != nil {
		return nil, err
	}
	size := bound(r)
	if size > p.cfg.MaxRequestSize || int64(size) > p.cfg.BufferMemory {
		if err := p.tooLarge(r); err != nil {
			return nil, err
		}
	}
	var chunk []byte
	for {
		pt, err := p.place(t, r)
		if err != nil {
			p.mem.Put(chunk)
			return nil, err
		}
		res := pt.add(r, size, done, w, chunk, txn)
		chunk = nil
		if res.fresh || res.wake {
			p.loop.tell(pt, res.wake && w == nil, res.opened, res.fresh)
			if w != nil {
				p.loop.runInline()
			}
		}
		switch {
		case res.closed:
			return nil, notWritten(ErrClosed)
		case res.over:
			return nil, notWritten(ErrOver)
		case res.need == 0:
			return pt, nil
		case !wait:
			return nil, p.full(res.need)
		}
		if chunk, err = p.await(ctx, res.need); err != nil {
			return nil, err
		}
	}
}

// await waits for memory; meanwhile idle brokers get what there is for them.
func (p *Producer) await(ctx context.Context, need int) ([]byte, error) {
	began := time.Now()
	bounded, cancel := context.WithTimeoutCause(ctx, p.cfg.MaxBlock, p.full(need))
	defer cancel()
	defer context.AfterFunc(p.quit, cancel)() // the client's budget does not know when we close
	p.loop.control(func() { p.loop.event(machine.Event{Kind: machine.Pressed}) })
	chunk, err := p.mem.Wait(bounded, need)
	p.loop.control(func() { p.loop.event(machine.Event{Kind: machine.Eased}) })
	p.meter.BlockedNanos.Add(int64(time.Since(began)))
	switch {
	case err == nil:
		return chunk, nil
	case errors.Is(err, buffer.ErrClosed), p.closed.Load():
		return nil, notWritten(ErrClosed)
	case errors.Is(err, ErrBufferFull):
		return nil, err
	}
	return nil, notWritten(fmt.Errorf("%w: waited %s for %d bytes: %w", ErrBufferFull, time.Since(began).Round(time.Millisecond), need, err))
}

func (p *Producer) full(need int) error {
	used, limit := p.mem.Used()
	return notWritten(fmt.Errorf("%w: %d of %d bytes (buffer.memory) hold records that wait for their acknowledgement, %d more are needed (max.block.ms %s)",
		ErrBufferFull, used, limit, need, p.cfg.MaxBlock))
}

// tooLarge looks closer at a record whose upper bound exceeds a limit.
func (p *Producer) tooLarge(r *Record) error {
	size := exactSize(r)
	if size > p.cfg.MaxRequestSize {
		return notWritten(fmt.Errorf("%w: record of %d bytes exceeds max.request.size %d; the topic's max.message.bytes must allow it too",
			ErrRecordTooLarge, size, p.cfg.MaxRequestSize))
	}
	if int64(size) > p.cfg.BufferMemory {
		return notWritten(fmt.Errorf("%w: record of %d bytes exceeds buffer.memory %d", ErrRecordTooLarge, size, p.cfg.BufferMemory))
	}
	return nil
}

// intercepted lets the interceptors see the record first. They may change it, so it lives on the heap here.
func (p *Producer) intercepted(ctx context.Context, r Record, done func(Ack, error), w *waiter, wait bool, txn uint64) error {
	for _, in := range p.cfg.Interceptors {
		if err := in.OnSend(ctx, &r); err != nil {
			return p.refused(&r, notWritten(fmt.Errorf("interceptor %T: %w", in, err)))
		}
	}
	if _, err := p.enqueue(ctx, &r, done, w, wait, txn); err != nil {
		return p.refused(&r, err)
	}
	return nil
}

// refused tells the interceptors of a record that never got into a batch.
func (p *Producer) refused(r *Record, err error) error {
	part, ok := r.Partition()
	if !ok {
		part = -1
	}
	for _, in := range p.cfg.Interceptors {
		in.OnEnd(Ack{Topic: r.Topic, Partition: part, Offset: -1, Timestamp: r.Timestamp}, err)
	}
	return err
}
