package history

import (
	"cmp"
	"slices"
	"strings"
)

// groupPartition is one partition of one group.
type groupPartition struct {
	group string
	TopicPartition
}

func compareGroups(a, b groupPartition) int {
	return cmp.Or(strings.Compare(a.group, b.group), compare(a.TopicPartition, b.TopicPartition))
}

// register is the committed offset of one partition of one group: a register with many writers and readers.
type register struct {
	writes []write // by CommitOffsets and ResetOffsets, in the order of the log
	reads  []write // by FetchOffsets
}

type write struct {
	op     *Op
	offset int64
}

// registers collects the committed offsets.
func (f *facts) registers() (map[groupPartition]*register, []groupPartition) {
	all, order := map[groupPartition]*register{}, []groupPartition(nil)
	for i := range f.ops {
		o := &f.ops[i]
		if o.Kind != CommitOffsets && o.Kind != FetchOffsets && o.Kind != ResetOffsets {
			continue
		}
		for _, p := range o.Offsets {
			g := groupPartition{o.Group, p.TopicPartition}
			r := all[g]
			if r == nil {
				r = &register{}
				all[g] = r
				order = append(order, g)
			}
			if o.Kind == FetchOffsets {
				r.reads = append(r.reads, write{o, p.Offset})
			} else {
				r.writes = append(r.writes, write{o, p.Offset})
			}
		}
	}
	slices.SortFunc(order, compareGroups)
	return all, order
}

// checkOffsets holds the committed offsets that processes have seen against those that were committed. It assumes that
// offsets only grow, but for resets that are in the log.
func (f *facts) checkOffsets() {
	all, order := f.registers()
	for _, g := range order {
		r := all[g]
		f.checkSource(g, r)
		f.checkBack(g, r)
	}
}

// begins is when a write can have had an effect at the earliest: when it, or its transaction's commit, was asked for.
func (f *facts) begins(o *Op) (int, bool) {
	if f.settled(o) == aborted {
		return 0, false
	}
	if o.Txn > 0 {
		return f.txns[o.Txn].asked.invoked, true
	}
	return o.invoked, true
}

// ends is when a write has certainly had its effect.
func (f *facts) ends(o *Op) (int, bool) {
	if f.settled(o) != committed || o.Outcome != OK {
		return 0, false
	}
	if o.Txn > 0 {
		// A commit that was seen to be done, but not answered, has no such time.
		end := f.txns[o.Txn].end
		if end == nil {
			return 0, false
		}
		return end.completed, true
	}
	return o.completed, true
}

// checkSource asks who can have committed what was seen.
func (f *facts) checkSource(g groupPartition, r *register) {
	type source struct {
		begins int // of the first that may count
		may    *Op // it
		only   *Op // one that may not
		others int // how many may count
	}
	by := map[int64]*source{}
	for _, w := range r.writes {
		s := by[w.offset]
		if s == nil {
			s = &source{}
			by[w.offset] = s
		}
		at, may := f.begins(w.op)
		switch {
		case !may:
			s.only = w.op
		case s.may == nil || at < s.begins:
			s.begins, s.may = at, w.op
			s.others++
		default:
			s.others++
		}
	}
	for _, seen := range r.reads {
		s := by[seen.offset]
		if s == nil || seen.offset < 0 || seen.op.Outcome != OK {
			continue
		}
		switch {
		case s.may == nil:
			f.report.find(AbortedOffsets, []*Op{s.only, f.decided(s.only), seen.op}, "group %s was told that offset %d of %s is committed; %s",
				g.group, seen.offset, g.TopicPartition, f.because(s.only))
		case s.begins > seen.op.completed:
			f.report.find(AbortedOffsets, []*Op{s.only, s.may, f.decided(s.may), seen.op}, "group %s was told that offset %d of %s is committed, before anybody had asked for that",
				g.group, seen.offset, g.TopicPartition)
		case s.others == 1 && s.may.Txn > 0:
			f.txns[s.may.Txn].seen(seen.op)
		}
	}
}

// checkBack asks whether what was seen is as high as what had been committed by then. Reads and completed writes are merged
// by time.
func (f *facts) checkBack(g groupPartition, r *register) {
	type done struct {
		at int
		write
	}
	var writes []done
	for _, w := range r.writes {
		if at, ok := f.ends(w.op); ok {
			writes = append(writes, done{at, w})
		}
	}
	slices.SortFunc(writes, func(a, b done) int { return a.at - b.at })
	reads := slices.Clone(r.reads)
	slices.SortFunc(reads, func(a, b write) int { return a.op.invoked - b.op.invoked })
	highest, i := write{offset: -1}, 0
	for _, seen := range reads {
		for ; i < len(writes) && writes[i].at < seen.op.invoked; i++ {
			if w := writes[i].write; w.op.Kind == ResetOffsets || w.offset > highest.offset {
				highest = w
			}
		}
		if seen.op.Outcome == OK && seen.offset < highest.offset && !f.resetSince(g, highest.op, seen.op) {
			f.report.find(OffsetsBack, []*Op{highest.op, f.decided(highest.op), seen.op}, "group %s was told that offset %d of %s is committed, %d had been",
				g.group, seen.offset, g.TopicPartition, highest.offset)
		}
	}
}

// resetSince reports whether a reset may have come between.
func (f *facts) resetSince(g groupPartition, since, until *Op) bool {
	for _, o := range f.resets[g.group] {
		if o.invoked < until.completed && (o.completed == 0 || o.completed > since.completed) {
			return true
		}
	}
	return false
}
