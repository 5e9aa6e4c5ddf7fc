package history

import (
	"slices"
	"strconv"
	"strings"
)

// checkCircles looks for transactions that have read what each other wrote, in a circle (G1c). Only reads make arrows:
// Kafka's transactions interleave their writes (G0), which is allowed. Tarjan's algorithm, without recursion.
func (f *facts) checkCircles() {
	after := make([][]int, len(f.txns)) // writer -> readers
	for i := range f.ops {
		o := &f.ops[i]
		if o.Kind != Processed || o.Txn == 0 || f.settled(o) == aborted {
			continue
		}
		l := f.logs[o.tp()]
		if l == nil {
			continue
		}
		s := l.at[o.Offset]
		if s == nil || s.by == nil || s.by.Txn == 0 || s.by.Txn == o.Txn || f.settled(s.by) == aborted {
			continue
		}
		after[s.by.Txn] = append(after[s.by.Txn], o.Txn)
	}
	for _, circle := range components(after) {
		var names []string
		var ops []*Op
		for _, n := range circle {
			names = append(names, "T"+strconv.Itoa(n))
			ops = append(ops, f.txns[n].asked, f.txns[n].end)
		}
		f.report.find(Circular, ops, "transactions %s have read what each other wrote", strings.Join(names, ", "))
	}
}

// components returns the strongly connected components that have more than one node, each in ascending order.
func components(after [][]int) [][]int {
	type frame struct{ node, next int }
	var (
		found        [][]int
		stack        []int
		index        = make([]int, len(after)) // 0: not visited
		low          = make([]int, len(after))
		on           = make([]bool, len(after))
		visited      = 0
		enter        func(n int) frame
		frames       []frame
		takeFromHere func(n int)
	)
	enter = func(n int) frame {
		visited++
		index[n], low[n], on[n] = visited, visited, true
		stack = append(stack, n)
		return frame{n, 0}
	}
	takeFromHere = func(n int) {
		at := len(stack) - 1
		for stack[at] != n {
			at--
		}
		if c := stack[at:]; len(c) > 1 {
			found = append(found, slices.Sorted(slices.Values(c)))
		}
		for _, m := range stack[at:] {
			on[m] = false
		}
		stack = stack[:at]
	}
	for root := range after {
		if index[root] != 0 {
			continue
		}
		frames = append(frames[:0], enter(root))
		for len(frames) > 0 {
			top := &frames[len(frames)-1]
			n := top.node
			if top.next < len(after[n]) {
				m := after[n][top.next]
				top.next++
				switch {
				case index[m] == 0:
					frames = append(frames, enter(m))
				case on[m]:
					low[n] = min(low[n], index[m])
				}
				continue
			}
			if low[n] == index[n] {
				takeFromHere(n)
			}
			frames = frames[:len(frames)-1]
			if len(frames) > 0 {
				above := frames[len(frames)-1].node
				low[above] = min(low[above], low[n])
			}
		}
	}
	return found
}
