package server

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// A partition is this broker's replica of one partition: its log, and what the metadata image says about it.
//
// On one node every replica is the leader and in sync alone, so the high watermark follows the log end; it moves in
// advance alone, where replication will take over. Waiting requests are woken by appended, which Check in the
// purgatories follows.
type partition struct {
	topic *topic
	index int32
	log   *storage.Log

	state atomic.Pointer[partitionState]
	// appended counts bytes that became readable since the partition was opened: a delayed fetch compares it with what
	// it was when it read.
	appended atomic.Int64
	// gone is set when the partition was deleted or moved away; waiting requests then end with an error.
	gone atomic.Bool

	advanceMu sync.Mutex
}

// partitionState is what the image says; it is replaced as a whole.
type partitionState struct {
	leader      int32
	leaderEpoch int32
	inSync      int // size of the ISR
	replicas    []int32
}

// topicKey names a topic as requests do: by name in older versions, by id in newer ones.
type topicKey struct {
	name string
	id   wire.UUID
}

// A topic is one topic that this broker has partitions of.
type topic struct {
	name       string
	id         wire.UUID
	partitions []*partition // by index; nil where this broker has no replica; fixed once published
	config     *atomic.Pointer[topicConfig]
}

func newTopic(name string, id wire.UUID, cfg *topicConfig) *topic {
	t := &topic{name: name, id: id, config: new(atomic.Pointer[topicConfig])}
	t.config.Store(cfg)
	return t
}

// grown returns a copy with room for n partitions: readers of the old one are not disturbed. Partitions keep pointing
// at the topic they were made with, whose name, id and config are the same.
func (t *topic) grown(n int) *topic {
	g := &topic{name: t.name, id: t.id, config: t.config, partitions: make([]*partition, n)}
	copy(g.partitions, t.partitions)
	return g
}

// advance moves the high watermark to the log end and reports whether it moved. The lock orders concurrent appends, so
// that it never moves back.
func (p *partition) advance(appended int) bool {
	p.advanceMu.Lock()
	moved := p.log.SetHighWatermark(p.log.LogEndOffset())
	p.advanceMu.Unlock()
	p.appended.Add(int64(appended))
	return moved
}

// checkEpoch compares the leader epoch a client knows with the current one; -1 means that it does not say.
func (p *partition) checkEpoch(claimed int32) errcode.Code {
	if p.gone.Load() {
		return errcode.UnknownTopicOrPartition
	}
	current := p.state.Load().leaderEpoch
	switch {
	case claimed < 0 || claimed == current:
		return errcode.None
	case claimed < current:
		return errcode.FencedLeaderEpoch
	}
	return errcode.UnknownLeaderEpoch
}

// isLeader reports whether this broker leads the partition.
func (p *partition) isLeader(node int32) bool {
	return !p.gone.Load() && p.state.Load().leader == node
}

// partitionTable finds partitions by topic name or id.
type partitionTable struct {
	mu     sync.RWMutex
	byName map[string]*topic
	byID   map[wire.UUID]*topic
}

func newPartitionTable() *partitionTable {
	return &partitionTable{byName: make(map[string]*topic), byID: make(map[wire.UUID]*topic)}
}

func (t *partitionTable) named(name string) *topic {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byName[name]
}

func (t *partitionTable) identified(id wire.UUID) *topic {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byID[id]
}

func (t *partitionTable) names() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Sorted(maps.Keys(t.byName))
}

func (t *partitionTable) put(tp *topic) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byName[tp.name], t.byID[tp.id] = tp, tp
}

func (t *partitionTable) remove(tp *topic) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byName, tp.name)
	delete(t.byID, tp.id)
}

// partition returns one partition of a topic, nil when this broker does not have it. A nil topic has none.
func (t *topic) partition(index int32) *partition {
	if t == nil || index < 0 || int(index) >= len(t.partitions) {
		return nil
	}
	return t.partitions[index]
}
