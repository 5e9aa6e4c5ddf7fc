package controller

import (
	"slices"
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// partitionChange works out what becomes of one partition. Every change of an existing partition goes through build, in
// this order: eligible leader replicas, election, leader epoch, record.
type partitionChange struct {
	topic      *image.Topic
	old        *image.Partition
	isr        []int32          // wanted
	unclean    int32            // broker whose data may be incomplete, noBroker for none
	acceptable func(int32) bool // may lead: active, or about to be
	minISR     int
	elr        bool // KIP-966 is finalised
	version    image.MetadataVersion
}

const noBroker int32 = -1

// recovering is LeaderRecoveryState of a leader that was elected uncleanly.
const recovering int8 = 1

// build returns the record of the change; nothing when everything stays as it is.
func (p *partitionChange) build() (image.Record, bool) {
	isr, elr, lastKnown := p.isr, p.old.ELR, p.old.LastKnownELR
	if !p.elr && len(isr) == 0 {
		isr = p.old.ISR // without ELR the last replica in sync stays there, offline
	}
	if p.elr {
		elr, lastKnown = p.eligible(isr)
	}

	r := logrecord.NewPartitionChangeRecord()
	r.PartitionId, r.TopicId = p.old.ID, p.topic.ID
	leader, uncleanly := p.elect(isr, elr, lastKnown)
	if leader != p.old.Leader {
		r.Leader = leader
		switch {
		case uncleanly:
			isr, elr, lastKnown = []int32{leader}, without(elr, leader), nil
			if p.old.LeaderRecoveryState != recovering {
				r.LeaderRecoveryState = recovering
			}
		case leader != image.NoLeader && !slices.Contains(isr, leader): // from the eligible ones
			isr, elr = []int32{leader}, without(elr, leader)
		}
	}
	switch {
	case !p.elr:
	case leader != image.NoLeader:
		lastKnown = nil
		if len(isr) >= min(p.minISR, len(p.old.Replicas)) {
			elr = nil
		}
	case len(isr) == 0 && len(p.old.ISR) > 0:
		lastKnown = []int32{p.old.Leader} // whom to elect when nobody is known to have everything
	}

	changed := r.Leader != logrecord.NewPartitionChangeRecord().Leader
	set := func(field *[]int32, old, next []int32) {
		if !slices.Equal(old, next) {
			*field, changed = append([]int32{}, next...), true
		}
	}
	set(&r.Isr, p.old.ISR, isr)
	if p.elr {
		set(&r.EligibleLeaderReplicas, p.old.ELR, elr)
		set(&r.LastKnownElr, p.old.LastKnownELR, lastKnown)
	}
	return image.Record{Record: r, Version: p.version.PartitionRecord()}, changed
}

// eligible works out the eligible leader replicas that go with an ISR: while it is below the minimum, those that leave it
// stay eligible, because everything that was acknowledged is on them. A broker that came back from an unclean stop may
// have lost data and is not.
func (p *partitionChange) eligible(isr []int32) (elr, lastKnown []int32) {
	if len(isr) >= min(p.minISR, len(p.old.Replicas)) {
		return nil, nil
	}
	for _, id := range append(slices.Clone(p.old.ELR), p.old.ISR...) {
		if !slices.Contains(isr, id) && !slices.Contains(elr, id) && id != p.unclean {
			elr = append(elr, id)
		}
	}
	slices.Sort(elr)
	return elr, p.old.LastKnownELR
}

// elect chooses the leader: the present one if it may stay, else the first replica that is in sync; when nobody is in
// sync the first eligible one; when nobody is eligible either the last known leader, uncleanly.
func (p *partitionChange) elect(isr, elr, lastKnown []int32) (leader int32, unclean bool) {
	valid := func(id int32) bool {
		may := slices.Contains(isr, id) || p.elr && len(isr) == 0 && slices.Contains(elr, id)
		return may && p.acceptable(id)
	}
	if p.old.Leader != image.NoLeader && valid(p.old.Leader) {
		return p.old.Leader, false
	}
	for _, id := range p.old.Replicas {
		if valid(id) {
			return id, false
		}
	}
	if p.elr && len(isr) == 0 && len(elr) == 0 && len(lastKnown) == 1 && p.acceptable(lastKnown[0]) {
		return lastKnown[0], true
	}
	return image.NoLeader, false
}

func without(ids []int32, id int32) []int32 {
	return slices.DeleteFunc(slices.Clone(ids), func(n int32) bool { return n == id })
}

// appendLost takes a broker out of the ISRs and leaderships it has, because it is fenced, stops, or has been replaced by
// a new incarnation that did (clean) or did not shut down properly.
func (c *Controller) appendLost(records []image.Record, i *image.Image, broker int32, clean bool) []image.Record {
	return c.appendChanges(records, i, func(t *image.Topic, p *image.Partition, change *partitionChange) bool {
		if !slices.Contains(p.ISR, broker) && p.Leader != broker && (clean || !slices.Contains(p.ELR, broker)) {
			return false
		}
		change.isr = without(p.ISR, broker)
		change.acceptable = func(id int32) bool { return id != broker && active(i, id) }
		if !clean {
			change.unclean = broker
		}
		return true
	})
}

// appendRegained gives leaderless partitions to a broker that becomes active and may lead them.
func (c *Controller) appendRegained(records []image.Record, i *image.Image, broker int32) []image.Record {
	return c.appendChanges(records, i, func(_ *image.Topic, p *image.Partition, change *partitionChange) bool {
		if p.Leader != image.NoLeader || !p.HasReplica(broker) {
			return false
		}
		change.acceptable = func(id int32) bool { return id == broker || active(i, id) }
		return true
	})
}

func active(i *image.Image, id int32) bool {
	b := i.Broker(id)
	return b != nil && b.Active()
}

// appendChanges builds a change for each partition that pick says so about, topics in the order of their ids.
func (c *Controller) appendChanges(records []image.Record, i *image.Image, pick func(*image.Topic, *image.Partition, *partitionChange) bool) []image.Record {
	layers := c.layers(i)
	elr, version := i.Feature(image.ELRFeature) > 0, i.MetadataVersion()
	for _, t := range sortedTopics(i) {
		minimum := -1 // worked out for topics that change only
		for _, p := range t.Partitions {
			if p == nil {
				continue
			}
			change := partitionChange{topic: t, old: p, isr: p.ISR, unclean: noBroker, elr: elr, version: version}
			if !pick(t, p, &change) {
				continue
			}
			if minimum < 0 {
				minimum = layers.Log(i.Configs(config.Resource{Type: config.TopicResource, Name: t.Name})).MinInSyncReplicas
			}
			change.minISR = minimum
			if r, ok := change.build(); ok {
				records = append(records, r)
			}
		}
	}
	return records
}

func sortedTopics(i *image.Image) []*image.Topic {
	topics := make([]*image.Topic, 0, i.TopicCount())
	for t := range i.Topics() {
		topics = append(topics, t)
	}
	slices.SortFunc(topics, func(a, b *image.Topic) int {
		if a.ID == (wire.UUID{}) && b.ID == (wire.UUID{}) {
			return strings.Compare(a.Name, b.Name)
		}
		return a.ID.Compare(b.ID)
	})
	return topics
}
