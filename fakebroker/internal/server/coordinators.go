package server

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/purgatory"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/hash"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// coordinators are this broker's coordinators of one kind: they coordinate the keys (group ids, transactional ids) of
// those partitions of their topic that this broker leads. What is particular to a kind is in groups.go and transactions.go.
//
//	ApplyImage ──follow──► news for all shards, then who leads what ──► Runtime ◄──Submit── handlers
//	                                                                      │
//	                          AwaitGroup, AwaitTransaction ◄──changed─────┘
type coordinators struct {
	b          *Broker
	topic      string // where they keep their state
	partitions string // the config of how many partitions the topic gets when it is made
	runtime    *coordinator.Runtime
	awaiting   *purgatory.Purgatory[string] // by key
	changes    atomic.Int64                 // counts what may have changed the state of a key
}

// start makes the runtime. newShard is called on its goroutine.
func (c *coordinators) start(b *Broker, log logrecord.Log, bufferSize string, newShard func(partition, epoch int32) coordinator.Shard) {
	c.b, c.awaiting = b, purgatory.New[string]()
	c.runtime = coordinator.New(coordinator.Options{
		Log:      log,
		Writer:   &coordinatorLog{b: b, topic: c.topic, bufferSize: bufferSize},
		Logger:   b.log,
		NewShard: newShard,
		Loaded:   c.loaded,
	})
}

// changed tells those who wait for a key that it may have changed.
func (c *coordinators) changed(key string) {
	c.changes.Add(1)
	c.awaiting.Check(key)
}

// lead follows the partitions of the topic: they are loaded where this broker has come to lead, and dropped elsewhere;
// resigned hears of those. It is called when the partitions follow the image already, and before clients are answered
// from it.
func (c *coordinators) lead(changes []image.TopicChange, resigned func(partition int32)) {
	resign := func(partition int32) {
		c.runtime.Resign(partition)
		resigned(partition)
	}
	for _, t := range changes {
		if t.Name() != c.topic {
			continue
		}
		if t.New == nil {
			for i := range t.Old.Partitions {
				resign(int32(i))
			}
			continue
		}
		for _, i := range t.Partitions() {
			if p := t.New.Partition(i); p != nil && p.Leader == c.b.opts.NodeID {
				c.runtime.Elect(i, p.LeaderEpoch)
			} else {
				resign(i)
			}
		}
	}
}

func (c *coordinators) close() {
	c.runtime.Close()
	c.awaiting.Close()
}

// exist reports whether the topic has been made. Until then no key has any state.
func (c *coordinators) exist() bool { return c.b.Image().Topic(c.topic) != nil }

// partitionOf is the partition whose leader coordinates a key. It goes by the image that handlers see: a coordinator knows
// its own partition better, for it may have loaded before that.
func (c *coordinators) partitionOf(key string) int32 {
	n := int32(c.b.Config().Int(c.partitions))
	if topic := c.b.Image().Topic(c.topic); topic != nil {
		n = int32(len(topic.Partitions))
	}
	return hash.CoordinatorPartition(key, n)
}

// command has the coordinator of a key do what body says and waits for its answer.
func (c *coordinators) command(ctx context.Context, key string, body any) (any, error) {
	return waitForCoordinator(ctx, func(done func(any, errcode.Code)) {
		c.runtime.Submit(c.partitionOf(key), coordinator.Request{Body: body}, done)
	})
}

func waitForCoordinator(ctx context.Context, ask func(done func(any, errcode.Code))) (any, error) {
	a, err := wait(ctx, func(done func(coordinator.Reply)) {
		ask(func(response any, code errcode.Code) { done(coordinator.Reply{Response: response, Code: code}) })
	})
	if err != nil {
		return nil, err
	}
	return a.Response, a.Code.Err()
}

// askAll asks all coordinators of the kind and waits for their answers, by partition.
func (c *coordinators) askAll(ctx context.Context, req coordinator.Request) (map[int32]coordinator.Reply, error) {
	return wait(ctx, func(done func(map[int32]coordinator.Reply)) { c.runtime.SubmitAll(req, done) })
}

// reload has the coordinator of a key resign and load its log again.
func (c *coordinators) reload(ctx context.Context, key string) error {
	_, err := wait(ctx, func(done func(struct{})) {
		c.runtime.Reload(c.partitionOf(key), func() { done(struct{}{}) })
	})
	return err
}

// loaded tells those who wait for any key that a partition's coordinator can be asked.
func (c *coordinators) loaded(int32) { c.changed(anyKey) }

// anyKey is what waits for all keys look at, too.
const anyKey = ""

// awaitKey returns when check says so of what a key is, with what it was then. While nobody can say, it waits on; at ctx's
// end it returns what was last known.
func awaitKey[V any](ctx context.Context, c *coordinators, key string, look func() (V, error), check func(V) bool) (last V, err error) {
	for {
		seen := c.changes.Load()
		v, err := look()
		if err == nil {
			if last = v; check(v) {
				return v, nil
			}
		}
		var code errcode.Code
		if err != nil && (!errors.As(err, &code) || !code.Retriable()) {
			return last, err
		}
		if err := await(ctx, c.awaiting, func() bool { return c.changes.Load() != seen }, key, anyKey); err != nil {
			return last, err
		}
	}
}
