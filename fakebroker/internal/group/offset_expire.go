package group

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// expireOffsets runs every offsets.retention.check.interval.ms: it ends the offsets that are too old, and groups without
// members and offsets.
//
// From when an offset's age counts (KIP-211):
//
//	classic, never joined                    its commit
//	classic, Empty                           when the group became empty
//	classic of protocol type consumer        its commit, for topics that no member is subscribed to
//	classic of another type, with members    never
//	consumer                                 its commit, for topics that no member is subscribed to
//
// What an open transaction is about to change does not expire, nor does its group.
func (m *Machine) expireOffsets(now time.Time, out *coordinator.Result) {
	out.Divisible = true
	for _, g := range m.sorted() {
		left := 0
		for _, topic := range g.offsets.topics() {
			if g.subscribed(topic) {
				left += len(g.offsets.byTopic[topic])
				continue
			}
			for _, p := range g.offsets.partitions(topic) {
				c, _ := g.offsets.get(topic, p)
				if g.pending.has(topic, p) || !m.expired(now, g, c) {
					left++
					continue
				}
				offsetTombstone(out, g.id, topic, p)
			}
		}
		if left > 0 || !g.pending.empty() {
			continue
		}
		switch {
		case g.classic != nil && g.classic.state == Empty && len(g.classic.pending) == 0:
			out.Tombstone(&logrecord.GroupMetadataKey{Group: g.id})
		case g.consumer != nil && len(g.consumer.members) == 0:
			g.consumer.tombstones(g.id, out)
		}
		m.changed(g.id, out)
	}
}

func (m *Machine) expired(now time.Time, g *group, c committed) bool {
	if c.expires >= 0 {
		return now.UnixMilli() >= c.expires
	}
	since := c.at
	if cg := g.classic; cg != nil {
		switch {
		case cg.protocolType == "":
		case cg.state == Empty:
			if cg.since >= 0 {
				since = cg.since
			}
		case cg.subscription() == nil:
			return false
		}
	}
	return now.UnixMilli()-since >= m.set.retention.Milliseconds()
}
