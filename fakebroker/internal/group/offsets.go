package group

import (
	"maps"
	"slices"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// committed is one committed offset.
type committed struct {
	offset      int64
	leaderEpoch int32 // of the record before it; -1 unknown
	metadata    string
	at          int64     // ms, of the commit
	expires     int64     // ms, -1 when the group's retention decides
	topicID     wire.UUID // zero when the commit was of a time before topic ids
	record      int64     // offset of the commit's own record
}

func newCommitted(record int64, v *logrecord.OffsetCommitValue) committed {
	return committed{offset: v.Offset, leaderEpoch: v.LeaderEpoch, metadata: v.Metadata,
		at: v.CommitTimestamp, expires: v.ExpireTimestamp, topicID: v.TopicId, record: record}
}

// offsets are the committed offsets of one group by topic and partition, or those of one of its transactions (pending.go).
// The zero value is empty.
type offsets struct {
	byTopic map[string]map[int32]committed
	count   int
}

func (o *offsets) get(topic string, partition int32) (committed, bool) {
	c, ok := o.byTopic[topic][partition]
	return c, ok
}

func (o *offsets) put(topic string, partition int32, c committed) {
	if o.byTopic == nil {
		o.byTopic = make(map[string]map[int32]committed)
	}
	t := o.byTopic[topic]
	if t == nil {
		t = make(map[int32]committed)
		o.byTopic[topic] = t
	}
	if _, ok := t[partition]; !ok {
		o.count++
	}
	t[partition] = c
}

func (o *offsets) remove(topic string, partition int32) {
	t := o.byTopic[topic]
	if _, ok := t[partition]; !ok {
		return
	}
	delete(t, partition)
	o.count--
	if len(t) == 0 {
		delete(o.byTopic, topic)
	}
}

// topics returns the topics with offsets, sorted; partitions those of one of them.
func (o *offsets) topics() []string { return slices.Sorted(maps.Keys(o.byTopic)) }

func (o *offsets) partitions(topic string) []int32 {
	return slices.Sorted(maps.Keys(o.byTopic[topic]))
}

// replayOffset takes an offset, nil for a tombstone. A group that only commits is made by its first offset.
func (m *Machine) replayOffset(record int64, id, topic string, partition int32, v *logrecord.OffsetCommitValue) {
	if v == nil {
		if g := m.groups[id]; g != nil {
			g.offsets.remove(topic, partition)
			g.pending.drop(topic, partition)
		}
		return
	}
	m.offsetGroup(id).offsets.put(topic, partition, newCommitted(record, v))
}

// offsetGroup returns the group that an offset is committed for.
func (m *Machine) offsetGroup(id string) *group {
	g := m.group(id)
	if g.classic == nil && g.consumer == nil {
		g.classic = newClassicGroup()
	}
	return g
}

// replayLegacyOffset takes a record of type 0, which Kafka before 0.9 wrote.
func (m *Machine) replayLegacyOffset(record int64, k *logrecord.LegacyOffsetCommitKey, value logrecord.Record) {
	old, ok := value.(*logrecord.LegacyOffsetCommitValue)
	if !ok {
		m.replayOffset(record, k.Group, k.Topic, k.Partition, nil)
		return
	}
	v := logrecord.NewOffsetCommitValue()
	v.Offset, v.Metadata, v.CommitTimestamp = old.Offset, old.Metadata, old.CommitTimestamp
	m.replayOffset(record, k.Group, k.Topic, k.Partition, v)
}

func offsetTombstone(out *coordinator.Result, id, topic string, partition int32) {
	out.Tombstone(&logrecord.OffsetCommitKey{Group: id, Topic: topic, Partition: partition})
}

// removeAllOffsets writes tombstones for every offset of a group, those of open transactions too.
func removeAllOffsets(g *group, out *coordinator.Result) {
	for _, topic := range g.offsets.topics() {
		for _, p := range g.offsets.partitions(topic) {
			offsetTombstone(out, g.id, topic, p)
		}
	}
	for _, p := range g.pending.partitions() {
		if _, done := g.offsets.get(p.Topic, p.Partition); !done {
			offsetTombstone(out, g.id, p.Topic, p.Partition)
		}
	}
}

// topicDeleted removes the offsets of a deleted topic from every group, pending ones too: a topic of the same name is
// another one. They stay when the commit was of another topic id.
func (m *Machine) topicDeleted(t *image.Topic, out *coordinator.Result) {
	out.Divisible = true
	for _, g := range m.sorted() {
		gone := make(map[int32]bool)
		g.offsets.of(t, gone)
		for _, o := range g.pending.byProducer {
			o.of(t, gone)
		}
		for _, p := range slices.Sorted(maps.Keys(gone)) {
			offsetTombstone(out, g.id, t.Name, p)
		}
	}
}

// of notes the partitions whose offset is one of a topic.
func (o *offsets) of(t *image.Topic, into map[int32]bool) {
	for p, c := range o.byTopic[t.Name] {
		if c.topicID.IsZero() || c.topicID == t.ID {
			into[p] = true
		}
	}
}
