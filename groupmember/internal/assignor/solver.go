package assignor

import (
	"cmp"
	"slices"
)

// solver finds an assignment that is as balanced as the subscriptions allow and keeps what it can.
//
// Balance is the strongest there is: no chain of moves could make the sorted numbers of partitions more even (an
// optimal semi-matching). It is reached from what members have by shortest such chains, so that little moves;
// afterwards exchanges that leave the numbers alone bring home what moved needlessly.
type solver struct {
	topics  []topicRacks
	members []subscription
	parts   []part
	index   map[partition]int
	may     [][]bool // member, topic: subscribed
	takers  [][]int  // by topic: members that subscribe
	nearby  bool     // racks matter

	homes [][]int // by partition: who had it, several when the claims contradict each other
	owner []int   // by partition: who gets it, -1 nobody yet
	load  []int   // by member
	held  [][][]int
}

// part is a partition by the index of its topic.
type part struct {
	topic int
	partition
}

func newSolver(topics []topicRacks, members []subscription) *solver {
	s := &solver{topics: byName(topics), members: ordered(members), index: map[partition]int{}}
	s.may, s.load, s.held = make([][]bool, len(members)), make([]int, len(members)), make([][][]int, len(members))
	for m := range s.members {
		s.may[m], s.held[m] = make([]bool, len(topics)), make([][]int, len(topics))
	}
	s.takers = make([][]int, len(topics))
	for t := range s.topics {
		for m := range s.members {
			if slices.Contains(s.members[m].Topics, s.topics[t].Name) {
				s.may[m][t] = true
				s.takers[t] = append(s.takers[t], m)
			}
		}
		for p := range s.topics[t].Racks {
			tp := partition{Topic: s.topics[t].Name, Partition: int32(p)}
			s.index[tp] = len(s.parts)
			s.parts = append(s.parts, part{t, tp})
		}
	}
	s.nearby = racksMatter(members, topics...)
	s.homes, s.owner = make([][]int, len(s.parts)), make([]int, len(s.parts))
	for p := range s.owner {
		s.owner[p] = -1
	}
	return s
}

// solve runs the steps and gives the result.
func (s *solver) solve() map[string][]partition {
	s.claims()
	for p, homes := range s.homes {
		if len(homes) > 0 {
			s.give(p, homes[0])
		}
	}
	s.fill()
	s.even()
	s.bringHome()
	if s.nearby {
		s.approach()
	}
	out := empty(s.members)
	for p, m := range s.owner {
		if m >= 0 {
			id := s.members[m].MemberID
			out[id] = append(out[id], s.parts[p].partition)
		}
	}
	return out
}

func (s *solver) give(p, m int) {
	t := s.parts[p].topic
	if old := s.owner[p]; old >= 0 {
		s.load[old]--
		s.held[old][t] = slices.DeleteFunc(s.held[old][t], func(q int) bool { return q == p })
	}
	s.owner[p] = m
	s.load[m]++
	s.held[m][t] = append(s.held[m][t], p)
}

// near tells whether a member is near a partition; always when racks do not matter.
func (s *solver) near(p, m int) bool {
	part := &s.parts[p]
	return !s.nearby || near(&s.members[m], s.topics[part.topic].Racks[part.Partition])
}

// fill gives what nobody had to the least loaded, partitions with the fewest takers first, near members before
// others of the same load.
func (s *solver) fill() {
	var rest []int
	for p, m := range s.owner {
		if m < 0 && len(s.takers[s.parts[p].topic]) > 0 {
			rest = append(rest, p)
		}
	}
	slices.SortStableFunc(rest, func(a, b int) int {
		return cmp.Compare(len(s.takers[s.parts[a].topic]), len(s.takers[s.parts[b].topic]))
	})
	for _, p := range rest {
		s.give(p, slices.MinFunc(s.takers[s.parts[p].topic], func(a, b int) int {
			return cmp.Or(cmp.Compare(s.load[a], s.load[b]), before(s.near(p, a), s.near(p, b)))
		}))
	}
}

// before orders true in front of false.
func before(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// hop says how a member was reached: it could take a partition of topic from the member from.
type hop struct{ from, topic, depth int }

// even moves partitions along chains from a member to one with at least two fewer, until there is no such chain.
func (s *solver) even() {
	settled := make([]bool, len(s.members)) // no chain begins here
	for {
		top := -1
		for m := range s.members {
			if !settled[m] && s.load[m] >= 2 && (top < 0 || s.load[m] > s.load[top]) {
				top = m
			}
		}
		if top < 0 {
			return
		}
		reached, target := s.reach(top)
		if target >= 0 {
			s.shift(top, target, reached)
			clear(settled)
			continue
		}
		for m, h := range reached { // whoever is reached and has no more than top finds nobody either
			if (h.depth > 0 || m == top) && s.load[m] <= s.load[top] {
				settled[m] = true
			}
		}
	}
}

// reach looks at members that top could hand something to, directly or through others, nearest first, and gives the
// least loaded one of the nearest that have at least two fewer than top; -1 if there is none.
func (s *solver) reach(top int) (reached []hop, target int) {
	reached = make([]hop, len(s.members))
	seenTopic := make([]bool, len(s.topics))
	level, depth := []int{top}, 0
	for len(level) > 0 {
		depth++
		var next []int
		target = -1
		for _, m := range level {
			for t := range s.topics {
				if seenTopic[t] || len(s.held[m][t]) == 0 {
					continue
				}
				seenTopic[t] = true
				for _, taker := range s.takers[t] {
					if taker == top || reached[taker].depth > 0 {
						continue
					}
					reached[taker] = hop{m, t, depth}
					next = append(next, taker)
					if s.load[taker] <= s.load[top]-2 && (target < 0 || s.load[taker] < s.load[target]) {
						target = taker
					}
				}
			}
		}
		if target >= 0 {
			return reached, target
		}
		level = next
	}
	return reached, -1
}

// shift moves one partition over each hop of the chain from top to target.
func (s *solver) shift(top, target int, reached []hop) {
	for to := target; to != top; {
		h := reached[to]
		s.give(s.pick(h.from, to, h.topic), to)
		to = h.from
	}
}

// pick chooses what a member hands over: best what the other had before, then what is not its own from before,
// then what it is far from and the other near, then the last one.
func (s *solver) pick(from, to, topic int) int {
	list := s.held[from][topic]
	return slices.MinFunc(list, func(a, b int) int {
		return cmp.Or(before(s.home(a, to), s.home(b, to)), before(!s.home(a, from), !s.home(b, from)),
			before(!s.near(a, from), !s.near(b, from)), before(s.near(a, to), s.near(b, to)), cmp.Compare(b, a))
	})
}

// bringHome undoes moves that balance does not need: what was taken from a member goes back to it where that leaves
// the numbers as even as they are, possibly with others handing on what they did not have before either.
func (s *solver) bringHome() {
	for again := true; again; {
		again = false
		for p, homes := range s.homes {
			if slices.Contains(homes, s.owner[p]) {
				continue
			}
			for _, home := range homes {
				if s.comeHome(p, home) {
					again = true
					break
				}
			}
		}
	}
}

// comeHome brings one partition home if that can be done.
func (s *solver) comeHome(p, home int) bool {
	end, reached := s.makeRoom(home, s.owner[p])
	if end < 0 {
		return false
	}
	s.give(p, home)
	for to := end; to != home; {
		h := reached[to]
		s.give(s.newcomer(h.from, h.topic), to)
		to = h.from
	}
	return true
}

// home tells whether a member had a partition.
func (s *solver) home(p, m int) bool { return slices.Contains(s.homes[p], m) }

// makeRoom finds a chain of hand-overs, each of something its giver did not have before, that begins at home and ends
// where one more and one fewer at the member at leave the numbers as they are: at itself, or one with one fewer.
func (s *solver) makeRoom(home, at int) (end int, reached []hop) {
	fits := func(m int) bool { return m == at || s.load[m] == s.load[at]-1 }
	if fits(home) {
		return home, nil
	}
	reached = make([]hop, len(s.members))
	seenTopic := make([]bool, len(s.topics))
	for queue := []int{home}; len(queue) > 0; queue = queue[1:] {
		m := queue[0]
		for t := range s.topics {
			if seenTopic[t] || s.newcomer(m, t) < 0 {
				continue
			}
			seenTopic[t] = true
			for _, taker := range s.takers[t] {
				if taker == home || reached[taker].depth > 0 {
					continue
				}
				reached[taker] = hop{m, t, reached[m].depth + 1}
				if fits(taker) {
					return taker, reached
				}
				queue = append(queue, taker)
			}
		}
	}
	return -1, nil
}

// newcomer is a partition of a topic that a member holds and did not have before; -1 if there is none.
func (s *solver) newcomer(m, topic int) int {
	for _, p := range s.held[m][topic] {
		if !s.home(p, m) {
			return p
		}
	}
	return -1
}

// approach exchanges partitions between members so that more of them are near, without moving anything that is
// where it was.
func (s *solver) approach() {
	for p, m := range s.owner {
		if m < 0 || s.near(p, m) || s.home(p, m) {
			continue
		}
		t := s.parts[p].topic
		for _, other := range s.takers[t] {
			if other == m || !s.near(p, other) {
				continue
			}
			if q := s.farther(other, m); q >= 0 {
				s.give(p, other)
				s.give(q, m)
				break
			}
		}
	}
}

// farther finds a partition that other newly got and that m would be as near to.
func (s *solver) farther(other, m int) int {
	for t, list := range s.held[other] {
		if !s.may[m][t] {
			continue
		}
		for _, q := range list {
			if !s.home(q, other) && (s.near(q, m) || !s.near(q, other)) {
				return q
			}
		}
	}
	return -1
}
