package transactions

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/record"
)

// The parts of a scope's state that are the broker's own code: one transaction coordinator and two partitions. They cannot be
// copied, but they are deterministic: each keeps what was done to it, and whoever wants to do something else to it makes it
// anew. As long as nothing is done, states share it.

const (
	scopeID      = "tx"
	scopeTimeout = 60_000 // transaction.timeout.ms
)

var scopeConfig = func() *config.Layers {
	layers, err := config.NewLayers(nil)
	if err != nil {
		panic(err)
	}
	return layers
}()

// coord is the coordinator's machine, with what it had to do until now.
type coord struct {
	level int16
	bugs  bug.Set
	done  []coordOp
	m     *transaction.Machine
	epoch int32 // of its election
	last  coordinator.Record
	nPID  int64         // producer ids given out
	got   *coordOutcome // of the op that is being done
}

type coordOp struct {
	now  time.Time
	body any // nil: it is elected and loads; tick: it looks at the time
}

type tick struct{}

// coordOutcome is what came of one op.
type coordOutcome struct {
	response any
	code     errcode.Code
	markers  []transaction.Markers
}

// with does one more thing to the coordinator, which does not change.
func (c *coord) with(now time.Time, body any) (*coord, coordOutcome) {
	next := &coord{level: c.level, bugs: c.bugs}
	for _, op := range c.done {
		next.do(op)
	}
	out := next.do(coordOp{now, body})
	return next, out
}

func (c *coord) do(op coordOp) (got coordOutcome) {
	c.done = append(c.done, op)
	c.got = &got
	var out coordinator.Result
	switch body := op.body.(type) {
	case nil:
		c.epoch++
		c.m = transaction.New(transaction.Options{Environment: transaction.Environment{Level: c.level, Config: scopeConfig}, CoordinatorEpoch: c.epoch, Incarnation: int64(c.epoch), Bugs: c.bugs,
			SendMarkers: func(m transaction.Markers) { c.got.markers = append(c.got.markers, m) },
			AskProducerID: func(_ string, n transaction.NeedsProducerID) {
				c.nPID++
				c.handle(c.done[len(c.done)-1].now, n.With(c.nPID), c.got)
			}})
		if c.last.Key != nil {
			c.replay(c.last)
		}
		c.m.Loaded(op.now, &out)
		c.carryOut(op.now, &out, &got)
	case tick:
		for range 100 {
			if at := c.m.Deadline(); at.IsZero() || op.now.Before(at) {
				return got
			}
			var out coordinator.Result
			c.m.Tick(op.now, &out)
			c.carryOut(op.now, &out, &got)
		}
		panic("sim: the coordinator's clock does not come to rest")
	default:
		c.handle(op.now, body, &got)
	}
	return got
}

func (c *coord) handle(now time.Time, body any, got *coordOutcome) {
	var out coordinator.Result
	c.m.Handle(now, coordinator.Request{Ticket: 1, Body: body}, &out)
	if len(out.Replies) != 1 {
		panic(fmt.Sprintf("sim: %d answers to %T", len(out.Replies), body))
	}
	got.response, got.code = out.Replies[0].Response, out.Replies[0].Code
	c.carryOut(now, &out, got)
	if n, ok := got.response.(transaction.NeedsProducerID); ok {
		c.nPID++
		c.handle(now, n.With(c.nPID), got)
	}
}

// carryOut is what the runtime does, with a log that commits at once.
func (c *coord) carryOut(now time.Time, out *coordinator.Result, got *coordOutcome) {
	for _, r := range out.Records {
		c.last = r // there is one id, and the log is compacted
		c.replay(r)
	}
	for _, f := range out.Written {
		var next coordinator.Result
		f(now, &next)
		c.carryOut(now, &next, got)
	}
	for _, f := range out.Committed {
		f()
	}
}

// replay goes through bytes, as a log does.
func (c *coord) replay(r coordinator.Record) {
	if r.Value == nil {
		if err := c.m.Replay(0, r.Key, nil); err != nil {
			panic(err)
		}
		return
	}
	b, err := logrecord.AppendValue(nil, r.Value, r.Version)
	if err != nil {
		panic(err)
	}
	v, _, err := logrecord.ReadValue(logrecord.TransactionLog, r.Key.APIKey(), b)
	if err != nil {
		panic(err)
	}
	if err := c.m.Replay(0, r.Key, v); err != nil {
		panic(err)
	}
}

// key is what tells two coordinators apart: the newest record, and what the machine knows besides.
func (c *coord) key(b []byte) []byte {
	b = append(b, byte(c.epoch), byte(c.nPID))
	if c.last.Value != nil {
		var err error
		if b, err = logrecord.AppendValue(b, c.last.Value, c.last.Version); err != nil {
			panic(err)
		}
	}
	t := reflect.ValueOf(c.m).Elem().FieldByName("txns").MapIndex(reflect.ValueOf(scopeID))
	if t.IsValid() {
		b = binary.BigEndian.AppendUint16(b, uint16(t.Elem().FieldByName("lastEpoch").Int()))
	}
	return b
}

// view is the transactional id as the coordinator has it.
func (c *coord) view(now time.Time) *transaction.View {
	var out coordinator.Result
	c.m.Handle(now, coordinator.Request{Ticket: 1, Body: transaction.Inspect{ID: scopeID}}, &out)
	return out.Replies[0].Response.(*transaction.View)
}

// part is a partition: its log, with what was done to it.
type part struct {
	index int32
	bugs  bug.Set
	done  []func(*part)
	l     *storage.Log
	log   []entryOf // what is in the log, control batches too
}

// entryOf is one batch of a partition's log.
type entryOf struct {
	by      transaction.Producer
	control bool
	commit  bool
	epoch   int32 // of the coordinator, in a marker
	seq     int32
	of      label
}

// label says whose record it is: transaction n of an actor, the client's own number for it.
type label struct{ actor, txn, index int8 }

func newPart(index int32, bugs bug.Set) *part {
	p := &part{index: index, bugs: bugs}
	p.open()
	return p
}

func (p *part) open() {
	l, err := storage.OpenLog(storage.LogOptions{FS: vfs.NewMem(), Dir: "d/out-0", Partition: storage.TopicPartition{Topic: "out", Partition: p.index},
		Config: storage.DefaultLogConfig(), Bugs: p.bugs}, epoch)
	if err != nil {
		panic(err)
	}
	p.l = l
}

// with does one more thing to a partition, which does not change.
func (p *part) with(f func(*part)) *part {
	next := &part{index: p.index, bugs: p.bugs, done: append(slices.Clip(p.done), f)}
	next.open()
	for _, op := range next.done {
		op(next)
	}
	return next
}

// append appends a transactional batch of one record under the guard of its verification.
func (p *part) append(by transaction.Producer, seq int32, of label, guard uint64, now time.Time) errcode.Code {
	b := record.NewBuilder(nil)
	b.Append(now.UnixMilli(), nil, []byte{byte(of.actor), byte(of.txn), byte(of.index)}, nil)
	batch := b.Seal(record.Stamp{ProducerID: by.ID, ProducerEpoch: by.Epoch, BaseSequence: seq, Transactional: true})
	info, err := p.l.AppendTransactional(batch, 0, storage.FromClient, storage.Verification{Required: true, Guard: guard}, now)
	if err != nil {
		return storage.CodeOf(err)
	}
	if !info.Duplicate {
		p.log = append(p.log, entryOf{by: by, seq: seq, of: of})
		p.l.SetHighWatermark(p.l.LogEndOffset())
	}
	return errcode.None
}

// mark writes an end marker.
func (p *part) mark(m *transaction.Markers, now time.Time) errcode.Code {
	_, err := p.l.AppendEndTxnMarker(marker(m), 0, now)
	if err != nil {
		return storage.CodeOf(err)
	}
	p.log = append(p.log, entryOf{by: m.Producer, control: true, commit: m.Commit, epoch: m.CoordinatorEpoch})
	p.l.SetHighWatermark(p.l.LogEndOffset())
	return errcode.None
}

func marker(m *transaction.Markers) storage.EndTxnMarker {
	return storage.EndTxnMarker{ProducerID: m.Producer.ID, ProducerEpoch: m.Producer.Epoch, Commit: m.Commit, CoordinatorEpoch: m.CoordinatorEpoch,
		TransactionVersion: int8(m.Version)}
}

func (p *part) key(b []byte) []byte {
	for _, e := range p.log {
		b = binary.BigEndian.AppendUint16(b, uint16(e.by.ID))
		b = binary.BigEndian.AppendUint16(b, uint16(e.by.Epoch))
		flags := byte(0)
		if e.control {
			flags |= 1
		}
		if e.commit {
			flags |= 2
		}
		b = append(b, flags, byte(e.epoch), byte(e.seq), byte(e.of.actor), byte(e.of.txn), byte(e.of.index))
	}
	return append(b, 0xff)
}

// committed reads the partition as read_committed does: the labels below the last stable offset without those that the list of
// aborted transactions takes out.
func (p *part) committed() []label { return readCommitted(p.l) }

func readCommitted(l *storage.Log) (labels []label) {
	d, err := l.Read(0, 1<<20, storage.BoundStable, true)
	if err != nil {
		panic(err)
	}
	raw, err := d.Records.AppendTo(nil)
	if err != nil {
		panic(err)
	}
	d.Records.Release()
	aborted := map[int64]bool{}
	list := d.Aborted
	for len(raw) > 0 {
		batch, rest, err := record.Next(raw)
		if err != nil {
			panic(err)
		}
		raw = rest
		h, err := record.ParseHeader(batch)
		if err != nil {
			panic(err)
		}
		for len(list) > 0 && list[0].FirstOffset <= h.LastOffset() {
			aborted[list[0].ProducerID] = true
			list = list[1:]
		}
		if h.Control() {
			if _, kind, _, err := record.ReadControl(batch); err == nil && kind == record.ControlAbort {
				delete(aborted, h.ProducerID)
			}
			continue
		}
		if aborted[h.ProducerID] {
			continue
		}
		it, err := record.Open(batch, record.ReadOptions{})
		if err != nil {
			panic(err)
		}
		for r := range it.All() {
			labels = append(labels, label{int8(r.Value[0]), int8(r.Value[1]), int8(r.Value[2])})
		}
	}
	return labels
}
