package machine

import (
	"time"

	"github.com/ottla-kafka/ottla/wire/errcode"
)

// onReplied decides about every batch of a request that is over, in order.
func (m *Machine) onReplied(now time.Time, e *Event) {
	r := e.Request
	r.pipe.inFlight--
	r.pipe.dirty = true
	for i, b := range r.Batches {
		b.carriers--
		if b.gone { // given up while it was in the air; now its buffer is free
			m.release(b)
			continue
		}
		p := b.part
		p.inFlight--
		p.broker.dirty = true
		switch {
		case r.Err != nil:
			m.lost(now, b, r)
		case m.cfg.NoAcks:
			m.resolve(b, Verdict{Result: Result{BaseOffset: -1, AppendTime: -1}})
		case r.Results[i].Missing:
			b.maybeWritten = true
			m.retry(now, b, errcode.None, errMissing)
		default:
			m.answered(now, b, &r.Results[i])
		}
		m.deliver(p)
	}
}

// lost: the connection or the request's time ended without an answer.
func (m *Machine) lost(now time.Time, b *Batch, r *Request) {
	if r.Written {
		b.maybeWritten = true
	}
	final := r.Fatal || m.cfg.NoAcks && r.Written // with acks=0 nobody would notice a duplicate
	if final {
		m.fail(b, Verdict{Err: r.Err})
		return
	}
	m.eff.Refresh = true
	m.retry(now, b, errcode.None, r.Err)
}

// answered: the broker said something about this batch.
func (m *Machine) answered(now time.Time, b *Batch, res *Result) {
	t := classify(res.Code)
	p := b.part
	if t&refused == 0 && t&success == 0 {
		b.maybeWritten = true
	}
	if t&stale != 0 {
		m.eff.Refresh = true
	}
	switch {
	case t&success != 0:
		if res.Code == errcode.DuplicateSequenceNumber {
			// It was written by an earlier attempt so long ago that the broker forgot where.
			res.BaseOffset, res.AppendTime = -1, -1
		}
		p.failures = 0
		if b.ProducerID == p.producerID && b.Epoch == p.epoch {
			p.known = true
			p.advance(addSequence(b.BaseSequence, b.Count))
		}
		m.resolve(b, Verdict{Result: *res})
	case t&sequence != 0 && m.cfg.Transactional:
		m.unexpected(now, b, t, res)
	case t&sequence != 0 && m.cfg.Idempotent:
		m.disordered(now, b, t, res)
	case t&large != 0 && b.Count > 1 && !b.maybeWritten:
		b.state, b.worked = splitting, true
		p.recovering = true
		m.eff.Split = append(m.eff.Split, b)
	case t&again != 0:
		m.retry(now, b, res.Code, nil)
	default:
		m.fail(b, Verdict{Code: res.Code, Result: *res})
	}
}

// disordered: the broker did not expect the sequence, epoch or producer id.
// OUT_OF_ORDER_SEQUENCE_NUMBER proves that neither this batch nor any behind it is in
// the log: the broker looked for it among the last five and did not find it. The other
// codes prove nothing, since the broker had nothing to look in; sending a batch again
// that an earlier attempt may have written could double it then.
func (m *Machine) disordered(now time.Time, b *Batch, t trait, res *Result) {
	p := b.part
	if res.Code != errcode.OutOfOrderSequenceNumber {
		if b.maybeWritten {
			m.fail(b, Verdict{Code: res.Code, Result: *res})
			return
		}
		p.renewID = p.renewID || t&newID != 0
	} else {
		p.unwritten(b)
	}
	if p.first() == b {
		p.gap = true // nothing before it could fill the hole
	}
	m.retry(now, b, res.Code, nil)
}

// unwritten: b and what is behind it in sequence are certainly not in the log.
func (p *Partition) unwritten(b *Batch) {
	behind := false
	for _, x := range p.queue {
		behind = behind || x == b
		if behind && x.state == waiting && x.sequenced {
			x.maybeWritten = false
		}
	}
	b.maybeWritten = false
}

// retry puts a batch back into line, or fails it when retries are used up.
func (m *Machine) retry(now time.Time, b *Batch, code errcode.Code, err error) {
	p := b.part
	b.lastCode, b.lastErr = code, err
	concurrent := code == errcode.ConcurrentTransactions
	if b.Attempts > m.cfg.Retries && !concurrent || m.hopeless(b) {
		m.fail(b, Verdict{Code: code, Err: err})
		return
	}
	b.state = waiting
	if concurrent {
		p.retryAt, p.recovering = now.Add(min(m.cfg.RetryBackoff, concurrentBackoff)), true
		return
	}
	if !p.counted { // one round of answers is one failure, however many batches were in the air
		p.counted = true
		p.failures++
		if b.pipe == p.broker { // else another leader is known already: try it at once
			p.retryAt = now.Add(m.backoff(p.failures))
		}
	}
	p.recovering = true
}

// fail ends a batch that was not acknowledged.
func (m *Machine) fail(b *Batch, v Verdict) {
	v.Outcome = NotWritten
	if b.maybeWritten {
		v.Outcome = Unknown
	}
	p := b.part
	switch {
	case m.cfg.Transactional:
		p.recovering = true
		m.doomed(b, &v)
	case b.sequenced && m.cfg.Idempotent:
		p.gap = true
		p.recovering = true
	}
	m.resolve(b, v)
}

// resolve notes the verdict; deliver hands it out when the batch is at the front.
func (m *Machine) resolve(b *Batch, v Verdict) {
	b.state = resolved
	b.verdict = v
}

// deliver lets resolved batches leave the front of the queue.
func (m *Machine) deliver(p *Partition) {
	n := 0
	for n < len(p.queue) && p.queue[n].state == resolved {
		m.end(p.queue[n], p.queue[n].verdict)
		n++
	}
	if n > 0 {
		rest := copy(p.queue, p.queue[n:])
		clear(p.queue[rest:])
		p.queue = p.queue[:rest]
	}
}

// end hands out the verdict of a batch that is not in a queue any more.
func (m *Machine) end(b *Batch, v Verdict) {
	v.Batch = b
	b.gone = true
	b.verdict = Verdict{}
	m.eff.Verdicts = append(m.eff.Verdicts, v)
	m.release(b)
}

// release frees the buffer unless a request in the air or a compressor still reads it.
func (m *Machine) release(b *Batch) {
	if b.carriers == 0 && !b.worked {
		m.eff.Release = append(m.eff.Release, b)
	}
}

// onDivided replaces a batch by its pieces, which share its place in the sequence.
func (m *Machine) onDivided(now time.Time, e *Event) {
	b, p := e.Batch, e.Batch.part
	b.worked = false
	if b.state != splitting { // given up meanwhile; its pieces were never ours
		if b.gone {
			m.release(b)
		}
		m.eff.Discard = append(m.eff.Discard, e.Batches...)
		return
	}
	at := 0
	for p.queue[at] != b {
		at++
	}
	seq := b.BaseSequence
	for _, x := range e.Batches {
		x.part, x.state, x.Attempts, x.pinned = p, waiting, b.Attempts, b.pinned
		x.sequenced, x.ProducerID, x.Epoch = b.sequenced, b.ProducerID, b.Epoch
		if b.sequenced {
			x.BaseSequence = seq
			seq = addSequence(seq, x.Count)
		}
	}
	rest := append(append([]*Batch(nil), e.Batches...), p.queue[at+1:]...)
	p.queue = append(p.queue[:at], rest...)
	b.state, b.gone = resolved, true
	m.eff.Discard = append(m.eff.Discard, b)
	p.broker.dirty = true
}
