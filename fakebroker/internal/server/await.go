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
	err := await(ctx, b.awaiting, name, func() bool {
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
	})
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
	err := await(ctx, b.waiting, p, func() bool { return p.gone.Load() || p.log.HighWatermark() >= offset })
	if err == nil && p.gone.Load() {
		err = errors.New("the topic was deleted")
	}
	if err != nil {
		return fmt.Errorf("await records: %s-%d is at offset %d of %d: %w", topic, index, p.log.HighWatermark(), offset, err)
	}
	return nil
}

// await waits in a purgatory until try says so, or ctx ends.
func await[K comparable](ctx context.Context, in *purgatory.Purgatory[K], key K, try func() bool) error {
	ended := make(chan purgatory.Outcome, 1)
	op := &purgatory.Operation{Try: try, Done: func(o purgatory.Outcome) { ended <- o }}
	in.Watch(op, forever, key)
	select {
	case o := <-ended:
		if o == purgatory.Closed {
			return ErrClosed
		}
		return nil
	case <-ctx.Done():
		in.Cancel(op)
		return context.Cause(ctx)
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
