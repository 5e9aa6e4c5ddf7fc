package assignor

import (
	"cmp"
	"slices"

	"github.com/ottla-kafka/ottla/groupmember/machine"
)

type (
	partition    = machine.TopicPartition
	topicRacks   = machine.TopicRacks
	subscription = machine.Subscription
)

// ordered is Kafka's order of members: static ones by instance id, then dynamic ones by member id. It makes results
// independent of the order in which members are given, and lets a static member keep its place over restarts.
func ordered(members []subscription) []subscription {
	out := slices.Clone(members)
	slices.SortFunc(out, func(a, b subscription) int {
		switch {
		case a.InstanceID != "" && b.InstanceID != "":
			return cmp.Or(cmp.Compare(a.InstanceID, b.InstanceID), cmp.Compare(a.MemberID, b.MemberID))
		case a.InstanceID != "":
			return -1
		case b.InstanceID != "":
			return 1
		}
		return cmp.Compare(a.MemberID, b.MemberID)
	})
	return out
}

// byName is the topics in order of their names.
func byName(topics []topicRacks) []topicRacks {
	out := slices.Clone(topics)
	slices.SortFunc(out, func(a, b topicRacks) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// empty is a result in which each member has a list.
func empty(members []subscription) map[string][]partition {
	out := make(map[string][]partition, len(members))
	for _, m := range members {
		out[m.MemberID] = []partition{}
	}
	return out
}

// racksMatter tells whether looking at racks can change anything: some member is in a rack that has replicas, and
// not every partition has replicas in all racks.
func racksMatter(members []subscription, topics ...topicRacks) bool {
	all := map[string]bool{}
	for _, t := range topics {
		for _, racks := range t.Racks {
			for _, r := range racks {
				if r != "" {
					all[r] = true
				}
			}
		}
	}
	if !slices.ContainsFunc(members, func(m subscription) bool { return m.Rack != "" && all[m.Rack] }) {
		return false
	}
	for _, t := range topics {
		for _, racks := range t.Racks {
			own := map[string]bool{}
			for _, r := range racks {
				if r != "" {
					own[r] = true
				}
			}
			if len(own) != len(all) {
				return true
			}
		}
	}
	return false
}

// near tells that a member is in the rack of one of the replicas, or in none in particular.
func near(m *subscription, racks []string) bool {
	return m.Rack == "" || slices.Contains(racks, m.Rack)
}
