package producer

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// conclusion is what the records of a batch are told.
type conclusion struct {
	base     int64 // offset of the first record, -1 unknown
	appended int64 // LogAppendTime in ms, -1: the records' own
	err      error
	// refused has the errors of single records, by index (KIP-467); nil normally.
	refused map[int32]error
}

// conclude turns the machine's verdict into what the records are told, counts it, and has the callbacks called.
func (l *loop) conclude(v *machine.Verdict) {
	b := v.Batch.Owner.(*batch)
	p := l.p
	b.judged = true
	b.part.queued.Store(int32(b.part.m.Queued()))
	b.over = conclusion{base: v.Result.BaseOffset, appended: v.Result.AppendTime}
	if v.Outcome == Acked {
		p.meter.SentRecords.Add(int64(len(b.entries)))
		p.meter.SentBytes.Add(int64(v.Batch.Size))
	} else {
		p.meter.SendErrors.Add(int64(len(b.entries)))
		b.over.refused, b.over.err = p.explain(b, v)
		b.over.base, b.over.appended = -1, -1
		p.cl.Note(client.NoteEvent{
			Role: "producer", Kind: "batch-failed", Topic: b.part.topic.name, Partition: b.part.index,
			Text: b.over.err.Error(), Err: v.Code,
		})
	}
	p.teller.add(b)
}

// explain makes the error of a whole batch, one value for all its records, and those of single ones.
func (p *Producer) explain(b *batch, v *machine.Verdict) (single map[int32]error, whole error) {
	cause := v.Err
	said := v.Result.Complaint
	if said == nil {
		said = &machine.Complaint{}
	}
	if v.Code != errcode.None {
		cause = v.Code
		if said.Message != "" {
			cause = fmt.Errorf("%w: %s", v.Code, said.Message)
		}
	}
	hint := ""
	switch {
	case v.Expired && cause == nil:
		if b.part.m.Leader() < 0 {
			hint = "metadata names no leader of the partition: the brokers that hold its replicas are down, or the topic was deleted"
		}
		cause = fmt.Errorf("%w (%s): no request could be sent", ErrDeliveryTimeout, p.cfg.DeliveryTimeout)
	case v.Expired:
		cause = fmt.Errorf("%w (%s), last attempt: %w", ErrDeliveryTimeout, p.cfg.DeliveryTimeout, cause)
	case v.Code == errcode.MessageTooLarge || v.Code == errcode.RecordListTooLarge:
		hint = fmt.Sprintf("the batch of %d record(s) has %d bytes; raise max.message.bytes of the topic (message.max.bytes of the broker)", v.Batch.Count, v.Batch.Size)
	case v.Code == errcode.TopicAuthorizationFailed:
		hint = "the principal needs Write on the topic"
	case v.Code == errcode.ClusterAuthorizationFailed:
		hint = "the principal needs IdempotentWrite on the cluster or Write on a topic; or set enable.idempotence=false"
	}
	wrap := func(err error) error {
		op := &client.OpError{
			Op: "Produce", Topic: b.part.topic.name, Partition: b.part.index,
			Attempts: v.Batch.Attempts, Elapsed: time.Since(b.opened), Hint: hint, Err: err,
		}
		if id := b.part.m.Leader(); id >= 0 && v.Batch.Attempts > 0 {
			op.Broker = p.cl.BrokerName(id)
		}
		return &Error{Outcome: v.Outcome, Err: op}
	}
	if len(said.Records) == 0 {
		return nil, wrap(cause)
	}
	single = make(map[int32]error, len(said.Records))
	for _, e := range said.Records {
		single[e.Index] = wrap(&RecordError{Message: e.Message, Err: v.Code})
	}
	return single, wrap(&RecordError{Other: true, Message: said.Message, Err: v.Code})
}

// teller calls the callbacks, in the order of the verdicts, on a goroutine of its own, so that a slow callback holds up
// neither a connection nor the loop. Buffer memory is free before the callback runs: a callback may Submit. Its line is
// bounded: beyond most records, batches keep their memory until they have been told, so buffer.memory stops the
// submitters (and a callback that submits then waits up to max.block.ms).
type teller struct {
	p      *Producer
	most   int64
	untold atomic.Int64 // records in line

	mu      sync.Mutex
	queue   []told
	busy    bool // the goroutine has taken something and is not through with it
	wake    chan struct{}
	stopped bool
}

// maxUntold is how many records may be in line before their callbacks hold up the submitters.
const maxUntold = 1 << 20

func (t *teller) behind() bool { return t.untold.Load() > t.most }

// told is a batch whose records are to be told, or a flush that came to this point of the line.
type told struct {
	b *batch
	f *flush
}

// add puts a batch in line. One whose records are all waited for in Send is told at once, which takes no goroutine
// switch, unless that would overtake others.
func (t *teller) add(b *batch) {
	t.mu.Lock()
	if b.async == 0 && len(t.p.cfg.Interceptors) == 0 && len(t.queue) == 0 && !t.busy {
		t.mu.Unlock()
		t.p.tell(b)
		return
	}
	t.queue = append(t.queue, told{b: b})
	t.untold.Add(int64(len(b.entries)))
	t.mu.Unlock()
	t.signal()
}

func (t *teller) addFlush(f *flush) {
	t.mu.Lock()
	t.queue = append(t.queue, told{f: f})
	t.mu.Unlock()
	t.signal()
}

func (t *teller) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// main ends when it is stopped and everything in line has been told.
func (t *teller) main() {
	defer t.p.life.Done()
	var line []told
	for {
		t.mu.Lock()
		line, t.queue = t.queue, line[:0]
		t.busy = len(line) > 0
		stopped := t.stopped
		t.mu.Unlock()
		for i, x := range line {
			if x.f != nil {
				x.f.less()
			} else {
				n := len(x.b.entries)
				t.p.tell(x.b)
				t.untold.Add(int64(-n))
			}
			line[i] = told{}
		}
		if len(line) > 0 {
			continue
		}
		if stopped {
			return
		}
		<-t.wake
	}
}

func (t *teller) stop() {
	t.mu.Lock()
	t.stopped = true
	t.mu.Unlock()
	t.signal()
}

// tell gives every record of a batch its end.
func (p *Producer) tell(b *batch) {
	c := &b.over
	ack := Ack{Topic: b.part.topic.name, Partition: b.part.index, Offset: -1}
	for i := range b.entries {
		e := &b.entries[i]
		if e.done == nil && len(p.cfg.Interceptors) == 0 {
			continue
		}
		if c.base >= 0 {
			ack.Offset = c.base + int64(i)
		}
		if c.appended >= 0 {
			ack.Timestamp = time.UnixMilli(c.appended)
		} else {
			ack.Timestamp = time.UnixMilli(e.ts)
		}
		err := c.err
		if one, ok := c.refused[int32(i)]; ok {
			err = one
		}
		for _, in := range p.cfg.Interceptors {
			in.OnEnd(ack, err)
		}
		if e.done != nil {
			e.done(ack, err)
		}
	}
	if b.late {
		b.dropBuffer(p.mem)
		p.let(b)
	}
	for _, f := range b.flushes {
		f.less()
	}
	p.let(b)
}

// flush waits for the batches that were there when it began.
type flush struct {
	left atomic.Int64
	done chan struct{} // closed at the end
	then func()        // called instead, must not block
}

func (f *flush) less() {
	switch {
	case f.left.Add(-1) > 0:
	case f.then != nil:
		f.then()
	default:
		close(f.done)
	}
}
