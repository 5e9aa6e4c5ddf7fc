package history

import (
	"maps"
	"math"
	"slices"
)

// progress is what a group has done with one partition.
type progress struct {
	done  map[int64]*Op // by offset: the first that counts
	start int64         // the lowest offset at which a member began
}

// checkProcessed holds what groups committed against what they did: below a committed offset every record that there is to
// see has been processed, by a transaction that was not aborted where transactions are used, and by one only.
func (f *facts) checkProcessed() {
	groups := f.progress()
	all, order := f.registers()
	for _, g := range order {
		if p := groups[g]; p != nil {
			f.checkBeyond(g, p, all[g])
		}
	}
}

// progress collects it. A group that says what it processed is taken at its word; of the others everything polled counts.
func (f *facts) progress() map[groupPartition]*progress {
	groups := map[groupPartition]*progress{}
	at := func(g groupPartition) *progress {
		p := groups[g]
		if p == nil {
			p = &progress{done: map[int64]*Op{}, start: math.MaxInt64}
			groups[g] = p
		}
		return p
	}
	explicit := map[string]bool{}
	for i := range f.ops {
		if o := &f.ops[i]; o.Kind == Processed {
			explicit[o.Group] = true
		}
	}
	member := map[string]map[TopicPartition]string{} // process: which group each of its partitions is of
	for i := range f.ops {
		switch o := &f.ops[i]; o.Kind {
		case Processed:
			f.note(groupPartition{o.Group, o.tp()}, at(groupPartition{o.Group, o.tp()}), o.Offset, o)
		case Assigned:
			if member[o.Process] == nil {
				member[o.Process] = map[TopicPartition]string{}
			}
			for _, p := range o.Offsets {
				member[o.Process][p.TopicPartition] = o.Group
				if g := at(groupPartition{o.Group, p.TopicPartition}); p.Offset >= 0 {
					g.start = min(g.start, p.Offset)
				}
			}
		case Poll:
			for _, r := range o.Reads {
				if group, ok := member[o.Process][r.TopicPartition]; ok && !explicit[group] {
					g := groupPartition{group, r.TopicPartition}
					f.note(g, at(g), r.Offset, o)
				}
			}
		}
	}
	for _, p := range groups {
		if p.start == math.MaxInt64 && len(p.done) > 0 {
			p.start = slices.Min(slices.Collect(maps.Keys(p.done)))
		}
	}
	return groups
}

// note takes one record as processed.
func (f *facts) note(g groupPartition, p *progress, offset int64, o *Op) {
	if f.settled(o) == aborted {
		return
	}
	before := p.done[offset]
	switch {
	case before == nil, f.settled(before) == open && f.settled(o) == committed:
		p.done[offset] = o
	case before.Txn > 0 && o.Txn > 0 && before.Txn != o.Txn && f.settled(before) == committed && f.settled(o) == committed && !f.resetSince(g, before, o):
		f.report.find(ProcessedTwice, []*Op{before, f.decided(before), o, f.decided(o)}, "group %s processed %s in T%d and in T%d, both were committed",
			g.group, place(g.Topic, g.Partition, offset), before.Txn, o.Txn)
	}
}

// checkBeyond goes up the partition with the commits that lie above: the first of them to take effect is what each record
// must have been processed before.
func (f *facts) checkBeyond(g groupPartition, p *progress, r *register) {
	type mark struct {
		offset int64
		at     int
		op     *Op
	}
	var commits []mark
	for _, w := range r.writes {
		if at, ok := f.ends(w.op); ok && w.op.Kind == CommitOffsets {
			commits = append(commits, mark{w.offset, at, w.op})
		}
	}
	slices.SortFunc(commits, func(a, b mark) int { return int(a.offset - b.offset) })
	for i := len(commits) - 2; i >= 0; i-- { // each becomes the earliest of those that lie as high
		if next := commits[i+1]; next.at < commits[i].at {
			commits[i].at, commits[i].op = next.at, next.op
		}
	}
	l, i := f.logs[g.TopicPartition], 0
	if l == nil {
		return
	}
	for _, offset := range l.visible {
		for i < len(commits) && commits[i].offset <= offset {
			i++
		}
		if i == len(commits) {
			return
		}
		if offset < p.start {
			continue
		}
		done := p.done[offset]
		if done != nil && done.completed < commits[i].at {
			continue
		}
		s := l.at[offset]
		f.report.find(BeyondProcessed, []*Op{s.by, s.read, done, commits[i].op, f.decided(commits[i].op)}, "group %s committed past %s, which nobody has processed",
			g.group, place(g.Topic, g.Partition, offset))
	}
}

// checkOwners looks for processes that could commit offsets of a partition when another one of their group had been given
// it. That two believe at the same time that they have it is no anomaly: a member that was dropped hears of it late, and
// may even think that it gives up in good order. But the group must know better.
func (f *facts) checkOwners() {
	owners := map[groupPartition]*Op{}             // who was given it last
	before := map[groupPartition]map[string]bool{} // who has ever been
	for i := range f.ops {
		o := &f.ops[i]
		for _, p := range o.Offsets {
			g := groupPartition{o.Group, p.TopicPartition}
			switch o.Kind {
			case Assigned:
				owners[g] = o
				if before[g] == nil {
					before[g] = map[string]bool{}
				}
				before[g][o.Process] = true
			case CommitOffsets:
				owner := owners[g]
				if owner == nil || owner.Process == o.Process || !before[g][o.Process] || o.Outcome != OK {
					continue // others, such as tools, commit without being members
				}
				f.report.find(TwoOwners, []*Op{owner, o}, "%s committed an offset of %s for group %s, which had given it to %s", o.Process, g.TopicPartition, g.group, owner.Process)
			}
		}
	}
}
