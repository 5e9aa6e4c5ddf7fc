package fakebroker

import (
	"context"

	"github.com/ottla-kafka/ottla/fakebroker/internal/server"
	"github.com/ottla-kafka/ottla/wire"
)

// AwaitTopic returns when a topic exists and all its partitions have leaders, or when ctx ends. Nothing is polled.
func (k *Cluster) AwaitTopic(ctx context.Context, name string) error {
	return k.with(ctx, func(ctx context.Context, b *server.Broker) error { return b.AwaitTopic(ctx, name) })
}

// AwaitRecords returns when consumers can read a partition up to an offset, exclusive: AwaitRecords(ctx, "orders", 0, 100)
// waits for the records with offsets 0 to 99. It waits for the topic too.
func (k *Cluster) AwaitRecords(ctx context.Context, topic string, partition int32, offset int64) error {
	return k.with(ctx, func(ctx context.Context, b *server.Broker) error { return b.AwaitOffset(ctx, topic, partition, offset) })
}

// AwaitRequests returns when the broker has answered n requests of an API since it was started.
func (k *Cluster) AwaitRequests(ctx context.Context, key wire.Key, n int64) error {
	return k.with(ctx, func(ctx context.Context, b *server.Broker) error { return b.Metrics().Await(ctx, key, n) })
}
