package history

import (
	"math"
	"slices"
)

// A CheckOption tells Check what else is known of a history.
type CheckOption func(*facts)

// Drained says that readers of the history (read_committed ones, where there are transactions) have read these topics from
// their beginnings to their ends, after everything else: what they have not seen is not there.
func Drained(topics ...string) CheckOption {
	return func(f *facts) {
		for _, t := range topics {
			f.drained[t] = true
		}
	}
}

// Check looks for anomalies. It takes time linear in the length of the log, but for sorting. It may be called while the log
// is in use, for what has been taken down so far; operations that are under way are no anomalies.
func Check(l *Log, opts ...CheckOption) (*Report, error) {
	l.mu.Lock()
	full, ops, txns := l.full, l.copied(), l.txns
	l.mu.Unlock()
	if full {
		return nil, ErrFull
	}
	f := &facts{report: &Report{Count: map[Finding]int{}, Ops: len(ops)}, ops: ops, txns: make([]txnFacts, txns+1),
		sends: map[string]map[string][]*Op{}, logs: map[TopicPartition]*logFacts{}, drained: map[string]bool{}, read: map[string]map[string]bool{}, resets: map[string][]*Op{}, process: map[string][]*Op{}}
	for _, o := range opts {
		o(f)
	}
	f.gather()
	f.checkReads()     // also learns which open transactions were committed
	f.checkOffsets()   // likewise
	f.count()          // their outcomes are settled now
	f.checkWrites()    // lost, unseen, torn
	f.checkPolls()     // order as readers saw it
	f.checkSends()     // order as writers meant it
	f.checkProcessed() // groups: what was committed and done
	f.checkOwners()
	f.checkCircles()
	return f.report, nil
}

// facts is what the log says, by who is asked about it. Everything is filled by gather and completed by the checks in the
// order of Check.
type facts struct {
	report  *Report
	ops     []Op
	txns    []txnFacts                  // by number
	sends   map[string]map[string][]*Op // topic, value -> every time it was sent
	logs    map[TopicPartition]*logFacts
	read    map[string]map[string]bool // topic, value: whether anybody has read it
	drained map[string]bool
	resets  map[string][]*Op // group -> every ResetOffsets that may have been done
	process map[string][]*Op // each process's operations, in order
}

// txnFacts is one transaction.
type txnFacts struct {
	status  status
	asked   *Op // its first Commit
	end     *Op // the Commit or Abort that decided
	witness *Op // a read that shows that it was committed
	sends   []*Op
	offsets []*Op
}

type status uint8

const (
	open      status = iota // told to commit, and nobody knows
	committed               // or seen to be
	aborted                 // or never told to commit
)

// logFacts is one partition.
type logFacts struct {
	at map[int64]*slot
	// offsets are the keys of at, in order: those that read_committed readers can see, and all.
	visible, all []int64
	first, last  int64 // the lowest and the highest offset that readers reached, also by beginning there
}

// slot is one offset.
type slot struct {
	value string
	by    *Op // the send that was acknowledged with it
	read  *Op // the first committed read, or any read where the topic has no others
	dirty *Op // the first read_uncommitted read
}

func (f *facts) log(tp TopicPartition) *logFacts {
	l := f.logs[tp]
	if l == nil {
		l = &logFacts{at: map[int64]*slot{}, first: math.MaxInt64, last: -1}
		f.logs[tp] = l
	}
	return l
}

// gather goes through the log once.
func (f *facts) gather() {
	for i := range f.ops {
		o := &f.ops[i]
		f.process[o.Process] = append(f.process[o.Process], o)
		switch o.Kind {
		case Send:
			f.report.Sends++
			byValue := f.sends[o.Topic]
			if byValue == nil {
				byValue = map[string][]*Op{}
				f.sends[o.Topic] = byValue
			}
			byValue[o.Value] = append(byValue[o.Value], o)
			if o.Txn > 0 {
				f.txns[o.Txn].sends = append(f.txns[o.Txn].sends, o)
			}
		case Commit, Abort:
			f.txns[o.Txn].ended(o)
		case ResetOffsets:
			if o.Outcome != Fail {
				f.resets[o.Group] = append(f.resets[o.Group], o)
			}
		case CommitOffsets:
			if o.Txn > 0 {
				f.txns[o.Txn].offsets = append(f.txns[o.Txn].offsets, o)
			}
		}
	}
	for i := range f.txns {
		if t := &f.txns[i]; t.asked == nil {
			t.status = aborted // whoever died before commit has not committed
		}
	}
	f.place()
}

// ended takes one end of a transaction; a later one knows more, and OK knows best.
func (t *txnFacts) ended(o *Op) {
	if o.Kind == Commit && t.asked == nil {
		t.asked = o
	}
	switch {
	case t.status == committed, o.Outcome != OK && o.Outcome != Fail, o.Kind == Abort && o.Outcome == Fail:
		return
	case o.Kind == Commit && o.Outcome == OK:
		t.status, t.end = committed, o
	default:
		t.status, t.end = aborted, o
	}
}

// place lays out the partitions: what acknowledgements and reads say of each offset.
func (f *facts) place() {
	for i := range f.ops {
		o := &f.ops[i]
		switch o.Kind {
		case Send:
			if o.Outcome == OK && o.Offset >= 0 {
				f.put(o.tp(), o.Offset, o.Value, o).by = o
			}
		case Poll:
			f.report.Reads += len(o.Reads)
			for _, r := range o.Reads {
				s := f.put(r.TopicPartition, r.Offset, r.Value, o)
				if o.Level == ReadCommitted && s.read == nil {
					s.read = o
				} else if o.Level == ReadUncommitted && s.dirty == nil {
					s.dirty = o
				}
				if f.read[r.Topic] == nil {
					f.read[r.Topic] = map[string]bool{}
				}
				f.read[r.Topic][r.Value] = true
				l := f.log(r.TopicPartition)
				l.first, l.last = min(l.first, r.Offset), max(l.last, r.Offset)
			}
		case Assigned, Moved:
			for _, p := range o.Offsets {
				if p.Offset >= 0 {
					l := f.log(p.TopicPartition)
					l.first = min(l.first, p.Offset)
				}
			}
		}
	}
}

// put notes the value at an offset.
func (f *facts) put(tp TopicPartition, offset int64, value string, o *Op) *slot {
	l := f.log(tp)
	s := l.at[offset]
	if s == nil {
		s = &slot{value: value}
		l.at[offset] = s
		return s
	}
	if s.value != value {
		f.report.find(InconsistentOffset, []*Op{s.by, s.read, s.dirty, o}, "%s has had %q and %q", place(tp.Topic, tp.Partition, offset), s.value, value)
	}
	return s
}

// sorted fills in what is visible in each partition; outcomes must be settled.
func (f *facts) sorted() {
	for _, l := range f.logs {
		for offset, s := range l.at {
			l.all = append(l.all, offset)
			if s.read != nil || s.by != nil && f.settled(s.by) == committed {
				l.visible = append(l.visible, offset)
			}
		}
		slices.Sort(l.all)
		slices.Sort(l.visible)
	}
}

// settled is the fate of what an operation did: that of its transaction, or its own.
func (f *facts) settled(o *Op) status {
	switch {
	case o.Outcome == Fail:
		return aborted
	case o.Txn > 0:
		return f.txns[o.Txn].status
	case o.Outcome == OK:
		return committed
	}
	return open
}

func (f *facts) count() {
	for i := range f.txns[1:] {
		switch f.txns[i+1].status {
		case committed:
			f.report.Committed++
		case aborted:
			f.report.Aborted++
		default:
			f.report.Open++
		}
	}
	f.sorted()
}

// partitions lists the partitions in order, so that reports do not depend on that of a map.
func (f *facts) partitions() []TopicPartition {
	var list []TopicPartition
	for tp := range f.logs {
		list = append(list, tp)
	}
	slices.SortFunc(list, compare)
	return list
}
