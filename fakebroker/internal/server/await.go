package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/purgatory"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
)

// forever is the wait of operations that ctx ends.
const forever = 1 << 62 * time.Nanosecond

// ErrClosed is returned by waits that the broker's end cut short.
var ErrClosed = errors.New("broker is closed")

// AwaitTopic returns when a topic exists and every partition of it has a leader.
func (b *Broker) AwaitTopic(ctx context.Context, name string) error {
	err := await(ctx, b.awaiting, func() bool {
		t := b.Image().Topic(name)
		if t == nil {
			return false
		}
		for _, p := range t.Partitions {
			if p == nil || p.Leader == image.NoLeader {
				return false
			}
		}
		return true
	}, name)
	if err != nil {
		return fmt.Errorf("await topic %s: %w", name, err)
	}
	return nil
}

// AwaitOffset returns when consumers can read up to an offset of a partition: its high watermark is there.
func (b *Broker) AwaitOffset(ctx context.Context, topic string, index int32, offset int64) error {
	if err := b.AwaitTopic(ctx, topic); err != nil {
		return err
	}
	p := b.table.named(topic).partition(index)
	if p == nil || p.log == nil {
		return fmt.Errorf("await records: this broker has no partition %s-%d", topic, index)
	}
	err := await(ctx, b.waiting, func() bool { return p.gone.Load() || p.log.HighWatermark() >= offset }, p)
	if err == nil && p.gone.Load() {
		err = errors.New("the topic was deleted")
	}
	if err != nil {
		return fmt.Errorf("await records: %s-%d is at offset %d of %d: %w", topic, index, p.log.HighWatermark(), offset, err)
	}
	return nil
}

// await waits in a purgatory until try says so, or ctx ends; a ctx that has ended already waits for nothing.
func await[K comparable](ctx context.Context, in *purgatory.Purgatory[K], try func() bool, keys ...K) error {
	op := &purgatory.Operation{Try: try}
	o, err := wait(ctx, func(done func(purgatory.Outcome)) {
		op.Done = done
		in.Watch(op, forever, keys...)
	})
	switch {
	case err != nil:
		in.Cancel(op)
		return err
	case o == purgatory.Closed:
		return ErrClosed
	}
	return nil
}

// wait asks and returns the answer, or at ctx's end its cause; what was asked for may still happen then. With a ctx that has
// ended already nothing is asked.
func wait[T any](ctx context.Context, ask func(done func(T))) (answer T, err error) {
	if err := context.Cause(ctx); err != nil {
		return answer, err
	}
	answered := make(chan T, 1)
	ask(func(a T) { answered <- a })
	select {
	case answer = <-answered:
		return answer, nil
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	}
}

// Log returns the log of a partition that this broker has.
func (b *Broker) Log(topic string, index int32) (*storage.Log, bool) {
	p := b.table.named(topic).partition(index)
	if p == nil || p.log == nil {
		return nil, false
	}
	return p.log, true
}
