package assignor

import (
	"slices"
	"strconv"

	"github.com/ottla-kafka/ottla/groupmember/machine"
)

// Assign gives each topic's members a run of neighbouring partitions of it, the first members one more when the
// numbers do not divide. Where racks matter (KIP-881), members first get partitions that have a replica in their
// rack, within the same numbers; topics with the same members and number of partitions stay aligned.
func (Range) Assign(topics []topicRacks, members []subscription) (map[string][]partition, error) {
	out, all := empty(members), ordered(members)
	var states []*rangeState
	rackAware := false
	for _, t := range byName(topics) {
		s := newRangeState(t, all)
		if len(s.members) > 0 && len(t.Racks) > 0 {
			states = append(states, s)
			rackAware = rackAware || s.rackAware
		}
	}
	if rackAware {
		for _, alike := range alikeTopics(states) {
			switch {
			case len(alike) > 1:
				assignAligned(alike, out)
			case alike[0].rackAware:
				alike[0].assign(out, true)
			}
		}
	}
	for _, s := range states {
		s.assign(out, false)
	}
	for _, list := range out {
		slices.SortFunc(list, machine.ComparePartitions)
	}
	return out, nil
}

// rangeState is one topic on its way to being assigned.
type rangeState struct {
	topic     topicRacks
	members   []*subscription
	taken     []bool         // by partition
	count     map[string]int // by member
	each      int            // what every member gets
	extra     int            // how many members may still get one more
	rackAware bool
}

func newRangeState(t topicRacks, all []subscription) *rangeState {
	s := &rangeState{topic: t, taken: make([]bool, len(t.Racks)), count: map[string]int{}}
	var subscribed []subscription
	for i := range all {
		if slices.Contains(all[i].Topics, t.Name) {
			s.members = append(s.members, &all[i])
			subscribed = append(subscribed, all[i])
		}
	}
	if n := len(s.members); n > 0 {
		s.each, s.extra = len(t.Racks)/n, len(t.Racks)%n
	}
	s.rackAware = racksMatter(subscribed, t)
	return s
}

// room is how many partitions a member may still get.
func (s *rangeState) room(m *subscription) int {
	n := s.each - s.count[m.MemberID]
	if s.extra > 0 {
		n++
	}
	return max(n, 0)
}

func (s *rangeState) give(m *subscription, p int, out map[string][]partition) {
	out[m.MemberID] = append(out[m.MemberID], partition{Topic: s.topic.Name, Partition: int32(p)})
	s.taken[p] = true
}

// took counts what a member was given in one go; only then is it known whether it is one of those with one more.
func (s *rangeState) took(m *subscription, n int) {
	if s.count[m.MemberID] += n; n > 0 && s.count[m.MemberID] > s.each {
		s.extra--
	}
}

// assign goes through the members in order and gives each its run of what is left, near ones only if asked.
func (s *rangeState) assign(out map[string][]partition, nearOnly bool) {
	for _, m := range s.members {
		room, n := s.room(m), 0
		for p := 0; p < len(s.taken) && n < room; p++ {
			if !s.taken[p] && (!nearOnly || near(m, s.topic.Racks[p])) {
				s.give(m, p, out)
				n++
			}
		}
		s.took(m, n)
	}
}

// alikeTopics gathers the topics that have the same members and the same number of partitions.
func alikeTopics(states []*rangeState) [][]*rangeState {
	at := map[string]int{}
	var out [][]*rangeState
	for _, s := range states {
		key := strconv.Itoa(len(s.topic.Racks))
		for _, m := range s.members {
			key += "\x00" + m.MemberID
		}
		i, known := at[key]
		if !known {
			i = len(out)
			at[key] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], s)
	}
	return out
}

// assignAligned gives partition p of all topics to one member that is near all of them.
func assignAligned(states []*rangeState, out map[string][]partition) {
	rest := slices.Clone(states[0].members)
	for p := 0; p < len(states[0].taken) && len(rest) > 0; p++ {
		i := slices.IndexFunc(rest, func(m *subscription) bool {
			return !slices.ContainsFunc(states, func(s *rangeState) bool {
				return !near(m, s.topic.Racks[p]) || s.room(m) == 0
			})
		})
		if i < 0 {
			continue
		}
		m := rest[i]
		for _, s := range states {
			s.give(m, p, out)
			s.took(m, 1)
		}
		if !slices.ContainsFunc(states, func(s *rangeState) bool { return s.room(m) > 0 }) {
			rest = slices.Delete(rest, i, i+1)
		}
	}
}
