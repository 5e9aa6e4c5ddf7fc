package producer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer/machine"
	"github.com/ottla-kafka/ottla/producer/partition"
	"github.com/ottla-kafka/ottla/wire"
)

// topic is what the producer holds for a topic it has sent to. Submitters read it without a lock: everything that
// changes is behind an atomic pointer, written by the runner of the loop (see loop.go) or under Producer.topicsMu.
type topic struct {
	name   string
	number int // in order of first use; sorts the batches of a request
	id     atomic.Pointer[wire.UUID]
	parts  atomic.Pointer[[]*part] // parts[i] is partition i; it only grows
	view   atomic.Pointer[partition.Topic]
	sticky atomic.Pointer[part]
}

// topic finds a topic, and waits for its metadata the first time.
func (p *Producer) topic(ctx context.Context, name string, wait bool) (*topic, error) {
	if t := p.lastTopic.Load(); t != nil && t.name == name {
		return t, nil
	}
	t := (*p.topics.Load())[name]
	if t == nil {
		var err error
		if t, err = p.learnTopic(ctx, name, wait); err != nil {
			return nil, err
		}
	}
	p.lastTopic.Store(t)
	return t, nil
}

func (p *Producer) learnTopic(ctx context.Context, name string, wait bool) (*topic, error) {
	if name == "" {
		return nil, notWritten(fmt.Errorf("Record.Topic is empty; name the topic to send to"))
	}
	if !p.track(name) {
		return nil, notWritten(ErrClosed)
	}
	top := p.cl.Topology()
	if known := top.Topic(name); known == nil || len(known.Partitions) == 0 {
		if !wait {
			return nil, notWritten(fmt.Errorf("topic %s: %w; try again, or call Warm or Submit, which wait", name, ErrTopicPending))
		}
		bounded, cancel := context.WithTimeoutCause(ctx, p.cfg.MaxBlock,
			fmt.Errorf("no metadata for topic %s within max.block.ms (%s)", name, p.cfg.MaxBlock))
		defer cancel()
		var err error
		if top, err = p.cl.AwaitTopics(bounded, name); err != nil {
			return nil, notWritten(err)
		}
		if known = top.Topic(name); known == nil || len(known.Partitions) == 0 {
			return nil, notWritten(fmt.Errorf("topic %s: %w", name, client.ErrUnknownTopic))
		}
	}
	return p.addTopic(name, top)
}

// track has the client keep track of a topic until we close, found or not; others on the same client count for
// themselves. It is false when the producer is closed.
func (p *Producer) track(name string) bool {
	p.topicsMu.Lock()
	defer p.topicsMu.Unlock()
	if p.closed.Load() {
		return false
	}
	if !p.tracked[name] {
		p.tracked[name] = true
		p.cl.AddTopics(name)
	}
	return true
}

// addTopic makes the topic and lets the loop know its leaders before any batch of it.
func (p *Producer) addTopic(name string, top *client.Topology) (*topic, error) {
	p.topicsMu.Lock()
	defer p.topicsMu.Unlock()
	if p.closed.Load() {
		return nil, notWritten(ErrClosed)
	}
	old := *p.topics.Load()
	if t := old[name]; t != nil {
		return t, nil
	}
	t := &topic{name: name, number: len(old)}
	t.grow(p, top.Topic(name))
	topics := make(map[string]*topic, len(old)+1)
	for k, v := range old {
		topics[k] = v
	}
	topics[name] = t
	p.topics.Store(&topics)
	p.loop.control(func() { p.loop.learn(t, top) })
	return t, nil
}

// grow makes room for partitions that metadata names and the topic does not have yet, and takes over its view.
func (t *topic) grow(p *Producer, known *client.Topic) {
	var parts []*part
	if now := t.parts.Load(); now != nil {
		parts = *now
	}
	n := 0
	for _, kp := range known.Partitions {
		n = max(n, int(kp.ID)+1)
	}
	if n > len(parts) {
		parts = append([]*part(nil), parts...)
		for len(parts) < n {
			// leader and rack come with learn
			pt := &part{topic: t, index: int32(len(parts)), p: p, leader: -1, epoch: -1}
			pt.m = machine.NewPartition(pt)
			parts = append(parts, pt)
		}
		t.parts.Store(&parts)
	}
	view := &partition.Topic{Name: t.name, Partitions: int32(len(parts))}
	for _, kp := range known.Partitions {
		if kp.Leader >= 0 {
			view.Available = append(view.Available, kp.ID)
		}
	}
	t.view.Store(view)
	id := known.ID
	t.id.Store(&id)
	if t.sticky.Load() == nil {
		t.moveOn(p, nil)
	}
}

// place chooses the partition of a record.
func (p *Producer) place(t *topic, r *Record) (*part, error) {
	parts := *t.parts.Load()
	at := r.partition - 1
	if r.partition == 0 {
		if at = p.cfg.Partitioner.Partition(t.view.Load(), r.Key, r.Value); at == partition.Sticky {
			return t.sticky.Load(), nil
		}
	}
	if at < 0 || int(at) >= len(parts) {
		p.cl.RefreshMetadata() // it may have been added just now
		who := "the partitioner chose"
		if r.partition != 0 {
			who = "Record.To named"
		}
		return nil, notWritten(fmt.Errorf("%s partition %d of topic %s, which has partitions 0 to %d", who, at, t.name, len(parts)-1))
	}
	return parts[at], nil
}

// moveOn changes the sticky partition, unless somebody else already moved it from old.
func (t *topic) moveOn(p *Producer, old *part) {
	if t.sticky.Load() != old {
		return
	}
	parts := *t.parts.Load()
	if len(parts) == 1 {
		t.sticky.CompareAndSwap(old, parts[0])
		return
	}
	view := t.view.Load()
	loads := make([]partition.Load, 0, len(parts))
	add := func(pt *part) {
		l := partition.Load{Partition: pt.index, Queued: int(pt.queued.Load())}
		if p.cfg.AvailabilityTimeout > 0 {
			l.Stalled = pt.stalled(p.cfg.AvailabilityTimeout)
		}
		if rack := pt.rack.Load(); rack != nil {
			l.Rack = *rack
		}
		loads = append(loads, l)
	}
	for _, i := range view.Available {
		if pt := parts[i]; pt != old || len(view.Available) == 1 {
			add(pt)
		}
	}
	if len(loads) == 0 {
		for _, pt := range parts {
			add(pt)
		}
	}
	next := partition.Next(loads, rand.Float64(), p.cfg.Adaptive, p.rack)
	t.sticky.CompareAndSwap(old, parts[next])
}
