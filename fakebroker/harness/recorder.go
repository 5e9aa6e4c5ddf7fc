package harness

import (
	"context"
	"errors"
	"sync"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker/history"
	"github.com/ottla-kafka/ottla/producer"
)

// A Recorder tells a history.Log what one process does with this SDK's clients:
//
//	r := harness.Record(log, "worker-1")
//	c, err := consumer.New(cl, append(r.Consumer("g", consumer.ReadCommitted), consumer.Subscribe("in"), ...)...)
//	err = r.Pipe(ctx, session, c, func(ctx context.Context, tx *harness.Tx, rec consumer.Record) error {
//		return tx.Submit(ctx, out(rec), nil)
//	})
//
// Everything else is the Process's own: what the recorder does not see, such as Crashed or FetchedOffsets, is told by hand.
// Its methods may be called from any goroutine, but sends of one recorder to one partition are taken to be in the order of
// the calls.
type Recorder struct {
	*history.Process
	// Value says what identifies a record; nil: its value. See history.Process.Send.
	Value func(value []byte) string

	mu     sync.Mutex
	polled map[consumer.TopicPartition]struct{} // partitions whose position may have to move back
	last   *Tx                                  // whose outcome may come to be known later
}

// Record makes a recorder for one process.
func Record(log *history.Log, process string) *Recorder {
	return &Recorder{Process: log.Process(process), polled: map[consumer.TopicPartition]struct{}{}}
}

func (r *Recorder) value(v []byte) string {
	if r.Value != nil {
		return r.Value(v)
	}
	return string(v)
}

// Submit is p.Submit, recorded.
func (r *Recorder) Submit(ctx context.Context, p *producer.Producer, rec producer.Record, done func(producer.Ack, error)) error {
	call := r.Process.Send(rec.Topic, r.value(rec.Value))
	return submitted(call, p.Submit(ctx, rec, verdict(call, done)))
}

// Send is p.Send, recorded.
func (r *Recorder) Send(ctx context.Context, p *producer.Producer, rec producer.Record) (producer.Ack, error) {
	call := r.Process.Send(rec.Topic, r.value(rec.Value))
	ack, err := p.Send(ctx, rec)
	verdict(call, nil)(ack, err)
	return ack, err
}

// submitted ends a call whose record was not even taken.
func submitted(call *history.SendCall, err error) error {
	if err != nil {
		call.Fail(err)
	}
	return err
}

// verdict ends a call with what the producer says of its record.
func verdict(call *history.SendCall, done func(producer.Ack, error)) func(producer.Ack, error) {
	return func(ack producer.Ack, err error) {
		switch {
		case err == nil:
			call.OK(ack.Partition, ack.Offset)
		case errors.Is(err, producer.ErrNotWritten):
			call.Fail(err)
		default:
			call.Info(err)
		}
		if done != nil {
			done(ack, err)
		}
	}
}

// Consumer returns options for a consumer of a group ("": of none), of which they record what it hands out and which
// partitions its group gives it. They set OnAssigned, OnRevoked and OnLost; whoever needs those gives his own behind these,
// and calls Assigned, Revoked and Lost from them. A recorder is for one consumer.
func (r *Recorder) Consumer(group string, level consumer.Isolation) []consumer.Option {
	opts := []consumer.Option{consumer.WithIsolation(level), consumer.Intercept(func(rec *consumer.Record) { r.took(rec, level) })}
	if group == "" {
		return opts
	}
	return append(opts, consumer.Group(group),
		consumer.OnAssigned(func(_ context.Context, parts []consumer.TopicPartition) {
			var list []history.Offset
			for _, tp := range parts {
				list = append(list, history.Offset{TopicPartition: history.TopicPartition(tp), Offset: history.Unknown})
			}
			r.Assigned(group, list...)
		}),
		consumer.OnRevoked(func(_ context.Context, parts []consumer.TopicPartition) { r.Revoked(group, names(parts)...) }),
		consumer.OnLost(func(_ context.Context, parts []consumer.TopicPartition, _ error) { r.Lost(group, names(parts)...) }))
}

// took records one record that the consumer hands out.
func (r *Recorder) took(rec *consumer.Record, level consumer.Isolation) {
	r.mu.Lock()
	r.polled[rec.TopicPartition()] = struct{}{}
	r.mu.Unlock()
	as := history.ReadCommitted
	if level == consumer.ReadUncommitted {
		as = history.ReadUncommitted
	}
	r.Poll(as, history.Read{TopicPartition: history.TopicPartition(rec.TopicPartition()), Offset: rec.Offset, Value: r.value(rec.Value)})
}

// rewound records that the consumer's positions go back.
func (r *Recorder) rewound() {
	r.mu.Lock()
	var parts []history.Offset
	for tp := range r.polled {
		parts = append(parts, history.Offset{TopicPartition: history.TopicPartition(tp), Offset: history.Unknown})
	}
	clear(r.polled)
	r.mu.Unlock()
	if parts != nil {
		r.Moved(parts...)
	}
}

func names(parts []consumer.TopicPartition) []history.TopicPartition {
	var list []history.TopicPartition
	for _, tp := range parts {
		list = append(list, history.TopicPartition(tp))
	}
	return list
}
