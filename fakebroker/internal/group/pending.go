package group

import (
	"maps"
	"slices"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// pending are the offsets of a group in transactions that have not ended, by producer id. They stand beside the committed
// ones: the latest of a transaction waits for the marker, which makes it count or drops it. The zero value is empty.
type pending struct {
	byProducer map[int64]*offsets
	open       map[TopicPartition]int // in how many transactions a partition is
}

// has reports whether a transaction is open that may change what is committed for a partition.
func (p *pending) has(topic string, partition int32) bool {
	return p.open[TopicPartition{topic, partition}] > 0
}

// hasOf reports whether one producer's transaction has an offset for a partition.
func (p *pending) hasOf(producer int64, topic string, partition int32) bool {
	o := p.byProducer[producer]
	if o == nil {
		return false
	}
	_, ok := o.get(topic, partition)
	return ok
}

func (p *pending) empty() bool { return len(p.open) == 0 }

func (p *pending) put(producer int64, topic string, partition int32, c committed) {
	if p.byProducer == nil {
		p.byProducer, p.open = make(map[int64]*offsets), make(map[TopicPartition]int)
	}
	o := p.byProducer[producer]
	if o == nil {
		o = new(offsets)
		p.byProducer[producer] = o
	}
	if _, again := o.get(topic, partition); !again {
		p.open[TopicPartition{topic, partition}]++
	}
	o.put(topic, partition, c)
}

// drop forgets what any transaction has for a partition.
func (p *pending) drop(topic string, partition int32) {
	if !p.has(topic, partition) {
		return
	}
	for _, o := range p.byProducer {
		o.remove(topic, partition)
	}
	delete(p.open, TopicPartition{topic, partition})
}

// end takes the offsets of a producer out.
func (p *pending) end(producer int64) *offsets {
	o := p.byProducer[producer]
	delete(p.byProducer, producer)
	if o == nil {
		return nil
	}
	for topic, partitions := range o.byTopic {
		for partition := range partitions {
			tp := TopicPartition{topic, partition}
			if p.open[tp]--; p.open[tp] == 0 {
				delete(p.open, tp)
			}
		}
	}
	return o
}

// partitions returns what open transactions have offsets for, in order.
func (p *pending) partitions() []TopicPartition {
	return slices.SortedFunc(maps.Keys(p.open), func(a, b TopicPartition) int {
		if n := compare(a.Topic, b.Topic); n != 0 {
			return n
		}
		return int(a.Partition) - int(b.Partition)
	})
}

// ReplayTxn implements coordinator.TxnShard. Only offsets are committed in transactions; a tombstone cannot be, and takes
// effect at once, as in Apache Kafka.
func (m *Machine) ReplayTxn(offset int64, producerID int64, key, value logrecord.Record) error {
	k, ok := key.(*logrecord.OffsetCommitKey)
	v, _ := value.(*logrecord.OffsetCommitValue)
	if !ok || v == nil {
		return m.Replay(offset, key, value)
	}
	if m.o.Bugs.Has(bug.PendingLostOnLoad) && !m.loaded {
		return nil
	}
	g := m.offsetGroup(k.Group)
	if m.o.Bugs.Has(bug.OffsetsVisibleEarly) {
		g.offsets.put(k.Topic, k.Partition, newCommitted(offset, v))
	}
	if m.o.Bugs.Has(bug.FirstOffsetWins) && g.pending.hasOf(producerID, k.Topic, k.Partition) {
		return nil
	}
	g.pending.put(producerID, k.Topic, k.Partition, newCommitted(offset, v))
	if m.txns[producerID] == nil {
		m.txns[producerID] = make(map[string]bool)
	}
	m.txns[producerID][k.Group] = true
	return nil
}

// EndTxn implements coordinator.TxnShard. An offset that was committed plainly after the one of the transaction stays: the
// later record counts, so that compaction of the log cannot change the outcome.
func (m *Machine) EndTxn(_, producerID int64, commit bool) error {
	for _, id := range slices.Sorted(maps.Keys(m.txns[producerID])) {
		g := m.groups[id]
		if g == nil {
			continue
		}
		o := g.pending.end(producerID)
		if o != nil && (commit && !m.o.Bugs.Has(bug.OffsetsDroppedOnCommit) || m.o.Bugs.Has(bug.OffsetsAppliedOnAbort)) {
			g.offsets.merge(o)
		}
		m.forget(g)
		if m.loaded {
			m.o.Changed(id)
		}
	}
	delete(m.txns, producerID)
	return nil
}

func (o *offsets) merge(newer *offsets) {
	for topic, partitions := range newer.byTopic {
		for partition, c := range partitions {
			if old, ok := o.get(topic, partition); !ok || old.record < c.record {
				o.put(topic, partition, c)
			}
		}
	}
}
