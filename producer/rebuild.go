package producer

import (
	"slices"

	"github.com/ottla-kafka/ottla/producer/machine"
	"github.com/ottla-kafka/ottla/wire/record"
)

// What happens to batches that cannot go as they are: too large for the broker, or with a record taken back. Both are
// rare, so the batch is simply read and written again.

// divide cuts a batch in two of about the same size, for a broker that found it too large. The pieces take over the
// callbacks.
func (l *loop) divide(b *batch) machine.Event {
	half := int(b.m.Count) / 2
	e := machine.Event{Kind: machine.Divided, Batch: &b.m}
	for _, r := range [][2]int{{0, half}, {half, int(b.m.Count)}} {
		x := l.rewrite(b, func(i int) bool { return i >= r[0] && i < r[1] })
		x.entries = append(x.entries, b.entries[r[0]:r[1]]...)
		for _, w := range b.waiters {
			if w.at >= r[0] && w.at < r[1] {
				w.batch, w.at = x, w.at-r[0]
				x.waiters = append(x.waiters, w)
			}
		}
		x.async = len(x.entries) - len(x.waiters)
		e.Batches = append(e.Batches, &x.m)
	}
	last := e.Batches[1].Owner.(*batch)
	for _, f := range b.flushes { // both tell, whatever becomes of the two
		f.left.Add(1)
		last.flushes = append(last.flushes, f)
	}
	return e
}

// rewrite makes a batch of those records of b that keep says. Entries and waiters are the caller's.
func (l *loop) rewrite(b *batch, keep func(i int) bool) *batch {
	p := l.p
	it, err := record.Open(b.plain(), record.ReadOptions{Decompressor: p.unpacker, Limit: 1 << 30})
	if err != nil {
		panic("producer: a batch of ours cannot be read back: " + err.Error())
	}
	x := p.newBatch(b.part, nil)
	x.opened, x.clock, x.m.Created = b.opened, b.clock, b.m.Created
	var headers []record.Header
	n := 0
	for i := 0; ; i++ {
		r, ok := it.Next()
		if !ok {
			break
		}
		if keep(i) {
			headers = r.Headers.AppendTo(headers[:0])
			x.b.Append(r.Timestamp, r.Key, r.Value, headers)
			n++
		}
	}
	var packed []byte
	if b.packed != nil {
		packed = x.b.SealCompressed(nil, record.NoProducer(), p.packer.c)
	} else {
		packed = x.b.Seal(record.NoProducer())
	}
	// From here on the batch is just bytes, in memory that is charged.
	x.packed = append(p.mem.Force(len(packed))[:0], packed...)
	x.b.Release()
	x.m.Count, x.m.Size = int32(n), len(packed)
	return x
}

// withdraw takes a waiting record back if no request has carried it yet, and answers the waiter in any case.
func (l *loop) withdraw(w *waiter) {
	l.mu.Lock()
	if w.over { // the verdict was faster
		l.mu.Unlock()
		return
	}
	w.over, w.withdrawn = true, true
	l.mu.Unlock()
	w.outcome = l.takeBack(w)
	w.done <- struct{}{}
}

func (l *loop) takeBack(w *waiter) machine.Outcome {
	b := w.batch
	pt := b.part
	if r := l.carrier(&b.m); r != nil && l.revoke(r) {
		l.now() // the batch waits again
	}
	pt.mu.Lock()
	ours := pt.open == b || slices.Contains(pt.sealed, b) // not the machine's yet
	if !ours && !b.m.Withdrawable() {
		pt.mu.Unlock()
		return machine.Unknown // in the air or in doubt, or being compressed and about to leave
	}
	l.strike(b, w)
	empty := len(b.entries) == 0
	if ours && empty {
		if pt.open == b {
			pt.open, pt.urgent = nil, false
		}
		pt.sealed = slices.DeleteFunc(pt.sealed, func(x *batch) bool { return x == b })
	}
	pt.mu.Unlock()
	switch {
	case !ours:
		b.m.Count, b.m.Size = int32(len(b.entries)), b.size()
		l.event(machine.Event{Kind: machine.Withdrawn, Batch: &b.m, Partition: pt.m})
	case empty:
		l.discard(b)
		l.events = append(l.events, pt.gather(false, &l.gathered))
	}
	return machine.NotWritten
}

// strike takes w's record out of a batch. The part's lock is held.
func (l *loop) strike(b *batch, w *waiter) {
	at := w.at
	if len(b.entries) == 1 {
		clear(b.entries)
		b.entries, b.waiters = b.entries[:0], b.waiters[:0]
		return
	}
	x := l.rewrite(b, func(i int) bool { return i != at })
	// Keep the batch, exchange what is in it.
	if b.packed != nil {
		b.dropBuffer(l.p.mem)
		b.packed, x.packed = x.packed, nil
	} else {
		l.refill(b, x)
	}
	b.entries = slices.Delete(b.entries, at, at+1)
	b.waiters = slices.DeleteFunc(b.waiters, func(o *waiter) bool { return o == w })
	for _, o := range b.waiters {
		if o.at > at {
			o.at--
		}
	}
	l.p.let(x)
	l.p.let(x)
}

// refill writes the records of x, which has fewer, into the builder of b, which goes on.
func (l *loop) refill(b, x *batch) {
	chunk := b.b.Release()
	b.b.Reset(chunk[:0])
	it, err := record.Open(x.packed, record.ReadOptions{})
	if err != nil {
		panic("producer: a batch of ours cannot be read back: " + err.Error())
	}
	var headers []record.Header
	for {
		r, ok := it.Next()
		if !ok {
			break
		}
		headers = r.Headers.AppendTo(headers[:0])
		b.b.Append(r.Timestamp, r.Key, r.Value, headers)
	}
	l.p.mem.Put(x.packed)
	x.packed = nil
}
