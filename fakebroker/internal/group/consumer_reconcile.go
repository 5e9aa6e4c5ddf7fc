package group

import (
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// A reconciliation brings one member towards the target.
type reconciliation struct {
	c      *consumerGroup
	member *consumerMember
	// target is what the member shall have at targetEpoch.
	target      map[wire.UUID][]int32
	targetEpoch int32
	// owned is what the member says it has; known is false when it does not say.
	owned ownedParts
	known bool
	// reads reports whether the member is subscribed to a topic now: while the target is older than the subscription it
	// holds partitions that the member does not want any more. Nil: the target knows best.
	reads func(wire.UUID) bool
	// gone are members whose partitions count as free: an old id of the same static member.
	gone []string
}

// ownedParts are partitions as requests name them.
type ownedParts map[wire.UUID]map[int32]bool

func ownedOf(list []message.ConsumerGroupHeartbeatRequestTopicPartitions) ownedParts {
	o := make(ownedParts, len(list))
	for i := range list {
		t := make(map[int32]bool, len(list[i].Partitions))
		for _, p := range list[i].Partitions {
			t[p] = true
		}
		o[list[i].TopicId] = t
	}
	return o
}

// within reports whether everything owned is in p.
func (o ownedParts) within(p parts) bool {
	for topic, partitions := range o {
		for partition := range partitions {
			if _, ok := p[topic][partition]; !ok {
				return false
			}
		}
	}
	return true
}

// run returns the member as it shall be, the same pointer when nothing changes.
func (r *reconciliation) run() *consumerMember {
	x := r.member
	switch x.state {
	case memberUnrevoked:
		if r.owns(x.revoking) {
			return x
		}
	case memberStable:
		if x.epoch == r.targetEpoch && !r.unsubscribed() {
			return x
		}
	}
	return r.next()
}

// owns reports whether the member still has some of p. A member that does not say may have.
func (r *reconciliation) owns(p parts) bool {
	if !r.known {
		return true
	}
	for topic, partitions := range p {
		for partition := range partitions {
			if r.owned[topic][partition] {
				return true
			}
		}
	}
	return false
}

func (r *reconciliation) unsubscribed() bool {
	if r.reads == nil {
		return false
	}
	for topic := range r.member.assigned {
		if !r.reads(topic) {
			return true
		}
	}
	return false
}

// next compares what the member has with what it shall have. What it must give up comes first: until the member confirms
// it stays at its epoch. Then it moves to the target's epoch with everything that nobody else has.
func (r *reconciliation) next() *consumerMember {
	kept, revoking, added := make(parts), make(parts), make(parts)
	unreleased := false
	for topic, partitions := range r.member.assigned {
		want := r.wanted(topic)
		for partition, since := range partitions {
			if want[partition] {
				kept.put(topic, partition, since)
			} else {
				revoking.put(topic, partition, since)
			}
		}
	}
	for topic := range r.target {
		for partition := range r.wanted(topic) {
			if _, ok := r.member.assigned[topic][partition]; ok {
				continue
			}
			if r.c.ownedByOther(topic, partition, append(r.gone, r.member.id)...) {
				unreleased = true
				continue
			}
			added.put(topic, partition, r.targetEpoch)
		}
	}
	x := *r.member
	if len(revoking) > 0 && r.owns(revoking) {
		x.state, x.assigned, x.revoking = memberUnrevoked, kept, revoking
		return &x
	}
	for topic, partitions := range added {
		for partition, since := range partitions {
			kept.put(topic, partition, since)
		}
	}
	x.state, x.assigned, x.revoking = memberStable, kept, nil
	if unreleased {
		x.state = memberUnreleased
	}
	if x.epoch != r.targetEpoch {
		x.previous, x.epoch = x.epoch, r.targetEpoch
	}
	if r.same(&x) {
		return r.member
	}
	return &x
}

func (r *reconciliation) same(x *consumerMember) bool {
	old := r.member
	return x.epoch == old.epoch && x.previous == old.previous && x.state == old.state && sameParts(x.assigned, old.assigned) && sameParts(x.revoking, old.revoking)
}

// wanted is the target of a topic, nothing if the member does not read it any more.
func (r *reconciliation) wanted(topic wire.UUID) map[int32]bool {
	if r.reads != nil && !r.reads(topic) {
		return nil
	}
	want := make(map[int32]bool, len(r.target[topic]))
	for _, p := range r.target[topic] {
		want[p] = true
	}
	return want
}

func (p parts) put(topic wire.UUID, partition, since int32) {
	if p[topic] == nil {
		p[topic] = make(map[int32]int32)
	}
	p[topic][partition] = since
}
