package transaction

import (
	"math"
	"testing"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// FuzzRecords replays what might stand in a log: whatever can be decoded and makes sense can be served, finished and left
// again.
func FuzzRecords(f *testing.F) {
	for _, s := range sortedKeys(states) {
		b := newBench(f, 2, nil)
		states[s](b)
		var all []byte
		for _, kv := range b.log {
			one := wire.AppendInt32(nil, int32(len(kv[0])))
			one = wire.AppendInt32(append(one, kv[0]...), int32(len(kv[1])))
			all = append(append(all, one...), kv[1]...)
		}
		f.Add(all)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := newBench(t, 2, nil)
		b.m.loaded = false
		r := wire.NewReader(data)
		for r.Err() == nil && r.Remaining() > 0 {
			key, err := logrecord.ReadKey(logrecord.TransactionLog, r.Bytes())
			raw := r.NullableBytes()
			if err != nil || r.Err() != nil {
				break
			}
			value, _, err := logrecord.ReadValue(logrecord.TransactionLog, key.APIKey(), raw)
			if err != nil || b.m.Replay(0, key, value) != nil {
				break
			}
		}
		b.run(func(out *coordinator.Result) { b.m.Loaded(b.now, out) })
		serveAll(b)
	})
}

// serveAll asks everything of every id, has all markers written, and lets time pass.
func serveAll(b *bench) {
	for _, id := range b.m.sorted() {
		for _, r := range requests {
			for _, a := range askers {
				switch x := r.body(a.of(b.m.txns[id])).(type) {
				case InitProducerID:
					x.ID = id
					b.ask(x)
				case AddPartitions:
					x.ID = id
					b.ask(x)
				case VerifyPartitions:
					x.ID = id
					b.ask(x)
				case EndTxn:
					x.ID = id
					b.ask(x)
				}
			}
		}
		b.ask(Describe{ID: id})
	}
	for len(b.orders) > 0 {
		b.ask(b.orders[0].Written())
		b.orders = b.orders[1:]
	}
	for range 200 {
		if due := b.m.Deadline(); due.IsZero() || due.After(b.now.Add(24*time.Hour)) {
			break
		}
		b.pass(max(b.m.Deadline().Sub(b.now), 0))
	}
	b.ask(InspectAll{})
	f, _, _ := NewFilter(message.NewListTransactionsRequest())
	b.ask(f)
}

// FuzzStories has a machine and its clients do what the bytes say, and checks after every step that the log replays to
// the same state, that epochs of a producer id never fall, and that nothing decided is forgotten; in the end everybody has been
// answered.
func FuzzStories(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
	f.Add([]byte{0, 6, 12, 30, 31, 40, 77, 0, 6, 12, 200, 201, 99, 150, 3})
	f.Fuzz(func(t *testing.T, steps []byte) {
		b := newBench(t, int16(len(steps)%3), nil)
		if len(steps) > 0 && steps[0]&1 == 1 {
			b.wait, b.m.o.Patience = 20*time.Millisecond, 20*time.Millisecond
		}
		epochs := make(map[int64]int16)
		for _, s := range steps[:min(len(steps), 200)] {
			storyStep(b, s)
			for _, x := range b.m.txns {
				if old, ok := epochs[x.producerID]; ok && x.epoch < old {
					t.Fatalf("producer %d went from epoch %d to %d", x.producerID, old, x.epoch)
				}
				epochs[x.producerID] = x.epoch
				if x.epoch < 0 || x.state.preparing() && len(b.orders) == 0 {
					t.Fatalf("%+v", *x)
				}
			}
			b.requireReplays()
		}
		b.pass(time.Second)
		if len(b.waits) > 0 {
			t.Fatalf("%d requests are never answered", len(b.waits))
		}
	})
}

func storyStep(b *bench, s byte) {
	id := [...]string{"a", "b"}[s&1]
	x, a := b.m.txns[id], askers[int(s>>1)&3]
	p := NoProducer
	if x != nil {
		p = a.of(x)
	}
	switch k := int(s >> 3); {
	case k < len(requests)-1:
		switch r := requests[k].body(p).(type) {
		case InitProducerID:
			r.ID = id
			b.ask(r)
		case AddPartitions:
			r.ID = id
			b.ask(r)
		case VerifyPartitions:
			r.ID = id
			b.ask(r)
		case EndTxn:
			r.ID = id
			b.ask(r)
		}
	case k < 12 && len(b.orders) > 0:
		b.ask(b.orders[len(b.orders)-1].Written())
	case k < 14:
		b.ask(InitProducerID{ID: id, TimeoutMs: 1000, Expected: NoProducer, NewProducerID: noProducerID})
	case k < 16:
		b.ask(TimeOut{ID: id, Producer: NoProducer, NewProducerID: noProducerID})
	case k < 18:
		b.reload()
	case k < 20:
		b.refuse = errcode.NotEnoughReplicas
	case k < 22 && x != nil && x.state == Empty && x.epoch < math.MaxInt16-3:
		b.setEpoch(id, math.MaxInt16-3+int16(k-20))
	default:
		b.pass(time.Duration(k) * time.Second)
	}
}
