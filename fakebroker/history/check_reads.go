package history

import (
	"cmp"
	"slices"
	"strings"
)

func compare(a, b TopicPartition) int {
	return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// checkReads asks of everything that was read who wrote it, and whether it was to be seen. A record of a transaction whose
// outcome is open shows that it was committed; the other records of that transaction are then held to it.
func (f *facts) checkReads() {
	type seen struct {
		tp     TopicPartition
		offset int64
	}
	where := map[string]map[string]seen{} // topic, value -> the first place
	for _, tp := range f.partitions() {
		l := f.logs[tp]
		offsets := make([]int64, 0, len(l.at))
		for offset := range l.at {
			offsets = append(offsets, offset)
		}
		slices.Sort(offsets)
		for _, offset := range offsets {
			s := l.at[offset]
			if !f.checkRead(tp, offset, s) {
				continue
			}
			byValue := where[tp.Topic]
			if byValue == nil {
				byValue = map[string]seen{}
				where[tp.Topic] = byValue
			}
			if first, twice := byValue[s.value]; twice {
				other := f.logs[first.tp].at[first.offset]
				f.report.find(Duplicate, []*Op{other.by, other.read, s.by, s.read}, "%q is at %s and at %s", s.value,
					place(first.tp.Topic, first.tp.Partition, first.offset), place(tp.Topic, tp.Partition, offset))
			} else {
				byValue[s.value] = seen{tp, offset}
			}
		}
	}
}

// checkRead judges one offset; it reports whether its record is there for good: read by somebody who sees only that, or
// acknowledged outside of transactions.
func (f *facts) checkRead(tp TopicPartition, offset int64, s *slot) (counts bool) {
	at := place(tp.Topic, tp.Partition, offset)
	sent, all := f.sends[tp.Topic], []*Op(nil)
	if s.by != nil {
		all = []*Op{s.by}
	} else {
		all = mayLieAt(sent[s.value], tp.Partition)
	}
	reader := s.read
	if reader == nil {
		// read_uncommitted sees aborted transactions; what failed outside of them it must not see.
		if s.dirty != nil && len(sent) > 0 {
			f.judgeUncommitted(at, s, sent[s.value], all)
		}
		return !slices.ContainsFunc(sent[s.value], func(o *Op) bool { return o.Txn > 0 })
	}
	if len(sent) == 0 {
		return true // nobody who writes to this topic is in the log
	}
	possible, why := []*Op(nil), (*Op)(nil)
	for _, o := range all {
		if f.settled(o) == aborted {
			why = o
			continue
		}
		possible = append(possible, o)
	}
	switch {
	case len(all) == 0 && len(sent[s.value]) == 0:
		f.report.find(Phantom, []*Op{reader}, "%q at %s was read, nobody has sent it", s.value, at)
	case len(all) == 0: // sent, and acknowledged elsewhere: a duplicate, which is seen by its other place
	case len(possible) == 0:
		f.report.find(AbortedRead, []*Op{why, f.decided(why), reader}, "%q at %s was read, %s", s.value, at, f.because(why))
	case len(possible) == 1:
		f.judgeDirty(at, s, possible[0])
	}
	return true
}

// mayLieAt are the sends whose record could be in a partition although no acknowledgement says so.
func mayLieAt(sends []*Op, partition int32) []*Op {
	var may []*Op
	for _, o := range sends {
		if o.Outcome != OK || o.Offset < 0 && (o.Partition == partition || o.Partition < 0) {
			may = append(may, o)
		}
	}
	return may
}

// judgeUncommitted looks at a record that only read_uncommitted has read: sent is who sent its value, may who can have
// written it there.
func (f *facts) judgeUncommitted(at string, s *slot, sent, may []*Op) {
	failed := func(o *Op) bool { return o.Outcome == Fail }
	switch {
	case len(sent) == 0:
		f.report.find(Phantom, []*Op{s.dirty}, "%q at %s was read, nobody has sent it", s.value, at)
	case len(may) > 0 && !slices.ContainsFunc(may, func(o *Op) bool { return !failed(o) }):
		f.report.find(AbortedRead, []*Op{may[0], s.dirty}, "%q at %s was read, its send had failed", s.value, at)
	}
}

// judgeDirty looks at a record that was read and at the transaction that wrote it.
func (f *facts) judgeDirty(at string, s *slot, sent *Op) {
	if sent.Txn == 0 {
		return
	}
	t := &f.txns[sent.Txn]
	if t.asked.invoked > s.read.completed {
		f.report.find(DirtyRead, []*Op{sent, s.read, t.asked}, "%q at %s was read before T%d was told to commit", s.value, at, sent.Txn)
	}
	t.seen(s.read)
}

// seen notes that a read has shown a transaction to be committed.
func (t *txnFacts) seen(by *Op) {
	if t.witness == nil {
		t.witness = by
	}
	if t.status == open {
		t.status = committed
	}
}

// decided is the operation that decided what became of another.
func (f *facts) decided(o *Op) *Op {
	if o.Txn == 0 {
		return o
	}
	return f.txns[o.Txn].end
}

// because says why an operation had no effect.
func (f *facts) because(o *Op) string {
	switch {
	case o.Outcome == Fail:
		return "its " + o.Kind.String() + " had failed"
	case f.txns[o.Txn].end == nil:
		return "its transaction was never told to commit"
	case f.txns[o.Txn].end.Kind == Commit:
		return "the commit of its transaction had failed"
	}
	return "its transaction was aborted"
}

// checkWrites asks of everything that was acknowledged whether it was read.
func (f *facts) checkWrites() {
	for i := range f.ops {
		o := &f.ops[i]
		if o.Kind != Send || o.Outcome != OK || f.settled(o) != committed {
			continue
		}
		if o.Offset < 0 {
			f.checkUnplaced(o)
			continue
		}
		l := f.logs[o.tp()]
		s := l.at[o.Offset]
		read := s.read != nil || s.dirty != nil && o.Txn == 0
		passed := l.last > o.Offset && l.first <= o.Offset
		if read || !passed && !f.drained[o.Topic] {
			continue
		}
		at := place(o.Topic, o.Partition, o.Offset)
		switch t := &f.txns[o.Txn]; {
		case o.Txn > 0 && t.partlySeen():
			f.report.find(Torn, []*Op{o, t.end, t.witness}, "%q at %s of T%d was not read, other parts of the transaction took effect", o.Value, at, o.Txn)
		case l.last > o.Offset:
			f.report.find(LostWrite, []*Op{o, f.decided(o), f.next(l, o.Offset)}, "%q was acknowledged at %s and not read, what follows it was", o.Value, at)
		default:
			f.report.find(Unseen, []*Op{o, f.decided(o)}, "%q was acknowledged at %s and is not there", o.Value, at)
		}
	}
}

// checkUnplaced judges an acknowledgement that named no offset: only who has read everything can tell.
func (f *facts) checkUnplaced(o *Op) {
	if !f.drained[o.Topic] {
		return
	}
	if f.read[o.Topic][o.Value] {
		return
	}
	f.report.find(Unseen, []*Op{o, f.decided(o)}, "%q was acknowledged for %s and is not there", o.Value, o.Topic)
}

// partlySeen reports whether readers have seen something of a transaction.
func (t *txnFacts) partlySeen() bool { return t.witness != nil }

// next is a read behind an offset.
func (f *facts) next(l *logFacts, offset int64) *Op {
	i, _ := slices.BinarySearch(l.visible, offset+1)
	for ; i < len(l.visible); i++ {
		if s := l.at[l.visible[i]]; s.read != nil {
			return s.read
		} else if s.dirty != nil {
			return s.dirty
		}
	}
	return nil
}
