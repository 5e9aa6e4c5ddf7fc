package assignor

import (
	"slices"

	"github.com/ottla-kafka/ottla/wire"
)

// Uniform gives everybody equally many partitions as far as subscriptions allow, and moves as few as possible from where
// they were.
func Uniform(s *Spec) map[string]Partitions {
	if s.homogeneous() {
		return uniform(s)
	}
	return balance(s)
}

type topicPartition struct {
	topic     int // index in the sorted topics
	partition int32
}

// uniform is the case of equal subscriptions. With P partitions and M members everybody gets P/M, and P%M of them one
// more: those who had more before come first, so that nothing moves that need not.
func uniform(s *Spec) map[string]Partitions {
	result := make(map[string]Partitions, len(s.Members))
	if len(s.Members) == 0 {
		return result
	}
	w := newWork(s)
	members := slices.Clone(w.order)
	quota, extra := w.total/len(members), w.total%len(members)
	// Who has the most keeps the most.
	slices.SortStableFunc(members, func(i, j int) int { return len(w.held[j]) - len(w.held[i]) })
	limit := make([]int, len(s.Members))
	for n, i := range members {
		limit[i] = quota
		if n < extra {
			limit[i]++
		}
	}
	for _, i := range members {
		if over := w.held[i]; len(over) > limit[i] {
			w.free = append(w.free, over[limit[i]:]...)
			w.held[i] = over[:limit[i]]
		}
	}
	w.sortFree()
	for _, i := range w.order {
		if n := limit[i] - len(w.held[i]); n > 0 {
			w.held[i] = append(w.held[i], w.free[:n]...)
			w.free = w.free[n:]
		}
	}
	return w.result()
}

// work is an assignment in the making.
type work struct {
	s      *Spec
	topics []wire.UUID
	index  map[wire.UUID]int
	order  []int              // members in their fixed order
	held   [][]topicPartition // by member
	free   []topicPartition   // nobody's
	owner  [][]int            // by topic and partition: who had it before, -1 for nobody
	total  int
}

// newWork starts from what members have already: what exists, what they are subscribed to, and each partition once.
func newWork(s *Spec) *work {
	w := &work{s: s, index: make(map[wire.UUID]int), order: s.ordered(), held: make([][]topicPartition, len(s.Members))}
	wanted := make(map[wire.UUID]bool)
	for i := range s.Members {
		for _, t := range s.Members[i].Topics {
			wanted[t] = true
		}
	}
	for _, t := range s.topics() {
		if wanted[t] {
			w.index[t] = len(w.topics)
			w.topics = append(w.topics, t)
			before := make([]int, s.Topics[t])
			for p := range before {
				before[p] = -1
			}
			w.owner = append(w.owner, before)
			w.total += len(before)
		}
	}
	for _, i := range w.order {
		m := &s.Members[i]
		for _, t := range m.Topics {
			n, ok := w.index[t]
			if !ok {
				continue
			}
			for _, p := range m.Current[t] {
				if int(p) < len(w.owner[n]) && p >= 0 && w.owner[n][p] < 0 {
					w.owner[n][p] = i
					w.held[i] = append(w.held[i], topicPartition{n, p})
				}
			}
		}
		slices.SortFunc(w.held[i], comparePartitions)
	}
	for n := range w.owner {
		for p, i := range w.owner[n] {
			if i < 0 {
				w.free = append(w.free, topicPartition{n, int32(p)})
			}
		}
	}
	return w
}

func comparePartitions(a, b topicPartition) int {
	if a.topic != b.topic {
		return a.topic - b.topic
	}
	return int(a.partition - b.partition)
}

func (w *work) sortFree() { slices.SortFunc(w.free, comparePartitions) }

func (w *work) result() map[string]Partitions {
	result := make(map[string]Partitions, len(w.s.Members))
	for i := range w.s.Members {
		slices.SortFunc(w.held[i], comparePartitions)
		p := make(Partitions)
		for _, tp := range w.held[i] {
			t := w.topics[tp.topic]
			p[t] = append(p[t], tp.partition)
		}
		result[w.s.Members[i].ID] = p
	}
	return result
}
