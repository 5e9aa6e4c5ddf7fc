package transactions

import (
	"fmt"

	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	producing "github.com/ottla-kafka/ottla/producer/machine"
	"github.com/ottla-kafka/ottla/txn/machine"
)

// offsetsPart stands beside the partitions of out.
const offsetsPart = 2

// ledger is what an onlooker knows who sees everything, and what he holds against the machines.
type ledger struct {
	w      *world
	where  map[label]int32 // partition that a record is in
	fate   map[label]wish
	open   [3]map[int64][]label // by producer
	fenced [3]map[int64]int16   // newest epoch of a marker
	seq    [2]map[transaction.Producer]int32
	coord  [3]int32 // newest coordinator epoch of a marker
	stable [2]int64
	moved  bool               // logs have changed since the last check
	txns   map[label]*carried // by actor and transaction
	count  struct{ committed, aborted, doubtful, open int }
}

// carried is one transaction of a session.
type carried struct {
	asked   bool // EndTxn(commit) was sent
	told    machine.Outcome
	records []label
	acked   map[label]bool
	end     wish
}

func (l *ledger) init(w *world) {
	l.w, l.where, l.fate, l.txns = w, map[label]int32{}, map[label]wish{}, map[label]*carried{}
	for i := range l.open {
		l.open[i], l.fenced[i] = map[int64][]label{}, map[int64]int16{}
	}
	for i := range l.seq {
		l.seq[i] = map[transaction.Producer]int32{}
	}
}

func (l *ledger) of(of label) *carried {
	of.index = 0
	t := l.txns[of]
	if t == nil {
		t = &carried{acked: map[label]bool{}}
		l.txns[of] = t
	}
	return t
}

func (l *ledger) current(n *node) *carried { return l.of(label{n.index, int8(n.s.Serial()), 0}) }

func (l *ledger) submitted(of label) {
	t := l.of(of)
	t.records = append(t.records, of)
}

func (l *ledger) asked(n *node) { l.current(n).asked = true }

// appended: a record is in a log, not as a duplicate.
func (l *ledger) appended(part int32, by transaction.Producer, seq int32, of label) {
	w := l.w
	l.moved = true
	if high, ok := l.fenced[part][by.ID]; ok && by.Epoch < high {
		w.Fail("E5: %+v of %v is in partition %d behind a marker of epoch %d", of, by, part, high)
	}
	if part != offsetsPart {
		want := int32(0)
		if last, ok := l.seq[part][by]; ok {
			want = last + 1
		}
		if seq != want {
			w.Fail("E1: %+v has sequence %d of %v in partition %d, expected %d", of, seq, by, part, want)
		}
		l.seq[part][by] = seq
		if at, twice := l.where[of]; twice {
			w.Fail("E2: %+v is in partition %d, and already was in %d", of, part, at)
		}
	}
	l.where[of] = part
	l.open[part][by.ID] = append(l.open[part][by.ID], of)
}

// marked: a marker is in a log.
func (l *ledger) marked(part int32, m *transaction.Markers) {
	w := l.w
	l.moved = true
	if high := l.fenced[part][m.Producer.ID]; m.Producer.Epoch < high {
		w.Fail("E3: partition %d has a marker of %v after one of epoch %d", part, m.Producer, high)
	}
	if m.CoordinatorEpoch < l.coord[part] {
		w.Fail("E3: partition %d has a marker of coordinator epoch %d after one of %d", part, m.CoordinatorEpoch, l.coord[part])
	}
	l.fenced[part][m.Producer.ID], l.coord[part] = m.Producer.Epoch, m.CoordinatorEpoch
	end := aborts
	if m.Commit {
		end = commits
	}
	for _, of := range l.open[part][m.Producer.ID] {
		l.fate[of] = end
		t := l.of(of)
		switch {
		case t.end != nothing && t.end != end:
			w.Fail("E3: transaction %d of n%d is committed in one partition and aborted in another", of.txn, of.actor)
		case end == commits && !t.asked:
			w.Fail("E6: transaction %d of n%d is committed, which nobody has asked for", of.txn, of.actor)
		case end == commits && t.told == machine.Aborted:
			w.Fail("E6: transaction %d of n%d is committed, and its session was told that it is aborted", of.txn, of.actor)
		case end == aborts && t.told == machine.Committed:
			w.Fail("E6: transaction %d of n%d is aborted, and its session was told that it is committed", of.txn, of.actor)
		}
		t.end = end
	}
	l.open[part][m.Producer.ID] = nil
}

// verdict: a session's producer says what became of a record.
func (l *ledger) verdict(n *node, of label, v producing.Verdict) {
	_, there := l.where[of]
	l.w.Note("%s: %+v %s %s", n.name, of, v.Outcome, v.Code.Name())
	switch {
	case v.Outcome == producing.Acked && !there:
		l.w.Fail("%s: %+v is acknowledged and in no log", n.name, of)
	case v.Outcome == producing.Acked:
		l.of(of).acked[of] = true
	case v.Outcome == producing.NotWritten && there:
		l.w.Fail("%s: %+v is in a log, and said not to be written: %v", n.name, of, v)
	}
}

func (l *ledger) offsetsDone(n *node, job *machine.OffsetJob) {
	l.w.Note("%s offsets done: %v", n.name, job.Err)
	if job.Err == nil {
		of := label{n.index, int8(n.s.Serial()), offsetLabel}
		l.of(of).acked[of] = true
	}
}

// finished: a session says what became of a transaction.
func (l *ledger) finished(n *node, f *machine.Finish) {
	t := l.of(label{n.index, int8(f.Serial), 0})
	if t.told == machine.Committed || t.told == machine.Aborted {
		l.w.Fail("%s says %s of transaction %d, and said %s before", n.name, f.Outcome, f.Serial, t.told)
	}
	t.told = f.Outcome
	switch f.Outcome {
	case machine.Committed:
		l.w.Sometimes("told: committed")
		if t.end == aborts {
			l.w.Fail("E6: transaction %d of %s is aborted, and its session is told that it is committed", f.Serial, n.name)
		}
		for _, of := range t.records {
			if !t.acked[of] {
				l.w.Fail("%s: transaction %d is committed, and %+v of it was never acknowledged", n.name, f.Serial, of)
			}
		}
	case machine.Aborted:
		l.w.Sometimes("told: aborted")
		if t.end == commits {
			l.w.Fail("E6: transaction %d of %s is committed, and its session is told that it is aborted: %v", f.Serial, n.name, f.Err)
		}
	case machine.InDoubt:
		l.w.Sometimes("told: in doubt")
	}
}

func (l *ledger) over(n *node) {
	if f := n.s.Err().Fence; f != nil {
		l.w.Sometimes(fmt.Sprintf("session fenced, by %d", f.By))
		return
	}
	l.w.Sometimes("session over: " + n.s.Err().Error())
}

// check is what must hold after every event.
func (w *world) check() {
	l := &w.ledger
	if !l.moved {
		return
	}
	l.moved = false
	for i, p := range w.leaders {
		_, stable, high, _ := p.l.Offsets()
		if stable > high {
			w.Fail("E4: the last stable offset of out-%d is %d, its high watermark %d", i, stable, high)
		}
		if stable < l.stable[i] {
			w.Fail("E4: the last stable offset of out-%d goes back from %d to %d", i, l.stable[i], stable)
		}
		l.stable[i] = stable
	}
}

// scan reads both partitions as read_committed.
func (w *world) scan() map[label]bool {
	visible := map[label]bool{}
	for _, p := range w.leaders {
		for _, of := range readCommitted(p.l) {
			if w.ledger.fate[of] != commits {
				w.Fail("E3: %+v is read, and its transaction is not committed", of)
			}
			visible[of] = true
		}
	}
	return visible
}

// complete is what must hold when everything has come to rest.
func (w *world) complete() {
	l := &w.ledger
	for i, p := range w.leaders {
		if _, stable, high, end := p.l.Offsets(); stable != high || high != end {
			w.Fail("E4: out-%d hangs: last stable offset %d, high watermark %d, end %d", i, stable, high, end)
		}
	}
	for id, list := range l.open[offsetsPart] {
		if len(list) > 0 {
			w.Fail("E4: offsets %+v of producer %d hang", list, id)
		}
	}
	visible := w.scan()
	for i, n := range w.nodes {
		for serial := int8(1); uint64(serial) <= n.s.Serial(); serial++ {
			t := l.of(label{int8(i), serial, 0})
			seen := 0
			for _, of := range t.records {
				if visible[of] || of.index == offsetLabel && l.fate[of] == commits {
					seen++
				}
			}
			switch t.told {
			case machine.Committed:
				l.count.committed++
			case machine.Aborted:
				l.count.aborted++
			case machine.InDoubt:
				l.count.doubtful++
			default:
				l.count.open++
			}
			switch {
			case t.told == machine.Committed && seen != len(t.records):
				w.Fail("E3: %s was told that transaction %d is committed, and %d of %d records are there", n.name, serial, seen, len(t.records))
			case t.told == machine.Aborted && seen != 0:
				w.Fail("E3: %s was told that transaction %d is aborted, and %d of %d records are there", n.name, serial, seen, len(t.records))
			case seen != 0 && seen != len(t.records):
				w.Fail("E3: %d of %d records of transaction %d of %s are there", seen, len(t.records), serial, n.name)
			}
		}
	}
	// what the log has is what the coordinator knows
	fresh := transaction.New(transaction.Options{Environment: transaction.Environment{Level: w.level, Config: w.coord.config}, CoordinatorEpoch: w.coord.epoch})
	old := w.coord.shard
	w.coord.shard = fresh
	for i, e := range w.coord.log {
		w.coord.replay(i, e)
	}
	w.coord.shard = old
	a, b := view(old, w), view(fresh, w)
	a.Commits, a.Aborts, a.TimeOuts, a.Fences = 0, 0, 0, 0
	if fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) {
		w.Fail("G6: the coordinator has %+v, its log says %+v", a, b)
	}
}
