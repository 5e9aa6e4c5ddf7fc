package assignor

import "slices"

// balance is the case of different subscriptions. Free partitions go to the subscriber that has the least. Then, as long
// as there is a way from a member with more to one with at least two fewer, over members that hand on one partition each,
// that way is gone: the result is then as even as it can be, and the shortest ways move the fewest partitions.
func balance(s *Spec) map[string]Partitions {
	w := newWork(s)
	b := &balancing{work: w, subscribers: make([][]int, len(w.topics))}
	for _, i := range w.order {
		seen := make(map[int]bool)
		for _, t := range s.Members[i].Topics {
			if n, ok := w.index[t]; ok && !seen[n] {
				seen[n] = true
				b.subscribers[n] = append(b.subscribers[n], i)
			}
		}
	}
	// Topics that few read have the least choice, so they choose first.
	slices.SortStableFunc(w.free, func(x, y topicPartition) int { return len(b.subscribers[x.topic]) - len(b.subscribers[y.topic]) })
	for _, tp := range w.free {
		if to := b.least(tp.topic); to >= 0 {
			w.held[to] = append(w.held[to], tp)
		}
	}
	for b.improve() {
	}
	return w.result()
}

type balancing struct {
	*work
	subscribers [][]int // by topic, in the members' order
}

func (b *balancing) least(topic int) int {
	best := -1
	for _, i := range b.subscribers[topic] {
		if best < 0 || len(b.held[i]) < len(b.held[best]) {
			best = i
		}
	}
	return best
}

// improve looks for one way from a member with the most to one with at least two fewer, and goes it. Every success makes
// the sum of the squares smaller, so it ends.
func (b *balancing) improve() bool {
	byLoad := make(map[int][]int)
	var loads []int
	for _, i := range b.order {
		n := len(b.held[i])
		if byLoad[n] == nil {
			loads = append(loads, n)
		}
		byLoad[n] = append(byLoad[n], i)
	}
	slices.Sort(loads)
	for _, n := range slices.Backward(loads) {
		if way := b.way(byLoad[n], n); way != nil {
			b.goWay(way)
			return true
		}
	}
	return false
}

// step says that a member reached over from hands a partition to the one it belongs to.
type step struct {
	from, to int
	tp       topicPartition
}

// way finds the way with the fewest hand-overs that break with what was before, from any of the members with load
// partitions to any with at least two fewer; of those the emptiest.
func (b *balancing) way(starts []int, load int) []step {
	const unseen = int(^uint(0) >> 1)
	cost := make([]int, len(b.s.Members))
	into := make([]step, len(b.s.Members))
	for i := range cost {
		cost[i] = unseen
	}
	for _, i := range starts {
		cost[i], into[i].from = 0, -1
	}
	queue := slices.Clone(starts) // 0-1 breadth first: cheap steps in front
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, offer := range b.offers(i) {
			c := cost[i]
			if b.owner[offer.topic][offer.partition] == i {
				c++ // it was here before, and would move
			}
			for _, j := range b.subscribers[offer.topic] {
				if cost[j] <= c {
					continue
				}
				cost[j], into[j] = c, step{i, j, offer}
				if c == cost[i] {
					queue = append([]int{j}, queue...)
				} else {
					queue = append(queue, j)
				}
			}
		}
	}
	best := -1
	for _, j := range b.order {
		if cost[j] == unseen || len(b.held[j]) > load-2 {
			continue
		}
		if best < 0 || cost[j] < cost[best] || cost[j] == cost[best] && len(b.held[j]) < len(b.held[best]) {
			best = j
		}
	}
	if best < 0 {
		return nil
	}
	var way []step
	for j := best; into[j].from >= 0; j = into[j].from {
		way = append(way, into[j])
	}
	return way
}

// offers is one partition of each topic that a member has: the one that costs least to give away, a newly gotten one.
func (b *balancing) offers(i int) []topicPartition {
	best := make(map[int]int)
	var all []topicPartition
	for _, tp := range b.held[i] {
		moved := b.owner[tp.topic][tp.partition] != i
		n, ok := best[tp.topic]
		switch {
		case !ok:
			best[tp.topic] = len(all)
			all = append(all, tp)
		case moved && b.owner[all[n].topic][all[n].partition] == i:
			all[n] = tp
		}
	}
	return all
}

func (b *balancing) goWay(way []step) {
	for _, s := range way {
		at := slices.Index(b.held[s.from], s.tp)
		b.held[s.from] = slices.Delete(b.held[s.from], at, at+1)
		b.held[s.to] = append(b.held[s.to], s.tp)
	}
}
