package assignor

import (
	"slices"

	"github.com/ottla-kafka/ottla/groupmember/machine"
	"github.com/ottla-kafka/ottla/wire"
)

// Assign balances as well as subscriptions allow and, among such results, keeps as much as it can where it was. What
// members had is in their UserData, because they gave it up before they joined.
func (Sticky) Assign(topics []topicRacks, members []subscription) (map[string][]partition, error) {
	members = slices.Clone(members)
	for i := range members {
		members[i].Owned, members[i].Generation = parseStickyUserData(members[i].UserData)
	}
	return newSolver(topics, members).solve(), nil
}

// Assign is Sticky's, but a partition that changes hands is given to nobody yet: its owner sees that it is to be
// given up, and the rebalance that follows gives it to the new one.
func (CooperativeSticky) Assign(topics []topicRacks, members []subscription) (map[string][]partition, error) {
	out := newSolver(topics, members).solve()
	claims := map[partition][]string{}
	for i := range members {
		for _, tp := range members[i].Owned {
			claims[tp] = append(claims[tp], members[i].MemberID)
		}
	}
	for id, list := range out {
		out[id] = slices.DeleteFunc(list, func(tp partition) bool {
			owners := claims[tp]
			return len(owners) > 0 && !slices.Contains(owners, id)
		})
	}
	return out, nil
}

// UserData is what the member has, with its generation, in StickyAssignor's own layout (version 1): an array of
// topics with partitions, then the generation.
func (Sticky) UserData(last []partition, generation int32) []byte {
	if generation < 0 {
		return nil
	}
	last = slices.Clone(last)
	slices.SortFunc(last, machine.ComparePartitions)
	var topics [][]partition
	for i, tp := range last {
		if i == 0 || last[i-1].Topic != tp.Topic {
			topics = append(topics, nil)
		}
		topics[len(topics)-1] = append(topics[len(topics)-1], tp)
	}
	b := wire.AppendInt32(nil, int32(len(topics)))
	for _, list := range topics {
		b = wire.AppendInt32(wire.AppendString(b, list[0].Topic), int32(len(list)))
		for _, tp := range list {
			b = wire.AppendInt32(b, tp.Partition)
		}
	}
	return wire.AppendInt32(b, generation)
}

// UserData is the generation, for leaders that do not read it from the subscription (before Kafka 3.2).
func (CooperativeSticky) UserData(_ []partition, generation int32) []byte {
	return wire.AppendInt32(nil, generation)
}

// parseStickyUserData reads versions 0 (without generation) and 1. What cannot be read counts as nothing: the member
// then just has no claim.
func parseStickyUserData(b []byte) ([]partition, int32) {
	if len(b) == 0 {
		return nil, -1
	}
	r := wire.NewReader(b)
	var out []partition
	for n := r.Int32(); n > 0 && r.Err() == nil; n-- {
		topic := r.String()
		for k := r.Int32(); k > 0 && r.Err() == nil; k-- {
			out = append(out, partition{Topic: topic, Partition: r.Int32()})
		}
	}
	generation := int32(-1)
	if r.Err() == nil && r.Remaining() >= 4 {
		generation = r.Int32()
	}
	if r.Err() != nil {
		return nil, machine.NoGeneration
	}
	return out, generation
}

// claims finds out who had each partition: who claims it with the newest generation, in order. Claims of something that
// the member cannot have count for nothing.
func (s *solver) claims() {
	newest := make([]int32, len(s.parts))
	for m := range s.members {
		for _, tp := range s.members[m].Owned {
			p, exists := s.index[tp]
			generation := s.members[m].Generation
			if !exists || !s.may[m][s.parts[p].topic] || s.home(p, m) || len(s.homes[p]) > 0 && generation < newest[p] {
				continue
			}
			if generation > newest[p] {
				s.homes[p] = s.homes[p][:0]
			}
			newest[p] = generation
			s.homes[p] = append(s.homes[p], m)
		}
	}
}
