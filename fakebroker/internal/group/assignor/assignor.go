// Package assignor holds the assignors that run in the group coordinator (KIP-848): pure functions from members and
// topics to who shall read what.
//
//   - range.go     Range: contiguous ranges of each topic, the same members in the same order for every topic
//   - uniform.go   Uniform: equally many partitions for everybody, moving as few as possible
//   - balance.go   what Uniform does when members are subscribed to different topics
//
// A result depends on the arguments alone, not on the order of maps or of members.
package assignor

import (
	"bytes"
	"slices"

	"github.com/ottla-kafka/ottla/wire"
)

// Partitions are partitions by topic, ascending.
type Partitions map[wire.UUID][]int32

// A Member is one member of a group.
type Member struct {
	ID       string
	Instance *string // group.instance.id of a static member
	// Topics are the topics that the member is subscribed to, whatever the order. Topics that are not in Spec.Topics are
	// passed over.
	Topics []wire.UUID
	// Current is the member's target assignment before.
	Current Partitions
}

// A Spec is what an assignor works on. It is not changed.
type Spec struct {
	Members []Member
	Topics  map[wire.UUID]int32 // how many partitions each topic has
}

// A Func is an assignor: it gives every member of the spec its partitions, perhaps none.
type Func func(*Spec) map[string]Partitions

// Named returns the assignor of a name, as members and group.consumer.assignors call it.
func Named(name string) (Func, bool) {
	switch name {
	case "uniform":
		return Uniform, true
	case "range":
		return Range, true
	}
	return nil, false
}

// topics returns the ids of the topics in a fixed order.
func (s *Spec) topics() []wire.UUID {
	ids := make([]wire.UUID, 0, len(s.Topics))
	for id := range s.Topics {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b wire.UUID) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

// homogeneous reports whether all members are subscribed to the same topics.
func (s *Spec) homogeneous() bool {
	if len(s.Members) == 0 {
		return true
	}
	first := make(map[wire.UUID]bool)
	for _, t := range s.Members[0].Topics {
		first[t] = true
	}
	for i := 1; i < len(s.Members); i++ {
		seen := make(map[wire.UUID]bool, len(first))
		for _, t := range s.Members[i].Topics {
			if !first[t] {
				return false
			}
			seen[t] = true
		}
		if len(seen) != len(first) {
			return false
		}
	}
	return true
}

// ordered returns the members' indexes: static members by instance id first, then the others by member id.
func (s *Spec) ordered() []int {
	order := make([]int, len(s.Members))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &s.Members[i], &s.Members[j]
		switch {
		case a.Instance != nil && b.Instance != nil && *a.Instance != *b.Instance:
			return compare(*a.Instance, *b.Instance)
		case a.Instance != nil && b.Instance == nil:
			return -1
		case a.Instance == nil && b.Instance != nil:
			return 1
		}
		return compare(a.ID, b.ID)
	})
	return order
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
