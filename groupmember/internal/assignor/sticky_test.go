package assignor

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/groupmember/machine"
)

// judged is what counts of an assignment.
type judged struct {
	loads    []int // sorted
	moves    int   // valid claims that the claimant did not keep
	near     int
	assigned int
}

// judge checks that an assignment is valid and measures it.
func judge(topics []topicRacks, members []subscription, got map[string][]partition) (judged, error) {
	racks, seen, j := map[partition][]string{}, map[partition]string{}, judged{}
	for _, topic := range topics {
		for p := range topic.Racks {
			racks[partition{Topic: topic.Name, Partition: int32(p)}] = topic.Racks[p]
		}
	}
	newest := map[partition]int32{}
	for i := range members {
		for _, tp := range members[i].Owned {
			if g, claimed := newest[tp]; slices.Contains(members[i].Topics, tp.Topic) && (!claimed || g < members[i].Generation) {
				newest[tp] = members[i].Generation
			}
		}
	}
	for i := range members {
		m := &members[i]
		list := got[m.MemberID]
		j.loads = append(j.loads, len(list))
		for _, tp := range list {
			r, exists := racks[tp]
			if !exists || !slices.Contains(m.Topics, tp.Topic) || seen[tp] != "" {
				return j, fmt.Errorf("%s must not be given to %s (exists %v, given to %q)", tp, m.MemberID, exists, seen[tp])
			}
			seen[tp] = m.MemberID
			j.assigned++
			if near(m, r) {
				j.near++
			}
		}
		for _, tp := range m.Owned {
			if newest[tp] > m.Generation {
				continue // somebody had it later
			}
			if _, exists := racks[tp]; exists && slices.Contains(m.Topics, tp.Topic) && !slices.Contains(list, tp) {
				j.moves++
			}
		}
	}
	slices.Sort(j.loads)
	return j, nil
}

// squares is how uneven loads are.
func squares(loads []int) (n int) {
	for _, l := range loads {
		n += l * l
	}
	return n
}

// whole is what a cooperative result comes to when what is withheld is given away too, as evenly as subscriptions allow.
func whole(topics []topicRacks, members []subscription, got map[string][]partition) []int {
	loads, given := map[string]int{}, map[partition]bool{}
	for id, list := range got {
		loads[id] = len(list)
		for _, tp := range list {
			given[tp] = true
		}
	}
	for _, topic := range topics {
		for p := range topic.Racks {
			best := ""
			for i := range members {
				id := members[i].MemberID
				if slices.Contains(members[i].Topics, topic.Name) && (best == "" || loads[id] < loads[best]) {
					best = id
				}
			}
			if best != "" && !given[partition{Topic: topic.Name, Partition: int32(p)}] {
				loads[best]++
			}
		}
	}
	var out []int
	for i := range members {
		out = append(out, loads[members[i].MemberID])
	}
	slices.Sort(out)
	return out
}

func TestStickyIsAsGoodAsKafka(t *testing.T) {
	for _, a := range []machine.Assignor{Sticky{}, CooperativeSticky{}} {
		t.Run(a.Name(), func(t *testing.T) {
			lines := readOracle(t, a.Name())
			require.Len(t, lines, 608)
			total, same, fewer, invalid, nearer, farther := 0, 0, 0, 0, 0, 0
			for _, l := range lines {
				topics, members := l.input(t)
				got, err := a.Assign(topics, members)
				require.NoError(t, err)
				if !a.Cooperative() {
					for i := range members {
						members[i].Owned, members[i].Generation = parseStickyUserData(members[i].UserData)
					}
				}
				ours, err := judge(topics, members, got)
				require.NoError(t, err, l.Case)
				all, err := judge(topics, members, newSolver(topics, members).solve())
				require.NoError(t, err, l.Case)
				if l.Exception != "" {
					continue
				}
				kafka := map[string][]partition{}
				for id, list := range l.Assignment {
					kafka[id] = parts(list)
				}
				theirs, err := judge(topics, members, kafka)
				if err != nil {
					invalid++ // Kafka itself gives what does not exist or is not subscribed to
					continue
				}
				total++
				kafkas := whole(topics, members, kafka)
				if slices.Equal(all.loads, kafkas) {
					same++
				} else if squares(all.loads) > squares(kafkas) {
					t.Errorf("%s round %d: loads %v (of them given now %v), Kafka %v (%v)", l.Case, l.Round, all.loads, ours.loads, kafkas, theirs.loads)
				}
				if ours.moves > theirs.moves && squares(all.loads) == squares(kafkas) {
					t.Errorf("%s round %d: moves %d, Kafka %d (loads %v %v)", l.Case, l.Round, ours.moves, theirs.moves, ours.loads, theirs.loads)
				} else if ours.moves < theirs.moves {
					fewer++
				}
				if ours.assigned == theirs.assigned && ours.near > theirs.near {
					nearer++
				} else if ours.assigned == theirs.assigned && ours.near < theirs.near {
					farther++
				}
			}
			t.Logf("of %d lines (and %d on which Kafka's result is not valid): equal loads %d, else more balanced; fewer moves %d; more near %d, fewer near %d",
				total, invalid, same, fewer, nearer, farther)
		})
	}
}
