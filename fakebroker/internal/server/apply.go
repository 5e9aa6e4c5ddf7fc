package server

import (
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
)

// ApplyImage makes the broker follow a new metadata image. The controller's driver calls it on its one goroutine, in
// order of offsets; proposals are answered after it returned, so a client that was told of a topic finds it.
//
// The order matters: configs first, since new partitions are made with them; then partitions; and the image that
// handlers read last, so that nobody is sent to a leader that does not lead yet.
func (b *Broker) ApplyImage(img *image.Image, delta *image.Delta) {
	now := time.Now()
	b.applyConfigs(img, delta)
	changes := delta.Topics()
	for _, c := range changes {
		if c.New == nil {
			b.deleteTopic(c.Old, now)
		} else {
			b.followTopic(img, c.New, c.Partitions(), now)
		}
	}
	b.transactions.markers.know(img)
	b.groups.follow(img, delta, changes)
	b.transactions.follow(img, changes)
	b.image.Store(img)
	b.transactions.markers.follow(changes)
	for _, c := range changes {
		b.awaiting.Check(c.Name())
	}
	b.kickUpkeep()
}

// applyConfigs brings dynamic broker configs into effect, and topic configs into the logs.
func (b *Broker) applyConfigs(img *image.Image, delta *image.Delta) {
	all := false
	var topics []string
	for _, r := range delta.Configs() {
		switch r.Type {
		case config.BrokerResource:
			all = all || r.Name == "" || r.Name == b.nodeName()
		case config.TopicResource:
			topics = append(topics, r.Name)
		}
	}
	if all {
		own := config.Resource{Type: config.BrokerResource, Name: b.nodeName()}
		b.config.Store(b.Config().With(img.Configs(own), img.Configs(config.Resource{Type: config.BrokerResource})))
		topics = b.table.names()
	}
	for _, name := range topics {
		if t := b.table.named(name); t != nil {
			b.configureTopic(t, b.topicConfig(img, name))
		}
	}
}

func (b *Broker) configureTopic(t *topic, cfg *topicConfig) {
	t.config.Store(cfg)
	for _, p := range t.partitions {
		if p != nil && p.log != nil {
			p.log.SetConfig(cfg.log)
		}
	}
}

// followTopic creates what is new and takes over what the image says about the partitions that changed.
func (b *Broker) followTopic(img *image.Image, now *image.Topic, changed []int32, at time.Time) {
	t := b.table.named(now.Name)
	if t == nil || t.id != now.ID {
		t = newTopic(now.Name, now.ID, b.topicConfig(img, now.Name))
	}
	if slices.ContainsFunc(changed, func(i int32) bool { return t.partition(i) == nil && now.Partition(i) != nil }) {
		t = t.grown(max(len(t.partitions), len(now.Partitions)))
	}
	for _, i := range changed {
		if want := now.Partition(i); want != nil {
			b.followPartition(t, i, want, at)
		}
	}
	b.table.put(t)
	for _, i := range changed {
		if p := t.partition(i); p != nil {
			b.waiting.Check(p) // a new leader or epoch ends waits
		}
	}
}

func (b *Broker) followPartition(t *topic, index int32, want *image.Partition, at time.Time) {
	p := t.partitions[index]
	if p == nil {
		p = &partition{topic: t, index: index}
		log, err := b.storage.Create(storage.TopicPartition{Topic: t.name, Partition: index}, t.id, t.config.Load().log, at)
		if err != nil {
			b.log.Error("partition is offline: its log cannot be opened", "topic", t.name, "partition", index, "err", err)
		} else {
			p.log = log
		}
		t.partitions[index] = p
	}
	old := p.state.Swap(&partitionState{
		leader:      want.Leader,
		leaderEpoch: want.LeaderEpoch,
		inSync:      len(want.ISR),
		replicas:    want.Replicas,
	})
	if p.log == nil || want.Leader != b.opts.NodeID || old != nil && old.leader == want.Leader && old.leaderEpoch == want.LeaderEpoch {
		return
	}
	// The epoch begins at the log end, and what a sole replica holds is committed.
	if err := p.log.AssignEpochStart(want.LeaderEpoch); err != nil {
		b.log.Error("leader epoch was not noted", "topic", t.name, "partition", index, "epoch", want.LeaderEpoch, "err", err)
	}
	p.advance(0)
}

func (b *Broker) deleteTopic(gone *image.Topic, now time.Time) {
	t := b.table.named(gone.Name)
	if t == nil || t.id != gone.ID {
		return
	}
	b.table.remove(t)
	for _, p := range t.partitions {
		if p == nil {
			continue
		}
		p.gone.Store(true)
		b.waiting.Check(p)
		if p.log == nil {
			continue
		}
		if err := b.storage.Delete(p.log.Partition(), now); err != nil {
			b.log.Error("log was not deleted", "topic", t.name, "partition", p.index, "err", err)
		}
	}
}
