package assignor

import (
	"fmt"
	"testing"

	"github.com/ottla-kafka/ottla/groupmember/machine"
)

// BenchmarkLargeGroup assigns 5,000 partitions to 500 members, of whom one has just come.
func BenchmarkLargeGroup(b *testing.B) {
	var topics []topicRacks
	for t := range 50 {
		topics = append(topics, topicRacks{Name: fmt.Sprintf("topic-%d", t), Racks: make([][]string, 100)})
	}
	var members []subscription
	for m := range 500 {
		s := subscription{MemberID: fmt.Sprintf("member-%d", m), Generation: -1}
		for _, t := range topics {
			s.Topics = append(s.Topics, t.Name)
		}
		members = append(members, s)
	}
	for _, a := range []machine.Assignor{Range{}, RoundRobin{}, Sticky{}, CooperativeSticky{}} {
		first, _ := a.Assign(topics, members[1:])
		for i := range members[1:] {
			m := &members[i+1]
			m.Owned, m.Generation = first[m.MemberID], 5
			m.UserData = a.UserData(m.Owned, 5)
		}
		b.Run(a.Name(), func(b *testing.B) {
			for b.Loop() {
				if _, err := a.Assign(topics, members); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
