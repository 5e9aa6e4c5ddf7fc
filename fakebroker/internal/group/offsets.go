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
}

// offsets are the committed offsets of one group by topic and partition. The zero value is empty.
//
// Pending offsets of transactions will stand beside them by producer id: TxnOffsetCommit adds there, the marker of the
// transaction moves or drops them, and a fetch that requires stable offsets looks there first.
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
func (m *Machine) replayOffset(id, topic string, partition int32, v *logrecord.OffsetCommitValue) {
	if v == nil {
		if g := m.groups[id]; g != nil {
			g.offsets.remove(topic, partition)
		}
		return
	}
	g := m.group(id)
	g.offsets.put(topic, partition, committed{offset: v.Offset, leaderEpoch: v.LeaderEpoch, metadata: v.Metadata,
		at: v.CommitTimestamp, expires: v.ExpireTimestamp, topicID: v.TopicId})
	if g.classic == nil && g.consumer == nil {
		g.classic = newClassicGroup()
	}
}

// replayLegacyOffset takes a record of type 0, which Kafka before 0.9 wrote.
func (m *Machine) replayLegacyOffset(k *logrecord.LegacyOffsetCommitKey, value logrecord.Record) {
	old, ok := value.(*logrecord.LegacyOffsetCommitValue)
	if !ok {
		m.replayOffset(k.Group, k.Topic, k.Partition, nil)
		return
	}
	v := logrecord.NewOffsetCommitValue()
	v.Offset, v.Metadata, v.CommitTimestamp = old.Offset, old.Metadata, old.CommitTimestamp
	m.replayOffset(k.Group, k.Topic, k.Partition, v)
}

func offsetTombstone(out *coordinator.Result, id, topic string, partition int32) {
	out.Tombstone(&logrecord.OffsetCommitKey{Group: id, Topic: topic, Partition: partition})
}

// removeAllOffsets writes tombstones for every offset of a group.
func removeAllOffsets(g *group, out *coordinator.Result) {
	for _, topic := range g.offsets.topics() {
		for _, p := range g.offsets.partitions(topic) {
			offsetTombstone(out, g.id, topic, p)
		}
	}
}

// topicDeleted removes the offsets of a deleted topic from every group: a topic of the same name is another one. They
// stay when the commit was of another topic id.
func (m *Machine) topicDeleted(t *image.Topic, out *coordinator.Result) {
	out.Divisible = true
	for _, g := range m.sorted() {
		for _, p := range g.offsets.partitions(t.Name) {
			if c, _ := g.offsets.get(t.Name, p); c.topicID.IsZero() || c.topicID == t.ID {
				offsetTombstone(out, g.id, t.Name, p)
			}
		}
	}
}
